/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling profile`, of workers: a program of its own, so that no runtime has SQLite in it. One thread, and those that are
 * measured.
 */
#include "base/error.h"
#include "command.h"
#include "command_profile.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct action {
        const char *name;
        int (*run)(const struct wish *wish, struct sl_error *error);
        int n_min, n_max; /* arguments */
};

static const struct action actions[] = {
        {"list", profile_list, 0, 0},
        {"show", profile_show, 1, 1000},
        {"export", profile_export, 0, 1000},
        {"import", profile_import, 1, 1000},
        {"diff", profile_diff, 1, 2},
};

static atomic_bool stopped; /* by a signal */

static void stop(int number)
{
        (void)number;
        atomic_store(&stopped, true);
}

/* A full disk is told by write(); whoever stops the measuring has what is done until then. */
static void take_signals(void)
{
        signal(SIGXFSZ, SIG_IGN);
        sigaction(SIGINT, &(struct sigaction){.sa_handler = stop}, NULL);
        sigaction(SIGTERM, &(struct sigaction){.sa_handler = stop}, NULL);
}

static const struct action *find_action(const char *name)
{
        for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
                if (strcmp(actions[i].name, name) == 0)
                        return &actions[i];
        return NULL;
}

static int end(int status, const char *text)
{
        if (text[0])
                fprintf(stderr, "starling profile: %s\n", text);
        return status;
}

static int run(const struct action *action, const struct wish *wish)
{
        struct sl_error error = {""};
        int r;

        if (action ? wish->n_names < action->n_min || wish->n_names > action->n_max : wish->n_names == 0)
                return end(STATUS_USAGE, "wrong number of arguments; see `starling profile --help`");
        take_signals();
        r = action ? action->run(wish, &error) : (wish->elastic ? profile_elastic : profile_measure)(wish, &stopped, &error);
        if (r == 0 && (fflush(stdout) != 0 || ferror(stdout)))
                r = sl_error_set(&error, EIO, "stdout: %s", strerror(errno));
        return r == 0 ? STATUS_OK : end(STATUS_FAILED, error.text[0] ? error.text : strerror(-r));
}

int main(int argc, char **argv)
{
        const struct action *action = argc > 1 ? find_action(argv[1]) : NULL;
        struct sl_error error = {""};
        struct wish wish;
        int r = wish_parse(argc - (action != NULL), argv + (action != NULL), &wish, &error);
        int status = r < 0 ? end(STATUS_USAGE, error.text) : run(action, &wish);

        wish_deinit(&wish);
        return status;
}
