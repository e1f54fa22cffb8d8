/* SPDX-License-Identifier: Apache-2.0 */
#include "news.h"

#include "names.h"
#include "registry_state.h"

#include <string.h>

uint64_t sl_news_mark(struct sl_registry *r)
{
        return ++r->marks.given;
}

bool sl_news_is_taken(const struct sl_registry *r, uint64_t mark)
{
        return mark <= r->marks.heard;
}

bool sl_news_is_due(const struct sl_served *served)
{
        return served->news.mark;
}

void sl_news_add(struct sl_registry *r, struct sl_served *served, const char *event, const char *answer)
{
        served->news.mark = sl_news_mark(r);
        served->news.event = event ? event : served->news.event;
        served->news.answer = answer;
}

void sl_news_marked(struct sl_registry *r)
{
        r->marks.heard = r->marks.sent;
}

static void send_mark(struct sl_registry *r)
{
        if (r->marks.heard < r->marks.sent || r->marks.sent == r->marks.given)
                return;
        r->marks.sent = r->marks.given;
        sl_names_command(r, SL_COMMAND_MARK, NULL, 0);
}

static void tell(struct sl_registry *r, struct sl_served *served)
{
        served->news.mark = 0;
        sl_served_publish(r->options.catalogue, served);
        if (served->news.event)
                sl_names_report(r, 2, served->news.event, served, NULL);
        served->news.event = NULL;
}

static bool is_on_its_way(const struct sl_served *served)
{
        return served->state == SL_SERVED_WAITING || served->state == SL_SERVED_LOADING ||
               (served->state == SL_SERVED_READY && (served->load || served->replace || sl_news_is_due(served)));
}

static bool has_member(const struct sl_served *ensemble, const char *member)
{
        for (uint32_t m = 0; m < ensemble->own.spec.n_members; m++)
                if (strcmp(ensemble->own.members[m], member) == 0)
                        return true;
        return false;
}

/* An ensemble that goes over to the new member, or a version under a name of its own that comes along. */
static bool comes_along(const struct sl_served *other, const struct sl_served *served)
{
        return (other->state == SL_SERVED_READY && has_member(other, served->own.name)) ||
               sl_names_is_version(other->own.name, served->own.name);
}

static bool waits_for_others(const struct sl_registry *r, const struct sl_served *served)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (is_on_its_way(&r->served[i]) && comes_along(&r->served[i], served))
                        return true;
        return false;
}

static void answer(struct sl_registry *r, struct sl_served *served)
{
        if (served->news.answer)
                sl_names_answer(r, served, 0, served->news.answer);
}

void sl_news_advance(struct sl_registry *r)
{
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++)
                if (sl_news_is_due(&r->served[i]) && sl_news_is_taken(r, r->served[i].news.mark))
                        tell(r, &r->served[i]);
        for (uint32_t i = 0; i < SL_CATALOGUE_MODELS; i++) {
                struct sl_served *served = &r->served[i];

                if (served->news.answer && !sl_news_is_due(served) && !waits_for_others(r, served))
                        answer(r, served);
        }
        send_mark(r);
}

void sl_news_flush(struct sl_registry *r, struct sl_served *served)
{
        if (sl_news_is_due(served))
                tell(r, served);
        answer(r, served);
}
