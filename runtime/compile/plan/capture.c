/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"

#include "base/bytes.h"
#include "kernel_cache.h"
#include "op.h"
#include "run_replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Fixed values of more bytes are made again in each run: a thousand replays may be kept. */
#define KEPT_BYTES_MAX 4096u

/* A ref to a value, as long as it is not chosen where that lies: the offset is its number. */
#define VALUE UINT32_MAX

/* An array that grows. */
struct list {
        void *items;
        uint32_t n, room;
};

struct value {
        struct sl_run_replay_ref ref; /* in the arena the offset is chosen at the end */
        uint64_t bytes;
        uint32_t first, last; /* the steps that make it, and that read it last */
        bool fixed;
};

/* A value in the workspace, where steps of fixed shapes look for it. */
struct place {
        uint64_t offset;
        uint32_t value;
};

/* A step of the replay, whose pointers are indices as long as lists grow. */
struct noted {
        struct sl_run_replay_step step;
        uint32_t first_ref, first_attr, first_tensor;
};

struct sl_capture {
        struct sl_dynamic_recorder recorder;
        const struct sl_plan_step *source;
        uint32_t n_inputs;
        bool failed, varies;
        struct list values;  /* of struct value; number 0 is nobody's */
        struct list steps;   /* of struct noted */
        struct list refs;    /* of struct sl_run_replay_ref */
        struct list attrs;   /* of struct sl_attr */
        struct list tensors; /* of struct sl_tensor */
        struct list outputs; /* of struct sl_run_replay_output */
        struct list kept;    /* of bytes */
        struct list places;  /* of struct place: the last at an offset is what lies there */
        struct list alive;   /* of uint32_t: at the end, values in the arena by their offsets */
};

/* Room for @n more items of so many bytes. NULL: the capture has failed, or does now. */
static void *more(struct sl_capture *capture, struct list *list, uint32_t n, size_t item_bytes)
{
        void *items = list->items;
        uint32_t room = list->room ? list->room : 16;

        if (capture->failed)
                return NULL;
        while (room - list->n < n)
                room *= 2;
        if (room != list->room)
                items = reallocarray(items, room, item_bytes);
        if (!items) {
                capture->failed = true;
                return NULL;
        }
        list->items = items;
        list->room = room;
        list->n += n;
        return (uint8_t *)items + (list->n - n) * item_bytes;
}

static struct value *value_at(const struct sl_capture *capture, uint64_t number)
{
        return (struct value *)capture->values.items + number;
}

/* A new value. Return: its number; 0: the capture has failed. */
static uint32_t add_value(struct sl_capture *capture, uint32_t base, uint64_t bytes, bool fixed)
{
        struct value *value = more(capture, &capture->values, 1, sizeof(*value));

        if (!value)
                return 0;
        *value = (struct value){
                .ref.base = base, .bytes = bytes, .first = capture->steps.n, .last = capture->steps.n, .fixed = fixed};
        return capture->values.n - 1;
}

/* The step at hand, or what comes behind the last one, reads or writes it. */
static struct sl_run_replay_ref use_value(const struct sl_capture *capture, uint32_t number)
{
        struct value *value = value_at(capture, number);

        if (value->last < capture->steps.n)
                value->last = capture->steps.n;
        return (struct sl_run_replay_ref){.base = VALUE, .offset = number};
}

/* ---- what the interpreter tells ---- */

static bool is_fixed(const struct sl_capture *capture, const struct sl_live *live)
{
        return live->tensor.dtype == SL_DTYPE_NONE || live->constant || (live->value && value_at(capture, live->value)->fixed);
}

static bool all_are_fixed(const struct sl_capture *capture, const struct sl_live *inputs, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                if (!is_fixed(capture, &inputs[i]))
                        return false;
        return true;
}

static void note_begin(void *context, const struct sl_node_desc *node, const struct sl_live *inputs)
{
        struct sl_capture *capture = context;

        if (capture->failed)
                return;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                capture->varies |= sl_op_parameter(node->op, i) >= 0 && !is_fixed(capture, &inputs[i]);
        capture->varies |= (sl_op_traits(node->op) & SL_OP_COUNTS) && !all_are_fixed(capture, inputs, node->n_inputs);
        capture->failed |= capture->varies;
}

static struct sl_run_replay_ref ref_of(struct sl_capture *capture, const struct sl_live *live)
{
        if (live->value)
                return use_value(capture, live->value);
        capture->varies |= !live->constant;
        capture->failed |= capture->varies;
        return (struct sl_run_replay_ref){.base = SL_REPLAY_PLAN, .offset = (uintptr_t)live->data};
}

static struct sl_run_replay_ref input_ref(struct sl_capture *capture, const struct sl_dynamic_launch *launch, uint32_t i)
{
        const void *packed = i < SL_DYNAMIC_PACKED_MAX ? launch->kernel->packed[i] : NULL;

        if (packed)
                return (struct sl_run_replay_ref){.base = SL_REPLAY_PLAN, .offset = (uintptr_t)packed};
        if (launch->node->inputs[i].dtype == SL_DTYPE_NONE)
                return (struct sl_run_replay_ref){.base = SL_REPLAY_NOTHING};
        return ref_of(capture, &launch->inputs[i]);
}

/* Only what `ref` runs: kernels have read theirs. */
static void note_node(struct sl_capture *capture, const struct sl_node_desc *node, struct noted *noted)
{
        struct sl_tensor *tensors;
        struct sl_attr *attrs;

        noted->first_attr = capture->attrs.n;
        noted->first_tensor = capture->tensors.n;
        noted->step.node = (struct sl_run_replay_node){.epilogue = node->epilogue,
                .op = node->op,
                .n_inputs = node->n_inputs,
                .n_outputs = node->n_outputs,
                .n_attrs = node->attrs.count};
        attrs = more(capture, &capture->attrs, node->attrs.count, sizeof(*attrs));
        tensors = more(capture, &capture->tensors, node->n_inputs + node->n_outputs, sizeof(*tensors));
        if (!attrs || !tensors)
                return;
        memcpy(attrs, node->attrs.items, node->attrs.count * sizeof(*attrs));
        memcpy(tensors, node->inputs, node->n_inputs * sizeof(*tensors));
        memcpy(tensors + node->n_inputs, node->outputs, node->n_outputs * sizeof(*tensors));
}

static void note_step(struct sl_capture *capture, const struct sl_dynamic_launch *launch)
{
        const struct sl_node_desc *node = launch->node;
        struct sl_run_replay_ref *refs;
        struct noted noted = {.first_ref = capture->refs.n};
        uint32_t scratch;

        noted.step =
                (struct sl_run_replay_step){.source = capture->source, .n_inputs = node->n_inputs, .n_outputs = node->n_outputs};
        if (!launch->kernel->backend)
                note_node(capture, node, &noted);
        refs = more(capture, &capture->refs, node->n_inputs + node->n_outputs, sizeof(*refs));
        for (uint32_t i = 0; refs && i < node->n_inputs; i++)
                refs[i] = input_ref(capture, launch, i);
        for (uint32_t i = 0; refs && i < node->n_outputs; i++)
                refs[node->n_inputs + i] = use_value(capture, launch->outputs[i].value);
        scratch = launch->scratch_bytes ? add_value(capture, SL_REPLAY_ARENA, launch->scratch_bytes, false) : 0;
        if (scratch)
                noted.step.scratch = (struct sl_run_replay_ref){.base = VALUE, .offset = scratch};
        struct noted *step = more(capture, &capture->steps, 1, sizeof(*step));
        if (!step)
                return;
        if (launch->kernel->backend) {
                noted.step.backend = launch->kernel->backend;
                noted.step.kernel = launch->kernel->kernel;
                noted.step.kept = launch->kernel->kept;
                if (noted.step.kept)
                        sl_kept_kernel_hold(noted.step.kept);
        }
        *step = noted;
}

/* Its bytes, from now on: the step that has made it runs no more. */
static uint32_t keep_value(struct sl_capture *capture, const struct sl_live *live)
{
        uint64_t bytes = sl_tensor_bytes(&live->tensor);
        uint32_t at = capture->kept.n;
        uint8_t *kept = more(capture, &capture->kept, (uint32_t)sl_align_up(bytes, SL_LINE_BYTES), 1);
        uint32_t number = kept ? add_value(capture, SL_REPLAY_KEPT, bytes, true) : 0;

        if (!number)
                return 0;
        if (bytes)
                memcpy(kept, live->data, bytes);
        value_at(capture, number)->ref.offset = at;
        return number;
}

static bool is_small(const struct sl_dynamic_launch *launch)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < launch->node->n_outputs; i++)
                bytes += sl_tensor_bytes(&launch->outputs[i].tensor);
        return bytes <= KEPT_BYTES_MAX;
}

/* It has the bytes of its input, which nobody makes again. */
static bool is_view(const struct sl_dynamic_launch *launch)
{
        const struct sl_node_desc *node = launch->node;

        return (sl_op_traits(node->op) & SL_OP_VIEW) && node->n_outputs == 1 && launch->inputs[0].value &&
               node->inputs[0].layout == SL_LAYOUT_PLAIN && node->outputs[0].layout == SL_LAYOUT_PLAIN &&
               node->inputs[0].dtype == node->outputs[0].dtype &&
               sl_tensor_bytes(&node->inputs[0]) == sl_tensor_bytes(&node->outputs[0]);
}

static void note_launched(void *context, const struct sl_dynamic_launch *launch)
{
        struct sl_capture *capture = context;
        const struct sl_node_desc *node = launch->node;
        bool fixed;

        /* A better kernel may come. */
        capture->failed |= !launch->kernel->backend && launch->kernel->spent_ns;
        if (capture->failed)
                return;
        if (is_view(launch)) {
                launch->outputs[0].value = launch->inputs[0].value;
                return;
        }
        fixed = node->op == SL_OP_SHAPE || all_are_fixed(capture, launch->inputs, node->n_inputs);
        if (fixed && is_small(launch)) {
                for (uint32_t i = 0; i < node->n_outputs; i++)
                        launch->outputs[i].value = keep_value(capture, &launch->outputs[i]);
                return;
        }
        for (uint32_t i = 0; i < node->n_outputs; i++)
                launch->outputs[i].value = add_value(capture, SL_REPLAY_ARENA, sl_tensor_bytes(&launch->outputs[i].tensor), fixed);
        if (!capture->failed)
                note_step(capture, launch);
}

void sl_capture_begin(struct sl_capture *capture, uint32_t n_inputs)
{
        capture->failed = capture->varies = false;
        capture->n_inputs = n_inputs;
        (void)add_value(capture, SL_REPLAY_NOTHING, 0, false);
        for (uint32_t i = 0; i < n_inputs; i++)
                (void)add_value(capture, SL_REPLAY_INPUT + i, 0, false);
}

const struct sl_dynamic_recorder *sl_capture_recorder(const struct sl_capture *capture)
{
        return &capture->recorder;
}

void sl_capture_input(struct sl_capture *capture, uint32_t index, uint64_t bytes)
{
        if (!capture->failed)
                value_at(capture, index + 1)->bytes = bytes;
}

void sl_capture_step(struct sl_capture *capture, const struct sl_plan_step *step)
{
        capture->source = step;
}

void sl_capture_output(struct sl_capture *capture, const struct sl_plan_operand *operand, const struct sl_live *live)
{
        struct sl_run_replay_output *output = more(capture, &capture->outputs, 1, sizeof(*output));

        if (!output)
                return;
        *output = (struct sl_run_replay_output){
                .source = capture->source, .operand = operand, .ref = ref_of(capture, live), .tensor = live->tensor};
        if (live->value) /* it is written when all steps have run */
                value_at(capture, live->value)->last = UINT32_MAX;
}

void sl_capture_place(struct sl_capture *capture, uint64_t offset, uint32_t value)
{
        struct place *place = more(capture, &capture->places, 1, sizeof(*place));

        if (place)
                *place = (struct place){.offset = offset, .value = value};
}

uint32_t sl_capture_value(const struct sl_capture *capture, uint64_t offset)
{
        const struct place *places = capture->places.items;

        for (uint32_t i = capture->places.n; i-- > 0;)
                if (places[i].offset == offset)
                        return places[i].value;
        return 0;
}

void sl_capture_give_up(struct sl_capture *capture)
{
        capture->failed = capture->varies = true;
}

bool sl_capture_varies(const struct sl_capture *capture)
{
        return capture->varies;
}

/* ---- the end ---- */

/* Values that are over before @step make room. */
static void end_values(struct sl_capture *capture, uint32_t step)
{
        uint32_t *alive = capture->alive.items, n = 0;

        for (uint32_t i = 0; i < capture->alive.n; i++)
                if (value_at(capture, alive[i])->last >= step)
                        alive[n++] = alive[i];
        capture->alive.n = n;
}

/* At the lowest offset where nothing lies that lives as long as it does. Return: where it ends. */
static uint64_t place_value(struct sl_capture *capture, uint32_t number, uint64_t offset)
{
        struct value *value = value_at(capture, number);
        uint64_t bytes = sl_align_up(value->bytes ? value->bytes : 1, SL_LINE_BYTES);
        uint32_t at = 0, *alive;

        if (!more(capture, &capture->alive, 1, sizeof(*alive)))
                return 0;
        alive = capture->alive.items;
        for (; at + 1 < capture->alive.n; at++) {
                const struct value *other = value_at(capture, alive[at]);

                if (other->ref.offset >= offset + bytes)
                        break;
                offset = sl_align_up(other->ref.offset + (other->bytes ? other->bytes : 1), SL_LINE_BYTES);
        }
        memmove(&alive[at + 1], &alive[at], (capture->alive.n - 1 - at) * sizeof(*alive));
        alive[at] = number;
        value->ref.offset = offset;
        return offset + bytes;
}

/* Behind the room for copies of inputs. Values are in the order of the steps that make them. Return: what all of them take. */
static uint64_t place_values(struct sl_capture *capture, uint64_t front_bytes)
{
        uint64_t most = front_bytes;

        capture->alive.n = 0;
        for (uint32_t i = 1; i < capture->values.n; i++) {
                uint64_t end;

                if (value_at(capture, i)->ref.base != SL_REPLAY_ARENA)
                        continue;
                end_values(capture, value_at(capture, i)->first);
                end = place_value(capture, i, front_bytes);
                most = end > most ? end : most;
        }
        return most;
}

static uint64_t inputs_bytes(const struct sl_capture *capture)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < capture->n_inputs; i++)
                bytes += sl_align_up(value_at(capture, i + 1)->bytes, SL_LINE_BYTES);
        return bytes;
}

static void settle_ref(const struct sl_capture *capture, struct sl_run_replay_ref *ref)
{
        if (ref->base == VALUE)
                *ref = value_at(capture, ref->offset)->ref;
}

/* The parts of its block. */
struct parts {
        uint64_t bytes;
        struct sl_run_replay *replay;
        uint64_t *inputs;
        struct sl_run_replay_step *steps;
        struct sl_run_replay_ref *refs;
        struct sl_attr *attrs;
        struct sl_tensor *tensors;
        struct sl_run_replay_output *outputs;
        uint8_t *kept;
};

static void *take_part(struct parts *parts, uint8_t *block, uint64_t bytes)
{
        void *part = block ? block + parts->bytes : NULL;

        parts->bytes += sl_align_up(bytes, SL_LINE_BYTES);
        return part;
}

/* @block: NULL, to know how much it is. */
static struct parts lay_out(const struct sl_capture *capture, uint8_t *block)
{
        struct parts parts = {0};

        parts.replay = take_part(&parts, block, sizeof(*parts.replay));
        parts.inputs = take_part(&parts, block, capture->n_inputs * sizeof(*parts.inputs));
        parts.steps = take_part(&parts, block, capture->steps.n * sizeof(*parts.steps));
        parts.refs = take_part(&parts, block, capture->refs.n * sizeof(*parts.refs));
        parts.attrs = take_part(&parts, block, capture->attrs.n * sizeof(*parts.attrs));
        parts.tensors = take_part(&parts, block, capture->tensors.n * sizeof(*parts.tensors));
        parts.outputs = take_part(&parts, block, capture->outputs.n * sizeof(*parts.outputs));
        parts.kept = take_part(&parts, block, capture->kept.n);
        return parts;
}

static void copy_list(void *to, const struct list *list, size_t item_bytes)
{
        if (list->n)
                memcpy(to, list->items, list->n * item_bytes);
}

static void fill_steps(const struct sl_capture *capture, const struct parts *parts)
{
        const struct noted *noted = capture->steps.items;

        for (uint32_t i = 0; i < capture->refs.n; i++)
                settle_ref(capture, &parts->refs[i]);
        for (uint32_t i = 0; i < capture->steps.n; i++) {
                struct sl_run_replay_step *step = &parts->steps[i];

                *step = noted[i].step;
                step->refs = parts->refs + noted[i].first_ref;
                step->node.attrs = parts->attrs + noted[i].first_attr;
                step->node.tensors = parts->tensors + noted[i].first_tensor;
                settle_ref(capture, &step->scratch);
                if (!step->kept)
                        continue;
                sl_kept_kernel_hold(step->kept);
                parts->replay->bytes += sl_kept_kernel_bytes(step->kept);
        }
}

static void fill(const struct sl_capture *capture, const struct parts *parts, uint64_t arena_bytes)
{
        uint64_t offset = 0;

        *parts->replay = (struct sl_run_replay){.n_inputs = capture->n_inputs,
                .n_steps = capture->steps.n,
                .n_outputs = capture->outputs.n,
                .arena_bytes = arena_bytes,
                .inputs = parts->inputs,
                .steps = parts->steps,
                .outputs = parts->outputs,
                .kept = parts->kept,
                .bytes = parts->bytes};
        for (uint32_t i = 0; i < capture->n_inputs; i++) {
                parts->inputs[i] = offset;
                offset += sl_align_up(value_at(capture, i + 1)->bytes, SL_LINE_BYTES);
        }
        copy_list(parts->refs, &capture->refs, sizeof(*parts->refs));
        copy_list(parts->attrs, &capture->attrs, sizeof(*parts->attrs));
        copy_list(parts->tensors, &capture->tensors, sizeof(*parts->tensors));
        copy_list(parts->outputs, &capture->outputs, sizeof(*parts->outputs));
        copy_list(parts->kept, &capture->kept, 1);
        fill_steps(capture, parts);
        for (uint32_t i = 0; i < capture->outputs.n; i++)
                settle_ref(capture, &parts->outputs[i].ref);
}

static struct sl_run_replay *make_replay(struct sl_capture *capture)
{
        uint64_t arena_bytes = capture->failed ? 0 : place_values(capture, inputs_bytes(capture));
        struct parts parts;
        uint8_t *block;

        if (capture->failed)
                return NULL;
        block = aligned_alloc(SL_LINE_BYTES, lay_out(capture, NULL).bytes);
        if (!block)
                return NULL;
        parts = lay_out(capture, block);
        fill(capture, &parts, arena_bytes);
        return parts.replay;
}

static void forget(struct sl_capture *capture)
{
        const struct noted *noted = capture->steps.items;

        for (uint32_t i = 0; i < capture->steps.n; i++)
                sl_kept_kernel_drop(noted[i].step.kept);
        capture->values.n = capture->steps.n = capture->refs.n = capture->attrs.n = 0;
        capture->tensors.n = capture->outputs.n = capture->kept.n = capture->alive.n = capture->places.n = 0;
}

struct sl_run_replay *sl_capture_end(struct sl_capture *capture, bool is_done)
{
        struct sl_run_replay *replay = is_done ? make_replay(capture) : NULL;

        forget(capture);
        return replay;
}

int sl_capture_new(struct sl_capture **ret_capture)
{
        struct sl_capture *capture = calloc(1, sizeof(*capture));

        if (!capture)
                return -ENOMEM;
        capture->recorder = (struct sl_dynamic_recorder){.begin = note_begin, .launched = note_launched, .context = capture};
        *ret_capture = capture;
        return 0;
}

struct sl_capture *sl_capture_free(struct sl_capture *capture)
{
        if (!capture)
                return NULL;
        forget(capture);
        free(capture->values.items);
        free(capture->steps.items);
        free(capture->refs.items);
        free(capture->attrs.items);
        free(capture->tensors.items);
        free(capture->outputs.items);
        free(capture->kept.items);
        free(capture->places.items);
        free(capture->alive.items);
        free(capture);
        return NULL;
}
