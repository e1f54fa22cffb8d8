/* SPDX-License-Identifier: Apache-2.0 */
#include "catalogue.h"

#include "base/bytes.h"
#include "seqlock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What the sequence number guards: all that follows it. */
#define GUARDED_OFFSET offsetof(struct sl_catalogue_model, state)
#define GUARDED_BYTES  (sizeof(struct sl_catalogue_model) - GUARDED_OFFSET)
static_assert(GUARDED_OFFSET % 4 == 0 && GUARDED_BYTES % 4 == 0, "copied in words of four bytes");

static_assert(SL_CATALOGUE_MODELS < 1u << 16 && (SL_CATALOGUE_NAMES & (SL_CATALOGUE_NAMES - 1)) == 0, "a slot has index and tag");

uint32_t sl_catalogue_count(const struct sl_catalogue *catalogue)
{
        uint32_t n = atomic_load_explicit(&catalogue->n_models, memory_order_acquire);

        return n < SL_CATALOGUE_MODELS ? n : SL_CATALOGUE_MODELS;
}

/* ---- the room for parts ---------------------------------------------------------------------------------------------- */

struct extent {
        uint32_t at, bytes;
};

static int compare_extents(const void *a, const void *b)
{
        uint32_t left = ((const struct extent *)a)->at, right = ((const struct extent *)b)->at;

        return (left > right) - (left < right);
}

/* The parts of all models but that at @index. Return: how many. */
static uint32_t list_parts(const struct sl_catalogue *catalogue, uint32_t index, struct extent *ret_parts)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < sl_catalogue_count(catalogue); i++)
                if (i != index && catalogue->models[i].part_bytes)
                        ret_parts[n++] = (struct extent){catalogue->models[i].part, catalogue->models[i].part_bytes};
        return n;
}

/* The lowest place. What has as many bytes as before stays where it is. */
static int find_place(const struct sl_catalogue *catalogue, uint32_t index, uint32_t bytes, uint32_t *ret_at)
{
        const struct sl_catalogue_model *own = &catalogue->models[index];
        struct extent parts[SL_CATALOGUE_MODELS];
        uint32_t n, at = 0;

        if (own->part_bytes == bytes) {
                *ret_at = own->part;
                return 0;
        }
        n = list_parts(catalogue, index, parts);
        qsort(parts, n, sizeof(*parts), compare_extents);
        for (uint32_t i = 0; i < n && parts[i].at - at < bytes; i++)
                at = parts[i].at + parts[i].bytes;
        if (!sl_range_inside(at, bytes, SL_CATALOGUE_PARTS_BYTES))
                return -ENOSPC;
        *ret_at = at;
        return 0;
}

/* ---- the index of names ---------------------------------------------------------------------------------------------- */

/*
 * Open addressing with linear probing (Knuth, The Art of Computer Programming, volume 3, section 6.4, algorithms L and R). A slot
 * has 1 + the index of a model, and above it a tag, further bits of the hash of its name, so that hardly ever another model's name
 * is compared.
 *   (N1) writer: the model, whole, then store-release its slot. Slots move only while names_seq is odd (seqlock.h).
 *   (N2) reader: load-acquire a slot, then the model, whose name decides. What it misses it looks for again, unless names_seq is
 *        the same as before, and even.                                                                          pairs with N1
 */
#define SLOT_INDEX 0xffffu
#define SLOT_TAG   (~SLOT_INDEX)

/* FNV-1a (Fowler, Noll, Vo). */
static uint64_t hash_name(const char *name)
{
        uint64_t hash = 0xcbf29ce484222325ull;

        for (uint32_t i = 0; i < SL_MODEL_NAME_BYTES && name[i]; i++)
                hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3ull;
        return hash ^ hash >> 32;
}

static uint32_t home_of(uint64_t hash)
{
        return (uint32_t)(hash & (SL_CATALOGUE_NAMES - 1));
}

static uint32_t slot_of(uint64_t hash, uint32_t index)
{
        return (uint32_t)(hash & SLOT_TAG) | (index + 1);
}

static uint32_t next_of(uint32_t at)
{
        return (at + 1) & (SL_CATALOGUE_NAMES - 1);
}

static uint32_t slot_at(const struct sl_catalogue *catalogue, uint32_t at)
{
        return atomic_load_explicit(&catalogue->names[at], memory_order_acquire); /* N2 */
}

static void set_slot(struct sl_catalogue *catalogue, uint32_t at, uint32_t slot)
{
        atomic_store_explicit(&catalogue->names[at], slot, memory_order_release); /* N1 */
}

/* There are twice as many slots as models. */
static void add_name(struct sl_catalogue *catalogue, uint32_t index)
{
        uint64_t hash = hash_name(catalogue->models[index].name);
        uint32_t at = home_of(hash);

        while (slot_at(catalogue, at))
                at = next_of(at);
        set_slot(catalogue, at, slot_of(hash, index));
}

/* What lies behind the gap at @gap moves into it, unless it would come before its home. */
static void close_gap(struct sl_catalogue *catalogue, uint32_t gap)
{
        uint32_t slot;

        for (uint32_t at = next_of(gap); (slot = slot_at(catalogue, at)); at = next_of(at)) {
                uint32_t home = home_of(hash_name(catalogue->models[(slot & SLOT_INDEX) - 1].name));

                if (((at - home) & (SL_CATALOGUE_NAMES - 1)) < ((at - gap) & (SL_CATALOGUE_NAMES - 1)))
                        continue;
                set_slot(catalogue, gap, slot);
                gap = at;
        }
        set_slot(catalogue, gap, 0);
}

static void remove_name(struct sl_catalogue *catalogue, uint32_t index)
{
        uint64_t hash = hash_name(catalogue->models[index].name);
        uint32_t at = home_of(hash), slot;

        while ((slot = slot_at(catalogue, at)) && slot != slot_of(hash, index))
                at = next_of(at);
        if (!slot)
                return;
        sl_seqlock_begin(&catalogue->names_seq);
        close_gap(catalogue, at);
        sl_seqlock_end(&catalogue->names_seq);
}

/* ---- writing --------------------------------------------------------------------------------------------------------- */

/* Copied in words: what is left of the last one is zero. */
static void store_part(unsigned char *to, const struct sl_catalogue_part *part, size_t ports_bytes)
{
        size_t whole = part->texts_bytes & ~(size_t)7;
        char last[8] = {0};

        sl_seqlock_store(to, part->ports, ports_bytes);
        sl_seqlock_store(to + ports_bytes, part->texts, whole);
        memcpy(last, part->texts + whole, part->texts_bytes - whole);
        if (whole < part->texts_bytes)
                sl_seqlock_store(to + ports_bytes + whole, last, sizeof(last));
}

int sl_catalogue_write(struct sl_catalogue *catalogue, uint32_t index, const struct sl_catalogue_model *model,
        const struct sl_catalogue_part *part)
{
        struct sl_catalogue_model *shared = &catalogue->models[index], own;
        uint32_t changes = atomic_load_explicit(&catalogue->changes, memory_order_relaxed);
        size_t ports_bytes = part ? (model->n_inputs + model->n_outputs) * sizeof(struct sl_catalogue_port) : 0;
        size_t bytes = part ? sl_align_up(ports_bytes + part->texts_bytes, 8) : 0;
        uint32_t at = 0;
        int r = bytes > SL_CATALOGUE_PARTS_BYTES ? -ENOSPC : bytes ? find_place(catalogue, index, (uint32_t)bytes, &at) : 0;

        if (r < 0)
                return r;
        memcpy((char *)&own + GUARDED_OFFSET, (const char *)model + GUARDED_OFFSET, GUARDED_BYTES);
        own.part = at;
        own.part_bytes = (uint32_t)bytes;
        bool is_same = shared->state != SL_MODEL_ABSENT && own.state != SL_MODEL_ABSENT &&
                       strncmp(shared->name, own.name, sizeof(own.name)) == 0;
        if (!is_same && shared->state != SL_MODEL_ABSENT)
                remove_name(catalogue, index);
        sl_seqlock_begin(&shared->seq);
        sl_seqlock_store((char *)shared + GUARDED_OFFSET, (const char *)&own + GUARDED_OFFSET, GUARDED_BYTES);
        if (bytes)
                store_part(catalogue->parts + at, part, ports_bytes);
        sl_seqlock_end(&shared->seq);
        if (!is_same && own.state != SL_MODEL_ABSENT)
                add_name(catalogue, index);
        if (index >= sl_catalogue_count(catalogue))
                atomic_store_explicit(&catalogue->n_models, index + 1, memory_order_release);
        atomic_store_explicit(&catalogue->changes, changes + 1, memory_order_release);
        return 0;
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

/* Reads the first @bytes of the guarded part. */
static int read_part(const struct sl_catalogue_model *shared, struct sl_catalogue_model *to, size_t bytes)
{
        return sl_seqlock_read(&shared->seq, (char *)to + GUARDED_OFFSET, (const char *)shared + GUARDED_OFFSET, bytes);
}

static void end_texts(struct sl_catalogue_model *model)
{
        model->name[sizeof(model->name) - 1] = '\0';
        model->reason[sizeof(model->reason) - 1] = '\0';
}

int sl_catalogue_read(const struct sl_catalogue *catalogue, uint32_t index, struct sl_catalogue_model *ret_model)
{
        struct sl_catalogue_model model;

        if (index >= SL_CATALOGUE_MODELS)
                return -ENOENT;
        int r = read_part(&catalogue->models[index], &model, GUARDED_BYTES);
        if (r < 0)
                return r;
        if (model.state == SL_MODEL_ABSENT)
                return -ENOENT;
        end_texts(&model);
        memcpy((char *)ret_model + GUARDED_OFFSET, (char *)&model + GUARDED_OFFSET, GUARDED_BYTES);
        return 0;
}

int sl_catalogue_generation(const struct sl_catalogue *catalogue, uint32_t index, uint32_t *ret_generation)
{
        struct sl_catalogue_model model;

        if (index >= SL_CATALOGUE_MODELS)
                return -ENOENT;
        int r = read_part(&catalogue->models[index], &model, offsetof(struct sl_catalogue_model, flags) - GUARDED_OFFSET);
        if (r < 0)
                return r;
        if (model.state == SL_MODEL_ABSENT)
                return -ENOENT;
        *ret_generation = model.generation;
        return 0;
}

/* Every text ends inside the part, and every name begins there. */
static bool is_sound(const struct sl_catalogue_model *model, const struct sl_catalogue_part *part)
{
        uint32_t n = model->n_inputs + model->n_outputs;

        if (n && (!part->texts_bytes || part->texts[part->texts_bytes - 1]))
                return false;
        for (uint32_t i = 0; i < n; i++)
                if (part->ports[i].name >= part->texts_bytes || part->ports[i].labels >= part->texts_bytes)
                        return false;
        return true;
}

static bool has_sound_part(const struct sl_catalogue_model *model)
{
        uint64_t n = (uint64_t)model->n_inputs + model->n_outputs;

        return n <= SL_MODEL_TENSORS_MAX && model->part % 8 == 0 && model->part_bytes % 8 == 0 &&
               model->part_bytes >= n * sizeof(struct sl_catalogue_port) &&
               sl_range_inside(model->part, model->part_bytes, SL_CATALOGUE_PARTS_BYTES);
}

/* One try, of head and part. */
static int try_open(const struct sl_catalogue *catalogue, const struct sl_catalogue_model *shared, struct sl_catalogue_model *model,
        struct sl_catalogue_part *part)
{
        uint32_t before = atomic_load_explicit(&shared->seq, memory_order_acquire);
        size_t ports_bytes;
        char *copy;
        int r = sl_seqlock_try(&shared->seq, (char *)model + GUARDED_OFFSET, (const char *)shared + GUARDED_OFFSET, GUARDED_BYTES);

        if (r < 0)
                return r;
        if (model->state == SL_MODEL_ABSENT)
                return -ENOENT;
        if (!has_sound_part(model))
                return -EPROTO;
        copy = calloc(1, model->part_bytes + 1u);
        if (!copy)
                return -ENOMEM;
        ports_bytes = (model->n_inputs + model->n_outputs) * sizeof(struct sl_catalogue_port);
        *part = (struct sl_catalogue_part){(void *)copy, copy + ports_bytes, model->part_bytes - (uint32_t)ports_bytes};
        sl_seqlock_load(copy, catalogue->parts + model->part, model->part_bytes);
        r = atomic_load_explicit(&shared->seq, memory_order_relaxed) == before ? 0 : -EAGAIN;
        if (r == 0 && !is_sound(model, part))
                r = -EPROTO;
        if (r < 0)
                free(copy);
        return r;
}

int sl_catalogue_open(const struct sl_catalogue *catalogue, uint32_t index, struct sl_catalogue_model *ret_model,
        struct sl_catalogue_part *ret_part)
{
        struct sl_catalogue_model model;
        struct sl_catalogue_part part;
        int r = index < SL_CATALOGUE_MODELS ? -EAGAIN : -ENOENT;

        for (int i = 0; i < SL_SEQLOCK_TRIES && r == -EAGAIN; i++) {
                r = try_open(catalogue, &catalogue->models[index], &model, &part);
                if (r == -EAGAIN)
                        sl_seqlock_pause(i);
        }
        if (r < 0)
                return r;
        end_texts(&model);
        memcpy((char *)ret_model + GUARDED_OFFSET, (char *)&model + GUARDED_OFFSET, GUARDED_BYTES);
        *ret_part = part;
        return 0;
}

/* Return: 0 the model has this name; -ENOENT; -EAGAIN. Copies its head only, and of one that is absent the first words. */
static int compare_name(const struct sl_catalogue_model *shared, const char *name)
{
        struct sl_catalogue_model model;
        int r = read_part(shared, &model, offsetof(struct sl_catalogue_model, name) - GUARDED_OFFSET);

        if (r == 0 && model.state != SL_MODEL_ABSENT)
                r = read_part(shared, &model, offsetof(struct sl_catalogue_model, reason) - GUARDED_OFFSET);
        if (r < 0)
                return r;
        return model.state != SL_MODEL_ABSENT && strncmp(model.name, name, SL_MODEL_NAME_BYTES) == 0 ? 0 : -ENOENT;
}

/* One look at the index. Return: 0; -ENOENT; -EAGAIN: the model that may be it could not be read. */
static int look_up(const struct sl_catalogue *catalogue, const char *name, uint32_t *ret_index)
{
        uint64_t hash = hash_name(name);
        uint32_t slot, at = home_of(hash);
        int result = -ENOENT;

        for (uint32_t n = 0; n < SL_CATALOGUE_NAMES && (slot = slot_at(catalogue, at)); n++, at = next_of(at)) {
                uint32_t index = (slot & SLOT_INDEX) - 1;
                int r = (slot ^ (uint32_t)hash) & SLOT_TAG || index >= SL_CATALOGUE_MODELS
                                ? -ENOENT
                                : compare_name(&catalogue->models[index], name);

                if (r == 0) {
                        *ret_index = index;
                        return 0;
                }
                result = r == -EAGAIN ? r : result;
        }
        return result;
}

/* The same until the index has stood still. */
static int find_index(const struct sl_catalogue *catalogue, const char *name, uint32_t *ret_index)
{
        for (int i = 0; i < SL_SEQLOCK_TRIES; i++) {
                uint32_t before = atomic_load_explicit(&catalogue->names_seq, memory_order_acquire);
                int r = look_up(catalogue, name, ret_index);

                if (r != -ENOENT)
                        return r;
                if (!(before & 1) && atomic_load_explicit(&catalogue->names_seq, memory_order_relaxed) == before)
                        return r;
                sl_seqlock_pause(i);
        }
        return -EAGAIN;
}

int sl_catalogue_find(
        const struct sl_catalogue *catalogue, const char *name, uint32_t *ret_index, struct sl_catalogue_model *ret_model)
{
        struct sl_catalogue_model model;
        uint32_t index;

        for (int i = 0; i < SL_SEQLOCK_TRIES; i++) {
                int r = find_index(catalogue, name, &index);

                if (r == 0 && ret_model) {
                        r = sl_catalogue_read(catalogue, index, &model);
                        if (r == -ENOENT || (r == 0 && strncmp(model.name, name, SL_MODEL_NAME_BYTES) != 0))
                                continue; /* it has gone since it was found, and may have come back elsewhere */
                }
                if (r < 0)
                        return r;
                *ret_index = index;
                if (ret_model)
                        memcpy((char *)ret_model + GUARDED_OFFSET, (char *)&model + GUARDED_OFFSET, GUARDED_BYTES);
                return 0;
        }
        return -EAGAIN;
}
