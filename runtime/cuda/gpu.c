/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu.h"

#include "base/error.h"
#include "base/utf8.h"

#include <stdio.h>

static int ask_free(const struct sl_gpu *gpu, uint64_t *ret_free, struct sl_error *error)
{
        size_t free_bytes = 0, total_bytes = 0;
        CUresult result = gpu->device->driver->mem_get_info(&free_bytes, &total_bytes);

        *ret_free = free_bytes;
        return sl_cuda_check(gpu->device->driver, result, error, "the free memory of %s", gpu->memory.device);
}

int sl_gpu_init(struct sl_gpu *gpu, const struct sl_cuda_device *device, uint64_t limit, struct sl_error *error)
{
        char name[49];

        *gpu = (struct sl_gpu){.device = device, .memory = {.limit = limit}, .common = {.cuda = device}};
        snprintf(gpu->memory.device, sizeof(gpu->memory.device), "gpu:%d (%s)", device->number,
                sl_utf8_fit(device->name, name, sizeof(name)));
        return limit ? 0 : ask_free(gpu, &gpu->memory.limit, error);
}

int sl_gpu_promise(struct sl_gpu *gpu, enum sl_gpu_use use, uint64_t bytes, const char *owner, struct sl_error *error)
{
        uint64_t there = 0;
        int r = ask_free(gpu, &there, error);

        return r < 0 ? r : sl_gpu_memory_take(&gpu->memory, use, bytes, there, owner, error);
}

int sl_gpu_allocate(struct sl_gpu *gpu, enum sl_gpu_use use, uint64_t bytes, const char *owner, CUdeviceptr *ret_address,
        struct sl_error *error)
{
        int r = sl_gpu_promise(gpu, use, bytes, owner, error);

        if (r < 0)
                return r;
        r = sl_cuda_check(gpu->device->driver, gpu->device->driver->mem_alloc(ret_address, bytes), error,
                "model \"%s\": %llu bytes on %s", owner, (unsigned long long)bytes, gpu->memory.device);
        if (r < 0)
                sl_gpu_memory_give_back(&gpu->memory, use, bytes);
        return r;
}

void sl_gpu_release(struct sl_gpu *gpu, enum sl_gpu_use use, uint64_t bytes, CUdeviceptr address)
{
        if (!address)
                return;
        gpu->device->driver->mem_free(address);
        sl_gpu_memory_give_back(&gpu->memory, use, bytes);
}
