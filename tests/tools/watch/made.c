/* SPDX-License-Identifier: Apache-2.0 */
#include "made.h"

#include "base/error.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char made_folder[64];

void made_init(void)
{
        strcpy(made_folder, "/tmp/starling-watch-XXXXXX");
        cr_assert(mkdtemp(made_folder));
}

void made_deinit(void)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/starling.made", made_folder);
        unlink(path);
        rmdir(made_folder);
}

struct sl_stats *made_stats(void)
{
        struct sl_error error = {""};
        struct sl_stats *stats;

        cr_assert_eq(sl_stats_create(&(struct sl_stats_options){.name = "made", .directory = made_folder, .release = "1.2.3"},
                             &stats, &error),
                0, "%s", error.text);
        sl_stats_set_state(stats, SL_RUNTIME_READY);
        return stats;
}

struct snapshot *made_snapshot(void)
{
        struct snapshot *snapshot;
        struct sl_stats_view *view;

        cr_assert_eq(sl_stats_open("made", made_folder, &view, NULL), 0);
        cr_assert_eq(snapshot_take(view, &snapshot, NULL), 0);
        sl_stats_close(view);
        return snapshot;
}
