/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/own/builder.h"

#include <errno.h>
#include <string.h>

int sl_cuda_own_plan_combine(const struct sl_own_combination *combination, struct sl_own_plan *ret_plan)
{
        struct sl_own_plan plan = {.n_launches = 0};
        struct sl_own_builder builder = {.plan = &plan};
        bool by_rows = combination->rule == SL_OWN_RULE_MAJORITY_VOTE || combination->rule == SL_OWN_RULE_GEOMETRIC_MEAN;
        struct sl_own_combine a = {.rule = combination->rule,
                .n_members = combination->n_members,
                .samples = combination->samples,
                .classes = combination->classes};
        uint64_t elements = (uint64_t)a.samples * a.classes;

        if (!a.n_members || a.n_members > SL_OWN_MEMBERS_MAX || elements > INT32_MAX)
                return -ENOTSUP;
        if (a.rule == SL_OWN_RULE_WEIGHTED_SUM)
                memcpy(a.weights, combination->weights, a.n_members * sizeof(float));
        if (elements)
                sl_own_add(&builder,
                        a.rule == SL_OWN_RULE_MAJORITY_VOTE    ? SL_OWN_KERNEL_combine_votes
                        : a.rule == SL_OWN_RULE_GEOMETRIC_MEAN ? SL_OWN_KERNEL_combine_geometric
                                                               : SL_OWN_KERNEL_combine_elements,
                        &a, sizeof(a), by_rows ? (uint64_t)a.samples * 32 : elements);
        if (builder.error)
                sl_cuda_own_plan_deinit(&plan);
        else
                *ret_plan = plan;
        return builder.error;
}

/* A member is no operand of a node: there may be more of them than slots. */
CUresult sl_cuda_own_combine(const struct sl_cuda_own *own, const struct sl_own_plan *plan, const CUdeviceptr *predictions,
        CUdeviceptr output, CUstream stream)
{
        struct sl_own_combine a;
        void *arguments[] = {&a};

        if (!plan->n_launches)
                return CUDA_SUCCESS;
        memcpy(&a, plan->launches[0].argument, sizeof(a));
        memcpy(&a.out, &output, sizeof(output));
        memcpy(a.predictions, predictions, a.n_members * sizeof(*predictions));
        return sl_cuda_own_queue(own, &plan->launches[0], arguments, stream);
}

CUresult sl_cuda_own_processors(
        const struct sl_cuda_own *own, uint32_t n_blocks, CUdeviceptr words, uint32_t n_words, CUstream stream)
{
        struct sl_own_builder builder = {.plan = NULL};
        struct sl_own_processors a = {.count = n_words};
        struct sl_own_launch *launch =
                sl_own_add(&builder, SL_OWN_KERNEL_processors, &a, sizeof(a), (uint64_t)n_blocks * SL_OWN_BLOCK);
        void *arguments[] = {&a};

        memcpy(&a.out, &words, sizeof(words));
        return sl_cuda_own_queue(own, launch, arguments, stream);
}
