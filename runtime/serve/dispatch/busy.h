/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The models that have anything to do: segments wait for their workers, or samples are with these. A pass of the dispatcher looks
 * at nothing else, so that what is loaded and has no requests costs the others nothing.
 *
 * A model comes with the first segment that waits for it, and is looked at whether it still has its workers; it goes when the
 * harvest finds that all is answered. The order is that of the list of all models, which decisions depend on.
 *
 * Dispatcher only.
 */
#pragma once

#include <stdbool.h>

struct sl_model;

/* Through `next_busy`. */
struct sl_busy {
        struct sl_model *first;
        bool has_new; /* some are `is_new` */
};

/* It may be there already. */
void sl_busy_add(struct sl_busy *busy, struct sl_model *model);

/* It need not be there. */
void sl_busy_remove(struct sl_busy *busy, struct sl_model *model);

/* Nothing waits for it, and nothing is with its workers. */
bool sl_model_is_idle(const struct sl_model *model);
