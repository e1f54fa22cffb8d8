/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan made executable for one worker. Everything that a launch needs is prepared by sl_instance_new(); sl_instance_run() puts
 * the caller's buffers into the pointer table and walks the steps.
 *
 *     program (batch) -> steps   -> kernel + its slice of the pointer table
 *                     -> patches -> slots of the pointer table that hold a buffer of the caller
 *
 * Ownership: the instance owns kernels, tables and the workspace; the plan owns the constants and outlives it. One thread at a
 * time. All batch sizes share one workspace, since only one of them runs at a time.
 */
#include "plan.h"

#include "backend.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "cpu/threads.h"
#include "interpreter.h"
#include "op.h"
#include "pace.h"
#include "plan_map.h"
#include "workspace.h"

#include <stdlib.h>
#include <string.h>

struct step {
        const struct sl_plan_step *dynamic; /* what the interpreter runs; NULL: the kernel below */
        const struct sl_backend *backend;
        struct sl_kernel *kernel;
        struct sl_binding binding; /* points into the pointer table */
};

struct patch {
        void **slot;
        uint32_t place; /* SL_PLACE_INPUT or SL_PLACE_OUTPUT */
        uint32_t port;
};

struct program {
        const struct sl_plan_program *source;
        bool dynamic; /* some step is */
        uint32_t batch;
        uint32_t n_steps, n_patches;
        struct step *steps;
        struct patch *patches;
        void **pointers;
};

struct sl_instance {
        const struct sl_plan *plan;
        uint32_t n_programs;
        struct program programs[SL_PLAN_BATCHES_MAX];
        struct sl_workspace workspace;
        struct sl_interpreter interpreter;
        struct sl_stop stop;
        struct sl_pace pace; /* of the run */
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

static uint64_t count_pointers(const struct sl_plan *plan, const struct sl_plan_program *source)
{
        uint64_t n = 0;

        for (uint64_t i = 0; i < source->n_steps; i++) {
                const struct sl_plan_step *step = &plan->steps[source->first_step + i];

                n += step->n_inputs + step->n_outputs;
        }
        return n;
}

static void *pointer_of(const struct sl_instance *instance, const struct sl_plan_operand *operand)
{
        const struct sl_plan *plan = instance->plan;

        switch (operand->place) {
        case SL_PLACE_WORKSPACE:
                return instance->workspace.bytes + operand->offset;
        case SL_PLACE_CONSTANT:
                return (void *)sl_plan_constant_data(plan, &plan->constants[operand->index]);
        default:
                return NULL;
        }
}

static void bind_operand(
        const struct sl_instance *instance, struct program *program, const struct sl_plan_operand *operand, void **slot)
{
        *slot = pointer_of(instance, operand);
        if (operand->place == SL_PLACE_INPUT || operand->place == SL_PLACE_OUTPUT)
                program->patches[program->n_patches++] =
                        (struct patch){.slot = slot, .place = operand->place, .port = operand->index};
}

/* The slots of a step: its inputs, then its outputs. */
static void bind_step(
        struct sl_instance *instance, struct program *program, const struct sl_plan_step *source, struct step *step, void **slots)
{
        for (uint32_t i = 0; i < source->n_inputs + source->n_outputs; i++)
                bind_operand(instance, program, &instance->plan->operands[source->first_operand + i], &slots[i]);
        step->binding.pace = &instance->pace;
        step->binding.inputs = (const void *const *)slots;
        step->binding.outputs = slots + source->n_inputs;
        step->binding.scratch = source->scratch_bytes ? instance->workspace.bytes + source->scratch_offset : NULL;
}

static int compile_step(const struct sl_plan *plan, const struct sl_plan_step *source, struct sl_plan_call *call, struct step *step,
        struct sl_error *error)
{
        const char *name = sl_plan_backend_name(source->backend);
        int r;

        if (source->dynamic) {
                step->dynamic = source;
                return 0;
        }
        step->backend = sl_backend_find(name);
        if (!step->backend)
                return sl_error_set(error, ENOTSUP, "this program has no backend \"%s\"", name);
        r = sl_plan_read_step(plan, source, call);
        if (r < 0)
                return sl_error_set(error, -r, "plan file: the shapes of a %s contradict each other", sl_op_name(source->op));
        r = step->backend->compile(&call->node, call->packed, call->constants, &step->kernel, error);
        if (r < 0)
                return sl_error_prefix(error, r, "%s on backend \"%s\"", sl_op_name(source->op), name);
        if (step->backend->scratch_bytes(step->kernel) > source->scratch_bytes)
                return sl_error_set(error, EBADMSG, "plan file: a %s wants %zu bytes of scratch and has %llu",
                        sl_op_name(source->op), step->backend->scratch_bytes(step->kernel),
                        (unsigned long long)source->scratch_bytes);
        return 0;
}

/* Tables of at least one element, so that an empty program needs no special case. */
static int allocate_tables(struct program *program, const struct sl_plan_program *source, uint64_t n_pointers)
{
        program->steps = calloc(source->n_steps + 1, sizeof(*program->steps));
        program->pointers = calloc(n_pointers + 1, sizeof(*program->pointers));
        program->patches = calloc(n_pointers + 1, sizeof(*program->patches));
        return program->steps && program->pointers && program->patches ? 0 : -ENOMEM;
}

static int build_program(struct sl_instance *instance, const struct sl_plan_program *source, struct program *program,
        struct sl_plan_call *call, struct sl_error *error)
{
        uint64_t n_pointers = count_pointers(instance->plan, source);
        void **slots;

        if (allocate_tables(program, source, n_pointers) < 0)
                return sl_error_set(
                        error, ENOMEM, "instance: no memory for the tables of %llu steps", (unsigned long long)source->n_steps);
        program->batch = (uint32_t)source->batch;
        program->source = source;
        slots = program->pointers;
        for (uint64_t i = 0; i < source->n_steps; i++) {
                const struct sl_plan_step *step = &instance->plan->steps[source->first_step + i];
                int r = compile_step(instance->plan, step, call, &program->steps[i], error);

                program->n_steps++;
                program->dynamic = program->dynamic || step->dynamic;
                if (r < 0)
                        return sl_error_prefix(error, r, "step %llu at batch %u", (unsigned long long)i, program->batch);
                bind_step(instance, program, step, &program->steps[i], slots);
                slots += step->n_inputs + step->n_outputs;
        }
        return 0;
}

static int build_programs(struct sl_instance *instance, uint32_t n_programs, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_plan_call *call = calloc(1, sizeof(*call));

        if (!call)
                return sl_error_set(error, ENOMEM, "instance: no memory for %zu bytes", sizeof(*call));
        for (uint32_t i = 0; i < n_programs; i++) {
                int r;

                instance->n_programs++;
                r = build_program(instance, &instance->plan->programs[i], &instance->programs[i], call, error);
                if (r < 0)
                        return sl_error_prefix(error, r, "model \"%s\"", instance->plan->info->name);
        }
        return 0;
}

int sl_instance_new(const struct sl_plan *plan, uint32_t batch_max, struct sl_instance **ret_instance, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_instance_free) struct sl_instance *instance = calloc(1, sizeof(*instance));
        uint32_t n_programs = programs_up_to(plan, batch_max);
        uint64_t bytes = sl_plan_workspace_bytes(plan, batch_max);
        int r;

        if (plan->info->n_symbols)
                return sl_error_set(error, EINVAL, "model \"%s\": its dimension \"%s\" has no size yet", plan->info->name,
                        plan->info->symbols[0]);
        if (!n_programs)
                return sl_error_set(error, EINVAL, "model \"%s\": batch %u, the smallest of its plan is %u", plan->info->name,
                        batch_max, plan->info->batches[0]);
        if (!instance)
                return sl_error_set(error, ENOMEM, "instance: no memory for %zu bytes", sizeof(*instance));
        instance->plan = plan;
        if (sl_workspace_init(&instance->workspace, bytes) < 0 ||
                sl_workspace_populate(&instance->workspace, plan->programs[0].workspace_bytes, UINT64_MAX) < 0)
                return sl_error_set(error, ENOMEM, "model \"%s\": no memory for a workspace of %llu bytes", plan->info->name,
                        (unsigned long long)bytes);
        if (sl_interpreter_init(&instance->interpreter, plan, n_programs, instance->workspace.bytes, &instance->pace) < 0)
                return sl_error_set(error, ENOMEM, "model \"%s\": no memory for its slots", plan->info->name);
        sl_cpu_use_one_thread();
        r = build_programs(instance, n_programs, error);
        if (r < 0)
                return r;
        *ret_instance = sl_take(instance);
        return 0;
}

static void free_program(struct program *program)
{
        for (uint32_t i = 0; i < program->n_steps; i++) {
                struct step *step = &program->steps[i];

                if (step->backend)
                        step->backend->kernel_free(step->kernel);
        }
        free(program->steps);
        free(program->pointers);
        free(program->patches);
}

struct sl_instance *sl_instance_free(struct sl_instance *instance)
{
        if (!instance)
                return NULL;
        for (uint32_t i = 0; i < instance->n_programs; i++)
                free_program(&instance->programs[i]);
        sl_interpreter_deinit(&instance->interpreter);
        sl_workspace_deinit(&instance->workspace);
        free(instance);
        return NULL;
}

int sl_instance_populate(struct sl_instance *instance, uint32_t batch, uint64_t bytes_max)
{
        return sl_workspace_populate(&instance->workspace, sl_plan_workspace_bytes(instance->plan, batch), bytes_max);
}

uint64_t sl_instance_bytes(const struct sl_plan *plan, uint32_t batch_max)
{
        uint32_t n_programs = programs_up_to(plan, batch_max);
        uint64_t bytes = sizeof(struct sl_instance) + sl_plan_workspace_bytes(plan, batch_max);

        for (uint32_t i = 0; i < n_programs; i++) {
                bytes += plan->programs[i].n_steps * sizeof(struct step);
                bytes += count_pointers(plan, &plan->programs[i]) * (sizeof(void *) + sizeof(struct patch));
        }
        return bytes;
}

static const struct program *find_program(const struct sl_instance *instance, uint32_t batch)
{
        for (uint32_t i = 0; i < instance->n_programs; i++) {
                if (instance->programs[i].batch == batch)
                        return &instance->programs[i];
        }
        return NULL;
}

static void begin(struct sl_instance *instance, const struct program *program, const void *const *inputs, void *const *outputs)
{
        sl_pace_start(&instance->pace, &instance->stop, program->source->work);
        /* The thread that runs may not be the one that compiled, and kernels must find the thread count that they were made for. */
        sl_cpu_use_one_thread();
        for (uint32_t i = 0; i < program->n_patches; i++) {
                const struct patch *patch = &program->patches[i];

                *patch->slot = patch->place == SL_PLACE_INPUT ? (void *)inputs[patch->port] : outputs[patch->port];
        }
}

static int run_step(struct sl_instance *instance, const struct step *step)
{
        int r = sl_stop_look(&instance->stop);

        if (r < 0)
                return r;
        if (step->dynamic)
                return sl_interpreter_step(&instance->interpreter, step->dynamic);
        return step->backend->launch(step->kernel, &step->binding);
}

static int run_dynamic(struct sl_instance *instance, const struct program *program, const void *const *inputs, void *const *outputs,
        struct sl_open_output *open, struct sl_error *error)
{
        int r = 0;

        sl_interpreter_begin(&instance->interpreter, program->source, inputs, outputs, open, error);
        for (uint32_t i = 0; i < program->n_steps && r == 0; i++)
                r = run_step(instance, &program->steps[i]);
        sl_interpreter_end(&instance->interpreter);
        return r == 0 ? instance->interpreter.too_small : r;
}

int sl_instance_run_open(struct sl_instance *instance, uint32_t batch, const void *const *inputs, void *const *outputs,
        struct sl_open_output *open, struct sl_error *error)
{
        const struct program *program = find_program(instance, batch);

        if (!program)
                return sl_error_set(error, EINVAL, "batch %u is no size of the plan", batch);
        begin(instance, program, inputs, outputs);
        return run_dynamic(instance, program, inputs, outputs, open, error);
}

int sl_instance_run(struct sl_instance *instance, uint32_t batch, const void *const *inputs, void *const *outputs)
{
        const struct program *program = find_program(instance, batch);
        int r = 0;

        if (!program)
                return -EINVAL;
        begin(instance, program, inputs, outputs);
        if (program->dynamic)
                return run_dynamic(instance, program, inputs, outputs, NULL, NULL);
        for (uint32_t i = 0; i < program->n_steps && r == 0; i++)
                r = run_step(instance, &program->steps[i]);
        return r;
}

int sl_instance_run_timed(
        struct sl_instance *instance, uint32_t batch, const void *const *inputs, void *const *outputs, uint64_t *ret_step_ns)
{
        const struct program *program = find_program(instance, batch);
        struct sl_open_output open[SL_PLAN_PORTS_MAX] = {0};
        uint64_t before;
        int r = 0;

        if (!program)
                return -EINVAL;
        begin(instance, program, inputs, outputs);
        sl_interpreter_begin(&instance->interpreter, program->source, inputs, outputs, open, NULL);
        before = sl_clock_ns();
        for (uint32_t i = 0; i < program->n_steps && r == 0; i++) {
                r = run_step(instance, &program->steps[i]);

                uint64_t after = sl_clock_ns();

                ret_step_ns[i] = after - before;
                before = after;
        }
        sl_interpreter_end(&instance->interpreter);
        return r;
}

void sl_instance_watch(struct sl_instance *instance, const struct sl_stop *stop)
{
        instance->stop = stop ? *stop : (struct sl_stop){0};
}

uint32_t sl_instance_step(const struct sl_instance *instance, uint32_t samples)
{
        uint32_t batch = 0;

        for (uint32_t i = 0; i < instance->n_programs; i++) {
                if (instance->programs[i].batch <= samples)
                        batch = instance->programs[i].batch;
        }
        return batch;
}
