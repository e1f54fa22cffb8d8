/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the steps of a plan are, for people. Pure reading of a plan that has been checked.
 */
#include "plan.h"

#include "base/cleanup.h"
#include "op.h"
#include "plan_map.h"

#include <errno.h>
#include <stdlib.h>

static const struct sl_plan_program *find_program(const struct sl_plan *plan, uint32_t batch)
{
        for (uint32_t i = 0; i < plan->info->n_batches; i++) {
                if (plan->programs[i].batch == batch)
                        return &plan->programs[i];
        }
        return NULL;
}

uint64_t sl_plan_steps(const struct sl_plan *plan, uint32_t batch)
{
        const struct sl_plan_program *program = find_program(plan, batch);

        return program ? program->n_steps : 0;
}

static uint64_t count_bytes(const struct sl_plan *plan, const struct sl_plan_step *step)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < step->n_inputs + step->n_outputs; i++) {
                const struct sl_plan_operand *operand = &plan->operands[step->first_operand + i];

                if (operand->place == SL_PLACE_CONSTANT)
                        bytes += plan->constants[operand->index].bytes;
                else if (operand->place != SL_PLACE_NONE)
                        bytes += sl_tensor_bytes(&operand->tensor);
        }
        return bytes;
}

int sl_plan_step_info(const struct sl_plan *plan, uint32_t batch, uint64_t step, struct sl_step_info *ret_info)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_plan_call *call = calloc(1, sizeof(*call));
        const struct sl_plan_program *program = find_program(plan, batch);
        const struct sl_plan_step *source;
        int r;

        if (!call)
                return -ENOMEM;
        if (!program || step >= program->n_steps)
                return -EINVAL;
        source = &plan->steps[program->first_step + step];
        if (source->dynamic) {
                *ret_info = (struct sl_step_info){.name = source->name,
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
                .name = source->name,
                .operator_name = sl_op_name(source->op),
                .backend = sl_plan_backend_name(source->backend),
                .algorithm = sl_algorithm_name((uint32_t)sl_attrs_int(&call->node.attrs, SL_ATTR_ALGORITHM, SL_ALGORITHM_AUTO)),
                .choice = &source->choice,
                .multiply_adds = sl_op_multiply_adds(&call->node),
                .bytes = count_bytes(plan, source),
                .out = call->node.outputs[0],
        };
        return 0;
}
