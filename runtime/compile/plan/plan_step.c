/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the steps of a plan are, for people and for who decides where it may run. Pure reading of a plan that has been checked.
 */
#include "plan.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "op.h"
#include "plan_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static const struct sl_plan_program *find_program(const struct sl_plan *plan, uint32_t batch)
{
        for (uint32_t i = 0; i < plan->info->n_batches; i++) {
                if (plan->programs[i].batch == batch)
                        return &plan->programs[i];
        }
        return NULL;
}

static uint64_t count_steps(const struct sl_plan *plan, const struct sl_plan_program *program)
{
        uint64_t n = program->n_steps;

        for (uint64_t i = 0; i < program->n_steps; i++) {
                const struct sl_plan_step *step = &plan->steps[program->first_step + i];

                for (uint64_t b = 0; b < step->n_bodies; b++)
                        n += count_steps(plan, &plan->programs[step->first_body + b]);
        }
        return n;
}

uint64_t sl_plan_steps(const struct sl_plan *plan, uint32_t batch)
{
        const struct sl_plan_program *program = find_program(plan, batch);

        return program ? count_steps(plan, program) : 0;
}

/* A step by its number, and the step in whose body it is. */
struct found {
        const struct sl_plan_step *step, *around;
        uint32_t depth;
};

/* The steps of a program, then those of its bodies in the order in which an executable is built. @left: how many come before. */
static bool find_step(const struct sl_plan *plan, const struct sl_plan_program *program, uint64_t *left, struct found *found)
{
        const struct sl_plan_step *steps = &plan->steps[program->first_step];
        struct found outer = *found;

        if (*left < program->n_steps) {
                found->step = &steps[*left];
                return true;
        }
        *left -= program->n_steps;
        for (uint64_t i = 0; i < program->n_steps; i++)
                for (uint64_t b = 0; b < steps[i].n_bodies; b++) {
                        *found = (struct found){.around = &steps[i], .depth = outer.depth + 1};
                        if (find_step(plan, &plan->programs[steps[i].first_body + b], left, found))
                                return true;
                }
        return false;
}

static void count_bytes(const struct sl_plan *plan, const struct sl_plan_step *step, struct sl_step_info *info)
{
        info->bytes = info->weight_bytes = 0;
        for (uint32_t i = 0; i < step->n_inputs + step->n_outputs; i++) {
                const struct sl_plan_operand *operand = &plan->operands[step->first_operand + i];

                if (operand->place == SL_PLACE_CONSTANT)
                        info->weight_bytes += plan->constants[operand->index].bytes;
                else if (operand->place != SL_PLACE_NONE)
                        info->bytes += sl_tensor_bytes(&operand->tensor);
        }
        info->bytes += info->weight_bytes;
}

/* The library that computes it, where its backend has several. */
static const char *engine_of(const struct sl_plan *plan, const struct sl_plan_step *step, const char *algorithm)
{
        const struct sl_plan_backend *row = &plan->backends[step->backend];
        const struct sl_backend *backend = sl_backend_find(row->name);
        struct sl_blob blob;

        if (!backend || !backend->planner->engine)
                return algorithm;
        if (step->blob == SL_PLAN_NO_BLOB)
                return backend->planner->engine(NULL);
        blob = sl_plan_blob(plan, row, step->blob);
        return backend->planner->engine(&blob);
}

int sl_plan_step_info(const struct sl_plan *plan, uint32_t batch, uint64_t step, struct sl_step_info *ret_info)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_plan_call *call = calloc(1, sizeof(*call));
        const struct sl_plan_program *program = find_program(plan, batch);
        const struct sl_plan_step *source;
        struct found found = {0};
        int r;

        if (!call)
                return -ENOMEM;
        if (!program || !find_step(plan, program, &step, &found))
                return -EINVAL;
        source = found.step;
        if (source->dynamic) {
                *ret_info = (struct sl_step_info){.name = sl_plan_step_name(plan, source),
                        .around = found.around ? sl_plan_step_name(plan, found.around) : "",
                        .depth = found.depth,
                        .operator_name = sl_op_name(source->op),
                        .backend = "dynamic",
                        .algorithm = "",
                        .out = plan->operands[source->first_operand + source->n_inputs].tensor};
                return 0;
        }
        r = sl_plan_read_step(plan, source, call);
        if (r < 0)
                return r;
        *ret_info = (struct sl_step_info){
                .name = sl_plan_step_name(plan, source),
                .around = found.around ? sl_plan_step_name(plan, found.around) : "",
                .depth = found.depth,
                .operator_name = sl_op_name(source->op),
                .backend = plan->backends[source->backend].name,
                .algorithm = sl_algorithm_name((uint32_t)sl_attrs_int(&call->node.attrs, SL_ATTR_ALGORITHM, SL_ALGORITHM_AUTO)),
                .choice = &source->choice,
                .multiply_adds = sl_op_multiply_adds(&call->node),
                .out = call->node.outputs[0],
        };
        ret_info->algorithm = engine_of(plan, source, ret_info->algorithm);
        count_bytes(plan, source, ret_info);
        return 0;
}

/* UINT64_MAX as well where the step cannot be read. */
static uint64_t data_work_of(const struct sl_plan *plan, const struct sl_plan_step *step, struct sl_plan_call *call)
{
        if (step->dynamic || sl_plan_read_step(plan, step, call) < 0)
                return UINT64_MAX;
        return sl_op_data_work(&call->node);
}

uint64_t sl_plan_data_work(const struct sl_plan *plan, uint32_t batch)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_plan_call *call = calloc(1, sizeof(*call));
        const struct sl_plan_program *program = find_program(plan, batch);
        uint64_t sum = 0;

        if (!call || !program)
                return UINT64_MAX;
        for (uint64_t i = 0; i < program->n_steps; i++)
                if (sl_add_overflows(sum, data_work_of(plan, &plan->steps[program->first_step + i], call), &sum))
                        return UINT64_MAX;
        return sum;
}
