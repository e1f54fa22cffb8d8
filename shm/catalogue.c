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

/* Does nobody but the model at @index have any of these bytes? */
static bool is_free(const struct sl_catalogue *catalogue, uint32_t index, uint32_t at, uint32_t bytes)
{
        if (!sl_range_inside(at, bytes, SL_CATALOGUE_PARTS_BYTES))
                return false;
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                const struct sl_catalogue_model *other = &catalogue->models[i];

                if (i != index && other->part_bytes && at < other->part + other->part_bytes && other->part < at + bytes)
                        return false;
        }
        return true;
}

/* The lowest place: at the front, or right behind the part of another model. */
static int find_place(const struct sl_catalogue *catalogue, uint32_t index, uint32_t bytes, uint32_t *ret_at)
{
        uint32_t best = is_free(catalogue, index, 0, bytes) ? 0 : UINT32_MAX;

        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS && best; i++) {
                const struct sl_catalogue_model *other = &catalogue->models[i];
                uint32_t at = other->part + other->part_bytes;

                if (i != index && at < best && is_free(catalogue, index, at, bytes))
                        best = at;
        }
        if (best == UINT32_MAX)
                return -ENOSPC;
        *ret_at = best;
        return 0;
}

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
        sl_seqlock_begin(&shared->seq);
        sl_seqlock_store((char *)shared + GUARDED_OFFSET, (const char *)&own + GUARDED_OFFSET, GUARDED_BYTES);
        if (bytes)
                store_part(catalogue->parts + at, part, ports_bytes);
        sl_seqlock_end(&shared->seq);
        atomic_store_explicit(&catalogue->changes, changes + 1, memory_order_release);
        return 0;
}

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

/* Every text ends inside the part, and every name begins there. */
static bool is_sound(const struct sl_catalogue_model *model, const struct sl_catalogue_part *part)
{
        uint32_t n = model->n_inputs + model->n_outputs;

        if (n && (!part->texts_bytes || part->texts[part->texts_bytes - 1]))
                return false;
        for (uint32_t i = 0; i < n; i++)
                if (part->ports[i].name >= part->texts_bytes)
                        return false;
        return true;
}

static bool has_sound_part(const struct sl_catalogue_model *model)
{
        uint64_t ports = ((uint64_t)model->n_inputs + model->n_outputs) * sizeof(struct sl_catalogue_port);

        return model->n_inputs <= SL_MODEL_INPUTS_MAX && model->n_outputs <= SL_MODEL_OUTPUTS_MAX && model->part % 8 == 0 &&
               model->part_bytes % 8 == 0 && model->part_bytes >= ports &&
               sl_range_inside(model->part, model->part_bytes, SL_CATALOGUE_PARTS_BYTES);
}

/* One try, of head and part. */
static int try_open(const struct sl_catalogue *catalogue, const struct sl_catalogue_model *shared, struct sl_catalogue_model *model,
        struct sl_catalogue_part *part)
{
        uint32_t before = atomic_load_explicit(&shared->seq, memory_order_acquire);
        size_t ports_bytes;
        char *copy;
        int r = read_part(shared, model, GUARDED_BYTES);

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

        for (int i = 0; i < SL_SEQLOCK_TRIES && r == -EAGAIN; i++)
                r = try_open(catalogue, &catalogue->models[index], &model, &part);
        if (r < 0)
                return r;
        end_texts(&model);
        memcpy((char *)ret_model + GUARDED_OFFSET, (char *)&model + GUARDED_OFFSET, GUARDED_BYTES);
        *ret_part = part;
        return 0;
}

/* Return: 0 the model has this name; -ENOENT; -EAGAIN. Copies its head only. */
static int compare_name(const struct sl_catalogue_model *shared, const char *name)
{
        struct sl_catalogue_model model;
        int r = read_part(shared, &model, offsetof(struct sl_catalogue_model, reason) - GUARDED_OFFSET);

        if (r < 0)
                return r;
        return model.state != SL_MODEL_ABSENT && strncmp(model.name, name, SL_MODEL_NAME_BYTES) == 0 ? 0 : -ENOENT;
}

int sl_catalogue_find(
        const struct sl_catalogue *catalogue, const char *name, uint32_t *ret_index, struct sl_catalogue_model *ret_model)
{
        int result = -ENOENT;

        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                struct sl_catalogue_model model;
                int r = compare_name(&catalogue->models[i], name);

                if (r == 0)
                        r = sl_catalogue_read(catalogue, i, &model);
                if (r == -EAGAIN)
                        result = -EAGAIN;
                if (r < 0 || strncmp(model.name, name, SL_MODEL_NAME_BYTES) != 0)
                        continue;
                *ret_index = i;
                if (ret_model)
                        memcpy((char *)ret_model + GUARDED_OFFSET, (char *)&model + GUARDED_OFFSET, GUARDED_BYTES);
                return 0;
        }
        return result;
}
