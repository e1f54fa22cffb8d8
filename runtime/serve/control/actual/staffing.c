/* SPDX-License-Identifier: Apache-2.0 */
#include "staffing.h"

#include "account.h"
#include "applied.h"
#include "askers.h"
#include "base/error.h"
#include "base/fields.h"
#include "crew.h"
#include "model.h"
#include "names.h"
#include "news.h"
#include "registry_state.h"
#include "sizes.h"
#include "want.h"

/* Of a group that is all or nothing only the whole is told of. */
static bool is_of_whole(const struct sl_registry *r, const struct sl_served *served)
{
        struct sl_fleet_group group;

        return sl_applied_group(r, &group) && group.atomic && served->want.group == group.number;
}

static void report_done(struct sl_registry *r, const struct sl_served *served)
{
        const struct sl_crew *crew = served->model->crew;
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "model", served->name);
        sl_fields_add_number(&fields, "version", sl_served_spec(served)->version);
        sl_fields_add_number(&fields, "workers", crew ? crew->wanted.n : served->want.workers.n);
        sl_account_log(r->options.accounts, sl_names_account(r, served), 2, "workers-changed", fields.text);
}

static void end_change(struct sl_registry *r, struct sl_served *served)
{
        served->changing = false;
        served->answer = "ready";
        sl_sizes_want_workers(r, served);
        if (!is_of_whole(r, served))
                report_done(r, served);
        sl_news_add(r, served, NULL);
}

/* The next time that the repository is read, or the set is applied again, it is tried again. One that was only to run elsewhere
 * stays where it is. */
static void fail_change(struct sl_registry *r, struct sl_served *served, bool moves, int status, const char *text)
{
        struct sl_crew *crew = served->model->crew;
        bool stays = moves && sl_worker_set_equal(&crew->before, &served->want.workers);

        served->changing = false;
        served->failed_workers = stays ? 0 : served->want.workers_number;
        served->has_workers = stays ? served->want.workers_number : 0;
        sl_crew_undo(crew);
        if (!is_of_whole(r, served))
                sl_names_report(r, 0, "workers-not-changed", served, text);
        sl_applied_note_failure(r, served, status, text);
        sl_askers_answer(r, served, false, status, text);
}

/* Other names of the model have those workers as well, where they want the same. */
static void note_set(struct sl_registry *r, const struct sl_served *served)
{
        for (uint32_t i = 0; i < r->n_awake; i++) {
                struct sl_served *other = sl_awake_at(r, i);

                if (other->used && other->model == served->model &&
                        sl_worker_set_equal(&other->want.workers, &served->want.workers))
                        other->has_workers = other->want.workers_number;
        }
}

void sl_staffing_begin(struct sl_registry *r, struct sl_served *served)
{
        struct sl_crew *crew = served->model->crew;
        struct sl_error error = {""};
        int result = 0;

        if (crew && sl_applied_holds(r, served))
                sl_crew_hold(crew, true);
        if (crew && sl_crew_needs(crew, &served->want.workers))
                result = sl_crew_resize(crew, &served->want.workers, &error);
        if (result < 0) {
                fail_change(r, served, sl_crew_moves(crew), result, error.text);
                return;
        }
        note_set(r, served);
        served->changing = true;
        sl_staffing_hear(r, served);
}

void sl_staffing_hear(struct sl_registry *r, struct sl_served *served)
{
        struct sl_crew *crew = served->model->crew;
        struct sl_error error = {""};
        bool moves = crew && sl_crew_moves(crew); /* before it is undone */
        int result = crew ? sl_crew_advance(crew, &error) : 0;

        if (result < 0)
                fail_change(r, served, moves, result, error.text);
        else if (result == 0 && !(crew && crew->holds))
                end_change(r, served);
}

void sl_staffing_again(struct sl_served *served)
{
        if (!sl_served_is_ready(served) || !served->model)
                return;
        served->has_workers = 0;
        served->failed_workers = 0;
}
