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
#include "executable.h"
#include "interpreter.h"
#include "kernel_cache.h"
#include "op.h"
#include "pace.h"
#include "plan_map.h"
#include "ref/live.h"
#include "residence.h"
#include "resident_ports.h"
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
        struct sl_stop stop;
        const struct sl_draw_key *keys;
        bool has_fallbacks;
        const void *given[SL_PLAN_PORTS_MAX], *fallbacks[SL_PLAN_PORTS_MAX]; /* inputs of the run; what they are when left out */
        struct sl_pace pace;                                                 /* of the run */
        struct sl_executable *running;                                       /* started, and not over yet; NULL */
        uint64_t idle;                                                       /* lanes that nobody looks at */
        bool skips;                                                          /* some step leaves them out */
};

SL_DEFINE_CLEANUP(struct sl_instance *, sl_instance_free)

/* Sizes of the ladder that an instance up to @batch_max has: they are ascending. */
static uint32_t programs_up_to(const struct sl_plan *plan, uint32_t batch_max)
{
        uint32_t n = 0;

        while (n < plan->info->n_batches && plan->info->batches[n] <= batch_max)
                n++;
        return n;
}

uint64_t sl_plan_workspace_bytes(const struct sl_plan *plan, uint32_t batch_max)
{
        uint32_t n_programs = programs_up_to(plan, batch_max);
        uint64_t most = 0;

        for (uint32_t i = 0; i < n_programs; i++)
                most = plan->programs[i].workspace_bytes > most ? plan->programs[i].workspace_bytes : most;
        return most;
}

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
        return sl_kernel_cache_new(backend, &instance->kernels) < 0 ? sl_error_set(error, ENOMEM, "no memory for its kernels") : 0;
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
                r = sl_resident_ports_init(
                        &instance->ports, session, plan->info, plan->info->batches[programs_up_to(plan, batch_max) - 1], error);
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
        return r == 0 ? make_kernel_cache(instance, error) : r;
}

static void find_fallbacks(struct sl_instance *instance)
{
        const struct sl_plan *plan = instance->plan;

        for (uint32_t i = 0; i < plan->info->n_inputs; i++) {
                uint32_t fallback = plan->info->inputs[i].fallback;

                if (!fallback)
                        continue;
                instance->has_fallbacks = true;
                instance->fallbacks[i] = sl_plan_constant_data(plan, &plan->constants[fallback - 1]);
        }
}

int sl_instance_new_on(const struct sl_plan *plan, uint32_t batch_max, const struct sl_instance_ground *ground,
        struct sl_instance **ret_instance, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_instance_free) struct sl_instance *instance = calloc(1, sizeof(*instance));
        uint32_t n_programs = programs_up_to(plan, batch_max);
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
        find_fallbacks(instance);
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
        uint32_t n_programs = programs_up_to(plan, batch_max);
        uint64_t bytes = sizeof(struct sl_instance) + sl_plan_workspace_bytes(plan, batch_max);

        for (uint32_t i = 0; i < n_programs; i++)
                bytes += sl_executable_bytes(plan, i) + plan->programs[i].n_slots * sizeof(struct sl_live);
        return bytes;
}

/* Of its steps that a team of @members cuts, or one of one less. */
static uint64_t largest_scratch(const struct sl_plan *plan, uint64_t number, uint32_t members)
{
        const struct sl_plan_program *source = &plan->programs[number];
        uint64_t largest = 0;

        for (uint64_t i = 0; i < source->n_steps; i++) {
                const struct sl_plan_step *step = &plan->steps[source->first_step + i];

                if ((sl_split_for(step->splits, members).members || sl_split_for(step->splits, members - 1).members) &&
                        step->scratch_bytes > largest)
                        largest = step->scratch_bytes;
                for (uint64_t b = 0; b < step->n_bodies; b++) {
                        uint64_t inside = largest_scratch(plan, step->first_body + b, members);

                        largest = inside > largest ? inside : largest;
                }
        }
        return largest;
}

uint64_t sl_instance_team_bytes(const struct sl_plan *plan, uint32_t batch_max, uint32_t members)
{
        uint64_t largest = 0;

        for (uint32_t i = 0, n = programs_up_to(plan, batch_max); i < n && members > 1; i++) {
                uint64_t scratch = largest_scratch(plan, i, members);

                largest = scratch > largest ? scratch : largest;
        }
        return members > 1 ? sl_align_up(largest, SL_PAGE_BYTES) * members : 0;
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

        if (instance->has_fallbacks)
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

static void begin(struct sl_instance *instance, struct sl_executable *program, const void *const *inputs, void *const *outputs,
        struct sl_open_output *open, struct sl_error *error)
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
}

/* The run is over with @r. */
static int end(struct sl_instance *instance, struct sl_executable *program, int r)
{
        if (!program->dynamic)
                return r;
        sl_interpreter_drop_slots(&instance->interpreter, program);
        return r == 0 ? instance->interpreter.too_small : r;
}

static int run_program(struct sl_instance *instance, struct sl_executable *program)
{
        return end(instance, program, sl_executable_run(program, &instance->interpreter));
}

int sl_instance_run_open(struct sl_instance *instance, uint32_t batch, const void *const *inputs, void *const *outputs,
        struct sl_open_output *open, struct sl_error *error)
{
        struct sl_executable *program = find_program(instance, batch);

        if (!program)
                return sl_error_set(error, EINVAL, "batch %u is no size of the plan", batch);
        begin(instance, program, inputs, outputs, open, error);
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
        struct sl_open_output open[SL_PLAN_PORTS_MAX] = {0};
        int r;

        if (!program)
                return -EINVAL;
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
        case ENOMEM:
                return "what it makes does not fit dynamic_bytes_max";
        default:
                return strerrordesc_np(-status);
        }
}

int sl_instance_explain(const struct sl_instance *instance, int status, struct sl_error *error)
{
        const struct sl_plan_step *step = instance->interpreter.failed;

        if (error->text[0] || !step)
                return status;
        return sl_error_set(error, -status, "node \"%s\" (%s): %s", step->name, sl_op_name(step->op), words_of(status));
}

void sl_instance_draw(struct sl_instance *instance, const struct sl_draw_key *keys)
{
        instance->keys = keys;
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
