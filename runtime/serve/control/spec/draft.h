/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers by the name of the model that is to have them: an allocation that comes worker by worker, or what is in force. Control
 * thread only.
 */
#pragma once

#include "layout.h"
#include "worker_set.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_error;

#define SL_DRAFT_WORKERS_MAX 4096u /* of all models */

/* The workers that one model is to have. */
struct sl_allotment {
        struct sl_allotment *next;
        char model[SL_MODEL_NAME_BYTES];
        struct sl_worker_set set;
        bool by_scaler; /* the autoscaler has asked for it, and no administrator */
        bool had;       /* something was in force before (applied.c): */
        bool was_by_scaler;
        struct sl_worker_set before;
};

struct sl_draft {
        struct sl_allotment *allotments;
        uint32_t n_workers; /* of sl_draft_allot() */
};

/*
 * A worker more into *@draft, which is made at the first one. @device: as in device_let.h or gpu_let.h. Return: 0; -EINVAL a name
 * or a device that there is none; -E2BIG more workers than a model, or a draft, may have; -ENOMEM.
 */
int sl_draft_allot(struct sl_draft **draft, const cpu_set_t *worker_cores, const char *model, const char *device, uint32_t batch,
        struct sl_error *error);

/* NULL is fine. Returns NULL. */
struct sl_draft *sl_draft_free(struct sl_draft *draft);

/* That of the model; NULL: there is none, or no memory for it. */
struct sl_allotment *sl_draft_find(const struct sl_draft *draft, const char *model);
struct sl_allotment *sl_draft_add(struct sl_draft *draft, const char *model);

/* The first one, which is the caller's; NULL: there is none. Puts one, which is the draft's, in the place of that of its model. */
struct sl_allotment *sl_draft_take(struct sl_draft *draft);
void sl_draft_put(struct sl_draft *draft, struct sl_allotment *allotment);

void sl_draft_drop(struct sl_draft *draft, const char *model);
void sl_draft_clear(struct sl_draft *draft);
