/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading and writing the catalogue of models (struct sl_catalogue in layout.h). One writer, the runtime's control thread; readers
 * are clients with a read-only mapping, any thread. Nothing here blocks. See seqlock.h.
 */
#pragma once

#include "layout.h"

/* The inputs of a model, then its outputs, and their texts: to be written, or a copy of one's own. */
struct sl_catalogue_part {
        struct sl_catalogue_port *ports;
        const char *texts;
        uint32_t texts_bytes;
};

/* How many indices a walk over all models looks at: each that has a model is below. */
uint32_t sl_catalogue_count(const struct sl_catalogue *catalogue);

/*
 * Replaces the model at @index, which is below SL_CATALOGUE_MODELS, and counts the change. @model->seq, part and part_bytes are
 * ignored. @part: NULL, or of model->n_inputs + model->n_outputs ports. Control thread. Return: 0; -ENOSPC there is no room for
 * the part, and nothing has changed.
 */
int sl_catalogue_write(struct sl_catalogue *catalogue, uint32_t index, const struct sl_catalogue_model *model,
        const struct sl_catalogue_part *part);

/* Return: 0; -ENOENT no such index or no model there; -EAGAIN the writer was in the middle of a change all the time. */
int sl_catalogue_read(const struct sl_catalogue *catalogue, uint32_t index, struct sl_catalogue_model *ret_model);

/*
 * The same with its part, which the caller frees by its ports. Return: as above; -EPROTO what it says of its part is impossible;
 * -ENOMEM.
 */
int sl_catalogue_open(const struct sl_catalogue *catalogue, uint32_t index, struct sl_catalogue_model *ret_model,
        struct sl_catalogue_part *ret_part);

/* Its generation alone. Return: as sl_catalogue_read(). */
int sl_catalogue_generation(const struct sl_catalogue *catalogue, uint32_t index, uint32_t *ret_generation);

/*
 * Looks for the model called @name, by the index of names; @ret_model may be NULL. Return: 0; -ENOENT; -EAGAIN none matched, but
 * one that may be it could not be read, or the index changed all the time. A listing is sl_catalogue_read() of all indices below
 * sl_catalogue_count(); `changes` tells whether it is out of date.
 */
int sl_catalogue_find(
        const struct sl_catalogue *catalogue, const char *name, uint32_t *ret_index, struct sl_catalogue_model *ret_model);
