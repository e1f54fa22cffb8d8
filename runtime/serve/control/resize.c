/* SPDX-License-Identifier: Apache-2.0 */
#include "resize.h"

#include "account.h"
#include "base/error.h"
#include "base/fields.h"
#include "change.h"
#include "crew.h"
#include "model.h"
#include "names.h"
#include "news.h"
#include "registry_state.h"
#include "sizes.h"

bool sl_resize_needed(const struct sl_served *served)
{
        return served->resize && !sl_news_is_due(served) && served->state == SL_SERVED_READY && served->model;
}

static void resize_done(struct sl_registry *r, struct sl_served *served)
{
        struct sl_fields fields = {0};

        sl_sizes_resize(r, served);
        served->resize = false;
        sl_fields_add(&fields, "model", served->own.name);
        sl_fields_add_number(&fields, "version", served->own.spec.version);
        sl_fields_add_number(&fields, "workers", served->model->crew ? served->model->crew->wanted.n : served->own.spec.workers.n);
        sl_account_log(r->options.accounts, sl_names_account(r, served), 2, "workers-changed", fields.text);
        sl_news_add(r, served, NULL, "ready");
}

/* The next reload tries again. */
static void resize_failed(struct sl_registry *r, struct sl_served *served, int status, const char *text)
{
        served->resize = false;
        sl_crew_undo(served->model->crew);
        served->own.spec.workers = served->model->crew->wanted;
        sl_names_report(r, 0, "workers-not-changed", served, text);
        sl_change_note_failure(r, status, text);
        sl_names_answer(r, served, status, text);
}

static int crew_advance(struct sl_crew *crew, const struct sl_worker_set *workers, struct sl_error *error)
{
        int r = sl_crew_needs(crew, workers) ? sl_crew_resize(crew, workers, error) : 0;

        return r < 0 ? r : sl_crew_advance(crew, error);
}

void sl_resize_advance(struct sl_registry *r, struct sl_served *served)
{
        struct sl_crew *crew = served->model->crew;
        struct sl_error error = {""};
        int result = 0;

        if (crew)
                result = crew_advance(crew, &served->own.spec.workers, &error);
        if (result == 0)
                resize_done(r, served);
        else if (result < 0)
                resize_failed(r, served, result, error.text);
}
