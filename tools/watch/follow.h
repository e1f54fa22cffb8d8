/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime followed by its name: its page is kept when it ends, so that what it counted last can still be shown, and replaced when
 * another runtime of that name has started. One thread.
 *
 *     NOBODY --a living runtime's page appears--> LIVES --it ends--> GONE --another one's page appears--> LIVES
 *        +-----a dead one's page lies there--------------------------> GONE
 *     any --its page was cut off: follow_lose()--> NOBODY
 */
#pragma once

#include "base/error.h"
#include "stats.h"

enum follow_state { FOLLOW_NOBODY, FOLLOW_LIVES, FOLLOW_GONE };

struct follow {
        const char *name; /* the caller's */
        enum follow_state state;
        struct sl_stats_view *view; /* NULL: NOBODY */
        struct sl_stats_header header;
        struct sl_error cause; /* NOBODY: why there is no page; else "" */
};

void follow_init(struct follow *follow, const char *name);
void follow_deinit(struct follow *follow);

/* Looks again. Return: 0; NOBODY: as sl_stats_open(). */
int follow_look(struct follow *follow);

/* What it has cannot be read any more; `cause` is the caller's to set. */
void follow_lose(struct follow *follow);
