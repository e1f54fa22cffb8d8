/* SPDX-License-Identifier: Apache-2.0 */
#include "catalogue.h"

#include "seqlock.h"

#include <errno.h>
#include <string.h>

/* What the sequence number guards: all that follows it. */
#define GUARDED_OFFSET offsetof(struct sl_catalogue_model, state)
#define GUARDED_BYTES  (sizeof(struct sl_catalogue_model) - GUARDED_OFFSET)
static_assert(GUARDED_OFFSET % 4 == 0 && GUARDED_BYTES % 4 == 0, "copied in words of four bytes");

void sl_catalogue_write(struct sl_catalogue *catalogue, uint32_t index, const struct sl_catalogue_model *model)
{
        struct sl_catalogue_model *shared = &catalogue->models[index];
        uint32_t changes = atomic_load_explicit(&catalogue->changes, memory_order_relaxed);

        sl_seqlock_begin(&shared->seq);
        sl_seqlock_store((char *)shared + GUARDED_OFFSET, (const char *)model + GUARDED_OFFSET, GUARDED_BYTES);
        sl_seqlock_end(&shared->seq);
        atomic_store_explicit(&catalogue->changes, changes + 1, memory_order_release);
}

/* Reads the first @bytes of the guarded part. */
static int read_part(const struct sl_catalogue_model *shared, struct sl_catalogue_model *to, size_t bytes)
{
        return sl_seqlock_read(&shared->seq, (char *)to + GUARDED_OFFSET, (const char *)shared + GUARDED_OFFSET, bytes);
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
        model.name[SL_MODEL_NAME_BYTES - 1] = '\0';
        memcpy((char *)ret_model + GUARDED_OFFSET, (char *)&model + GUARDED_OFFSET, GUARDED_BYTES);
        return 0;
}

/* Return: 0 the model has this name; -ENOENT; -EAGAIN. Copies its head only. */
static int compare_name(const struct sl_catalogue_model *shared, const char *name)
{
        struct sl_catalogue_model model;
        int r = read_part(shared, &model, offsetof(struct sl_catalogue_model, inputs) - GUARDED_OFFSET);

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
