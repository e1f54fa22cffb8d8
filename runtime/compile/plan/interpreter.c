/* SPDX-License-Identifier: Apache-2.0 */
#include "interpreter.h"

#include "base/error.h"
#include "capture.h"
#include "executable.h"
#include "kernel_cache.h"
#include "op.h"
#include "plan.h"
#include "rounds.h"

#include <stdlib.h>
#include <string.h>

/* What a body needs to know while its step runs. */
struct bodies {
        struct sl_interpreter *interpreter;
        const struct sl_executable_step *step;
};

static int contradiction(struct sl_interpreter *interpreter, const struct sl_plan_step *step, const char *what)
{
        return sl_error_set(interpreter->dynamic.error, EIO, "plan file: %s: %s", sl_op_name(step->op), what);
}

static int over_memory(struct sl_interpreter *interpreter, const struct sl_plan_step *step)
{
        return sl_pool_explain(&interpreter->dynamic.pool, sl_op_name(step->op), interpreter->dynamic.error);
}

static const struct sl_plan_operand *operand_of(
        const struct sl_interpreter *interpreter, const struct sl_plan_step *step, uint32_t i)
{
        return &interpreter->plan->operands[step->first_operand + i];
}

static struct sl_live read_operand(const struct sl_executable *executable, const struct sl_plan_operand *operand)
{
        const struct sl_plan *plan = executable->plan;
        struct sl_live live = {.tensor = operand->tensor};

        switch (operand->place) {
        case SL_PLACE_SLOT:
                return executable->slots[operand->index];
        case SL_PLACE_CONSTANT:
                live.data = (void *)sl_plan_constant_data(plan, &plan->constants[operand->index]);
                live.constant = true;
                return live;
        case SL_PLACE_WORKSPACE:
                live.data = executable->workspace + operand->offset;
                return live;
        case SL_PLACE_INPUT:
                live.data = (void *)executable->port_inputs[operand->index];
                live.value = operand->index + 1;
                return live;
        case SL_PLACE_OUTPUT:
                live.data = executable->port_outputs[operand->index];
                return live;
        default:
                return (struct sl_live){0};
        }
}

/* Each part has its rows, one behind the other. */
static int write_parts(
        struct sl_interpreter *interpreter, const struct sl_plan_step *step, uint32_t port, const struct sl_live *live)
{
        const struct sl_shape *shape = &live->tensor.shape;
        uint64_t row_bytes = sl_tensor_bytes(&live->tensor) / (uint64_t)interpreter->rows;
        const uint8_t *from = live->data;

        if (!shape->rank || shape->dims[0] != interpreter->rows)
                return contradiction(interpreter, step, "an output of other rows than the inputs");
        for (uint32_t i = 0; i < interpreter->n_parts; i++) {
                struct sl_instance_part *part = &interpreter->parts[i];
                uint64_t bytes = row_bytes * (uint64_t)part->rows;

                part->open[port].shape = *shape;
                part->open[port].shape.dims[0] = part->rows;
                if (part->outputs[port] && bytes > part->open[port].capacity_bytes)
                        part->is_too_small = true;
                else if (part->outputs[port] && bytes)
                        memcpy(part->outputs[port], from, bytes);
                from += bytes;
        }
        return 0;
}

static int write_open(struct sl_interpreter *interpreter, const struct sl_executable *executable, const struct sl_plan_step *step,
        uint32_t port, const struct sl_live *live)
{
        uint64_t bytes = sl_tensor_bytes(&live->tensor);

        if (!interpreter->open)
                return sl_error_set(interpreter->dynamic.error, EINVAL, "output %u has a data-dependent shape", port);
        if (live->tensor.dtype != interpreter->plan->info->outputs[port].dtype ||
                live->tensor.shape.rank != interpreter->plan->info->outputs[port].shape.rank)
                return contradiction(interpreter, step, "an output of another type or rank than the model's");
        if (interpreter->parts)
                return write_parts(interpreter, step, port, live);
        interpreter->open[port].shape = live->tensor.shape;
        if (!executable->port_outputs[port]) /* nobody wants it */
                return 0;
        if (bytes > interpreter->open[port].capacity_bytes &&
                !(interpreter->open[port].more && interpreter->open[port].more(&interpreter->open[port], bytes)))
                interpreter->too_small = sl_error_set(interpreter->dynamic.error, EMSGSIZE,
                        "output \"%s\" takes %llu bytes, there is room for %llu", interpreter->plan->info->outputs[port].name,
                        (unsigned long long)bytes, (unsigned long long)interpreter->open[port].capacity_bytes);
        else if (bytes)
                memcpy(executable->port_outputs[port], live->data, bytes);
        return 0;
}

/* What has a static shape goes where the static steps look for it. */
static int write_static(struct sl_interpreter *interpreter, const struct sl_executable *executable, const struct sl_plan_step *step,
        const struct sl_plan_operand *operand, const struct sl_live *live)
{
        struct sl_live to = read_operand(executable, operand);

        if (live->tensor.dtype != to.tensor.dtype || !sl_shape_equal(&live->tensor.shape, &to.tensor.shape))
                return contradiction(interpreter, step, "it makes another shape than it says");
        if (sl_tensor_bytes(&to.tensor))
                memmove(to.data, live->data, sl_tensor_bytes(&to.tensor));
        return 0;
}

static bool is_open_output(const struct sl_executable *executable, const struct sl_plan_operand *operand)
{
        return operand->place == SL_PLACE_OUTPUT && executable->source->batch &&
               sl_port_is_open(&executable->plan->info->outputs[operand->index]);
}

static void note_written(struct sl_capture *capture, const struct sl_plan_operand *operand, const struct sl_live *live)
{
        if (operand->place == SL_PLACE_OUTPUT)
                sl_capture_output(capture, operand, live);
        else if (operand->place == SL_PLACE_WORKSPACE)
                sl_capture_place(capture, operand->offset, live->value);
        else if (operand->place != SL_PLACE_NONE)
                sl_capture_give_up(capture);
}

static int write_operand(struct sl_interpreter *interpreter, struct sl_executable *executable, const struct sl_plan_step *step,
        const struct sl_plan_operand *operand, struct sl_live *live)
{
        struct sl_pool *pool = &interpreter->dynamic.pool;
        int r;

        if (operand->place == SL_PLACE_SLOT) {
                /* What a branch hands on may be somebody else's memory, which ends before the slot does. */
                if (sl_live_own(pool, live) < 0)
                        return over_memory(interpreter, step);
                sl_live_drop(pool, &executable->slots[operand->index]);
                executable->slots[operand->index] = *live;
                *live = (struct sl_live){0};
                return 0;
        }
        r = sl_dynamic_settle(&interpreter->dynamic, live);
        if (r < 0)
                return r;
        if (interpreter->capture)
                note_written(interpreter->capture, operand, live);
        return sl_interpreter_write(interpreter, executable, step, operand, live);
}

int sl_interpreter_write(struct sl_interpreter *interpreter, struct sl_executable *executable, const struct sl_plan_step *step,
        const struct sl_plan_operand *operand, struct sl_live *live)
{
        if (is_open_output(executable, operand))
                return write_open(interpreter, executable, step, operand->index, live);
        return write_static(interpreter, executable, step, operand, live);
}

static const struct sl_plan_operand *port_of(const struct sl_executable *body, uint64_t port)
{
        return &body->plan->operands[body->source->first_operand + port];
}

/* What the node gives its body: an address for what has a static shape, a slot for the rest. */
static int give_inputs(const struct bodies *bodies, struct sl_executable *body, const struct sl_live *inputs)
{
        for (uint64_t i = 0; i < body->source->n_inputs; i++) {
                const struct sl_plan_operand *port = port_of(body, i);

                if (port->place == SL_PLACE_SLOT) {
                        sl_live_drop(&bodies->interpreter->dynamic.pool, &body->slots[port->index]);
                        body->slots[port->index] = sl_live_share(&inputs[i]);
                        continue;
                }
                if (inputs[i].tensor.dtype != port->tensor.dtype || !sl_shape_equal(&inputs[i].tensor.shape, &port->tensor.shape))
                        return contradiction(bodies->interpreter, bodies->step->source, "a body gets another shape than it says");
                body->inputs[i] = inputs[i].data;
        }
        return 0;
}

/* Room for what the body makes of static shape. */
static int make_outputs(const struct bodies *bodies, struct sl_executable *body, struct sl_live *outputs)
{
        for (uint64_t i = 0; i < body->source->n_outputs; i++) {
                const struct sl_plan_operand *port = port_of(body, body->source->n_inputs + i);

                if (port->place == SL_PLACE_SLOT)
                        continue;
                if (sl_live_make(&bodies->interpreter->dynamic.pool, &port->tensor, &outputs[i]) < 0)
                        return over_memory(bodies->interpreter, bodies->step->source);
                body->outputs[i] = outputs[i].data;
        }
        return 0;
}

static int take_slots(const struct bodies *bodies, const struct sl_executable *body, struct sl_live *outputs)
{
        for (uint64_t i = 0; i < body->source->n_outputs; i++) {
                const struct sl_plan_operand *port = port_of(body, body->source->n_inputs + i);

                if (port->place != SL_PLACE_SLOT)
                        continue;
                if (body->slots[port->index].tensor.dtype == SL_DTYPE_NONE)
                        return contradiction(bodies->interpreter, bodies->step->source, "a body does not make one of its outputs");
                outputs[i] = sl_live_share(&body->slots[port->index]);
        }
        return 0;
}

static int run_with_slots(
        const struct bodies *bodies, struct sl_executable *body, const struct sl_live *inputs, struct sl_live *ret_outputs)
{
        struct sl_live outputs[SL_NODE_OUTPUTS_MAX + 1] = {0};
        int r = give_inputs(bodies, body, inputs);

        if (r == 0)
                r = make_outputs(bodies, body, outputs);
        if (r == 0) {
                sl_executable_bind(body, body->inputs, body->outputs);
                r = sl_executable_run(body, bodies->interpreter);
        }
        if (r == 0)
                r = take_slots(bodies, body, outputs);
        for (uint64_t i = 0; i < body->source->n_outputs; i++)
                if (r < 0)
                        sl_live_drop(&bodies->interpreter->dynamic.pool, &outputs[i]);
                else
                        ret_outputs[i] = outputs[i];
        return r;
}

static int run_body(void *context, uint32_t index, const struct sl_live *inputs, uint32_t n_inputs, struct sl_live *ret_outputs,
        uint32_t n_outputs)
{
        const struct bodies *bodies = context;
        struct sl_interpreter *interpreter = bodies->interpreter;
        struct sl_executable *body = bodies->step->bodies[index];
        struct sl_live memory;
        int r;

        if (body->source->n_inputs != n_inputs || body->source->n_outputs != n_outputs)
                return contradiction(interpreter, bodies->step->source, "a body has other inputs or outputs than its node");
        r = sl_rounds_charge(interpreter, bodies->step->source->op, body);
        if (r == 0)
                r = sl_interpreter_make_slots(interpreter, bodies->step->source, body, &memory);
        if (r < 0)
                return r;
        r = run_with_slots(bodies, body, inputs, ret_outputs);
        sl_interpreter_end_slots(interpreter, body, &memory);
        return r;
}

static void describe(const struct sl_interpreter *interpreter, const struct sl_plan_step *step, struct sl_node_desc *desc)
{
        memset(desc, 0, sizeof(*desc));
        desc->op = step->op;
        desc->n_inputs = step->n_inputs;
        desc->n_outputs = step->n_outputs;
        desc->epilogue = step->epilogue;
        desc->attrs.count = step->n_attrs;
        memcpy(desc->attrs.items, &interpreter->plan->attrs[step->first_attr], step->n_attrs * sizeof(struct sl_attr));
        for (uint32_t i = 0; i < step->n_outputs; i++)
                desc->outputs[i] = operand_of(interpreter, step, step->n_inputs + i)->tensor;
}

static int compute(struct sl_interpreter *interpreter, const struct sl_executable_step *step, const struct sl_live *inputs,
        struct sl_live *outputs)
{
        struct bodies bodies = {.interpreter = interpreter, .step = step};
        const struct sl_plan_step *source = step->source;
        struct sl_node_desc desc;

        if (source->op == SL_OP_IDENTITY && source->n_inputs == 1 && source->n_outputs == 1) {
                outputs[0] = sl_live_share(&inputs[0]);
                return sl_dynamic_step(&interpreter->dynamic, source->op);
        }
        describe(interpreter, source, &desc);
        if (sl_op_traits(source->op) & SL_OP_CONTROL)
                return sl_control_run(&interpreter->dynamic, &desc, inputs, run_body, &bodies, outputs);
        return sl_dynamic_run(&interpreter->dynamic, &desc, inputs, outputs);
}

/* By its number, where the run is noted. */
static struct sl_live name_operand(const struct sl_capture *capture, const struct sl_plan_operand *operand, struct sl_live live)
{
        if (capture && operand->place == SL_PLACE_WORKSPACE)
                live.value = sl_capture_value(capture, operand->offset);
        return live;
}

void sl_interpreter_note(
        struct sl_interpreter *interpreter, const struct sl_executable *executable, const struct sl_executable_step *step)
{
        const struct sl_plan_step *source = step->source;
        const struct sl_dynamic_kernel kernel = {.backend = step->session->backend, .kernel = step->kernel};
        struct sl_live lives[SL_NODE_INPUTS_MAX + SL_NODE_OUTPUTS_MAX], *outputs = lives + source->n_inputs;
        const struct sl_dynamic_recorder *recorder = interpreter->dynamic.recorder;
        struct sl_node_desc node;

        describe(interpreter, source, &node);
        for (uint32_t i = 0; i < source->n_inputs + source->n_outputs; i++) {
                const struct sl_plan_operand *operand = operand_of(interpreter, source, i);

                lives[i] = name_operand(interpreter->capture, operand, read_operand(executable, operand));
                if (i < source->n_inputs)
                        node.inputs[i] = lives[i].tensor;
        }
        sl_capture_step(interpreter->capture, source);
        recorder->launched(recorder->context, &(struct sl_dynamic_launch){.node = &node,
                                                      .kernel = &kernel,
                                                      .inputs = lives,
                                                      .outputs = outputs,
                                                      .scratch_bytes = source->scratch_bytes});
        for (uint32_t i = 0; i < source->n_outputs; i++)
                note_written(interpreter->capture, operand_of(interpreter, source, source->n_inputs + i), &outputs[i]);
}

static int read_inputs(struct sl_interpreter *interpreter, const struct sl_executable *executable, const struct sl_plan_step *step,
        struct sl_live *inputs)
{
        for (uint32_t i = 0; i < step->n_inputs; i++) {
                const struct sl_plan_operand *operand = operand_of(interpreter, step, i);

                inputs[i] = name_operand(interpreter->capture, operand, read_operand(executable, operand));
                if (operand->place != SL_PLACE_NONE && inputs[i].tensor.dtype == SL_DTYPE_NONE)
                        return contradiction(interpreter, step, "it reads what nothing has made");
        }
        return 0;
}

/* Slots that nobody reads any more. */
static void drop_read(struct sl_interpreter *interpreter, struct sl_executable *executable, const struct sl_plan_step *step)
{
        for (uint32_t i = 0; i < step->n_inputs; i++) {
                const struct sl_plan_operand *operand = operand_of(interpreter, step, i);

                if (operand->place == SL_PLACE_SLOT && operand->offset)
                        sl_live_drop(&interpreter->dynamic.pool, &executable->slots[operand->index]);
        }
}

static int run_open(struct sl_interpreter *interpreter, struct sl_executable *executable, const struct sl_executable_step *step)
{
        struct sl_live inputs[SL_NODE_INPUTS_MAX], outputs[SL_NODE_OUTPUTS_MAX] = {0};
        const struct sl_plan_step *source = step->source;
        int r = read_inputs(interpreter, executable, source, inputs);

        if (interpreter->capture)
                sl_capture_step(interpreter->capture, source);
        if (r == 0)
                r = compute(interpreter, step, inputs, outputs);
        for (uint32_t i = 0; i < source->n_outputs && r == 0; i++)
                r = write_operand(
                        interpreter, executable, source, operand_of(interpreter, source, source->n_inputs + i), &outputs[i]);
        for (uint32_t i = 0; i < source->n_outputs; i++)
                sl_live_drop(&interpreter->dynamic.pool, &outputs[i]);
        if (r == 0)
                drop_read(interpreter, executable, source);
        return r;
}

int sl_interpreter_step(struct sl_interpreter *interpreter, struct sl_executable *executable, const struct sl_executable_step *step)
{
        bool settled = step->rounds && step->rounds->settled;
        int r = settled ? sl_rounds_run(interpreter, step) : run_open(interpreter, executable, step);

        return r < 0 && step->source->name ? sl_error_prefix(interpreter->dynamic.error, r, "node \"%s\"",
                                                     sl_plan_step_name(interpreter->plan, step->source))
                                           : r;
}

void sl_interpreter_begin(struct sl_interpreter *interpreter, const struct sl_plan *plan, const struct sl_plan_program *program,
        struct sl_pace *pace, struct sl_sessions *sessions, struct sl_kernel_cache *kernels, struct sl_open_output *open,
        struct sl_error *error)
{
        *interpreter = (struct sl_interpreter){.plan = plan,
                .pace = pace,
                .sessions = sessions,
                .open = open,
                .dynamic = {.pool.limit_bytes = program->dynamic_bytes,
                        .steps_left = program->dynamic_steps,
                        .work_left = program->work,
                        .pace = pace,
                        .error = error,
                        .find = kernels ? sl_kernel_cache_find : NULL,
                        .find_context = kernels,
                        .layouts = kernels && program->n_inputs}};
}

int sl_interpreter_make_slots(
        struct sl_interpreter *interpreter, const struct sl_plan_step *step, struct sl_executable *body, struct sl_live *ret_memory)
{
        const struct sl_tensor bytes = {
                .dtype = SL_DTYPE_U8, .shape = {.rank = 1, .dims = {(int64_t)(body->source->n_slots * sizeof(*body->slots))}}};

        if (sl_live_make(&interpreter->dynamic.pool, &bytes, ret_memory) < 0)
                return over_memory(interpreter, step);
        body->slots = memset(ret_memory->data, 0, (size_t)bytes.shape.dims[0]);
        return 0;
}

void sl_interpreter_end_slots(struct sl_interpreter *interpreter, struct sl_executable *body, struct sl_live *memory)
{
        sl_interpreter_drop_slots(interpreter, body);
        body->slots = NULL;
        sl_live_drop(&interpreter->dynamic.pool, memory);
}

void sl_interpreter_drop_slots(struct sl_interpreter *interpreter, struct sl_executable *executable)
{
        for (uint64_t i = 0; i < executable->source->n_slots; i++)
                sl_live_drop(&interpreter->dynamic.pool, &executable->slots[i]);
}
