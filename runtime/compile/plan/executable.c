/* SPDX-License-Identifier: Apache-2.0 */
#include "executable.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "chains.h"
#include "interpreter.h"
#include "op.h"
#include "pace.h"
#include "residence.h"
#include "resident_ports.h"
#include "team_room.h"

#include <errno.h>
#include <stdlib.h>

SL_DEFINE_CLEANUP(struct sl_executable *, sl_executable_free)

/* What all programs of one tree are built with. */
struct builder {
        const struct sl_plan *plan;
        struct sl_pace *pace;
        const struct sl_sessions *sessions;
        struct sl_plan_call *call; /* of the step at hand; large */
        uint64_t n_numbers;
        struct sl_error *error;
};

static uint64_t count_pointers(const struct sl_plan *plan, const struct sl_plan_program *source)
{
        uint64_t n = 0;

        for (uint64_t i = 0; i < source->n_steps; i++) {
                const struct sl_plan_step *step = &plan->steps[source->first_step + i];

                n += step->n_inputs + step->n_outputs;
        }
        return n;
}

static void *pointer_of(const struct sl_executable *executable, const struct sl_plan_operand *operand)
{
        const struct sl_plan *plan = executable->plan;

        switch (operand->place) {
        case SL_PLACE_WORKSPACE:
                return executable->workspace + operand->offset;
        case SL_PLACE_CONSTANT:
                if (executable->constants)
                        return sl_residence_constant(executable->constants, &plan->constants[operand->index]);
                return (void *)sl_plan_constant_data(plan, &plan->constants[operand->index]);
        default:
                return NULL;
        }
}

static void bind_operand(struct sl_executable *executable, const struct sl_plan_operand *operand, void **slot)
{
        *slot = pointer_of(executable, operand);
        if (operand->place == SL_PLACE_INPUT || operand->place == SL_PLACE_OUTPUT)
                executable->patches[executable->n_patches++] =
                        (struct sl_executable_patch){.slot = slot, .place = operand->place, .port = operand->index};
}

/* The slots of a step: its inputs, then its outputs. */
static void bind_step(
        const struct builder *builder, struct sl_executable *executable, struct sl_executable_step *step, void **slots)
{
        const struct sl_plan_step *source = step->source;

        for (uint32_t i = 0; i < source->n_inputs + source->n_outputs; i++)
                bind_operand(executable, &builder->plan->operands[source->first_operand + i], &slots[i]);
        step->binding.pace = builder->pace;
        step->binding.draws = &builder->pace->draws;
        step->binding.inputs = (const void *const *)slots;
        step->binding.outputs = slots + source->n_inputs;
        step->binding.scratch = source->scratch_bytes ? executable->workspace + source->scratch_offset : NULL;
}

static int lacks_scratch(const struct builder *builder, const struct sl_plan_step *source, uint64_t wanted)
{
        return sl_error_set(builder->error, EBADMSG, "plan file: a %s wants %llu bytes of scratch and has %llu",
                sl_op_name(source->op), (unsigned long long)wanted, (unsigned long long)source->scratch_bytes);
}

/* Elementary steps of `ref` that one launch counts as. */
static uint64_t work_of(const struct sl_node_desc *node, const struct sl_backend *backend)
{
        uint64_t work = sl_op_work(node), weighted;

        if (sl_mul_overflows(work, backend->step_weight, &weighted))
                return UINT64_MAX;
        return weighted / sl_backend_ref.step_weight + 1;
}

static int compile_call(struct builder *builder, struct sl_executable_step *step)
{
        const struct sl_plan_backend *row = &builder->plan->backends[step->source->backend];
        const struct sl_runner *runner = step->session->backend->runner;
        struct sl_kernel_source source = {.node = &builder->call->node,
                .packed = builder->call->packed,
                .constants = builder->call->constants,
                .target = &builder->plan->header->target};
        struct sl_blob blob;
        int r;

        if (step->source->blob != SL_PLAN_NO_BLOB) {
                blob = sl_plan_blob(builder->plan, row, step->source->blob);
                source.blob = &blob;
        }
        r = runner->compile(step->session->session, &source, &step->kernel, builder->error);
        if (r < 0)
                return sl_error_prefix(builder->error, r, "%s on backend \"%s\"", sl_op_name(step->source->op), row->name);
        if (runner->scratch_bytes(step->kernel) > step->source->scratch_bytes)
                return lacks_scratch(builder, step->source, runner->scratch_bytes(step->kernel));
        return 0;
}

static int compile_kernel(struct builder *builder, struct sl_executable *executable, struct sl_executable_step *step)
{
        const struct sl_plan_step *source = step->source;
        uint64_t work;
        int r = sl_plan_read_step(builder->plan, source, builder->call);

        step->session = &builder->sessions->list[source->backend];
        if (r < 0)
                return sl_error_set(
                        builder->error, -r, "plan file: the shapes of a %s contradict each other", sl_op_name(source->op));
        r = compile_call(builder, step);
        if (r < 0)
                return r;
        work = work_of(&builder->call->node, step->session->backend);
        executable->work = executable->work > UINT64_MAX - work ? UINT64_MAX : executable->work + work;
        return 0;
}

static int build(struct builder *builder, uint64_t number, uint8_t *workspace, struct sl_executable **ret_executable);

/* The workspaces of its bodies are the front of its scratch, for only one of them runs at a time. */
static int build_bodies(struct builder *builder, const struct sl_executable *executable, struct sl_executable_step *step)
{
        const struct sl_plan_step *source = step->source;
        int r = 0;

        step->rounds = calloc(1, sizeof(*step->rounds));
        if (!step->rounds)
                return -ENOMEM;
        r = sl_rounds_of_step(builder->plan, source, step->rounds);
        if (r < 0)
                return sl_error_set(builder->error, -r, "plan file: the bodies of a %s contradict it", sl_op_name(source->op));
        if (step->rounds->bytes > source->scratch_bytes)
                return lacks_scratch(builder, source, step->rounds->bytes);
        for (uint64_t b = 0; b < source->n_bodies && r == 0; b++)
                r = build(builder, source->first_body + b, executable->workspace + source->scratch_offset, &step->bodies[b]);
        return r;
}

static int build_step(struct builder *builder, struct sl_executable *executable, struct sl_executable_step *step)
{
        executable->dynamic = executable->dynamic || step->source->dynamic;
        if (!step->source->dynamic)
                return compile_kernel(builder, executable, step);
        return step->source->n_bodies ? build_bodies(builder, executable, step) : 0;
}

/* Tables of at least one element, so that an empty program needs no special case. */
static int allocate_tables(struct sl_executable *executable, uint64_t n_pointers)
{
        const struct sl_plan_program *source = executable->source;

        executable->steps = calloc(source->n_steps + 1, sizeof(*executable->steps));
        executable->pointers = calloc(n_pointers + 1, sizeof(*executable->pointers));
        executable->patches = calloc(n_pointers + 1, sizeof(*executable->patches));
        executable->inputs = calloc(source->n_inputs + 1, sizeof(*executable->inputs));
        executable->outputs = calloc(source->n_outputs + 1, sizeof(*executable->outputs));
        return executable->steps && executable->pointers && executable->patches && executable->inputs && executable->outputs
                       ? 0
                       : -ENOMEM;
}

static int build_steps(struct builder *builder, struct sl_executable *executable)
{
        void **slots = executable->pointers;

        for (uint64_t i = 0; i < executable->source->n_steps; i++) {
                struct sl_executable_step *step = &executable->steps[executable->n_steps++];
                int r;

                step->source = &builder->plan->steps[executable->source->first_step + i];
                r = build_step(builder, executable, step);
                if (r < 0)
                        return sl_error_prefix(builder->error, r, "step %llu", (unsigned long long)i);
                bind_step(builder, executable, step, slots);
                slots += step->source->n_inputs + step->source->n_outputs;
        }
        return 0;
}

static int build(struct builder *builder, uint64_t number, uint8_t *workspace, struct sl_executable **ret_executable)
{
        SL_CLEANUP(sl_cleanup_sl_executable_free) struct sl_executable *executable = calloc(1, sizeof(*executable));
        const struct sl_plan_program *source = &builder->plan->programs[number];
        int r;

        if (!executable)
                return sl_error_set(builder->error, ENOMEM, "instance: no memory for %zu bytes", sizeof(*executable));
        executable->plan = builder->plan;
        executable->source = source;
        executable->workspace = workspace;
        executable->constants = builder->sessions->constants;
        executable->first_number = builder->n_numbers;
        builder->n_numbers += source->n_steps;
        if (allocate_tables(executable, count_pointers(builder->plan, source)) < 0)
                return sl_error_set(builder->error, ENOMEM, "instance: no memory for the tables of %llu steps",
                        (unsigned long long)source->n_steps);
        r = build_steps(builder, executable);
        if (r < 0)
                return r;
        executable->skips = sl_lane_parts_find(executable);
        *ret_executable = sl_take(executable);
        return 0;
}

int sl_executable_new(const struct sl_plan *plan, uint64_t number, uint8_t *workspace, struct sl_pace *pace,
        const struct sl_sessions *sessions, struct sl_executable **ret_executable, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_plan_call *call = calloc(1, sizeof(*call));
        struct builder builder = {.plan = plan, .pace = pace, .sessions = sessions, .call = call, .error = error};

        if (!call)
                return sl_error_set(error, ENOMEM, "instance: no memory for %zu bytes", sizeof(*call));
        return build(&builder, number, workspace, ret_executable);
}

struct sl_executable *sl_executable_free(struct sl_executable *executable)
{
        if (!executable)
                return NULL;
        for (uint32_t i = 0; i < executable->n_steps; i++) {
                struct sl_executable_step *step = &executable->steps[i];

                if (step->session)
                        step->session->backend->runner->kernel_free(step->kernel);
                for (uint32_t b = 0; b < SL_STEP_BODIES_MAX; b++)
                        sl_executable_free(step->bodies[b]);
                free(step->rounds);
                free(step->lanes.runs);
        }
        free(executable->steps);
        free(executable->pointers);
        free(executable->patches);
        free(executable->inputs);
        free(executable->outputs);
        free(executable);
        return NULL;
}

/* What is of the caller is bound by each run. */
static void move_step(struct sl_executable *executable, struct sl_executable_step *step, void **slots)
{
        const struct sl_plan_step *source = step->source;

        for (uint32_t i = 0; i < source->n_inputs + source->n_outputs; i++) {
                const struct sl_plan_operand *operand = &executable->plan->operands[source->first_operand + i];

                if (operand->place == SL_PLACE_WORKSPACE)
                        slots[i] = pointer_of(executable, operand);
        }
        step->binding.scratch = source->scratch_bytes ? executable->workspace + source->scratch_offset : NULL;
        for (uint32_t b = 0; b < SL_STEP_BODIES_MAX; b++)
                if (step->bodies[b])
                        sl_executable_move(step->bodies[b], executable->workspace + source->scratch_offset);
}

void sl_executable_move(struct sl_executable *executable, uint8_t *workspace)
{
        void **slots = executable->pointers;

        executable->workspace = workspace;
        for (uint32_t i = 0; i < executable->n_steps; i++) {
                struct sl_executable_step *step = &executable->steps[i];

                move_step(executable, step, slots);
                slots += step->source->n_inputs + step->source->n_outputs;
        }
}

uint64_t sl_executable_bytes(const struct sl_plan *plan, uint64_t number)
{
        const struct sl_plan_program *source = &plan->programs[number];
        uint64_t bytes = sizeof(struct sl_executable) + source->n_steps * sizeof(struct sl_executable_step);

        bytes += count_pointers(plan, source) * (sizeof(void *) + sizeof(struct sl_executable_patch));
        bytes +=
                (source->n_inputs + source->n_outputs) * sizeof(void *) + sl_lane_parts_bytes(plan->info->n_lanes, source->n_steps);
        for (uint64_t i = 0; i < source->n_steps; i++) {
                const struct sl_plan_step *step = &plan->steps[source->first_step + i];

                for (uint64_t b = 0; b < step->n_bodies; b++)
                        bytes += sl_executable_bytes(plan, step->first_body + b);
                bytes += step->n_bodies ? sizeof(struct sl_rounds_layout) : 0;
        }
        return bytes;
}

static struct sl_split split_for(const struct sl_executable_step *step, uint32_t members)
{
        return members > 1 ? sl_split_for(step->source->splits, members) : (struct sl_split){SL_AXIS_NONE, 0, 0, 0};
}

static int cut_step(
        const struct sl_executable_step *step, struct sl_split split, struct sl_step_cut *ret_cut, struct sl_error *error)
{
        const struct sl_runner *runner = step->session->backend->runner;
        struct sl_step_cut cut = {.split = split};

        if (split.members > 1)
                cut.units = runner->units ? runner->units(step->kernel, split.axis) : 0;
        if (split.members > 1 && cut.units < split.members)
                return sl_error_set(error, EBADMSG, "plan file: a %s is to be computed in %u parts and has %lld",
                        sl_op_name(step->source->op), split.members, (long long)cut.units);
        *ret_cut = cut;
        return 0;
}

/* Kernels that are divided are so for one number of parts; with another, and where that fails, they are computed whole. */
static void divide_step(struct sl_executable_step *step)
{
        const struct sl_runner *runner = step->session->backend->runner;
        struct sl_step_cut *all = &step->cuts[SL_CUT_ALL], *less = &step->cuts[SL_CUT_LESS];
        struct sl_split most = all->split.members > 1 ? all->split : less->split;
        int r = most.members > 1 && runner->divide ? runner->divide(step->kernel, most.axis, most.members) : 0;

        if (r < 0)
                *all = (struct sl_step_cut){.units = 0};
        if (r < 0 || (r > 0 && less->split.members != most.members))
                *less = (struct sl_step_cut){.units = 0};
}

static int split_step(struct sl_executable_step *step, uint32_t members, struct sl_error *error)
{
        const struct sl_runner *runner = step->session->backend->runner;
        int r = 0;

        step->stages = runner->stages ? runner->stages(step->kernel) : 1;
        for (uint32_t i = 0; i < SL_CUTS && r == 0; i++)
                r = cut_step(step, split_for(step, members > i ? members - i : 1), &step->cuts[i], error);
        if (r == 0)
                divide_step(step);
        return r;
}

int sl_executable_split(struct sl_executable *executable, uint32_t members, uint64_t *ret_scratch_bytes, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < executable->n_steps && r == 0; i++) {
                struct sl_executable_step *step = &executable->steps[i];

                for (uint32_t b = 0; b < SL_STEP_BODIES_MAX && r == 0; b++)
                        if (step->bodies[b])
                                r = sl_executable_split(step->bodies[b], members, ret_scratch_bytes, error);
                if (r == 0 && step->session)
                        r = split_step(step, members, error);
                if ((step->cuts[SL_CUT_ALL].split.members || step->cuts[SL_CUT_LESS].split.members) &&
                        step->source->scratch_bytes > *ret_scratch_bytes)
                        *ret_scratch_bytes = step->source->scratch_bytes;
        }
        return r == 0 ? sl_chains_find(executable, error) : r;
}

bool sl_executable_idle(struct sl_executable *executable, uint64_t idle)
{
        executable->idle = idle;
        return executable->skips;
}

void sl_executable_bind(struct sl_executable *executable, const void *const *inputs, void *const *outputs)
{
        executable->next = 0;
        executable->verdict = 0;
        executable->port_inputs = inputs;
        executable->port_outputs = outputs;
        for (uint32_t i = 0; i < executable->n_patches; i++) {
                const struct sl_executable_patch *patch = &executable->patches[i];

                *patch->slot = patch->place == SL_PLACE_INPUT ? (void *)inputs[patch->port] : outputs[patch->port];
        }
}

/* What was launched before is read on the host, or by another backend. */
static bool must_settle(const struct sl_executable_step *step, const struct sl_interpreter *interpreter)
{
        const struct sl_plan_session *in_flight = interpreter->sessions->in_flight;

        return __builtin_expect(in_flight != NULL, 0) && in_flight != step->session;
}

static const struct sl_step_cut *cut_of(const struct sl_executable_step *step, const struct sl_interpreter *interpreter)
{
        return &step->cuts[interpreter->room->cut];
}

/* What lanes need that somebody looks at, one part after the other. */
static int launch_lanes(const struct sl_executable_step *step, uint64_t idle)
{
        const struct sl_runner *runner = step->session->backend->runner;
        struct sl_binding binding = step->binding;
        struct sl_part part;
        uint32_t at = 0;
        int r = 0;

        while (r == 0 && sl_lane_parts_next(&step->lanes, idle, &at, &part)) {
                binding.part = part.axis == SL_AXIS_NONE ? NULL : &part;
                r = runner->launch(step->kernel, &binding);
        }
        return r;
}

static int launch_alone(const struct sl_executable *executable, const struct sl_executable_step *step)
{
        if (executable->idle && step->lanes.n_runs)
                return launch_lanes(step, executable->idle);
        return step->session->backend->runner->launch(step->kernel, &step->binding);
}

/* @ret_failed: of the steps that are launched at once, the one that failed. */
static int launch(const struct sl_executable *executable, const struct sl_executable_step *step, uint32_t n,
        struct sl_interpreter *interpreter, const struct sl_executable_step **ret_failed)
{
        int r = n > 1 || cut_of(step, interpreter)->split.members > 1 ? sl_team_room_launch(interpreter->room, step, n, ret_failed)
                                                                      : launch_alone(executable, step);

        if (__builtin_expect(r == -EINPROGRESS, 0)) {
                interpreter->sessions->in_flight = step->session;
                return 0;
        }
        return r;
}

/* @n: it, and those behind it in its chain. */
static int run_step(
        struct sl_executable *executable, const struct sl_executable_step *step, uint32_t n, struct sl_interpreter *interpreter)
{
        const struct sl_executable_step *failed = step;
        int r = sl_stop_look(&interpreter->pace->stop);

        if (r < 0)
                return r;
        r = step->session ? launch(executable, step, n, interpreter, &failed) : sl_interpreter_step(interpreter, executable, step);
        if (__builtin_expect(interpreter->capture && step->session && r == 0, 0))
                sl_interpreter_note(interpreter, executable, step);
        if (__builtin_expect(r < 0 && !interpreter->failed, 0))
                interpreter->failed = failed->source;
        return r;
}

/* The time of a step with bodies is what is left of it when the steps of those are taken off. */
static int run_timed_step(
        struct sl_executable *executable, const struct sl_executable_step *step, struct sl_interpreter *interpreter)
{
        uint64_t number = executable->first_number + (uint64_t)(step - executable->steps), outer_ns = interpreter->inner_ns;
        uint64_t before = sl_clock_ns(), taken;
        int r;

        interpreter->inner_ns = 0;
        r = run_step(executable, step, 1, interpreter);
        if (r == 0)
                r = sl_sessions_settle(interpreter->sessions, true);
        taken = sl_clock_ns() - before;
        interpreter->step_ns[number] += taken - interpreter->inner_ns;
        interpreter->inner_ns = outer_ns + taken;
        return r;
}

/* A failure ends the run when nothing is in flight any more: until then somebody reads and writes. */
static int end_run(struct sl_executable *executable, struct sl_interpreter *interpreter, bool sleeps)
{
        int r = sl_sessions_settle(interpreter->sessions, sleeps);

        if (r == -EINPROGRESS)
                return r;
        return executable->verdict ? executable->verdict : r;
}

/* Once a run, behind its last step. */
static void fetch_ports(struct sl_executable *executable, struct sl_interpreter *interpreter)
{
        int r;

        executable->next++;
        if (!executable->copied || executable->verdict)
                return;
        r = sl_resident_ports_download(executable->copied);
        if (r < 0)
                interpreter->sessions->in_flight = executable->copied->session;
        executable->verdict = r == -EINPROGRESS ? 0 : r;
}

static int run_steps(struct sl_executable *executable, struct sl_interpreter *interpreter, bool sleeps)
{
        while (executable->next < executable->n_steps && !executable->verdict) {
                const struct sl_executable_step *step = &executable->steps[executable->next];
                uint32_t n = interpreter->step_ns ? 1 : cut_of(step, interpreter)->chain; /* each step has a time of its own */
                int r = must_settle(step, interpreter) ? sl_sessions_settle(interpreter->sessions, sleeps) : 0;

                if (r == -EINPROGRESS)
                        return r;
                if (r == 0)
                        r = interpreter->step_ns ? run_timed_step(executable, step, interpreter)
                                                 : run_step(executable, step, n > 1 ? n : 1, interpreter);
                executable->verdict = r;
                executable->next += n > 1 ? n : 1;
        }
        if (executable->next == executable->n_steps)
                fetch_ports(executable, interpreter);
        return end_run(executable, interpreter, sleeps);
}

int sl_executable_run(struct sl_executable *executable, struct sl_interpreter *interpreter)
{
        return run_steps(executable, interpreter, true);
}

int sl_executable_go_on(struct sl_executable *executable, struct sl_interpreter *interpreter)
{
        return run_steps(executable, interpreter, false);
}

int sl_executable_launch(struct sl_executable *executable, struct sl_interpreter *interpreter)
{
        int r = 0;

        for (uint32_t i = 0; i < executable->n_steps && r == 0; i++)
                r = run_step(executable, &executable->steps[i], 1, interpreter);
        return r;
}
