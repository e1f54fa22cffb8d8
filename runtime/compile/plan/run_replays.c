/* SPDX-License-Identifier: Apache-2.0 */
#include "run_replays.h"

#include "ref/live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define BUCKETS 1024u
#define SEEN    4096u

struct entry {
        struct entry *next;          /* of its bucket */
        struct entry *newer, *older; /* by their last use */
        struct sl_run_replay *replay;
        uint64_t hash, bytes;
        uint32_t key_bytes;
        uint8_t key[];
};

struct sl_run_replays {
        struct entry *buckets[BUCKETS];
        struct entry *newest, *oldest;
        uint32_t n;
        uint64_t bytes, bytes_max;
        uint32_t seen[SEEN]; /* hashes of sizes that came, in part */
        bool never;          /* no run of the plan has a replay */
        struct sl_capture *capture;
        struct sl_live arena;
        struct sl_node_desc node;

        /* Of the run. */
        uint64_t hash;
        uint8_t *key;
        uint32_t key_bytes, key_room;
};

int sl_run_replays_new(struct sl_run_replays **ret_replays)
{
        struct sl_run_replays *replays = calloc(1, sizeof(*replays));

        if (!replays || sl_capture_new(&replays->capture) < 0) {
                free(replays);
                return -ENOMEM;
        }
        *ret_replays = replays;
        return 0;
}

static struct entry **bucket_of(struct sl_run_replays *replays, uint64_t hash)
{
        return &replays->buckets[hash % BUCKETS];
}

static void unlink_use(struct sl_run_replays *replays, struct entry *entry)
{
        *(entry->newer ? &entry->newer->older : &replays->newest) = entry->older;
        *(entry->older ? &entry->older->newer : &replays->oldest) = entry->newer;
}

static void link_newest(struct sl_run_replays *replays, struct entry *entry)
{
        entry->newer = NULL;
        entry->older = replays->newest;
        *(replays->newest ? &replays->newest->newer : &replays->oldest) = entry;
        replays->newest = entry;
}

static void drop_oldest(struct sl_run_replays *replays)
{
        struct entry *entry = replays->oldest, **link = bucket_of(replays, entry->hash);

        while (*link != entry)
                link = &(*link)->next;
        *link = entry->next;
        unlink_use(replays, entry);
        replays->n--;
        replays->bytes -= entry->bytes;
        sl_run_replay_free(entry->replay);
        free(entry);
}

struct sl_run_replays *sl_run_replays_free(struct sl_run_replays *replays)
{
        struct sl_pool nobody = {.used_bytes = UINT64_MAX};

        if (!replays)
                return NULL;
        while (replays->oldest)
                drop_oldest(replays);
        sl_live_drop(&nobody, &replays->arena);
        sl_capture_free(replays->capture);
        free(replays->key);
        free(replays);
        return NULL;
}

/* Ranks are the ports'. Return: 0, -ENOMEM. */
static int write_key(struct sl_run_replays *replays, const struct sl_shape *shapes, uint32_t n_inputs)
{
        uint32_t most = n_inputs * (uint32_t)sizeof(shapes->dims);

        if (replays->key_room < most) {
                uint8_t *key = realloc(replays->key, most);

                if (!key)
                        return -ENOMEM;
                replays->key = key;
                replays->key_room = most;
        }
        replays->key_bytes = 0;
        for (uint32_t i = 0; i < n_inputs; i++) {
                uint32_t bytes = shapes[i].rank * (uint32_t)sizeof(shapes[i].dims[0]);

                memcpy(replays->key + replays->key_bytes, shapes[i].dims, bytes);
                replays->key_bytes += bytes;
        }
        replays->hash = XXH3_64bits(replays->key, replays->key_bytes);
        return 0;
}

static struct entry *find_entry(struct sl_run_replays *replays)
{
        for (struct entry *entry = *bucket_of(replays, replays->hash); entry; entry = entry->next)
                if (entry->hash == replays->hash && entry->key_bytes == replays->key_bytes &&
                        !memcmp(entry->key, replays->key, entry->key_bytes))
                        return entry;
        return NULL;
}

/* The sizes at hand have come before, most likely. */
static bool was_seen(struct sl_run_replays *replays)
{
        uint32_t *seen = &replays->seen[replays->hash % SEEN], tag = (uint32_t)(replays->hash >> 32) | 1;
        bool was = *seen == tag;

        *seen = tag;
        return was;
}

static void drop_arena(struct sl_run_replays *replays, struct sl_pool *pool)
{
        sl_live_drop(pool, &replays->arena);
}

/* The rest of what a run may have is for what its nodes make. */
static void begin_memory(struct sl_run_replays *replays, struct sl_pool *pool)
{
        uint64_t most = pool->limit_bytes / 4 < SL_REPLAYS_BYTES_MAX ? pool->limit_bytes / 4 : SL_REPLAYS_BYTES_MAX;

        while (replays->bytes > most)
                drop_oldest(replays);
        replays->bytes_max = most;
        pool->used_bytes += replays->bytes + sl_live_bytes(&replays->arena);
        if (pool->used_bytes > pool->limit_bytes)
                drop_arena(replays, pool);
}

const struct sl_run_replay *sl_run_replays_find(struct sl_run_replays *replays, struct sl_pool *pool, const struct sl_shape *shapes,
        uint32_t n_inputs, struct sl_capture **ret_capture)
{
        struct entry *entry;

        *ret_capture = NULL;
        begin_memory(replays, pool);
        if (replays->never || write_key(replays, shapes, n_inputs) < 0) {
                drop_arena(replays, pool);
                return NULL;
        }
        entry = find_entry(replays);
        if (entry) {
                unlink_use(replays, entry);
                link_newest(replays, entry);
                return entry->replay;
        }
        drop_arena(replays, pool);
        if (was_seen(replays)) {
                sl_capture_begin(replays->capture, n_inputs);
                *ret_capture = replays->capture;
        }
        return NULL;
}

uint8_t *sl_run_replays_arena(struct sl_run_replays *replays, struct sl_pool *pool, const struct sl_run_replay *replay)
{
        const struct sl_tensor bytes = {.dtype = SL_DTYPE_U8, .shape = {.rank = 1, .dims = {(int64_t)replay->arena_bytes}}};

        if (replays->arena.block && sl_tensor_bytes(&replays->arena.tensor) >= replay->arena_bytes)
                return replays->arena.data;
        drop_arena(replays, pool);
        return sl_live_make(pool, &bytes, &replays->arena) < 0 ? NULL : replays->arena.data;
}

/* The replay is the cache's, or gone. */
static void keep_replay(struct sl_run_replays *replays, struct sl_run_replay *replay)
{
        struct entry *entry = malloc(sizeof(*entry) + replays->key_bytes), **bucket = bucket_of(replays, replays->hash);

        if (!entry) {
                sl_run_replay_free(replay);
                return;
        }
        *entry = (struct entry){.next = *bucket,
                .replay = replay,
                .hash = replays->hash,
                .bytes = replay->bytes + sizeof(*entry) + replays->key_bytes,
                .key_bytes = replays->key_bytes};
        memcpy(entry->key, replays->key, replays->key_bytes);
        *bucket = entry;
        link_newest(replays, entry);
        replays->n++;
        replays->bytes += entry->bytes;
        while (replays->bytes > replays->bytes_max)
                drop_oldest(replays);
}

void sl_run_replays_end(struct sl_run_replays *replays, bool is_done)
{
        struct sl_run_replay *replay = sl_capture_end(replays->capture, is_done);

        replays->never |= sl_capture_varies(replays->capture);
        if (replay)
                keep_replay(replays, replay);
}

struct sl_node_desc *sl_run_replays_node(struct sl_run_replays *replays)
{
        return &replays->node;
}

uint32_t sl_run_replays_count(const struct sl_run_replays *replays)
{
        return replays->n;
}

uint64_t sl_run_replays_bytes(const struct sl_run_replays *replays)
{
        return replays->bytes;
}
