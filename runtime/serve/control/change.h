/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers of several models change at once, while they serve: an allocation takes the place of another.
 *
 *     (none) --allot ...--> draft --begin--> STARTING --all are ready--> LEAVING --the last has left--> answered, in force
 *                                               |
 *                                               +-- one cannot start: all that are new leave again, and nothing has changed
 *
 * The memory of all new workers is promised before the first of them starts; those that are too many leave once all new ones of all
 * models are ready. What is in force for a model goes before what the configuration says, until another one names the model, or the
 * configuration is asked for again. Control thread only; nothing waits.
 */
#pragma once

#include "layout.h"
#include "worker_set.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_change;
struct sl_crew;
struct sl_error;
struct sl_model_spec;
struct sl_registry;

#define SL_CHANGE_WORKERS_MAX 4096u /* of all models */

/* The workers that one model is to have. */
struct sl_allotment {
        struct sl_allotment *next;
        char model[SL_MODEL_NAME_BYTES];
        struct sl_worker_set set;
        struct sl_worker_set before; /* that it had, once the change has begun */
        struct sl_crew *crew;        /* of the model as it was then; only compared once that may be gone */
        char path[PATH_MAX];         /* and its file */
};

/*
 * A worker more into *@draft, which is made at the first one. @device: as in device_let.h or gpu_let.h. Return: 0; -EINVAL a name
 * or a device that there is none; -E2BIG more workers than a model, or a change, may have; -ENOMEM.
 */
int sl_change_allot(struct sl_change **draft, const cpu_set_t *worker_cores, const char *model, const char *device, uint32_t batch,
        struct sl_error *error);
struct sl_change *sl_change_free(struct sl_change *change);

/*
 * Takes @draft in any case; NULL: as the configuration says. Return: 0: who asks is answered later; -errno with text, and nothing
 * has changed: -EINVAL a model that is none or has no workers, or a batch size that it has not; -EBUSY workers come or go already;
 * -E2BIG more workers than a model may have, with those that are there until the new ones come; -ENOMEM with the numbers; -EAGAIN,
 * -EMFILE.
 */
int sl_change_begin(struct sl_registry *registry, struct sl_change *draft, uint64_t asker, struct sl_error *error);

/* A model stays as it is while the configuration's workers come: whoever asked for those hears of the first. */
void sl_change_note_failure(struct sl_registry *registry, int status, const char *text);

/* Goes on with what has begun. */
void sl_change_advance(struct sl_registry *registry);

/* What is being applied, or is in force, says of the model; NULL: nothing. */
const struct sl_worker_set *sl_change_workers(const struct sl_registry *registry, const char *model);

bool sl_change_is_under_way(const struct sl_registry *registry);
