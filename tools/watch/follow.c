/* SPDX-License-Identifier: Apache-2.0 */
#include "follow.h"

void follow_init(struct follow *follow, const char *name)
{
        *follow = (struct follow){.name = name, .cause = {""}};
}

void follow_deinit(struct follow *follow)
{
        follow->view = sl_stats_close(follow->view);
}

/* Of another runtime than the one that is followed. */
static bool is_another(const struct follow *follow, const struct sl_stats_header *header)
{
        return !follow->view || header->started_ns != follow->header.started_ns || header->pid != follow->header.pid;
}

static int look_for_page(struct follow *follow)
{
        struct sl_stats_header header;
        struct sl_stats_view *view;
        int r = sl_stats_open(follow->name, NULL, &view, &follow->cause);

        if (r < 0)
                return r;
        sl_stats_read_header(view, &header);
        if (!is_another(follow, &header)) {
                sl_stats_close(view);
                return 0;
        }
        sl_stats_close(follow->view);
        follow->view = view;
        follow->header = header;
        return 0;
}

void follow_lose(struct follow *follow)
{
        follow->view = sl_stats_close(follow->view);
        follow->state = FOLLOW_NOBODY;
}

int follow_look(struct follow *follow)
{
        int r = 0;

        if (!follow->view || !sl_stats_is_live(follow->view))
                r = look_for_page(follow);
        if (!follow->view)
                return r;
        follow->cause.text[0] = 0;
        follow->state = sl_stats_is_live(follow->view) ? FOLLOW_LIVES : FOLLOW_GONE;
        return 0;
}
