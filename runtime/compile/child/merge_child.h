/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several models as one plan: each is imported and simplified, then they are merged by what their nodes cost here, and the merged
 * graph is lowered as any other. Compiler's process and tests; one owner thread.
 */
#pragma once

#include <stdint.h>

struct sl_error;
struct sl_lower_options;
struct sl_model_file;

/* Gets lines for people: how much is merged, where the common part ends, what stays apart, and why. */
struct sl_merge_notes {
        void (*add)(void *context, const char *text);
        void *context;
};

/*
 * Writes the plan file to @fd, an empty file. Return: 0; -ENODATA nothing is merged, the text says why, as do the notes; -ENOTSUP a
 * model asks for weights or products in halves; what import, merge and lowering say, with the path of a model that is the cause.
 */
int sl_merge_child(const struct sl_model_file *models, uint32_t n_models, const struct sl_lower_options *lowering, int fd,
        const struct sl_merge_notes *notes, struct sl_error *error);
