/* SPDX-License-Identifier: Apache-2.0 */
/* The device by itself: what it is, what a launch of a graph takes, which multiprocessors a let runs on, what workers take. */
#include "commands.h"

#include "base/clock.h"
#include "base/error.h"
#include "cuda/libraries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAUNCHES 2000
#define SIZES    6
#define BLOCKS   4096

const char *name_of(const char *path, char ret_name[128])
{
        const char *last = strrchr(path, '/'), *from = last ? last + 1 : path;
        size_t n;

        if (last && !strcmp(from, "model.onnx")) {
                for (from = last; from > path && from[-1] != '/'; from--)
                        ;
                n = (size_t)(last - from);
        } else {
                n = strcspn(from, ".");
        }
        snprintf(ret_name, 128, "%.*s", (int)(n < 127 ? n : 127), from);
        return ret_name;
}

int command_device(struct ground *ground, const struct wish *wish, struct sl_error *error)
{
        const struct sl_cuda_device *device = &ground->device;
        const struct sl_cuda_libraries *libraries;
        int r = sl_cuda_libraries_hold(&ground->driver, &libraries, error);

        (void)wish;
        if (r < 0)
                return r;
        printf("{\"device\":\"%s\",\"capability\":\"%d.%d\",\"multiprocessors\":%d,\"memory_mib\":%llu,\"cuda\":\"%d.%d\","
               "\"cudnn\":%d,\"cublaslt\":%d,\"lets\":%s,\"registers_read_only\":%s}\n",
                device->name, device->major, device->minor, device->n_processors, (unsigned long long)device->memory_bytes >> 20,
                ground->driver.version / 1000, ground->driver.version % 1000 / 10, libraries->cudnn.version,
                libraries->cublaslt.version, ground->can_cut ? "true" : "false", device->registers_read_only ? "true" : "false");
        sl_cuda_libraries_release();
        return 0;
}

/* A graph of one set of 4 bytes: what is below any request. */
static int make_graph(struct ground *ground, CUdeviceptr word, CUstream stream, CUgraph *graph, CUgraphExec *ready)
{
        const struct sl_cuda_driver *driver = &ground->driver;
        CUresult result = driver->stream_begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);

        if (result == CUDA_SUCCESS)
                result = driver->memset_d8_async(word, 0, 4, stream);
        if (result == CUDA_SUCCESS)
                result = driver->stream_end_capture(stream, graph);
        if (result == CUDA_SUCCESS)
                result = driver->graph_instantiate(ready, *graph, 0);
        return sl_cuda_errno(result);
}

static void time_launches(struct ground *ground, CUgraphExec ready, CUstream stream)
{
        uint64_t queued_ns = 0, whole_ns = 0;

        for (int i = -50; i < LAUNCHES; i++) {
                uint64_t start = sl_clock_ns(), queued;

                ground->driver.graph_launch(ready, stream);
                queued = sl_clock_ns();
                ground->driver.stream_synchronize(stream);
                if (i < 0)
                        continue;
                queued_ns += queued - start;
                whole_ns += sl_clock_ns() - start;
        }
        printf("{\"graph\":\"one set\",\"launches\":%d,\"launch_us\":%.2f,\"launch_and_wait_us\":%.2f}\n", LAUNCHES,
                (double)queued_ns / LAUNCHES / 1e3, (double)whole_ns / LAUNCHES / 1e3);
}

int command_launch(struct ground *ground, const struct wish *wish, struct sl_error *error)
{
        const struct sl_cuda_driver *driver = &ground->driver;
        CUdeviceptr word = 0;
        CUstream stream = NULL;
        CUgraph graph = NULL;
        CUgraphExec ready = NULL;
        int r = sl_cuda_check(driver, driver->mem_alloc(&word, 4), error, "a word");

        (void)wish;
        if (r == 0)
                r = sl_cuda_check(
                        driver, driver->stream_create_with_priority(&stream, CU_STREAM_NON_BLOCKING, 0), error, "a stream");
        if (r == 0)
                r = make_graph(ground, word, stream, &graph, &ready);
        if (r == 0)
                time_launches(ground, ready, stream);
        if (ready)
                driver->graph_exec_destroy(ready);
        if (graph)
                driver->graph_destroy(graph);
        if (stream)
                driver->stream_destroy(stream);
        driver->mem_free(word);
        return r < 0 && !error->text[0] ? sl_error_set(error, -r, "a graph of one node: %s", strerror(-r)) : r;
}

/* ---- lets ---- */

static int count_processors(struct ground *ground, const struct sl_cuda_own *own, CUstream stream, uint32_t *ret_n)
{
        const struct sl_cuda_driver *driver = &ground->driver;
        uint32_t n = (uint32_t)ground->device.n_processors, *words = calloc(n, sizeof(*words));
        CUdeviceptr there = 0;
        CUresult result = words ? driver->mem_alloc(&there, n * sizeof(*words)) : CUDA_ERROR_OUT_OF_MEMORY;

        if (result == CUDA_SUCCESS)
                result = driver->memset_d8_async(there, 0, n * sizeof(*words), stream);
        if (result == CUDA_SUCCESS)
                result = sl_cuda_own_processors(own, BLOCKS, there, n, stream);
        if (result == CUDA_SUCCESS)
                result = driver->memcpy_dtoh_async(words, there, n * sizeof(*words), stream);
        if (result == CUDA_SUCCESS)
                result = driver->stream_synchronize(stream);
        *ret_n = 0;
        for (uint32_t i = 0; i < n && result == CUDA_SUCCESS; i++)
                *ret_n += words[i] != 0;
        if (there)
                driver->mem_free(there);
        free(words);
        return sl_cuda_errno(result);
}

static int try_let(struct ground *ground, const struct sl_cuda_own *own, uint32_t percent, struct sl_error *error)
{
        struct sl_green *green = NULL;
        CUstream stream = NULL;
        uint32_t ran = 0;
        int r = sl_green_new(&ground->greens, percent, &green, error);

        if (r == 0)
                r = sl_green_stream(&ground->greens, green, 0, &stream, error);
        if (r == 0)
                r = count_processors(ground, own, stream, &ran);
        if (r == 0)
                printf("{\"percent\":%u,\"multiprocessors\":%u,\"ran_on\":%u}\n", percent, sl_green_processors(green), ran);
        if (r == 0 && ran > sl_green_processors(green))
                r = sl_error_set(error, EDOM, "a let of %u multiprocessors ran on %u", sl_green_processors(green), ran);
        sl_green_end_stream(&ground->greens, green, stream);
        sl_green_drop(green);
        return r;
}

int command_lets(struct ground *ground, const struct wish *wish, struct sl_error *error)
{
        static const uint32_t percents[] = {10, 25, 50, 75};
        const struct sl_cuda_libraries *libraries;
        int r = ground->can_cut ? sl_cuda_libraries_hold(&ground->driver, &libraries, error)
                                : sl_error_set(error, ENOTSUP, "the device cannot be cut into lets");

        (void)wish;
        if (r < 0)
                return r;
        for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]) && r == 0; i++)
                r = try_let(ground, &libraries->own, percents[i], error);
        sl_cuda_libraries_release();
        return r;
}

/* ---- memory ---- */

static size_t free_bytes(const struct ground *ground)
{
        size_t left = 0, all = 0;

        ground->driver.mem_get_info(&left, &all);
        return left;
}

/* Six workers of 1 2 4 8 16 32: what they take of the device, and what six that duplicate would, by the plan. */
int command_memory(struct ground *ground, const struct wish *wish, struct sl_error *error)
{
        static const uint32_t batches[SIZES] = {1, 2, 4, 8, 16, 32};
        struct sl_plan *plan = wish->n_models ? ground_plan(wish->models[0], &wish->options, error) : NULL;
        struct sl_gpu_worker *workers[SIZES] = {NULL};
        struct sl_gpu_program *program = NULL;
        struct sl_gpu_footprint footprint;
        size_t before = free_bytes(ground);
        char name[128];
        int r = plan ? sl_gpu_program_new(&(struct sl_gpu_program_options){.gpu = &ground->gpu, .plan = plan}, &program, error)
                     : -ENOTSUP;

        if (r == 0)
                r = sl_gpu_program_need_pool(program, 64, 4ull << 30, error);
        for (uint32_t i = 0; i < SIZES && r == 0; i++)
                r = sl_gpu_worker_new(
                        &(struct sl_gpu_worker_options){
                                .program = program, .greens = &ground->greens, .batch_max = batches[i], .n_slots = 2},
                        &workers[i], error);
        if (r == 0)
                r = sl_gpu_footprint(plan, batches, SIZES, 2, &footprint);
        if (r == 0)
                printf("{\"model\":\"%s\",\"workers\":%d,\"device_mib\":%.1f,\"planned_mib\":%.1f,\"duplicated_mib\":%.1f,"
                       "\"planned_of_duplicated\":%.3f,\"goal\":0.352}\n",
                        name_of(wish->models[0], name), SIZES, (double)(before - free_bytes(ground)) / 0x1p20,
                        (double)footprint.shared_bytes / 0x1p20, (double)footprint.duplicated_bytes / 0x1p20,
                        (double)footprint.shared_bytes / (double)footprint.duplicated_bytes);
        for (uint32_t i = 0; i < SIZES; i++)
                sl_gpu_worker_free(workers[i]);
        sl_gpu_program_free(program);
        sl_plan_free(plan);
        return r < 0 && !error->text[0] ? sl_error_set(error, EINVAL, "memory wants a model, and --batch 32") : r;
}
