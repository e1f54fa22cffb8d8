/* SPDX-License-Identifier: Apache-2.0 */
#include "region.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>

/* Least bytes of fresh pages, so that small blocks do not make a system call each. */
#define TOUCHED_AT_ONCE (64u * 1024u)

/* How often a region that seems free is looked at until nobody is inside. */
#define LOOKS_MAX 1000u

/* ---- who is inside ---- */

/* @flag: what for. Return: false: the region is not there for that. */
static bool enter(struct sl_region *region, uint32_t flag)
{
        if (atomic_fetch_add_explicit(&region->users, 1, memory_order_acquire) & flag) /* C1 */
                return true;
        atomic_fetch_sub_explicit(&region->users, 1, memory_order_release);
        return false;
}

static void leave(struct sl_region *region)
{
        atomic_fetch_sub_explicit(&region->users, 1, memory_order_release); /* C2 */
}

static bool is_there(const struct sl_region *region)
{
        return atomic_load_explicit(&region->version, memory_order_relaxed) % 2;
}

static bool has_flags(const struct sl_region *region)
{
        return atomic_load_explicit(&region->users, memory_order_relaxed) & (SL_REGION_TAKES | SL_REGION_GIVES);
}

static void open_region(struct starling_client *client, struct sl_region *region)
{
        atomic_fetch_or_explicit(&region->users, SL_REGION_TAKES | SL_REGION_GIVES, memory_order_release); /* C3 */
        atomic_fetch_add_explicit(&client->n_opened, 1, memory_order_release);
}

static void publish(struct starling_client *client, uint32_t index)
{
        struct sl_region *region = &client->regions[index];
        uint32_t version = atomic_load_explicit(&region->version, memory_order_relaxed);

        atomic_store_explicit(&region->base, (uintptr_t)region->mapping.base, memory_order_release);
        atomic_store_explicit(&region->bytes, region->mapping.bytes, memory_order_release);
        atomic_store_explicit(&region->version, version + 1, memory_order_release); /* V1 */
        if (index >= atomic_load_explicit(&client->n_regions, memory_order_relaxed))
                atomic_store_explicit(&client->n_regions, index + 1, memory_order_release);
        open_region(client, region);
}

/* ---- coming and going ---- */

static int map_region(struct starling_client *client, const struct sl_fresh_region *fresh, struct sl_error *error)
{
        struct sl_mapping mapping = {0};
        struct sl_arena *arena;
        int r = sl_segment_map(fresh->fd, fresh->bytes, SL_SEAL_SHARED, 1, &mapping, error);

        if (r == 0)
                r = sl_arena_new(fresh->bytes, &arena);
        if (r < 0) {
                sl_mapping_free(&mapping);
                return r;
        }

        struct sl_region *region = &client->regions[fresh->index];

        region->fd = fresh->fd;
        region->mapping = mapping;
        region->arena = arena;
        atomic_store_explicit(&region->touched, 0, memory_order_relaxed);
        publish(client, fresh->index);
        return 0;
}

int sl_region_add(struct starling_client *client, int fd, uint64_t bytes, struct sl_error *error)
{
        int r = map_region(client, &(struct sl_fresh_region){.fd = fd, .bytes = bytes}, error);

        if (r < 0)
                sl_cleanup_fd(&fd);
        return r;
}

/* Nobody is inside, and no flag lets anybody in. */
static void drop(struct sl_region *region)
{
        uint32_t version = atomic_load_explicit(&region->version, memory_order_relaxed);

        atomic_store_explicit(&region->version, version + 1, memory_order_relaxed); /* V1 */
        region->arena = sl_arena_free(region->arena);
        sl_mapping_free(&region->mapping);
        sl_cleanup_fd(&region->fd);
}

/* Nobody takes from it any more, if true: nothing is in use, and nobody is inside. */
static bool close_free(struct sl_region *region)
{
        uint32_t alone = SL_REGION_GIVES;

        atomic_fetch_and_explicit(&region->users, ~SL_REGION_TAKES, memory_order_acq_rel); /* C4 */
        for (uint32_t i = 0; i < LOOKS_MAX; i++) {
                if (atomic_load_explicit(&region->users, memory_order_acquire) == SL_REGION_GIVES &&
                        (sl_arena_used(region->arena) != 0 || atomic_compare_exchange_strong_explicit(&region->users, &alone, 0,
                                                                      memory_order_acq_rel, memory_order_relaxed)))
                        break;
                alone = SL_REGION_GIVES;
                sched_yield();
        }
        return !has_flags(region);
}

/* Return: true: it is closed, and to be given back; false: it is as it was. */
static bool retire(struct starling_client *client, struct sl_region *region)
{
        if (!is_there(region))
                return false;
        if (!has_flags(region)) /* the runtime was asked before, and has not answered */
                return true;
        if (sl_arena_used(region->arena) != 0)
                return false;
        if (close_free(region))
                return true;
        open_region(client, region);
        return false;
}

static void move_region(struct starling_client *client, uint32_t from, uint32_t to)
{
        struct sl_region *region = &client->regions[from], *moved = &client->regions[to];
        uint32_t version = atomic_load_explicit(&region->version, memory_order_relaxed);

        moved->fd = region->fd;
        moved->mapping = region->mapping;
        moved->arena = region->arena;
        atomic_store_explicit(&moved->touched, atomic_load_explicit(&region->touched, memory_order_relaxed), memory_order_relaxed);
        atomic_store_explicit(&region->version, version + 1, memory_order_relaxed);
        atomic_store_explicit(&region->users, 0, memory_order_relaxed);
        publish(client, to);
}

uint32_t sl_regions_settle(struct starling_client *client)
{
        uint32_t n = atomic_load_explicit(&client->n_regions, memory_order_relaxed), kept = 0;

        for (uint32_t i = 0; i < n; i++) {
                struct sl_region *region = &client->regions[i];

                if (is_there(region) && !has_flags(region))
                        drop(region);
                if (is_there(region) && i > kept)
                        move_region(client, i, kept);
                kept += is_there(&client->regions[kept]);
        }
        atomic_store_explicit(&client->n_regions, kept, memory_order_relaxed);
        return kept;
}

void sl_regions_free(struct starling_client *client)
{
        uint32_t n = atomic_load_explicit(&client->n_regions, memory_order_relaxed);

        for (uint32_t i = 0; i < n; i++)
                if (is_there(&client->regions[i]))
                        drop(&client->regions[i]);
        atomic_store_explicit(&client->n_regions, 0, memory_order_relaxed);
        sl_cleanup_fd(&client->unmapped.fd);
}

struct sl_arena_sum sl_regions_sum(const struct starling_client *client, bool largest)
{
        uint32_t n = atomic_load_explicit(&client->n_regions, memory_order_acquire);
        struct sl_arena_sum sum = {0};

        for (uint32_t i = 0; i < n; i++) {
                struct sl_region *region = (struct sl_region *)&client->regions[i]; /* to be counted as inside */
                uint64_t run;

                if (!enter(region, SL_REGION_GIVES))
                        continue;
                run = largest ? sl_arena_largest(region->arena) : 0;
                sum.regions++;
                sum.bytes += region->mapping.bytes;
                sum.used += sl_arena_used(region->arena);
                sum.largest = run > sum.largest ? run : sum.largest;
                leave(region);
        }
        return sum;
}

/* ---- blocks ---- */

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

/* Return: 0; -EAGAIN it has no room, or is not there; -ENOMEM there are no pages. */
static int take_of(struct sl_region *region, uint64_t bytes, void **ret_data)
{
        uint64_t offset;
        int r;

        if (!enter(region, SL_REGION_TAKES))
                return -EAGAIN;
        r = sl_arena_take(region->arena, bytes, &offset) < 0 ? -EAGAIN : 0;
        if (r == 0 && touch(region, offset, bytes) < 0) {
                sl_arena_give(region->arena, offset);
                r = -ENOMEM;
        }
        if (r == 0)
                *ret_data = (char *)region->mapping.base + offset;
        leave(region);
        return r;
}

/* The highest index first: as a rule it has the most room. Return: as take_of(). */
static int take(struct starling_client *client, uint64_t bytes, void **ret_data)
{
        int r = -EAGAIN;

        for (uint32_t i = atomic_load_explicit(&client->n_regions, memory_order_acquire); r == -EAGAIN && i-- > 0;)
                r = take_of(&client->regions[i], bytes, ret_data);
        return r;
}

/* ---- growing ---- */

/* The runtime counts it already: it is the next one, whenever it can be mapped. */
static int map_next(struct starling_client *client)
{
        int r = map_region(client, &client->unmapped, NULL);

        if (r == 0)
                client->unmapped.fd = -1;
        return r;
}

/* A region that the runtime has made, or has let go. It may be what was asked for before and not answered in time. */
static int heed(struct starling_client *client, const struct sl_message *answer, int fd)
{
        uint32_t index = answer->region.index;
        struct sl_region *region = index < SL_REGIONS_MAX ? &client->regions[index] : NULL;

        if (region && fd >= 0 && !is_there(region)) {
                client->unmapped = (struct sl_fresh_region){.fd = fd, .index = index, .bytes = answer->region.bytes};
                return map_next(client);
        }
        if (region && fd < 0 && is_there(region) && !has_flags(region)) {
                drop(region);
                return 0;
        }
        sl_cleanup_fd(&fd);
        sl_connection_break(&client->connection);
        return -EPROTO;
}

static int ask_for_region(struct starling_client *client, uint64_t bytes)
{
        struct sl_growth *refused = &client->refused;
        struct sl_message question = {.magic = SL_WIRE_MAGIC, .type = SL_MESSAGE_REGION}, answer = {0};
        int fd;

        question.region.bytes = bytes;

        *refused = (struct sl_growth){.bytes = bytes};

        int r = sl_connection_ask(&client->connection, &question, -1, SL_MESSAGE_REGION, &answer, &fd, sl_error_of(&refused->why));

        if (r < 0) /* what a runtime refuses for has more numbers than starling_alloc(); its words stay */
                return answer.status != 0 && r != -EDQUOT ? -ENOMEM : r;
        refused->bytes = 0;
        return heed(client, &answer, fd);
}

/*
 * Return: 0, also when the runtime refuses; -errno it does not answer, or is gone. The region is open again but where it has been
 * released, or whether it has been will be known when the runtime answers.
 */
static int give_back(struct starling_client *client, uint32_t index)
{
        struct sl_region *region = &client->regions[index];
        struct sl_message question = {.magic = SL_WIRE_MAGIC, .type = SL_MESSAGE_RELEASE}, answer = {0};
        int fd, r = 0;

        question.region.index = index;
        while (r == 0 && is_there(region) && !has_flags(region)) {
                r = sl_connection_ask(&client->connection, &question, -1, SL_MESSAGE_REGION, &answer, &fd, NULL);
                if (r == 0)
                        r = heed(client, &answer, fd);
                else if (answer.status != 0 || sl_client_gone(client))
                        open_region(client, region);
        }
        return answer.status != 0 ? 0 : r;
}

static int give_back_free(struct starling_client *client)
{
        uint32_t n = atomic_load_explicit(&client->n_regions, memory_order_relaxed);
        int r = 0;

        for (uint32_t i = 0; i < n && r == 0; i++)
                if (retire(client, &client->regions[i]))
                        r = give_back(client, i);
        return r;
}

/*
 * A region for a block that wants @wanted: regions neither grow nor join, so that each is as large as all before it together.
 * Blocks that grow step by step then seldom ask, and find room up to half of what there may be where the earlier ones are in use.
 */
static uint64_t region_bytes(const struct starling_client *client, uint64_t wanted)
{
        uint64_t mapped = sl_regions_sum(client, false).bytes, limit = client->connection.arena_limit_bytes;
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

        int r = wanted <= client->connection.arena_limit_bytes ? give_back_free(client) : 0; /* else nothing helps */

        if (r < 0)
                return r;

        uint64_t asked = region_bytes(client, wanted);

        r = ask_for_region(client, asked);

        /* There may be room for less, or for this block alone. */
        if ((r == -EDQUOT || r == -ENOMEM) && wanted < client->arena_bytes && client->arena_bytes < asked &&
                client->unmapped.fd < 0)
                r = ask_for_region(client, client->arena_bytes);
        if ((r == -EDQUOT || r == -ENOMEM) && wanted < asked && client->unmapped.fd < 0)
                r = ask_for_region(client, wanted);
        return r;
}

/* Makes room where there was none for @bytes when @n_seen had been opened. Another thread that was faster has done so already. */
static int make_room(struct starling_client *client, uint32_t n_seen, uint64_t bytes)
{
        int r = 0;

        pthread_mutex_lock(&client->lock);
        if (n_seen == atomic_load_explicit(&client->n_opened, memory_order_relaxed))
                r = grow(client, bytes);
        pthread_mutex_unlock(&client->lock);
        return r;
}

/* Other threads may take all of a new region, so look again. */
static int take_growing(struct starling_client *client, uint64_t bytes, void **ret_data)
{
        uint32_t n_opened = atomic_load_explicit(&client->n_opened, memory_order_acquire);
        int r;

        while ((r = take(client, bytes, ret_data)) == -EAGAIN) {
                r = make_room(client, n_opened, bytes);
                if (r < 0)
                        return r;
                n_opened = atomic_load_explicit(&client->n_opened, memory_order_acquire);
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
        struct sl_arena_sum sum = {0};

        sl_error_set(error, -status, "%" PRIu64 " bytes of arena: %s", bytes, starling_strerror(status));
        if (status != -ENOMEM && status != -EDQUOT)
                return;
        if (!sl_forked(&client->fork))
                sum = sl_regions_sum(client, true);
        sl_error_append(error,
                ": %" PRIu64 " of %" PRIu64 " bytes in %u regions are in use, the largest free run has %" PRIu64
                "; limits.client.arena_bytes is %" PRIu64 ", regions are at most %u",
                sum.used, sum.bytes, sum.regions, sum.largest, client->connection.arena_limit_bytes, SL_REGIONS_MAX);
        say_refusal(client, error);
}

/* Of a stale pointer the index may have another region by now. */
static int give(struct sl_region *region, const void *data)
{
        uint64_t offset;
        int r = -EINVAL;

        if (!enter(region, SL_REGION_GIVES))
                return -EINVAL;
        offset = (uint64_t)((uintptr_t)data - (uintptr_t)region->mapping.base);
        if (offset < region->mapping.bytes)
                r = sl_arena_give(region->arena, offset);
        leave(region);
        return r;
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
        return give(&client->regions[region], data);
}

int starling_trim(struct starling_client *client)
{
        int r;

        if (sl_forked(&client->fork))
                return -ECHILD;
        if (client->connection.role != SL_ROLE_CLIENT)
                return 0;
        pthread_mutex_lock(&client->lock);
        r = give_back_free(client);
        pthread_mutex_unlock(&client->lock);
        return r;
}

static int bytes_of(enum starling_dtype dtype, uint32_t rank, const uint32_t *dims, uint64_t *ret_bytes)
{
        uint64_t bytes = starling_dtype_bytes(dtype);

        if (bytes == 0 || rank > STARLING_RANK_MAX)
                return -EINVAL;
        for (uint32_t i = 0; i < rank; i++)
                if (sl_mul_overflows(bytes, dims[i], &bytes))
                        return -EOVERFLOW;
        *ret_bytes = bytes;
        return 0;
}

int starling_tensor_alloc(struct starling_client *client, enum starling_dtype dtype, uint32_t rank, const uint32_t *dims,
        struct starling_tensor *ret_tensor)
{
        struct starling_tensor tensor = {.dtype = dtype, .rank = rank};
        int r = bytes_of(dtype, rank, dims, &tensor.bytes);

        if (r == 0)
                r = allocate(client, tensor.bytes ? tensor.bytes : 1, &tensor.data); /* one without elements has a place, too */
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < rank; i++)
                tensor.dims[i] = dims[i];
        *ret_tensor = tensor;
        return 0;
}
