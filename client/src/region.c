/* SPDX-License-Identifier: Apache-2.0 */
#include "region.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <inttypes.h>

/* Least bytes of fresh pages, so that small blocks do not make a system call each. */
#define TOUCHED_AT_ONCE (64u * 1024u)

static int map_region(struct starling_client *client, int fd, uint64_t bytes, struct sl_error *error)
{
        uint32_t n = atomic_load_explicit(&client->n_regions, memory_order_relaxed);
        struct sl_region region = {.fd = fd};
        int r = n < SL_REGIONS_MAX ? 0 : sl_error_set(error, ENOMEM, "the arena has all of its %u regions", SL_REGIONS_MAX);

        if (r == 0)
                r = sl_segment_map(fd, bytes, SL_SEAL_SHARED, 1, &region.mapping, error);
        if (r == 0)
                r = sl_arena_new(bytes, &region.arena);
        if (r < 0) {
                sl_mapping_free(&region.mapping);
                return r;
        }
        client->regions[n] = region;
        atomic_store_explicit(&client->n_regions, n + 1, memory_order_release);
        return 0;
}

int sl_region_add(struct starling_client *client, int fd, uint64_t bytes, struct sl_error *error)
{
        int r = map_region(client, fd, bytes, error);

        if (r < 0)
                sl_cleanup_fd(&fd);
        return r;
}

void sl_regions_free(struct starling_client *client)
{
        uint32_t n = atomic_load_explicit(&client->n_regions, memory_order_relaxed);

        for (uint32_t i = 0; i < n; i++) {
                sl_arena_free(client->regions[i].arena);
                sl_mapping_free(&client->regions[i].mapping);
                sl_cleanup_fd(&client->regions[i].fd);
        }
        atomic_store_explicit(&client->n_regions, 0, memory_order_relaxed);
        sl_cleanup_fd(&client->unmapped.fd);
}

/*
 * Pages are charged to who touches them first. The client does so before the runtime can, all at once, which costs less than one
 * fault for each. An arena cuts fresh pages in ascending order: what lies below the mark has been touched, and stays so when it is
 * freed and handed out again. Threads that race for the mark may touch some pages twice, which is harmless.
 */
static int touch(struct sl_region *region, uint64_t offset, uint64_t bytes)
{
        uint64_t touched = atomic_load_explicit(&region->touched, memory_order_acquire);
        uint64_t end = sl_align_up(offset + bytes, TOUCHED_AT_ONCE);

        if (end > region->mapping.bytes)
                end = region->mapping.bytes;
        if (end <= touched)
                return 0;
        int r = sl_mapping_populate(&region->mapping, touched, end - touched);
        if (r < 0)
                return r;
        while (touched < end &&
                !atomic_compare_exchange_weak_explicit(&region->touched, &touched, end, memory_order_release, memory_order_acquire))
                ;
        return 0;
}

/* The newest region first: it has the most room. Return: 0; -EAGAIN none of them has room; -ENOMEM there are no pages. */
static int take(struct starling_client *client, uint32_t n_regions, uint64_t bytes, void **ret_data)
{
        uint64_t offset;

        for (uint32_t i = n_regions; i-- > 0;) {
                struct sl_region *region = &client->regions[i];

                if (sl_arena_take(region->arena, bytes, &offset) < 0)
                        continue;
                if (touch(region, offset, bytes) < 0) {
                        sl_arena_give(region->arena, offset);
                        return -ENOMEM;
                }
                *ret_data = (char *)region->mapping.base + offset;
                return 0;
        }
        return -EAGAIN;
}

/* The runtime counts it already: it is the next one, whenever it can be mapped. */
static int map_next(struct starling_client *client)
{
        int r = map_region(client, client->unmapped.fd, client->unmapped.bytes, NULL);

        if (r == 0)
                client->unmapped.fd = -1;
        return r;
}

static int ask_for_region(struct starling_client *client, uint64_t bytes)
{
        struct sl_growth *refused = &client->refused;
        struct sl_message question = {.magic = SL_WIRE_MAGIC, .type = SL_MESSAGE_REGION}, answer;
        int fd;

        question.region.bytes = bytes;

        *refused = (struct sl_growth){.bytes = bytes};

        int r = sl_connection_ask(&client->connection, &question, -1, SL_MESSAGE_REGION, &answer, &fd, sl_error_of(&refused->why));

        if (r < 0)
                return r;
        refused->bytes = 0;
        if (fd >= 0 && answer.region.index == atomic_load_explicit(&client->n_regions, memory_order_relaxed)) {
                client->unmapped = (struct sl_fresh_region){.fd = fd, .bytes = answer.region.bytes};
                return map_next(client);
        }
        sl_cleanup_fd(&fd);
        sl_connection_break(&client->connection);
        return -EPROTO;
}

static uint64_t mapped_bytes(const struct starling_client *client)
{
        uint32_t n = atomic_load_explicit(&client->n_regions, memory_order_acquire);
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < n; i++)
                bytes += client->regions[i].mapping.bytes;
        return bytes;
}

/*
 * A region for a block that wants @wanted: regions neither grow nor join, so that each is as large as all before it together.
 * Blocks that grow step by step then find room up to half of what there may be, and not only as long as a region for each of them
 * fits.
 */
static uint64_t region_bytes(const struct starling_client *client, uint64_t wanted)
{
        uint64_t mapped = mapped_bytes(client), limit = client->connection.arena_limit_bytes;
        uint64_t bytes = mapped > client->arena_bytes ? mapped : client->arena_bytes;
        uint64_t left = limit > mapped ? (limit - mapped) / SL_PAGE_BYTES * SL_PAGE_BYTES : 0;

        bytes = bytes < left ? bytes : left;
        return wanted > bytes ? wanted : bytes;
}

/* Arenas round sizes up, by less than a quarter and a page; a large block may want a region of its own. */
static int grow(struct starling_client *client, uint64_t bytes)
{
        uint64_t wanted;

        if (client->unmapped.fd >= 0)
                return map_next(client);
        if (sl_add_overflows(bytes, bytes / 4 + 4 * SL_PAGE_BYTES, &wanted) || wanted > INT64_MAX - SL_PAGE_BYTES)
                return -ENOMEM;
        wanted = sl_align_up(wanted, SL_PAGE_BYTES);

        uint64_t asked = region_bytes(client, wanted);
        int r = ask_for_region(client, asked);

        /* There may be room for less, or for this block alone. */
        if ((r == -EDQUOT || r == -ENOMEM) && wanted < client->arena_bytes && client->arena_bytes < asked &&
                client->unmapped.fd < 0)
                r = ask_for_region(client, client->arena_bytes);
        if ((r == -EDQUOT || r == -ENOMEM) && wanted < asked && client->unmapped.fd < 0)
                r = ask_for_region(client, wanted);
        return r;
}

/* Makes room where @n_seen regions had none for @bytes. Another thread that was faster has done so already. */
static int make_room(struct starling_client *client, uint32_t n_seen, uint64_t bytes)
{
        int r = 0;

        pthread_mutex_lock(&client->lock);
        if (n_seen == atomic_load_explicit(&client->n_regions, memory_order_relaxed))
                r = grow(client, bytes);
        pthread_mutex_unlock(&client->lock);
        return r;
}

/* Other threads may take all of a new region, so look again: there is an end of regions. */
static int take_growing(struct starling_client *client, uint64_t bytes, void **ret_data)
{
        uint32_t n_regions = atomic_load_explicit(&client->n_regions, memory_order_acquire);

        int r;

        while ((r = take(client, n_regions, bytes, ret_data)) == -EAGAIN) {
                r = make_room(client, n_regions, bytes);
                if (r < 0)
                        return r;
                n_regions = atomic_load_explicit(&client->n_regions, memory_order_acquire);
        }
        return r;
}

static int allocate(struct starling_client *client, uint64_t bytes, void **ret_data)
{
        if (sl_forked(&client->fork))
                return -ECHILD;
        if (client->connection.role != SL_ROLE_CLIENT)
                return -EPERM;
        return bytes == 0 ? -EINVAL : take_growing(client, bytes, ret_data);
}

void *starling_alloc(struct starling_client *client, uint64_t bytes)
{
        void *data = NULL;
        int r = allocate(client, bytes, &data);

        if (r < 0)
                errno = -r;
        return data;
}

/* What the runtime said, in a few words of its own; a line that goes on after them. */
static void say_refusal(struct starling_client *client, struct sl_error *error)
{
        struct sl_growth refused;

        pthread_mutex_lock(&client->lock);
        refused = client->refused;
        pthread_mutex_unlock(&client->lock);
        if (refused.bytes)
                sl_error_append(error, "; the runtime refused %" PRIu64 " more: %s", refused.bytes, refused.why.text);
}

void starling_alloc_error(struct starling_client *client, uint64_t bytes, int status, struct starling_error *ret_error)
{
        struct sl_error *error = sl_error_of(ret_error);
        uint32_t n = sl_forked(&client->fork) ? 0 : atomic_load_explicit(&client->n_regions, memory_order_acquire);
        uint64_t used = 0, largest = 0;

        sl_error_set(error, -status, "%" PRIu64 " bytes of arena: %s", bytes, starling_strerror(status));
        if (status != -ENOMEM && status != -EDQUOT)
                return;
        for (uint32_t i = 0; i < n; i++) {
                uint64_t run = sl_arena_largest(client->regions[i].arena);

                used += sl_arena_used(client->regions[i].arena);
                largest = run > largest ? run : largest;
        }
        sl_error_append(error,
                ": %" PRIu64 " of %" PRIu64 " bytes in %u regions are in use, the largest free run has %" PRIu64
                "; limits.client.arena_bytes is %" PRIu64 ", regions are at most %u",
                used, mapped_bytes(client), n, largest, client->connection.arena_limit_bytes, SL_REGIONS_MAX);
        say_refusal(client, error);
}

int starling_free(struct starling_client *client, void *data)
{
        uint16_t region;
        uint64_t offset;

        if (sl_forked(&client->fork))
                return -ECHILD;
        if (!data)
                return 0;
        if (!sl_region_locate(client, data, 1, &region, &offset))
                return -EINVAL;
        return sl_arena_give(client->regions[region].arena, offset);
}

static int bytes_of(enum starling_dtype dtype, uint32_t rank, const uint32_t *dims, uint64_t *ret_bytes)
{
        uint64_t bytes = starling_dtype_bytes(dtype);

        if (bytes == 0 || rank > STARLING_RANK_MAX)
                return -EINVAL;
        for (uint32_t i = 0; i < rank; i++) {
                if (dims[i] == 0)
                        return -EINVAL;
                if (sl_mul_overflows(bytes, dims[i], &bytes))
                        return -EOVERFLOW;
        }
        *ret_bytes = bytes;
        return 0;
}

int starling_tensor_alloc(struct starling_client *client, enum starling_dtype dtype, uint32_t rank, const uint32_t *dims,
        struct starling_tensor *ret_tensor)
{
        struct starling_tensor tensor = {.dtype = dtype, .rank = rank};
        int r = bytes_of(dtype, rank, dims, &tensor.bytes);

        if (r == 0)
                r = allocate(client, tensor.bytes, &tensor.data);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < rank; i++)
                tensor.dims[i] = dims[i];
        *ret_tensor = tensor;
        return 0;
}
