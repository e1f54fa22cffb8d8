/* SPDX-License-Identifier: Apache-2.0 */
#include "own_device.h"

#include "base/bytes.h"
#include "base/error.h"
#include "cuda/driver/device.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 256
#define WORDS     64 /* bytes for the word of errors and what was made */

static struct sl_cuda_driver driver;
static struct sl_cuda_device device;
static struct sl_cuda_own own;

/* One run of memory there, and its image here. */
static struct {
        char *image;
        CUdeviceptr there;
        size_t room, used;
} arena;

bool own_device_wanted(void)
{
        return getenv("STARLING_TRY_GPU") != NULL;
}

static void check(CUresult result, const char *what)
{
        struct sl_error error = {""};

        cr_assert_eq(sl_cuda_check(&driver, result, &error, "%s", what), 0, "%s", error.text);
}

static void open_device(void)
{
        struct sl_error error = {""};

        if (device.driver)
                return;
        cr_assert_eq(sl_cuda_driver_open(NULL, &driver, &error), 0, "%s", error.text);
        cr_assert_eq(sl_cuda_device_open(&driver, 0, &device, &error), 0, "%s", error.text);
        cr_assert_eq(sl_cuda_own_open(&driver, &own, &error), 0, "%s", error.text);
}

static void make_room(size_t bytes)
{
        arena.used = 0;
        if (bytes <= arena.room)
                return;
        if (arena.there)
                check(driver.mem_free(arena.there), "giving memory back");
        free(arena.image);
        arena.room = 2 * bytes;
        arena.image = malloc(arena.room);
        check(driver.mem_alloc(&arena.there, arena.room), "memory");
}

/* As far from a multiple of the alignment as it is here. Return: where it is in the arena. */
static size_t place(CUdeviceptr address, size_t bytes)
{
        size_t at = arena.used + address % ALIGNMENT;

        if (address)
                memcpy(arena.image + at, (const void *)(uintptr_t)address, bytes);
        arena.used = sl_align_up(at + bytes, ALIGNMENT);
        return at;
}

static size_t bytes_of(const struct sl_tensor *tensor)
{
        return tensor->dtype == SL_DTYPE_NONE ? 0 : (size_t)sl_tensor_bytes(tensor);
}

static size_t room_for(const struct sl_node_desc *node, const struct sl_own_plan *plan)
{
        size_t bytes = plan->scratch_bytes + 2 * WORDS;

        for (uint32_t i = 0; i < node->n_inputs; i++)
                bytes += bytes_of(&node->inputs[i]) + 2 * ALIGNMENT;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                bytes += bytes_of(&node->outputs[i]) + 2 * ALIGNMENT;
        return bytes + 4 * ALIGNMENT;
}

static void launch(const struct sl_own_plan *plan, const struct sl_own_binding *there)
{
        CUstream stream;

        check(driver.stream_create_with_priority(&stream, CU_STREAM_NON_BLOCKING, 0), "a stream");
        check(driver.memcpy_htod_async(arena.there, arena.image, arena.used, stream), "a copy there");
        check(sl_cuda_own_launch(&own, plan, there, stream), "a launch");
        check(driver.memcpy_dtoh_async(arena.image, arena.there, arena.used, stream), "a copy back");
        check(driver.stream_synchronize(stream), "the kernels");
        check(driver.stream_destroy(stream), "the stream");
}

void own_device_run(const struct sl_node_desc *node, const struct sl_own_plan *plan, const struct sl_own_binding *binding)
{
        CUdeviceptr inputs[SL_NODE_INPUTS_MAX] = {0}, outputs[SL_NODE_OUTPUTS_MAX] = {0};
        struct sl_own_binding there = {.inputs = inputs, .outputs = outputs};
        size_t back[SL_NODE_OUTPUTS_MAX] = {0}, word, made;

        open_device();
        make_room(room_for(node, plan));
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (bytes_of(&node->inputs[i]))
                        inputs[i] = arena.there + place(binding->inputs[i], bytes_of(&node->inputs[i]));
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                back[i] = place(binding->outputs[i], bytes_of(&node->outputs[i]));
                outputs[i] = arena.there + back[i];
        }
        word = place(0, sizeof(uint32_t));
        made = place(0, sizeof(int64_t));
        memcpy(arena.image + word, (const void *)(uintptr_t)binding->error_word, sizeof(uint32_t));
        memset(arena.image + made, 0, sizeof(int64_t));
        there.error_word = arena.there + word;
        there.made = arena.there + made;
        there.scratch = arena.there + place(0, plan->scratch_bytes);
        launch(plan, &there);
        for (uint32_t i = 0; i < node->n_outputs; i++)
                memcpy((void *)(uintptr_t)binding->outputs[i], arena.image + back[i], bytes_of(&node->outputs[i]));
        memcpy((void *)(uintptr_t)binding->error_word, arena.image + word, sizeof(uint32_t));
        memcpy((void *)(uintptr_t)binding->made, arena.image + made, sizeof(int64_t));
}
