/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/driver/device.h"

#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int count_devices(const struct sl_cuda_driver *driver, uint32_t index, struct sl_error *error)
{
        const char *visible = getenv("CUDA_VISIBLE_DEVICES");
        CUresult result = driver->init(0);
        int count = 0;

        if (result == CUDA_SUCCESS)
                result = driver->device_get_count(&count);
        if (result == CUDA_ERROR_NO_DEVICE || (result == CUDA_SUCCESS && count <= 0))
                return sl_error_set(error, ENODEV, "there is no CUDA device%s%s", visible ? ", with CUDA_VISIBLE_DEVICES=" : "",
                        visible ? visible : "");
        if (result != CUDA_SUCCESS)
                return sl_cuda_check(driver, result, error, "the NVIDIA driver does not start");
        if (index >= (uint32_t)count)
                return sl_error_set(error, ENODEV, "there is no CUDA device %u: there %s %d%s%s", index, count == 1 ? "is" : "are",
                        count, visible ? ", with CUDA_VISIBLE_DEVICES=" : "", visible ? visible : "");
        return 0;
}

uint32_t sl_cuda_device_count(const struct sl_cuda_driver *driver)
{
        int count = 0;

        return driver->init(0) == CUDA_SUCCESS && driver->device_get_count(&count) == CUDA_SUCCESS && count > 0 ? (uint32_t)count : 0;
}

static int describe_device(struct sl_cuda_device *device, struct sl_error *error)
{
        const struct sl_cuda_driver *driver = device->driver;
        const struct {
                CUdevice_attribute attribute;
                int *value;
        } attributes[] = {
                {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &device->major},
                {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &device->minor},
                {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &device->n_processors},
                {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &device->block_shared_bytes},
                {CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, &device->registers_read_only},
        };
        size_t memory_bytes = 0;
        CUresult result = driver->device_get_name(device->name, sizeof(device->name), device->number);

        for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]) && result == CUDA_SUCCESS; i++)
                result = driver->device_get_attribute(attributes[i].value, attributes[i].attribute, device->number);
        if (result == CUDA_SUCCESS)
                result = driver->device_total_mem(&memory_bytes, device->number);
        device->memory_bytes = memory_bytes;
        return sl_cuda_check(driver, result, error, "CUDA device %d cannot be asked what it is", device->number);
}

static int retain_context(struct sl_cuda_device *device, struct sl_error *error)
{
        const struct sl_cuda_driver *driver = device->driver;
        CUresult result = driver->device_primary_ctx_retain(&device->context, device->number);

        if (result == CUDA_ERROR_DEVICE_UNAVAILABLE)
                return sl_error_set(error, EBUSY,
                        "CUDA device %d (%s) is busy: another process has it for itself, or its compute mode forbids contexts "
                        "(nvidia-smi -q -d COMPUTE)",
                        device->number, device->name);
        if (result != CUDA_SUCCESS)
                return sl_cuda_check(driver, result, error, "CUDA device %d (%s) cannot be opened", device->number, device->name);
        result = driver->ctx_set_current(device->context);
        if (result != CUDA_SUCCESS)
                driver->device_primary_ctx_release(device->number);
        return sl_cuda_check(driver, result, error, "the context of CUDA device %d (%s)", device->number, device->name);
}

int sl_cuda_device_open(
        const struct sl_cuda_driver *driver, uint32_t index, struct sl_cuda_device *ret_device, struct sl_error *error)
{
        struct sl_cuda_device device = {.driver = driver};
        int r = count_devices(driver, index, error);

        if (r == 0)
                r = sl_cuda_check(driver, driver->device_get(&device.number, (int)index), error, "CUDA device %u", index);
        if (r == 0)
                r = describe_device(&device, error);
        if (r == 0 && device.major < SL_CUDA_CAPABILITY_MAJOR)
                r = sl_error_set(error, EPROTONOSUPPORT, "CUDA device %u (%s) has compute capability %d.%d, and %d.0 is needed",
                        index, device.name, device.major, device.minor, SL_CUDA_CAPABILITY_MAJOR);
        if (r == 0)
                r = retain_context(&device, error);
        if (r == 0)
                *ret_device = device;
        return r;
}

int sl_cuda_device_figures(const struct sl_cuda_device *device, struct sl_cuda_figures *ret_figures)
{
        struct sl_cuda_figures figures = {.capability = 100 * device->major + 10 * device->minor,
                .driver_version = device->driver->version,
                .cuda_version = device->driver->version,
                .memory_bytes = (int64_t)device->memory_bytes,
                .n_processors = device->n_processors};
        const struct {
                CUdevice_attribute attribute;
                int64_t *figure;
        } attributes[] = {
                {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, &figures.block_registers},
                {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &figures.processor_registers},
                {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &figures.block_shared_bytes},
                {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &figures.block_shared_bytes_max},
                {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, &figures.block_reserved_bytes},
                {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &figures.block_threads},
                {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &figures.processor_threads},
                {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, &figures.processor_blocks},
                {CU_DEVICE_ATTRIBUTE_WARP_SIZE, &figures.warp_threads},
                {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &figures.clock_khz},
                {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &figures.memory_clock_khz},
                {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &figures.cache_bytes},
                {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &figures.grid[0]},
                {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &figures.grid[1]},
                {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &figures.grid[2]},
                {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &figures.block[0]},
                {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &figures.block[1]},
                {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &figures.block[2]},
        };
        int value = 0;

        for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
                if (device->driver->device_get_attribute(&value, attributes[i].attribute, device->number) != CUDA_SUCCESS)
                        return -ENODATA;
                *attributes[i].figure = value;
        }
        snprintf(figures.name, sizeof(figures.name), "%s", device->name);
        if (!sl_cuda_figures_are_sound(&figures))
                return -ENODATA;
        *ret_figures = figures;
        return 0;
}

void sl_cuda_device_close(struct sl_cuda_device *device)
{
        if (!device->context)
                return;
        device->driver->ctx_set_current(NULL);
        device->driver->device_primary_ctx_release(device->number);
        device->context = NULL;
}
