/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

#include "block.h"
#include "cuda/own/arguments.h"

#include <stdio.h>
#include <stdlib.h>

#define X(family, name, type)                                                                                                      \
        void host_thread_##name(const void *argument);                                                                             \
        static void run_##name(const struct fake_cuda_launch *launch, const void *argument)                                        \
        {                                                                                                                          \
                host_run(host_thread_##name, (struct host_index){launch->grid[0], launch->grid[1], launch->grid[2]},               \
                        (struct host_index){launch->block[0], launch->block[1], launch->block[2]}, launch->shared_bytes,           \
                        argument);                                                                                                 \
        }
SL_OWN_KERNELS(X)
#undef X

const struct fake_cuda_kernel host_kernels[SL_OWN_KERNEL_COUNT] = {
#define X(family, name, type) {"sl_" #name, sizeof(type), run_##name, NULL},
        SL_OWN_KERNELS(X)
#undef X
};

static CUresult CUDAAPI launch_now(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream,
        void **arguments, void **extra)
{
        const struct fake_cuda_kernel *kernel = (const struct fake_cuda_kernel *)function;
        struct fake_cuda_launch launch = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};

        (void)stream;
        (void)extra;
        kernel->run(&launch, arguments[0]);
        return CUDA_SUCCESS;
}

void host_run_plan(const struct sl_own_plan *plan, const struct sl_own_binding *binding)
{
        struct sl_cuda_driver driver = {.launch_kernel = launch_now};
        struct sl_cuda_own own = {.driver = &driver};

        for (uint32_t i = 0; i < SL_OWN_KERNEL_COUNT; i++)
                own.kernels[i] = (CUkernel)(uintptr_t)&host_kernels[i];
        sl_cuda_own_launch(&own, plan, binding, NULL);
}
