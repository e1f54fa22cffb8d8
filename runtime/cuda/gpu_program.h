/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One model's plan on one GPU, for all workers of all batch sizes: its constants, copied once, and the pool that its samples come
 * to. What a worker has for itself is its workspace, by the plan's static memory plan, and its ports (gpu_worker.h).
 *
 * Sources: E2bird (W. Cui et al., 2022), sections 5 and 6.2, whose workers share the weights and reuse the memory of intermediates.
 *
 * One thread, with the device's context.
 */
#pragma once

#include "gpu.h"
#include "plan.h"
#include "pool.h"

struct sl_gpu_program;

struct sl_gpu_program_options {
        struct sl_gpu *gpu;
        const struct sl_plan *plan;  /* outlives it */
        struct sl_gpu_program *base; /* of the plan's base on the same GPU, which it holds; NULL: there is none */
};

/*
 * Load time. Return: 0; -ENOMEM one line says what was wanted, what is free and the bound, and everything else goes on; -ENOTSUP a
 * plan that cannot run there; what the backend says.
 */
int sl_gpu_program_new(const struct sl_gpu_program_options *options, struct sl_gpu_program **ret_program, struct sl_error *error);

/*
 * A pool for @n_slots samples or more, in so many bytes at most, where it has none: workers need it, derived plans of a base do
 * not. Return: as above; -E2BIG.
 */
int sl_gpu_program_need_pool(struct sl_gpu_program *program, uint32_t n_slots, uint64_t bytes_max, struct sl_error *error);

/* One more holder; the last frees it. NULL is fine. Returns NULL. */
struct sl_gpu_program *sl_gpu_program_hold(struct sl_gpu_program *program);
struct sl_gpu_program *sl_gpu_program_free(struct sl_gpu_program *program);

struct sl_gpu *sl_gpu_program_gpu(const struct sl_gpu_program *program);
const struct sl_plan *sl_gpu_program_plan(const struct sl_gpu_program *program);
const struct sl_residence *sl_gpu_program_constants(const struct sl_gpu_program *program);
/* NULL: it has none. */
struct sl_pool *sl_gpu_program_pool(const struct sl_gpu_program *program);

/* Bytes of a port at so many samples; of one without a batch: of all of it. UINT64_MAX: its size is not known. Pure. */
uint64_t sl_gpu_port_bytes(const struct sl_port *port, uint32_t batch);

/* Where a port begins, in device memory and in pinned memory alike. */
#define SL_GPU_PORT_ALIGNMENT 256

/*
 * Ports one behind the other; the outputs of a launch, with a word behind them; and all of a worker: those of its steps, and
 * results for each launch that is on its way. Pure.
 */
uint64_t sl_gpu_results_bytes(const struct sl_plan_info *info, uint32_t batch);
uint64_t sl_gpu_ports_room(const struct sl_port *ports, uint32_t n, uint32_t batch);
uint64_t sl_gpu_ports_bytes(const struct sl_plan_info *info, uint32_t batch, uint32_t n_slots);

/*
 * What workers of these largest batches take but for the pool: as they are here, weights once, workspaces by the static memory plan
 * and ports; and as workers would take it that have weights, and what each product and convolution makes, for themselves. Pure.
 */
struct sl_gpu_footprint {
        uint64_t shared_bytes, duplicated_bytes;
};

/* Return: 0; -EINVAL a batch is no size of the plan's ladder. */
int sl_gpu_footprint(const struct sl_plan *plan, const uint32_t *batches, uint32_t n_workers, uint32_t n_slots,
        struct sl_gpu_footprint *ret_footprint);
