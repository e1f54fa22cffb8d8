/* SPDX-License-Identifier: Apache-2.0 */
#include "news.h"

#include "askers.h"
#include "names.h"
#include "registry_state.h"

#include <string.h>

bool sl_news_is_due(const struct sl_served *served)
{
        return served->news.mark;
}

void sl_news_add(struct sl_registry *r, struct sl_served *served, const char *event)
{
        sl_names_wake(r, served);
        served->news.mark = ++r->marks.given;
        served->news.event = event ? event : served->news.event;
}

void sl_news_publish(struct sl_registry *r, const struct sl_served *served)
{
        if (!sl_served_is_ready(served) || !sl_news_is_due(served))
                sl_served_publish(r, served);
}

void sl_news_marked(struct sl_registry *r)
{
        r->marks.heard = r->marks.sent;
}

void sl_news_mark(struct sl_registry *r)
{
        if (r->marks.heard < r->marks.sent || r->marks.sent == r->marks.given)
                return;
        r->marks.sent = r->marks.given;
        sl_names_command(r, SL_COMMAND_MARK, NULL, 0);
}

static void tell(struct sl_registry *r, struct sl_served *served)
{
        served->news.mark = 0;
        sl_served_publish(r, served);
        if (served->news.event)
                sl_names_report(r, 2, served->news.event, served, NULL);
        served->news.event = NULL;
}

static bool is_on_its_way(const struct sl_served *served)
{
        if (!served->used || !served->want.number || served->drains)
                return false;
        if (sl_served_state(served) == SL_SERVED_AVAILABLE || sl_served_state(served) == SL_SERVED_STANDBY)
                return false;
        return sl_news_is_due(served) || (served->serves != served->want.number && served->failed != served->want.number);
}

static bool has_member(const struct sl_served *ensemble, const char *member)
{
        const struct sl_model_spec *spec = sl_served_spec(ensemble);

        for (uint32_t m = 0; m < spec->n_members; m++)
                if (strcmp(spec->members[m], member) == 0)
                        return true;
        return false;
}

/* An ensemble that goes over to the new member, or a version under a name of its own that comes along. */
static bool comes_along(const struct sl_served *other, const struct sl_served *served)
{
        return (sl_served_is_ready(other) && has_member(other, served->name)) || sl_names_is_version(other->name, served->name);
}

static bool waits_for_others(const struct sl_registry *r, const struct sl_served *served)
{
        for (uint32_t i = 0; i < r->n_awake; i++)
                if (is_on_its_way(sl_awake_at(r, i)) && comes_along(sl_awake_at(r, i), served))
                        return true;
        return false;
}

/* What is wanted serves, with the workers that are wanted, and the world knows. */
static bool is_there(const struct sl_served *served)
{
        return sl_served_is_ready(served) && served->serves == served->want.number && !sl_news_is_due(served) &&
               !sl_served_is_changing(served);
}

static bool is_taken(const struct sl_registry *r, const struct sl_served *served)
{
        return sl_news_is_due(served) && served->news.mark <= r->marks.heard;
}

bool sl_news_tell_ensembles(struct sl_registry *r)
{
        bool told = false;

        for (uint32_t i = 0; i < r->n_awake; i++) {
                if (!is_taken(r, sl_awake_at(r, i)) || sl_awake_at(r, i)->model)
                        continue;
                tell(r, sl_awake_at(r, i));
                told = true;
        }
        return told;
}

/* An ensemble that has it may be of the one before, or is, and the dispatcher has not taken that. */
static bool has_ensemble_due(const struct sl_registry *r, const struct sl_served *served)
{
        for (uint32_t i = 0; i < r->n_awake; i++) {
                const struct sl_served *ensemble = sl_awake_at(r, i);

                if (sl_news_is_due(ensemble) && !ensemble->model && sl_served_is_ready(ensemble) &&
                        has_member(ensemble, served->name))
                        return true;
        }
        return false;
}

bool sl_news_tell_others(struct sl_registry *r)
{
        bool told = false;

        for (uint32_t i = 0; i < r->n_awake; i++) {
                if (!is_taken(r, sl_awake_at(r, i)) || has_ensemble_due(r, sl_awake_at(r, i)))
                        continue;
                tell(r, sl_awake_at(r, i));
                told = true;
        }
        return told;
}

void sl_news_answer(struct sl_registry *r)
{
        for (uint32_t i = 0; i < r->n_awake; i++) {
                struct sl_served *served = sl_awake_at(r, i);

                if (sl_askers_wait(served, false) && is_there(served) && !waits_for_others(r, served))
                        sl_askers_answer(r, served, false, 0, served->answer);
        }
}

void sl_news_flush(struct sl_registry *r, struct sl_served *served)
{
        if (sl_news_is_due(served))
                tell(r, served);
}
