/* SPDX-License-Identifier: Apache-2.0 */
#include "busy.h"

#include "model.h"

/* The model that was added last comes first. */
static struct sl_model **place_of(struct sl_busy *busy, const struct sl_model *model)
{
        struct sl_model **link = &busy->first;

        while (*link && (*link)->number > model->number)
                link = &(*link)->next_busy;
        return link;
}

void sl_busy_add(struct sl_busy *busy, struct sl_model *model)
{
        struct sl_model **link;

        if (model->is_busy)
                return;
        link = place_of(busy, model);
        model->next_busy = *link;
        *link = model;
        model->is_busy = model->is_new = busy->has_new = true;
}

void sl_busy_remove(struct sl_busy *busy, struct sl_model *model)
{
        if (!model->is_busy)
                return;
        *place_of(busy, model) = model->next_busy;
        model->next_busy = NULL;
        model->is_busy = model->is_new = false;
}

bool sl_model_is_idle(const struct sl_model *model)
{
        return !sl_scheduler_waits(&model->scheduler) && model->samples_given == 0;
}
