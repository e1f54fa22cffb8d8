/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_memory.h"

#include "base/assert.h"
#include "base/error.h"

#include <errno.h>

static const char *const use_names[SL_GPU_USES] = {"weights", "workspaces", "ports", "pools", "accumulation"};

uint64_t sl_gpu_memory_used(const struct sl_gpu_memory *memory)
{
        uint64_t used = 0;

        for (uint32_t i = 0; i < SL_GPU_USES; i++)
                used += memory->used[i];
        return used;
}

static int refuse(const struct sl_gpu_memory *memory, enum sl_gpu_use use, uint64_t bytes, uint64_t free_bytes, const char *owner,
        struct sl_error *error)
{
        return sl_error_set(error, ENOMEM,
                "model \"%s\": %llu bytes for its %s are wanted on %s, %llu are free: %llu of its bound of %llu are in use "
                "(weights %llu, workspaces %llu, ports %llu, pools %llu, accumulation %llu)",
                owner, (unsigned long long)bytes, use_names[use], memory->device, (unsigned long long)free_bytes,
                (unsigned long long)sl_gpu_memory_used(memory), (unsigned long long)memory->limit,
                (unsigned long long)memory->used[SL_GPU_WEIGHTS], (unsigned long long)memory->used[SL_GPU_WORKSPACES],
                (unsigned long long)memory->used[SL_GPU_PORTS], (unsigned long long)memory->used[SL_GPU_POOLS],
                (unsigned long long)memory->used[SL_GPU_ACCUMULATION]);
}

int sl_gpu_memory_take(struct sl_gpu_memory *memory, enum sl_gpu_use use, uint64_t bytes, uint64_t there, const char *owner,
        struct sl_error *error)
{
        uint64_t left = memory->limit - sl_gpu_memory_used(memory), free_bytes = there < left ? there : left;

        if (bytes > free_bytes)
                return refuse(memory, use, bytes, free_bytes, owner, error);
        memory->used[use] += bytes;
        return 0;
}

void sl_gpu_memory_give_back(struct sl_gpu_memory *memory, enum sl_gpu_use use, uint64_t bytes)
{
        SL_ASSERT(memory->used[use] >= bytes);
        memory->used[use] -= bytes;
}
