/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One runtime, looked at for each scrape: its stats page is opened when it appears, kept when the runtime ends, and replaced when
 * another runtime of that name has started.
 *
 *     nothing --a page appears--> page --its runtime ends--> last state --another runtime starts--> page
 *
 * Which pages are believed says sl_stats_open(). One that is cut off is dropped, with what it has counted. One thread.
 */
#pragma once

#include "base/error.h"
#include "ledger.h"
#include "page_scope.h"

#include <stdbool.h>

struct watch {
        const char *name; /* of the runtime; the caller's */
        struct sl_stats_view *view;
        struct page page;
        struct ledger *ledgers[METRIC_SCOPES]; /* NULL: not read yet */
        struct sl_error cause;                 /* why there is no living runtime; "" when there is */
        uint64_t gone_unix_ns;                 /* when it was first found gone; 0: it lives, or never did before this exporter */
};

/* `cause` is then one that no runtime gives. */
void watch_init(struct watch *watch, const char *name);
void watch_deinit(struct watch *watch);

/* Which page there is, and what its header says now; the series stay as they are. */
void watch_look(struct watch *watch);

/* Everything as it is now. Return: 0; -ENOMEM: something is missing of the series. */
int watch_refresh(struct watch *watch);

static inline bool watch_is_up(const struct watch *watch)
{
        return watch->page.facts.up;
}
