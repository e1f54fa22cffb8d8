/* SPDX-License-Identifier: Apache-2.0 */
#include "channel.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

SL_DEFINE_CLEANUP(struct sl_channel *, sl_channel_free)

/* Records are zero pages until a tag is used: a deep queue costs a client that uses little of it nothing. */
static void *map_zeroed(size_t bytes)
{
        void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        return base == MAP_FAILED ? NULL : base;
}

static size_t records(const struct sl_channel *channel)
{
        return (size_t)channel->shape.n_queues * channel->shape.depth;
}

static size_t wide_records(const struct sl_channel_shape *shape)
{
        return (size_t)shape->n_queues * SL_WIDE_SLOTS * SL_TENSORS_MAX;
}

uint64_t sl_channel_bytes(const struct sl_channel_shape *shape)
{
        uint64_t per_record = sizeof(struct sl_request) + sizeof(struct sl_fault) +
                              shape->tensors * (sizeof(struct sl_place) + sizeof(struct sl_made_output));
        struct sl_channel_offsets offsets;

        if (sl_channel_offsets(shape, &offsets) < 0)
                return 0;
        return sizeof(struct sl_channel) + shape->n_queues * sizeof(struct sl_queue) + offsets.request_bytes +
               offsets.response_bytes + (uint64_t)shape->n_queues * shape->depth * per_record +
               wide_records(shape) * (sizeof(struct sl_place) + sizeof(struct sl_made_output));
}

static int allocate_records(struct sl_channel *channel)
{
        channel->queues = calloc(channel->shape.n_queues, sizeof(*channel->queues));
        channel->requests = map_zeroed(records(channel) * sizeof(*channel->requests));
        channel->tensors = map_zeroed(records(channel) * channel->shape.tensors * sizeof(*channel->tensors));
        channel->made = map_zeroed(records(channel) * channel->shape.tensors * sizeof(*channel->made));
        channel->faults = map_zeroed(records(channel) * sizeof(*channel->faults));
        channel->wide_tensors = map_zeroed(wide_records(&channel->shape) * sizeof(*channel->wide_tensors));
        channel->wide_made = map_zeroed(wide_records(&channel->shape) * sizeof(*channel->wide_made));
        if (!channel->wide_tensors || !channel->wide_made)
                return -ENOMEM;
        return channel->queues && channel->requests && channel->tensors && channel->made && channel->faults ? 0 : -ENOMEM;
}

static void init_queues(struct sl_channel *channel, const struct sl_channel_offsets *offsets)
{
        for (uint32_t i = 0; i < channel->shape.n_queues; i++) {
                struct sl_queue *queue = &channel->queues[i];

                sl_queue_map(&queue->map, &channel->shape, offsets, i, channel->request_map.base, channel->response_map.base);
                queue->channel = channel;
                queue->number = i;
                queue->requests = channel->requests + (size_t)i * channel->shape.depth;
        }
}

static void write_header(void *base, const struct sl_channel_shape *shape, uint64_t bytes)
{
        *(struct sl_channel_header *)base = (struct sl_channel_header){
                .magic = SL_WIRE_MAGIC,
                .version = SL_WIRE_VERSION,
                .n_queues = shape->n_queues,
                .depth = shape->depth,
                .tensors = shape->tensors,
                .bytes = bytes,
        };
}

static int make_segments(struct sl_channel *channel, const struct sl_channel_offsets *offsets, int *ret_request_fd,
        int *ret_response_fd, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int request_fd = -1;
        int response_fd;
        int r = sl_segment_create(
                "starling-request", offsets->request_bytes, SL_SEAL_SHARED, &request_fd, &channel->request_map, error);

        if (r < 0)
                return r;
        r = sl_segment_create(
                "starling-response", offsets->response_bytes, SL_SEAL_RESPONSE, &response_fd, &channel->response_map, error);
        if (r < 0)
                return r;
        sl_mapping_populate(&channel->request_map, 0, offsets->wide_descriptors);
        sl_mapping_populate(&channel->response_map, 0, offsets->wide_outputs);
        write_header(channel->request_map.base, &channel->shape, offsets->request_bytes);
        write_header(channel->response_map.base, &channel->shape, offsets->response_bytes);
        *ret_request_fd = sl_take_fd(&request_fd);
        *ret_response_fd = response_fd;
        return 0;
}

int sl_channel_new(const struct sl_channel_shape *shape, struct sl_channel **ret_channel, int *ret_request_fd, int *ret_response_fd,
        struct sl_error *error)
{
        struct sl_channel_offsets offsets;
        int r = sl_channel_offsets(shape, &offsets);

        if (r == -E2BIG)
                return sl_error_set(error, E2BIG, "%u queue pairs of depth %u with %u tensors per request need more than %u bytes",
                        shape->n_queues, shape->depth, shape->tensors, SL_REQUEST_BYTES_MAX);
        if (r < 0)
                return sl_error_set(error, -r,
                        "%u queue pairs of depth %u with %u tensors per request: at most %u, a power of two from %u to %u, at most "
                        "%u",
                        shape->n_queues, shape->depth, shape->tensors, SL_QUEUES_MAX, SL_QUEUE_DEPTH_MIN, SL_QUEUE_DEPTH_MAX,
                        SL_TENSORS_MAX);

        SL_CLEANUP(sl_cleanup_sl_channel_free) struct sl_channel *channel = calloc(1, sizeof(*channel));
        if (!channel)
                return sl_error_set(error, ENOMEM, "no memory for a channel");
        channel->socket = channel->pidfd = channel->doorbell_fd = channel->completion_fd = -1;
        channel->shape = *shape;
        r = allocate_records(channel);
        if (r < 0)
                return sl_error_set(error, -r, "no memory for %zu request records", records(channel));
        r = make_segments(channel, &offsets, ret_request_fd, ret_response_fd, error);
        if (r < 0)
                return r;
        init_queues(channel, &offsets);
        *ret_channel = sl_take(channel);
        return 0;
}

struct sl_channel *sl_channel_free(struct sl_channel *channel)
{
        if (!channel)
                return NULL;
        for (uint32_t i = 0; i < atomic_load_explicit(&channel->n_regions, memory_order_relaxed); i++)
                if (channel->regions[i].base)
                        munmap(channel->regions[i].base, channel->regions[i].bytes);
        sl_channel_forget_regions(channel);
        sl_mapping_free(&channel->request_map);
        sl_mapping_free(&channel->response_map);
        if (channel->requests)
                munmap(channel->requests, records(channel) * sizeof(*channel->requests));
        if (channel->tensors)
                munmap(channel->tensors, records(channel) * channel->shape.tensors * sizeof(*channel->tensors));
        if (channel->made)
                munmap(channel->made, records(channel) * channel->shape.tensors * sizeof(*channel->made));
        if (channel->wide_tensors)
                munmap(channel->wide_tensors, wide_records(&channel->shape) * sizeof(*channel->wide_tensors));
        if (channel->wide_made)
                munmap(channel->wide_made, wide_records(&channel->shape) * sizeof(*channel->wide_made));
        if (channel->faults)
                munmap(channel->faults, records(channel) * sizeof(*channel->faults));
        sl_cleanup_fd(&channel->socket);
        sl_cleanup_fd(&channel->pidfd);
        sl_cleanup_fd(&channel->doorbell_fd);
        sl_cleanup_fd(&channel->completion_fd);
        free(channel->queues);
        free(channel);
        return NULL;
}

void sl_channel_identify(struct sl_channel *channel, uint64_t id)
{
        channel->id = id;
        ((struct sl_channel_header *)channel->request_map.base)->client_id = id;
        ((struct sl_channel_header *)channel->response_map.base)->client_id = id;
}

static uint32_t find_index(const struct sl_channel *channel)
{
        uint32_t n = atomic_load_explicit(&channel->n_regions, memory_order_relaxed), index = 0;

        while (index < n && channel->regions[index].base)
                index++;
        return index;
}

int sl_channel_add_region(struct sl_channel *channel, struct sl_regions *table, const struct sl_mapping *mapping, int fd)
{
        uint32_t index = find_index(channel);
        struct sl_region *region = &channel->regions[index];
        int number;

        if (index == SL_REGIONS_MAX)
                return -E2BIG;
        number = sl_regions_add(table, mapping->base, mapping->bytes, fd);
        if (number < 0)
                return number;
        channel->table = table;
        region->base = mapping->base;
        region->bytes = mapping->bytes;
        region->number = (uint32_t)number;
        channel->arena_bytes += mapping->bytes;
        atomic_store_explicit(&region->live, 1, memory_order_release); /* R1 */
        if (index == atomic_load_explicit(&channel->n_regions, memory_order_relaxed))
                atomic_store_explicit(&channel->n_regions, index + 1, memory_order_release);
        return (int)index;
}

void sl_channel_remove_region(struct sl_channel *channel, uint32_t index)
{
        struct sl_region *region = &channel->regions[index];

        sl_regions_remove(channel->table, region->number);
        channel->arena_bytes -= region->bytes;
        region->base = NULL;
        region->bytes = region->identity = 0;
}

uint32_t sl_channel_count_regions(const struct sl_channel *channel)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < atomic_load_explicit(&channel->n_regions, memory_order_relaxed); i++)
                n += channel->regions[i].base != NULL;
        return n;
}

void sl_channel_forget_regions(struct sl_channel *channel)
{
        for (uint32_t i = 0; i < atomic_load_explicit(&channel->n_regions, memory_order_relaxed); i++)
                if (channel->regions[i].base)
                        sl_regions_remove(channel->table, channel->regions[i].number);
        atomic_store_explicit(&channel->n_regions, 0, memory_order_relaxed);
}
