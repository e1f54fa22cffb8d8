/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include "base/error.h"
#include "slot_ring.h"

#include <errno.h>
#include <stdlib.h>

/* One input's slots: memory, and the addresses that it is mapped at. What is 0 is not there. */
struct buffer {
        CUdeviceptr base;
        uint64_t bytes, reserved_bytes;
        uint32_t n_mapped;
};

struct slot {
        CUevent copied;
        uint32_t last; /* of the put that filled it: its event is the one that counts */
};

struct sl_pool {
        const struct sl_cuda_driver *driver;
        struct sl_pool_layout layout;
        struct sl_slot_ring ring;
        uint32_t n_inputs;
        uint64_t slot_bytes[SL_POOL_INPUTS_MAX];
        struct buffer buffers[SL_POOL_INPUTS_MAX];
        CUstream stream;
        struct slot *slots; /* [layout.n_slots] */
        const void *turn;   /* whose it is; NULL: anybody's */
        const void *before; /* whose it was */
        CUresult failed;    /* of the last call */
        int lost;           /* of the first call that failed half way: what slots hold is not known any more */
};

static CUmemAllocationProp memory_properties(const struct sl_cuda_device *device)
{
        return (CUmemAllocationProp){
                .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->number}};
}

/* The mappings keep the memory; the handle is given up in any case. */
static CUresult map_memory(const struct sl_cuda_driver *driver, struct buffer *buffer, CUmemGenericAllocationHandle memory)
{
        CUresult result = CUDA_SUCCESS;

        while (buffer->n_mapped * buffer->bytes < buffer->reserved_bytes && result == CUDA_SUCCESS) {
                result = driver->mem_map(buffer->base + buffer->n_mapped * buffer->bytes, buffer->bytes, 0, memory, 0);
                if (result == CUDA_SUCCESS)
                        buffer->n_mapped++;
        }
        driver->mem_release(memory);
        return result;
}

static int buffer_init(
        struct buffer *buffer, const struct sl_cuda_device *device, uint64_t bytes, bool mirrored, struct sl_error *error)
{
        const struct sl_cuda_driver *driver = device->driver;
        const CUmemAllocationProp properties = memory_properties(device);
        const CUmemAccessDesc access = {.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CUmemGenericAllocationHandle memory;
        uint64_t reserved_bytes = bytes << mirrored;
        CUresult result = driver->mem_address_reserve(&buffer->base, reserved_bytes, 0, 0, 0);

        buffer->bytes = bytes;
        if (result == CUDA_SUCCESS) {
                buffer->reserved_bytes = reserved_bytes;
                result = driver->mem_create(&memory, bytes, &properties, 0);
        }
        if (result == CUDA_SUCCESS)
                result = map_memory(driver, buffer, memory);
        if (result == CUDA_SUCCESS)
                result = driver->mem_set_access(buffer->base, reserved_bytes, &access, 1);
        return sl_cuda_check(driver, result, error, "a pool of %llu bytes on %s", (unsigned long long)bytes, device->name);
}

static void buffer_deinit(struct buffer *buffer, const struct sl_cuda_driver *driver)
{
        while (buffer->n_mapped)
                driver->mem_unmap(buffer->base + --buffer->n_mapped * buffer->bytes, buffer->bytes);
        if (buffer->reserved_bytes)
                driver->mem_address_free(buffer->base, buffer->reserved_bytes);
}

static int make_events(struct sl_pool *pool, struct sl_error *error)
{
        CUresult result = pool->driver->stream_create_with_priority(&pool->stream, CU_STREAM_NON_BLOCKING, 0);

        for (uint32_t i = 0; i < pool->layout.n_slots && result == CUDA_SUCCESS; i++)
                result = pool->driver->event_create(&pool->slots[i].copied, CU_EVENT_DISABLE_TIMING);
        return sl_cuda_check(pool->driver, result, error, "a stream and %u events of a pool", pool->layout.n_slots);
}

static int choose_layout(const struct sl_pool_options *options, struct sl_pool_layout *ret_layout, struct sl_error *error)
{
        const struct sl_cuda_driver *driver = options->device->driver;
        const CUmemAllocationProp properties = memory_properties(options->device);
        size_t page_bytes = 0;
        CUresult result = driver->mem_get_allocation_granularity(&page_bytes, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
        int r;

        if (result != CUDA_SUCCESS)
                return sl_cuda_check(driver, result, error, "the page size of %s", options->device->name);
        r = sl_pool_layout(options->slot_bytes, options->n_inputs, options->n_slots, page_bytes, options->bytes_max, ret_layout);
        return r < 0 ? sl_error_set(error, -r, "a pool of %u samples takes more than the %llu bytes that it may, or none",
                               options->n_slots, (unsigned long long)options->bytes_max)
                     : 0;
}

static int pool_init(struct sl_pool *pool, const struct sl_pool_options *options, struct sl_error *error)
{
        int r = choose_layout(options, &pool->layout, error);

        if (r < 0)
                return r;
        pool->slots = calloc(pool->layout.n_slots, sizeof(*pool->slots));
        if (sl_slot_ring_init(&pool->ring, pool->layout.n_slots, pool->layout.mirrored) < 0 || !pool->slots)
                return sl_error_set(error, ENOMEM, "no memory for %u slots of a pool", pool->layout.n_slots);
        for (uint32_t i = 0; i < options->n_inputs && r == 0; i++) {
                pool->slot_bytes[i] = options->slot_bytes[i];
                pool->n_inputs = i + 1;
                r = buffer_init(&pool->buffers[i], options->device, pool->layout.bytes[i], pool->layout.mirrored, error);
        }
        return r < 0 ? r : make_events(pool, error);
}

int sl_pool_new(const struct sl_pool_options *options, struct sl_pool **ret_pool, struct sl_error *error)
{
        struct sl_pool *pool = calloc(1, sizeof(*pool));
        int r;

        if (!pool)
                return sl_error_set(error, ENOMEM, "no memory for a pool");
        pool->driver = options->device->driver;
        r = pool_init(pool, options, error);
        if (r < 0)
                sl_pool_free(pool);
        else
                *ret_pool = pool;
        return r;
}

struct sl_pool *sl_pool_free(struct sl_pool *pool)
{
        if (!pool)
                return NULL;
        if (pool->stream)
                pool->driver->stream_synchronize(pool->stream);
        for (uint32_t i = 0; pool->slots && i < pool->layout.n_slots; i++)
                if (pool->slots[i].copied)
                        pool->driver->event_destroy(pool->slots[i].copied);
        if (pool->stream)
                pool->driver->stream_destroy(pool->stream);
        for (uint32_t i = 0; i < pool->n_inputs; i++)
                buffer_deinit(&pool->buffers[i], pool->driver);
        sl_slot_ring_deinit(&pool->ring);
        free(pool->slots);
        free(pool);
        return NULL;
}

const struct sl_pool_layout *sl_pool_layout_of(const struct sl_pool *pool)
{
        return &pool->layout;
}

uint32_t sl_pool_room(const struct sl_pool *pool)
{
        return sl_slot_ring_room(&pool->ring);
}

uint32_t sl_pool_waiting(const struct sl_pool *pool)
{
        return sl_slot_ring_waiting(&pool->ring);
}

bool sl_pool_is_turn_of(const struct sl_pool *pool, const void *who)
{
        return !pool->turn || pool->turn == who;
}

void sl_pool_want_turn(struct sl_pool *pool, const void *who)
{
        if (!pool->turn && pool->before != who)
                pool->turn = who;
}

void sl_pool_end_turn(struct sl_pool *pool, const void *who)
{
        if (pool->turn == who || !pool->turn)
                pool->before = who;
        if (pool->turn == who)
                pool->turn = NULL;
}

uint32_t sl_pool_run(const struct sl_pool *pool)
{
        return sl_slot_ring_run(&pool->ring, pool->ring.filled, pool->layout.n_slots);
}

CUdeviceptr sl_pool_address(const struct sl_pool *pool, uint32_t input)
{
        return pool->buffers[input].base;
}

CUdeviceptr sl_pool_last_address(const struct sl_pool *pool, uint32_t input, uint32_t n)
{
        uint32_t n_slots = pool->layout.n_slots, slot = pool->layout.mirrored ? n_slots - 1 : n_slots > n ? n_slots - n : 0;

        return pool->buffers[input].base + slot * pool->slot_bytes[input];
}

static CUdeviceptr slot_address(const struct sl_pool *pool, uint32_t input, uint64_t position)
{
        return pool->buffers[input].base + sl_slot_ring_slot(&pool->ring, position) * pool->slot_bytes[input];
}

/* In as few pieces as the buffer allows: one, or two over the end of one without a mirror. */
static CUresult copy_input(struct sl_pool *pool, uint32_t input, const char *from, uint64_t first, uint32_t n)
{
        CUresult result = CUDA_SUCCESS;

        for (uint32_t done = 0, run; done < n && result == CUDA_SUCCESS; done += run) {
                run = sl_slot_ring_run(&pool->ring, first + done, n - done);
                result = pool->driver->memcpy_htod_async(slot_address(pool, input, first + done),
                        from + done * pool->slot_bytes[input], run * pool->slot_bytes[input], pool->stream);
        }
        return result;
}

int sl_pool_put(struct sl_pool *pool, const void *const *inputs, uint32_t n, uint64_t *ret_position, struct sl_error *error)
{
        CUresult result = CUDA_SUCCESS;
        uint64_t first;
        uint32_t last;

        if (pool->lost || !n)
                return sl_error_set(
                        error, n ? -pool->lost : EINVAL, n ? "a pool is lost since an earlier error" : "no samples to put");
        if (sl_slot_ring_fill(&pool->ring, n, &first) < 0)
                return sl_error_set(error, EAGAIN, "a pool has room for %u samples, not for %u", sl_pool_room(pool), n);
        last = sl_slot_ring_slot(&pool->ring, first + n - 1);
        for (uint32_t i = 0; i < pool->n_inputs && result == CUDA_SUCCESS; i++)
                result = copy_input(pool, i, inputs[i], first, n);
        if (result == CUDA_SUCCESS)
                result = pool->driver->event_record(pool->slots[last].copied, pool->stream);
        for (uint32_t i = 0; i < n; i++)
                pool->slots[sl_slot_ring_slot(&pool->ring, first + i)].last = last;
        *ret_position = first;
        pool->failed = result;
        pool->lost = sl_cuda_check(pool->driver, result, error, "%u samples cannot be copied to the device", n);
        return pool->lost;
}

/* The event that is behind the copy of a slot. */
static CUevent copied_event(const struct sl_pool *pool, uint64_t position)
{
        return pool->slots[pool->slots[sl_slot_ring_slot(&pool->ring, position)].last].copied;
}

int sl_pool_has_copied(struct sl_pool *pool, uint64_t position)
{
        int r;

        if (position < pool->ring.freed)
                return 1;
        r = sl_cuda_errno(pool->driver->event_query(copied_event(pool, position)));
        return r == -EINPROGRESS ? 0 : r < 0 ? r : 1;
}

int sl_pool_take(struct sl_pool *pool, uint32_t most, CUstream stream, struct sl_pool_batch *ret_batch, struct sl_error *error)
{
        CUresult result;
        uint64_t first;
        uint32_t n = pool->lost ? 0 : sl_slot_ring_take(&pool->ring, most, &first);

        if (pool->lost)
                return sl_error_set(error, -pool->lost, "a pool is lost since an earlier error");
        if (!n)
                return 0;
        ret_batch->first = first;
        ret_batch->n = n;
        for (uint32_t i = 0; i < pool->n_inputs; i++)
                ret_batch->inputs[i] = slot_address(pool, i, first);
        result = pool->driver->stream_wait_event(stream, copied_event(pool, first + n - 1), 0);
        pool->failed = result;
        pool->lost = sl_cuda_check(pool->driver, result, error, "a batch of %u cannot wait for its inputs", n);
        return pool->lost ? pool->lost : (int)n;
}

CUresult sl_pool_failed(const struct sl_pool *pool)
{
        return pool->lost ? pool->failed : CUDA_ERROR_UNKNOWN;
}

int sl_pool_give_back(struct sl_pool *pool, const struct sl_pool_batch *batch)
{
        return sl_slot_ring_give_back(&pool->ring, batch->first, batch->n);
}
