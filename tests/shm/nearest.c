/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody may have meant. */
#include "base/nearest.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *command_at(size_t i)
{
        static const char *const names[] = {"serve", "models", "load", "unload", "reload", "stats", "top", "", "postmortem",
                "version", "help", "import-triton", "inspect", "bench"};

        return i < sizeof(names) / sizeof(names[0]) ? names[i] : NULL;
}

Test(shm_nearest, a_slip_finds_the_name)
{
        const struct {
                const char *word, *name;
        } rows[] = {{"servee", "serve"}, {"srve", "serve"}, {"sevre", "serve"}, {"SERVE", "serve"}, {"sarve", "serve"},
                {"model", "models"}, {"stat", "stats"}, {"lod", "load"}, {"relaod", "reload"}, {"unlaod", "unload"}, {"tpo", "top"},
                {"postmorten", "postmortem"}, {"post", "postmortem"}, {"import", "import-triton"}, {"versoin", "version"},
                {"benchmark", "bench"}, {"halp", "help"}};

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const char *found = sl_nearest(rows[i].word, command_at);

                cr_expect(found && strcmp(found, rows[i].name) == 0, "%s: %s", rows[i].word, found ? found : "nothing");
        }
}

Test(shm_nearest, what_is_far_from_all_finds_none)
{
        const char *const words[] = {"", "x", "s", "zzz", "frobnicate", "xx", "start", "run",
                "servervserveserveserveserveserveserveserveserveserveserveserveserve", "\xff\xfe"};

        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
                const char *found = sl_nearest(words[i], command_at);

                cr_expect_null(found, "%s: %s", words[i], found);
        }
}
