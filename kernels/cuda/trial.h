/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses among the candidates of a node, and among the algorithms of a product, by what they take on the device (stopwatch.h),
 * with numbers of no meaning in memory that the chooser's owner lends. Each candidate is exact (cudnn/plan.h), so that any may be
 * chosen; of those that take as long the first one is. What cannot be launched, or is no graph, is none. What there is no time or
 * memory for is the first, too. The chooser is told in any case. One thread, that of the session, on whose stream is nothing else.
 */
#pragma once

#include "cuda/kernel.h"

struct sl_cuda_chooser;

/* The digests by which they are known. Pure. */
void sl_cuda_trial_node_key(const struct sl_kernel_source *source, uint64_t ret_key[2]);
void sl_cuda_trial_product_key(const struct sl_cuda_product *product, const struct sl_cublaslt_ground *ground, uint64_t ret_key[2]);

/* Of a node with a plan of cuDNN. Load time. Return: 0; -EIO the device is lost. */
int sl_cuda_trial_node(struct sl_session *session, const struct sl_kernel_source *source, const struct sl_cuda_record *record,
        const uint64_t key[2]);

/* Of a product that is made; it stays what it was. The same. */
int sl_cuda_trial_product(struct sl_session *session, const struct sl_cublaslt_matmul *matmul,
        const struct sl_cublaslt_ground *ground, const uint64_t key[2]);
