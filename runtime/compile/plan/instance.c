/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan made executable for one worker. Everything that a launch needs is prepared by sl_instance_new(); sl_instance_run() puts
 * the caller's buffers into the pointer table and walks the steps.
 *
 *     executable (batch) -> steps   -> kernel + its slice of the pointer table; or bodies, which are executables again
 *                        -> patches -> slots of the pointer table that hold a buffer of the caller
 *
 * Ownership: the instance owns kernels, tables and the workspace; the plan owns the constants and outlives it. One thread at a
 * time. All batch sizes share one workspace, since only one of them runs at a time.
 */
#include "plan.h"

#include "backend.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cpu/base/threads.h"
#include "cpu/onednn/primitive.h"
#include "executable.h"
#include "interpreter.h"
#include "kernel_cache.h"
#include "op.h"
#include "pace.h"
#include "plan_map.h"
#include "plan_room.h"
#include "ref/live.h"
#include "residence.h"
#include "resident_ports.h"
#include "run_replays.h"
#include "team_room.h"
#include "workspace.h"

#include <stdlib.h>
#include <string.h>

struct sl_instance {
        const struct sl_plan *plan;
        uint32_t n_programs;
        struct sl_executable *programs[SL_PLAN_BATCHES_MAX];
        struct sl_workspace workspace;
        struct sl_sessions sessions;
        const struct sl_plan_session *resident; /* in whose memory it runs; NULL: in the workspace */
        void *place;                            /* there: its workspace; NULL: somebody else's */
        struct sl_residence *constants;         /* there: its own; NULL */
        struct sl_resident_ports ports;
        struct sl_interpreter interpreter;
        struct sl_team_room room;
        struct sl_kernel_cache *kernels; /* NULL: no step is data-dependent, or `ref` is wanted */
        struct sl_run_replays *replays;  /* of a plan of any size; NULL: it has none */
        void **bases;                    /* [SL_REPLAY_INPUT + inputs] of a replay */
        struct sl_stop stop;
        const struct sl_draw_key *keys;
        const struct sl_shape *shapes;      /* of inputs of any size; NULL: 1 stands for what is open */
        const struct sl_run_replay *replay; /* of the run; NULL: it is none */
        struct sl_pool_grant *grant;        /* of memory for data-dependent steps; NULL: nobody is asked */
        const void **given, **fallbacks;    /* [inputs] of the run; what they are when left out. NULL: none can be */
        struct sl_pace pace;                /* of the run */
        struct sl_executable *running;      /* started, and not over yet; NULL */
        uint64_t idle;                      /* lanes that nobody looks at */
        bool skips;                         /* some step leaves them out */
};

SL_DEFINE_CLEANUP(struct sl_instance *, sl_instance_free)

/* The slots of a program outlive no run, but their table does. */
static int build_program(struct sl_instance *instance, uint32_t i, struct sl_error *error)
{
        const struct sl_plan_program *source = &instance->plan->programs[i];
        struct sl_executable *executable;
        int r = sl_executable_new(instance->plan, i, instance->place ? instance->place : instance->workspace.bytes, &instance->pace,
                &instance->sessions, &executable, error);

        if (r < 0)
                return sl_error_prefix(error, r, "batch %llu", (unsigned long long)source->batch);
        instance->programs[i] = executable;
        executable->copied = instance->ports.session ? &instance->ports : NULL;
        executable->slots = calloc(source->n_slots + 1, sizeof(*executable->slots));
        return executable->slots ? 0 : sl_error_set(error, ENOMEM, "no memory for its slots");
}

static int make_kernel_cache(struct sl_instance *instance, struct sl_error *error)
{
        const struct sl_backend *backend = sl_backend_find(instance->plan->info->backend);

        if (!backend || backend == &sl_backend_ref || backend->runner->wait || !sl_plan_is_dynamic(instance->plan))
                return 0;
        if (sl_kernel_cache_new(backend, &instance->plan->header->target, instance->plan->packed, &instance->kernels) < 0)
                return sl_error_set(error, ENOMEM, "no memory for its kernels");
        sl_primitive_keep_few();
        return 0;
}

/* A run of the plan is its launches, and nothing else. */
static bool may_be_replayed(const struct sl_instance *instance)
{
        const struct sl_plan *plan = instance->plan;
        const struct sl_plan_program *program = &plan->programs[0];
        bool may = instance->kernels && program->n_inputs && plan->info->n_batches == 1 && !instance->fallbacks;

        for (uint64_t i = 0; i < program->n_steps && may; i++)
                may = !plan->steps[program->first_step + i].n_bodies;
        return may;
}

static int make_replays(struct sl_instance *instance, struct sl_error *error)
{
        if (!may_be_replayed(instance))
                return 0;
        instance->bases = calloc((size_t)SL_REPLAY_INPUT + instance->plan->info->n_inputs, sizeof(*instance->bases));
        if (!instance->bases || sl_run_replays_new(&instance->replays) < 0)
                return sl_error_set(error, ENOMEM, "no memory for its replays");
        return 0;
}

static int build_programs(struct sl_instance *instance, uint32_t n_programs, struct sl_error *error)
{
        for (uint32_t i = 0; i < n_programs; i++) {
                int r;

                instance->n_programs++;
                r = build_program(instance, i, error);
                if (r < 0)
                        return sl_error_prefix(error, r, "model \"%s\"", instance->plan->info->name);
        }
        return 0;
}

static int make_workspace(struct sl_instance *instance, uint64_t bytes, struct sl_error *error)
{
        const struct sl_plan *plan = instance->plan;

        if (sl_workspace_init(&instance->workspace, bytes) == 0 &&
                sl_workspace_populate(&instance->workspace, plan->programs[0].workspace_bytes, UINT64_MAX) >= 0)
                return 0;
        return sl_error_set(error, ENOMEM, "model \"%s\": no memory for a workspace of %llu bytes", plan->info->name,
                (unsigned long long)bytes);
}

/* All that an instance keeps in the memory of a device. */
static int settle_down(
        struct sl_instance *instance, uint32_t batch_max, const struct sl_instance_ground *ground, struct sl_error *error)
{
        struct sl_plan_session *session = sl_sessions_resident(&instance->sessions);
        const struct sl_plan *plan = instance->plan;
        uint64_t bytes = sl_plan_workspace_bytes(plan, batch_max);
        int r;

        instance->resident = session;
        instance->sessions.constants = ground->constants;
        r = session->backend->runner->memory->allocate(session->session, bytes, &instance->place, error);
        if (r == 0 && !ground->constants) {
                r = sl_residence_new(plan, ground->device, NULL, &instance->constants, error);
                instance->sessions.constants = instance->constants;
        }
        if (r == 0 && !ground->ports_there)
                r = sl_resident_ports_init(&instance->ports, session, plan->info,
                        plan->info->batches[sl_plan_programs_up_to(plan, batch_max) - 1], error);
        return r < 0 ? sl_error_prefix(error, r, "model \"%s\"", plan->info->name) : 0;
}

static int prepare(
        struct sl_instance *instance, uint32_t batch_max, const struct sl_instance_ground *ground, struct sl_error *error)
{
        const struct sl_plan *plan = instance->plan;
        int r;

        sl_cpu_use_one_thread();
        r = sl_sessions_open(&instance->sessions, plan, ground->device, error);
        if (r < 0)
                return sl_error_prefix(error, r, "model \"%s\"", plan->info->name);
        r = sl_sessions_resident(&instance->sessions) ? settle_down(instance, batch_max, ground, error)
                                                      : make_workspace(instance, sl_plan_workspace_bytes(plan, batch_max), error);
        if (r == 0)
                r = make_kernel_cache(instance, error);
        return r == 0 ? make_replays(instance, error) : r;
}

static int find_fallbacks(struct sl_instance *instance, struct sl_error *error)
{
        const struct sl_plan *plan = instance->plan;
        uint32_t n = plan->info->n_inputs;

        if (!n || !plan->info->inputs[n - 1].fallback) /* they come last */
                return 0;
        instance->given = calloc(2 * (size_t)n, sizeof(*instance->given));
        if (!instance->given)
                return sl_error_set(error, ENOMEM, "model \"%s\": no memory for %u inputs", plan->info->name, n);
        instance->fallbacks = instance->given + n;
        for (uint32_t i = 0; i < n; i++)
                if (plan->info->inputs[i].fallback)
                        instance->fallbacks[i] = sl_plan_constant_data(plan, &plan->constants[plan->info->inputs[i].fallback - 1]);
        return 0;
}

int sl_instance_new_on(const struct sl_plan *plan, uint32_t batch_max, const struct sl_instance_ground *ground,
        struct sl_instance **ret_instance, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_instance_free) struct sl_instance *instance = calloc(1, sizeof(*instance));
        uint32_t n_programs = sl_plan_programs_up_to(plan, batch_max);
        int r;

        if (!plan->info->n_batches)
                return sl_error_set(error, EINVAL, "model \"%s\": its dimension \"%s\" has no size yet", plan->info->name,
                        plan->info->symbols[0]);
        if (!n_programs)
                return sl_error_set(error, EINVAL, "model \"%s\": batch %u, the smallest of its plan is %u", plan->info->name,
                        batch_max, plan->info->batches[0]);
        if (!instance)
                return sl_error_set(error, ENOMEM, "instance: no memory for %zu bytes", sizeof(*instance));
        instance->plan = plan;
        r = find_fallbacks(instance, error);
        if (r == 0)
                r = prepare(instance, batch_max, ground ? ground : &(struct sl_instance_ground){.device = NULL}, error);
        if (r == 0)
                r = build_programs(instance, n_programs, error);
        if (r < 0)
                return r;
        *ret_instance = sl_take(instance);
        return 0;
}

int sl_instance_new(const struct sl_plan *plan, uint32_t batch_max, struct sl_instance **ret_instance, struct sl_error *error)
{
        return sl_instance_new_on(plan, batch_max, NULL, ret_instance, error);
}

static void free_program(struct sl_executable *executable)
{
        if (executable)
                free(executable->slots);
        sl_executable_free(executable);
}

static void leave_room(struct sl_instance *instance)
{
        if (instance->resident)
                instance->place =
                        instance->resident->backend->runner->memory->release(instance->resident->session, instance->place);
        sl_workspace_deinit(&instance->workspace);
}

struct sl_instance *sl_instance_free(struct sl_instance *instance)
{
        if (!instance)
                return NULL;
        (void)sl_sessions_settle(&instance->sessions, true);
        for (uint32_t i = 0; i < instance->n_programs; i++)
                free_program(instance->programs[i]);
        sl_run_replays_free(instance->replays);
        free(instance->bases);
        sl_kernel_cache_free(instance->kernels);
        sl_resident_ports_deinit(&instance->ports);
        leave_room(instance);
        sl_residence_free(instance->constants);
        sl_sessions_close(&instance->sessions);
        sl_team_room_deinit(&instance->room);
        free(instance);
        return NULL;
}

static int split_programs(struct sl_instance *instance, uint32_t members, uint64_t *ret_scratch_bytes, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < instance->n_programs && r == 0; i++)
                r = sl_executable_split(instance->programs[i], members, ret_scratch_bytes, error);
        return r;
}

int sl_instance_use_team(struct sl_instance *instance, struct sl_team *team, struct sl_error *error)
{
        uint32_t members = team ? sl_team_size(team) : 1;
        uint64_t scratch_bytes = 0;
        int r = split_programs(instance, members, &scratch_bytes, error);

        if (r == 0 && members > 1 && sl_team_room_init(&instance->room, team, scratch_bytes) < 0)
                r = sl_error_set(
                        error, ENOMEM, "no memory for %u times %llu bytes of scratch", members, (unsigned long long)scratch_bytes);
        if (r == 0 && members > 1)
                return 0;
        (void)split_programs(instance, 1, &scratch_bytes, NULL);
        sl_team_room_deinit(&instance->room);
        return r < 0 ? sl_error_prefix(error, r, "model \"%s\"", instance->plan->info->name) : 0;
}

void sl_instance_move(struct sl_instance *instance, void *room)
{
        for (uint32_t i = 0; i < instance->n_programs; i++)
                sl_executable_move(instance->programs[i], room);
        leave_room(instance);
}

bool sl_instance_idle(struct sl_instance *instance, uint64_t idle)
{
        for (uint32_t i = 0; i < instance->n_programs && idle != instance->idle; i++)
                instance->skips |= sl_executable_idle(instance->programs[i], idle);
        instance->idle = idle;
        return instance->skips && idle;
}

int sl_instance_populate(struct sl_instance *instance, uint32_t batch, uint64_t bytes_max)
{
        if (!instance->workspace.bytes)
                return 0;
        return sl_workspace_populate(&instance->workspace, sl_plan_workspace_bytes(instance->plan, batch), bytes_max);
}

uint64_t sl_instance_bytes(const struct sl_plan *plan, uint32_t batch_max)
{
        uint32_t n_programs = sl_plan_programs_up_to(plan, batch_max);
        uint64_t bytes = sizeof(struct sl_instance) + sl_plan_workspace_bytes(plan, batch_max);

        for (uint32_t i = 0; i < n_programs; i++)
                bytes += sl_executable_bytes(plan, i) + plan->programs[i].n_slots * sizeof(struct sl_live);
        return bytes;
}

static struct sl_executable *find_program(const struct sl_instance *instance, uint32_t batch)
{
        for (uint32_t i = 0; i < instance->n_programs; i++) {
                if (instance->programs[i]->source->batch == batch)
                        return instance->programs[i];
        }
        return NULL;
}

static void read_splits(const struct sl_executable *executable, struct sl_step_split *splits)
{
        for (uint32_t i = 0; i < executable->n_steps; i++) {
                const struct sl_executable_step *step = &executable->steps[i];
                const struct sl_step_cut *cut = &step->cuts[SL_CUT_ALL];

                if (cut->split.members > 1 || cut->chain != 1)
                        splits[executable->first_number + i] = (struct sl_step_split){.axis = cut->split.axis,
                                .members = cut->split.members,
                                .first = cut->split.first,
                                .units = cut->units,
                                .stages = cut->chain > 1 ? 1
                                          : cut->chain   ? step->stages
                                                         : 0};
                for (uint32_t b = 0; b < SL_STEP_BODIES_MAX; b++)
                        if (step->bodies[b])
                                read_splits(step->bodies[b], splits);
        }
}

int sl_instance_splits(
        struct sl_instance *instance, uint32_t batch, uint32_t members, struct sl_step_split *ret_splits, struct sl_error *error)
{
        const struct sl_executable *program = find_program(instance, batch);
        uint64_t scratch_bytes = 0;
        int r;

        if (!program)
                return sl_error_set(error, EINVAL, "model \"%s\" has no batch of %u", instance->plan->info->name, batch);
        memset(ret_splits, 0, sl_plan_steps(instance->plan, batch) * sizeof(*ret_splits));
        r = split_programs(instance, members, &scratch_bytes, error);
        if (r == 0)
                read_splits(program, ret_splits);
        (void)split_programs(instance, instance->room.team ? sl_team_size(instance->room.team) : 1, &scratch_bytes, NULL);
        return r;
}

static const void *const *fill_in(struct sl_instance *instance, const void *const *inputs)
{
        for (uint32_t i = 0; i < instance->plan->info->n_inputs; i++)
                instance->given[i] = inputs[i] ? inputs[i] : instance->fallbacks[i];
        return instance->given;
}

/* The buffers of a run, where they are; copies are the first thing of it. */
static void bind_ports(struct sl_instance *instance, struct sl_executable *program, const void *const *inputs, void *const *outputs)
{
        struct sl_resident_ports *ports = &instance->ports;
        int r;

        if (instance->given)
                inputs = fill_in(instance, inputs);
        if (!ports->session) {
                sl_executable_bind(program, inputs, outputs);
                return;
        }
        sl_executable_bind(program, (const void *const *)ports->inputs, ports->outputs);
        r = sl_resident_ports_upload(ports, (uint32_t)program->source->batch, inputs, outputs);
        if (r < 0)
                instance->sessions.in_flight = ports->session;
        program->verdict = r == -EINPROGRESS ? 0 : r;
}

static struct sl_live given_input(const struct sl_instance *instance, uint32_t i, const void *data)
{
        const struct sl_port *port = &instance->plan->info->inputs[i];
        struct sl_tensor tensor = {.dtype = port->dtype, .layout = SL_LAYOUT_PLAIN, .shape = port->shape};

        for (uint32_t k = 0; k < tensor.shape.rank; k++)
                if (tensor.shape.dims[k] == SL_DIM_UNKNOWN)
                        tensor.shape.dims[k] = instance->shapes ? instance->shapes[i].dims[k] : 1;
        return (struct sl_live){.tensor = tensor, .data = (void *)data};
}

/* Those of all parts, one behind the other. */
static void gather_input(struct sl_instance *instance, uint32_t i, const struct sl_tensor *tensor, uint8_t *to)
{
        struct sl_interpreter *interpreter = &instance->interpreter;
        uint64_t row_bytes = sl_tensor_bytes(tensor) / (uint64_t)interpreter->rows;

        for (uint32_t k = 0; k < interpreter->n_parts; k++) {
                uint64_t bytes = row_bytes * (uint64_t)interpreter->parts[k].rows;

                if (bytes)
                        memcpy(to, interpreter->parts[k].inputs[i], bytes);
                to += bytes;
        }
}

/* Integers may be an index or a size, and the caller could change them meanwhile: they are copied. */
static void copy_input(struct sl_instance *instance, uint32_t i, const struct sl_live *input, uint8_t *to)
{
        if (instance->interpreter.parts)
                gather_input(instance, i, &input->tensor, to);
        else if (sl_tensor_bytes(&input->tensor))
                memcpy(to, input->data, sl_tensor_bytes(&input->tensor));
}

static bool is_copied(const struct sl_instance *instance, uint32_t i)
{
        return instance->interpreter.parts || instance->plan->info->inputs[i].indexes;
}

/* Return: 0; -ENOMEM. */
static int own_input(struct sl_instance *instance, uint32_t i, struct sl_live *input)
{
        struct sl_live own;
        int r = sl_live_make(&instance->interpreter.dynamic.pool, &input->tensor, &own);

        if (r < 0)
                return r;
        copy_input(instance, i, input, own.data);
        *input = own;
        return 0;
}

/* What a request says the size of lies in slots, for the interpreter. Return: 0; -ENOMEM. */
static int fill_slots(struct sl_instance *instance, struct sl_executable *program, struct sl_error *error)
{
        struct sl_capture *capture = instance->interpreter.capture;
        struct sl_pool *pool = &instance->interpreter.dynamic.pool;
        const struct sl_plan *plan = instance->plan;

        for (uint32_t i = 0; i < program->source->n_inputs; i++) {
                const struct sl_plan_operand *port = &plan->operands[program->source->first_operand + i];
                struct sl_live input = given_input(instance, i, program->port_inputs[i]);

                if (port->place != SL_PLACE_SLOT)
                        continue;
                if (is_copied(instance, i) && own_input(instance, i, &input) < 0)
                        return sl_pool_explain(pool, plan->info->inputs[i].name, error);
                if (capture)
                        sl_capture_input(capture, i, sl_tensor_bytes(&input.tensor));
                input.value = i + 1;
                sl_live_drop(pool, &program->slots[port->index]);
                program->slots[port->index] = input;
        }
        return 0;
}

/* A run of these sizes that has been noted; NULL: there is none, and this one may be noted. */
static const struct sl_run_replay *begin_replay(struct sl_instance *instance)
{
        struct sl_interpreter *interpreter = &instance->interpreter;
        const struct sl_run_replay *replay;

        if (!instance->replays || !instance->shapes)
                return NULL;
        replay = sl_run_replays_find(instance->replays, &interpreter->dynamic.pool, instance->shapes,
                instance->plan->info->n_inputs, &interpreter->capture);
        if (interpreter->capture)
                interpreter->dynamic.recorder = sl_capture_recorder(interpreter->capture);
        return replay;
}

/* @parts: of a run of several; else NULL. @is_whole: from its first step to its last at once, and nobody asks what each takes. */
static void begin_parts(struct sl_instance *instance, struct sl_executable *program, const void *const *inputs,
        void *const *outputs, struct sl_open_output *open, struct sl_instance_part *parts, uint32_t n_parts, bool is_whole,
        struct sl_error *error)
{
        sl_pace_start(&instance->pace, &instance->stop, program->source->work);
        instance->pace.draws.keys = instance->keys;
        /* The thread that runs may not be the one that compiled, and kernels must find the thread count that they were made for. */
        sl_cpu_use_one_thread();
        bind_ports(instance, program, inputs, outputs);
        sl_interpreter_begin(&instance->interpreter, instance->plan, program->source, &instance->pace, &instance->sessions,
                instance->kernels, open, error);
        sl_team_room_begin(&instance->room);
        instance->interpreter.room = &instance->room;
        instance->interpreter.dynamic.pool.grant = instance->grant;
        instance->interpreter.parts = parts;
        instance->interpreter.n_parts = n_parts;
        for (uint32_t i = 0; i < n_parts; i++)
                instance->interpreter.rows += parts[i].rows;
        instance->replay = is_whole ? begin_replay(instance) : NULL;
        if (program->source->n_inputs && !instance->replay)
                program->verdict = fill_slots(instance, program, error);
}

static void begin(struct sl_instance *instance, struct sl_executable *program, const void *const *inputs, void *const *outputs,
        struct sl_open_output *open, struct sl_error *error)
{
        begin_parts(instance, program, inputs, outputs, open, NULL, 0, false, error);
}

/* The run is over with @r. */
static int end(struct sl_instance *instance, struct sl_executable *program, int r)
{
        if (!program->dynamic && !program->source->n_inputs)
                return r;
        sl_interpreter_drop_slots(&instance->interpreter, program);
        return r == 0 ? instance->interpreter.too_small : r;
}

/* Where its refs lead to in this run. */
static void bind_replay(struct sl_instance *instance, const struct sl_executable *program, uint8_t *arena)
{
        const struct sl_run_replay *replay = instance->replay;
        void **bases = instance->bases;

        bases[SL_REPLAY_KEPT] = (void *)(uintptr_t)replay->kept;
        bases[SL_REPLAY_ARENA] = arena;
        for (uint32_t i = 0; i < replay->n_inputs; i++) {
                const struct sl_live input = given_input(instance, i, program->port_inputs[i]);
                bool copied = sl_port_is_open(&instance->plan->info->inputs[i]) && is_copied(instance, i);

                bases[SL_REPLAY_INPUT + i] = copied ? arena + replay->inputs[i] : input.data;
                if (copied)
                        copy_input(instance, i, &input, arena + replay->inputs[i]);
        }
}

static int write_replayed(struct sl_instance *instance, struct sl_executable *program)
{
        const struct sl_run_replay *replay = instance->replay;
        int r = 0;

        for (uint32_t i = 0; i < replay->n_outputs && r == 0; i++) {
                const struct sl_run_replay_output *output = &replay->outputs[i];
                struct sl_live live = {.tensor = output->tensor, .data = sl_run_replay_at(instance->bases, &output->ref)};

                r = sl_interpreter_write(&instance->interpreter, program, output->source, output->operand, &live);
        }
        return r;
}

static int run_replay(struct sl_instance *instance, struct sl_executable *program)
{
        struct sl_interpreter *interpreter = &instance->interpreter;
        uint8_t *arena = sl_run_replays_arena(instance->replays, &interpreter->dynamic.pool, instance->replay);
        int r;

        if (!arena)
                return sl_pool_explain(&interpreter->dynamic.pool, "run", interpreter->dynamic.error);
        bind_replay(instance, program, arena);
        r = sl_run_replay_run(instance->replay, instance->bases, &instance->pace, sl_run_replays_node(instance->replays),
                &interpreter->failed, interpreter->dynamic.error);
        if (r < 0 && interpreter->failed && interpreter->failed->name)
                return sl_error_prefix(
                        interpreter->dynamic.error, r, "node \"%s\"", sl_plan_step_name(instance->plan, interpreter->failed));
        return r < 0 ? r : write_replayed(instance, program);
}

static int run_program(struct sl_instance *instance, struct sl_executable *program)
{
        int r;

        if (instance->replay)
                return end(instance, program, run_replay(instance, program));
        r = end(instance, program, sl_executable_run(program, &instance->interpreter));
        if (instance->interpreter.capture)
                sl_run_replays_end(instance->replays, r == 0);
        return r;
}

int sl_instance_run_open(struct sl_instance *instance, uint32_t batch, const void *const *inputs, void *const *outputs,
        struct sl_open_output *open, struct sl_error *error)
{
        struct sl_executable *program = find_program(instance, batch);

        if (!program)
                return sl_error_set(error, EINVAL, "batch %u is no size of the plan", batch);
        begin_parts(instance, program, inputs, outputs, open, NULL, 0, true, error);
        return run_program(instance, program);
}

static bool has_parts(const struct sl_instance *instance)
{
        const struct sl_plan_info *info = instance->plan->info;
        bool all = !instance->fallbacks && instance->shapes;

        for (uint32_t i = 0; i < info->n_inputs && all; i++)
                all = info->inputs[i].shape.rank && info->inputs[i].shape.dims[0] == SL_DIM_UNKNOWN;
        for (uint32_t i = 0; i < info->n_outputs && all; i++)
                all = sl_port_is_open(&info->outputs[i]);
        return all;
}

int sl_instance_run_parts(
        struct sl_instance *instance, uint32_t batch, struct sl_instance_part *parts, uint32_t n, struct sl_error *error)
{
        struct sl_executable *program = find_program(instance, batch);

        if (!program || !has_parts(instance))
                return sl_error_set(error, EINVAL, "not all of its inputs and outputs lead with an open dimension");
        for (uint32_t i = 0; i < n; i++)
                parts[i].is_too_small = false;
        begin_parts(instance, program, parts[0].inputs, parts[0].outputs, parts[0].open, parts, n, true, error);
        return run_program(instance, program);
}

int sl_instance_run(struct sl_instance *instance, uint32_t batch, const void *const *inputs, void *const *outputs)
{
        struct sl_executable *program = find_program(instance, batch);

        if (!program)
                return -EINVAL;
        begin(instance, program, inputs, outputs, NULL, NULL);
        return run_program(instance, program);
}

static int go_on(struct sl_instance *instance)
{
        struct sl_executable *program = instance->running;
        int r = sl_executable_go_on(program, &instance->interpreter);

        if (r == -EINPROGRESS)
                return r;
        instance->running = NULL;
        return end(instance, program, r);
}

int sl_instance_start(struct sl_instance *instance, uint32_t batch, const void *const *inputs, void *const *outputs)
{
        struct sl_executable *program = find_program(instance, batch);

        if (!program)
                return -EINVAL;
        if (instance->running)
                return -EBUSY;
        begin(instance, program, inputs, outputs, NULL, NULL);
        instance->running = program;
        return go_on(instance);
}

int sl_instance_poll(struct sl_instance *instance)
{
        return instance->running ? go_on(instance) : 0;
}

int sl_instance_wait(struct sl_instance *instance)
{
        struct sl_executable *program = instance->running;

        if (!program)
                return 0;
        instance->running = NULL;
        return run_program(instance, program);
}

int sl_instance_launch(struct sl_instance *instance, uint32_t batch, const void *const *inputs, void *const *outputs)
{
        struct sl_executable *program = find_program(instance, batch);

        if (!program)
                return -EINVAL;
        if (!instance->resident || instance->ports.session)
                return -ENOTSUP;
        begin(instance, program, inputs, outputs, NULL, NULL);
        return sl_executable_launch(program, &instance->interpreter);
}

int sl_instance_run_timed(
        struct sl_instance *instance, uint32_t batch, const void *const *inputs, void *const *outputs, uint64_t *ret_step_ns)
{
        struct sl_executable *program = find_program(instance, batch);
        SL_CLEANUP(sl_cleanup_free)
        struct sl_open_output *open = calloc((size_t)instance->plan->info->n_outputs + 1, sizeof(*open));
        int r;

        if (!program || !open)
                return program ? -ENOMEM : -EINVAL;
        begin(instance, program, inputs, outputs, open, NULL);
        memset(ret_step_ns, 0, sl_plan_steps(instance->plan, batch) * sizeof(*ret_step_ns));
        instance->interpreter.step_ns = ret_step_ns;
        r = run_program(instance, program);
        return r == -EMSGSIZE ? 0 : r;
}

static const char *words_of(int status)
{
        switch (-status) {
        case ERANGE:
                return "an index in an input is out of range";
        case E2BIG:
                return "the data make it more work than work_max and dynamic_steps_max allow";
        default:
                return strerrordesc_np(-status);
        }
}

int sl_instance_explain(const struct sl_instance *instance, int status, struct sl_error *error)
{
        const struct sl_plan_step *step = instance->interpreter.failed;
        const struct sl_pool *pool = &instance->interpreter.dynamic.pool;

        if (error->text[0] || !step)
                return status;
        if (status == -ENOMEM && pool->shortage != SL_POOL_HAS_ALL)
                return sl_error_prefix(error, sl_pool_explain(pool, sl_op_name(step->op), error), "node \"%s\"",
                        sl_plan_step_name(instance->plan, step));
        return sl_error_set(error, -status, "node \"%s\" (%s): %s", sl_plan_step_name(instance->plan, step), sl_op_name(step->op),
                words_of(status));
}

void sl_instance_draw(struct sl_instance *instance, const struct sl_draw_key *keys)
{
        instance->keys = keys;
}

void sl_instance_give(struct sl_instance *instance, const struct sl_shape *shapes)
{
        instance->shapes = shapes;
}

uint32_t sl_instance_replays(const struct sl_instance *instance)
{
        return instance->replays ? sl_run_replays_count(instance->replays) : 0;
}

void sl_instance_meet(struct sl_instance *instance, bool meets)
{
        if (instance->kernels)
                sl_kernel_cache_meet(instance->kernels, meets);
}

void sl_instance_be_quick(struct sl_instance *instance)
{
        if (instance->kernels)
                sl_kernel_cache_be_quick(instance->kernels);
}

void sl_instance_lend(struct sl_instance *instance, struct sl_pool_grant *grant)
{
        instance->grant = grant;
}

void sl_instance_watch(struct sl_instance *instance, const struct sl_stop *stop)
{
        instance->stop = stop ? *stop : (struct sl_stop){0};
}

uint32_t sl_instance_step(const struct sl_instance *instance, uint32_t samples)
{
        uint32_t batch = 0;

        for (uint32_t i = 0; i < instance->n_programs; i++) {
                if (instance->programs[i]->source->batch <= samples)
                        batch = (uint32_t)instance->programs[i]->source->batch;
        }
        return batch;
}
