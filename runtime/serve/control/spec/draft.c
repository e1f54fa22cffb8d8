/* SPDX-License-Identifier: Apache-2.0 */
#include "draft.h"

#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sl_allotment *sl_draft_find(const struct sl_draft *draft, const char *model)
{
        for (struct sl_allotment *a = draft ? draft->allotments : NULL; a; a = a->next)
                if (strcmp(a->model, model) == 0)
                        return a;
        return NULL;
}

struct sl_allotment *sl_draft_add(struct sl_draft *draft, const char *model)
{
        struct sl_allotment *allotment = sl_draft_find(draft, model);

        if (allotment)
                return allotment;
        allotment = calloc(1, sizeof(*allotment));
        if (!allotment)
                return NULL;
        snprintf(allotment->model, sizeof(allotment->model), "%s", model);
        allotment->next = draft->allotments;
        draft->allotments = allotment;
        return allotment;
}

struct sl_allotment *sl_draft_take(struct sl_draft *draft)
{
        struct sl_allotment *allotment = draft->allotments;

        if (allotment)
                draft->allotments = allotment->next;
        return allotment;
}

void sl_draft_put(struct sl_draft *draft, struct sl_allotment *allotment)
{
        sl_draft_drop(draft, allotment->model);
        allotment->next = draft->allotments;
        draft->allotments = allotment;
}

void sl_draft_drop(struct sl_draft *draft, const char *model)
{
        for (struct sl_allotment **link = &draft->allotments; *link; link = &(*link)->next) {
                struct sl_allotment *allotment = *link;

                if (strcmp(allotment->model, model) != 0)
                        continue;
                *link = allotment->next;
                free(allotment);
                return;
        }
}

void sl_draft_clear(struct sl_draft *draft)
{
        while (draft->allotments) {
                struct sl_allotment *allotment = draft->allotments;

                draft->allotments = allotment->next;
                free(allotment);
        }
        draft->n_workers = 0;
}

struct sl_draft *sl_draft_free(struct sl_draft *draft)
{
        if (draft)
                sl_draft_clear(draft);
        free(draft);
        return NULL;
}

int sl_draft_allot(struct sl_draft **draft, const cpu_set_t *worker_cores, const char *model, const char *device, uint32_t batch,
        struct sl_error *error)
{
        struct sl_allotment *allotment;
        struct sl_worker_wish wish = {.batch_size = batch};
        int r = sl_worker_wish_place(&wish, device, worker_cores, error);

        if (r < 0)
                return sl_error_prefix(error, r, "model \"%s\"", model);
        if (!*model || !batch)
                return sl_error_set(error, EINVAL, "model \"%s\": a worker of batch %u", model, batch);
        if (!*draft)
                *draft = calloc(1, sizeof(**draft));
        allotment = *draft ? sl_draft_add(*draft, model) : NULL;
        if (!allotment)
                return sl_error_set(error, ENOMEM, "model \"%s\": out of memory", model);
        if (allotment->set.n == SL_WORKERS_MAX || (*draft)->n_workers == SL_DRAFT_WORKERS_MAX)
                return sl_error_set(error, E2BIG, "model \"%s\": more than %u workers of a model, or %u in all", model,
                        SL_WORKERS_MAX, SL_DRAFT_WORKERS_MAX);
        allotment->set.wishes[allotment->set.n++] = wish;
        (*draft)->n_workers++;
        return 0;
}
