/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members' predictions become one, to the bit as the host does it where that is sums: always in model order, and compiled
 * without fused multiply-adds. And which multiprocessors run what is launched.
 */
#include "group.cuh"

#include "ensemble.h"

static __device__ float combine_element(const sl_own_combine &a, uint32_t i)
{
        float result = a.rule == SL_OWN_RULE_WEIGHTED_SUM ? 0 : a.predictions[0][i];

        for (uint32_t m = a.rule != SL_OWN_RULE_WEIGHTED_SUM; m < a.n_members; m++) {
                float x = a.predictions[m][i];

                if (a.rule == SL_OWN_RULE_MAXIMUM)
                        result = isnan(result) || result > x ? result : x;
                else
                        result += a.rule == SL_OWN_RULE_WEIGHTED_SUM ? a.weights[m] * x : x;
        }
        return a.rule == SL_OWN_RULE_MEAN ? result / (float)a.n_members : result;
}

SL_KERNEL(combine_elements, sl_own_combine)
{
        for (uint32_t i = thread_first(); i < a.samples * a.classes; i += thread_step())
                a.out[i] = combine_element(a, i);
}

/* The first of the largest of a row, by a warp. */
static __device__ uint32_t largest_class(const float *row, uint32_t classes)
{
        uint32_t lane = threadIdx.x % 32, best = lane < classes ? lane : 0;
        float value = row[best];

        for (uint32_t i = best + 32; i < classes; i += 32)
                if (row[i] > value) {
                        value = row[i];
                        best = i;
                }
        for (int mask = 16; mask; mask /= 2) {
                float other = __shfl_xor_sync(0xffffffffu, value, mask);
                uint32_t at = __shfl_xor_sync(0xffffffffu, best, mask);

                if (other > value || (other == value && at < best)) {
                        value = other;
                        best = at;
                }
        }
        return best;
}

/* A warp for each sample: the share of the members whose largest class this is. */
SL_KERNEL(combine_votes, sl_own_combine)
{
        float share = 1.0f / (float)a.n_members;

        for (uint32_t s = group_first<32>(); s < a.samples; s += group_step<32>()) {
                float *row = a.out + (uint64_t)s * a.classes;

                for (uint32_t i = threadIdx.x % 32; i < a.classes; i += 32)
                        row[i] = 0;
                __syncwarp();
                for (uint32_t m = 0; m < a.n_members; m++) {
                        uint32_t vote = largest_class(a.predictions[m] + (uint64_t)s * a.classes, a.classes);

                        if (threadIdx.x % 32 == 0)
                                row[vote] += share;
                }
                __syncwarp();
        }
}

/* The geometric mean of a class, before it is normalised. Probabilities of 0 count as the smallest normal number. */
static __device__ double geometric_mean(const sl_own_combine &a, uint64_t i)
{
        double sum = 0;

        for (uint32_t m = 0; m < a.n_members; m++)
                sum += log(fmax((double)a.predictions[m][i], 1.17549435e-38));
        return exp(sum / a.n_members);
}

SL_KERNEL(combine_geometric, sl_own_combine)
{
        for (uint32_t s = group_first<32>(); s < a.samples; s += group_step<32>()) {
                uint64_t row = (uint64_t)s * a.classes;
                double total = 0;

                for (uint32_t i = threadIdx.x % 32; i < a.classes; i += 32) {
                        double value = geometric_mean(a, row + i);

                        a.out[row + i] = (float)value;
                        total += value;
                }
                total = combine<32>(total, add_up());
                for (uint32_t i = threadIdx.x % 32; i < a.classes; i += 32)
                        a.out[row + i] = (float)(a.out[row + i] / total);
        }
}

/* Each block stays for a while, so that those behind it have to go elsewhere. */
SL_KERNEL(processors, sl_own_processors)
{
        uint32_t id = multiprocessor_id();

        if (threadIdx.x == 0 && id < a.count)
                atomicExch(a.out + id, 1u);
        stay_for(20000);
}
