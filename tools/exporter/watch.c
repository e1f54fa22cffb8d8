/* SPDX-License-Identifier: Apache-2.0 */
#include "watch.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WHOLE_BYTES 512   /* of labels of one model */
#define VALUES_MAX  1024u /* of a slot */
#define BUSY_MAX                                                                                                                   \
        16u /* slots that cannot be read, each for some ms; beyond that the page is damaged, and the others stay as they were */

void watch_init(struct watch *watch, const char *name)
{
        *watch = (struct watch){.name = name, .cause = {"it was not looked at yet"}};
}

static void forget_series(struct watch *watch)
{
        for (int i = 0; i < METRIC_SCOPES; i++)
                watch->ledgers[i] = ledger_free(watch->ledgers[i]);
}

void watch_deinit(struct watch *watch)
{
        forget_series(watch);
        sl_stats_close(watch->view);
        *watch = (struct watch){0};
}

/* ---- which page ---- */

/* Whether @fresh, which was found under the name, is to take the place of what is watched, whose runtime is gone: by the clock of
 * the day, which goes on over a reboot, or as it lives, whatever somebody has set that clock to. */
static bool is_newer(const struct watch *watch, const struct sl_stats_view *fresh)
{
        struct sl_stats_header header;

        sl_stats_read_header(fresh, &header);
        return !watch->view || header.started_unix_ns > watch->page.facts.header.started_unix_ns || sl_stats_is_live(fresh);
}

static void look_for_page(struct watch *watch)
{
        struct sl_stats_view *fresh;

        if (sl_stats_open(watch->name, NULL, &fresh, &watch->cause) < 0)
                return;
        if (!is_newer(watch, fresh)) {
                sl_stats_close(fresh);
                return;
        }
        forget_series(watch);
        sl_stats_close(watch->view);
        watch->view = fresh;
}

static enum runtime_state state_of(const struct sl_stats_header *header, bool live)
{
        uint32_t state = atomic_load_explicit(&header->state, memory_order_relaxed);

        return live || state == SL_RUNTIME_STOPPED ? (enum runtime_state)state : RUNTIME_DEAD;
}

/* What somebody has cut off has ended. */
static void drop_if_cut_off(struct watch *watch)
{
        if (!watch->view || sl_stats_check(watch->view, &watch->cause) == 0)
                return;
        forget_series(watch);
        watch->view = sl_stats_close(watch->view);
}

static uint64_t unix_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * SL_NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static void read_page(struct watch *watch)
{
        struct runtime_facts *facts = &watch->page.facts;
        bool live = watch->view && sl_stats_is_live(watch->view);

        if (live || facts->up)
                watch->gone_unix_ns = live ? 0 : unix_ns();
        watch->page.view = watch->view;
        if (watch->view) {
                sl_stats_read_header(watch->view, &facts->header);
                facts->state = state_of(&facts->header, live);
        }
        facts->up = live;
        if (live)
                watch->page.now_ns = sl_clock_ns();
        if (live)
                watch->cause.text[0] = 0;
        else if (watch->view)
                sl_error_set(&watch->cause, 0, "%s", facts->state == RUNTIME_DEAD ? "it crashed or was killed" : "it has ended");
}

/* ---- what it says ---- */

static uint32_t read_values(
        const struct page *page, enum metric_scope scope, const union page_slot *slot, uint64_t values[VALUES_MAX])
{
        uint32_t at = 0;

        for (size_t row = 0; row < metric_table_rows; row++) {
                if (metric_table[row].scope != scope)
                        continue;
                page_values(page, &metric_table[row], slot, values + at);
                at += metric_width(&metric_table[row]);
        }
        return at;
}

/* Return: 0, also when the slot is not in use; -EAGAIN; -ENOMEM. */
static int refresh_slot(struct watch *watch, enum metric_scope scope, uint32_t index, struct text *labels)
{
        struct ledger_labels of_slot;
        uint64_t values[VALUES_MAX];
        union page_slot slot;
        struct text whole;
        bool is_part;
        int r;

        text_clear(labels);
        r = page_read(&watch->page, scope, index, &slot, labels);
        if (r < 0)
                return r == -EAGAIN ? r : 0;
        if (labels->failed)
                return -ENOMEM;
        read_values(&watch->page, scope, &slot, values);
        text_init(&whole, WHOLE_BYTES);
        is_part = page_whole(scope, &slot, &whole);
        of_slot = (struct ledger_labels){.all = labels->bytes ? labels->bytes : "", .whole = is_part ? whole.bytes : NULL};
        of_slot.owner_bytes = page_owner_bytes(scope, of_slot.all);
        r = whole.failed ? -ENOMEM : ledger_put_owned(watch->ledgers[scope], index, &of_slot, values);
        text_deinit(&whole);
        return r;
}

static int refresh_slots(struct watch *watch, enum metric_scope scope, uint32_t slots, struct text *labels)
{
        uint32_t n_busy = 0;
        int r = 0;

        for (uint32_t i = 0; i < slots; i++) {
                int result = n_busy < BUSY_MAX ? refresh_slot(watch, scope, i, labels) : -EAGAIN;

                if (result == -EAGAIN) {
                        ledger_keep(watch->ledgers[scope], i);
                        n_busy++;
                } else if (result < 0) {
                        r = result;
                }
        }
        return r;
}

static int refresh_scope(struct watch *watch, enum metric_scope scope, struct text *labels)
{
        uint32_t slots = page_slots(&watch->page, scope);
        int r;

        if (slots == 0)
                return 0;
        if (!watch->ledgers[scope])
                watch->ledgers[scope] = ledger_new(scope, slots);
        if (!watch->ledgers[scope] || ledger_width(watch->ledgers[scope]) > VALUES_MAX)
                return -ENOMEM;
        ledger_begin(watch->ledgers[scope]);
        r = refresh_slots(watch, scope, slots, labels);
        ledger_end(watch->ledgers[scope]);
        return r;
}

void watch_look(struct watch *watch)
{
        watch->cause.text[0] = 0;
        if (!watch->view || !sl_stats_is_live(watch->view))
                look_for_page(watch);
        drop_if_cut_off(watch);
        read_page(watch);
}

int watch_refresh(struct watch *watch)
{
        struct text labels;
        int r = 0;

        watch_look(watch);
        text_init(&labels, 4096);
        for (int scope = 0; scope < METRIC_SCOPES; scope++)
                if (refresh_scope(watch, (enum metric_scope)scope, &labels) < 0)
                        r = -ENOMEM;
        text_deinit(&labels);
        return r;
}
