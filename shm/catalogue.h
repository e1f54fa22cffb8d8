/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading and writing the catalogue of models (struct sl_catalogue in layout.h). One writer, the runtime's control thread; readers
 * are clients with a read-only mapping, any thread. Nothing here blocks. See seqlock.h.
 */
#pragma once

#include "layout.h"

/* Replaces the model at @index, which is below SL_CATALOGUE_MODELS, and counts the change. @model->seq is ignored. Control thread. */
void sl_catalogue_write(struct sl_catalogue *catalogue, uint32_t index, const struct sl_catalogue_model *model);

/* Return: 0; -ENOENT no such index or no model there; -EAGAIN the writer was in the middle of a change all the time. */
int sl_catalogue_read(const struct sl_catalogue *catalogue, uint32_t index, struct sl_catalogue_model *ret_model);

/*
 * Looks for the model called @name; @ret_model may be NULL. Return: 0; -ENOENT; -EAGAIN none matched, but one could not be
 * read. A listing is sl_catalogue_read() of all indices; `changes` tells whether it is out of date.
 */
int sl_catalogue_find(
        const struct sl_catalogue *catalogue, const char *name, uint32_t *ret_index, struct sl_catalogue_model *ret_model);
