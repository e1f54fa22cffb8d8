/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a block as fibers, one after the other on the calling thread. There is one block at a time in the process. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct host_index {
        uint32_t x, y, z;
};

/* Of the thread that runs. */
extern struct host_index threadIdx, blockIdx, blockDim, gridDim;
extern void *host_shared;

/* Runs @thread for each thread of each block of the grid. Aborts where threads wait for each other for ever. */
void host_run(void (*thread)(const void *argument), struct host_index grid, struct host_index block, uint32_t shared_bytes,
        const void *argument);

void host_block_barrier(void);
void host_warp_barrier(void);

/* What lane @lane of the warp gives to its call. */
uint64_t host_shuffle(uint64_t bits, uint32_t lane);

#ifdef __cplusplus
}
#endif
