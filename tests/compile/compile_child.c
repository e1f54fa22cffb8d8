/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `starling` is to the runtime, for the tests: the compiler's process and a worker's. Some names of models make it misbehave
 * instead; those of the sandbox are in escape.c.
 */
#include "call_list.h"
#include "child_args.h"
#include "compile.h"
#include "escape.h"
#include "sandbox.h"
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_forked; /* set once, before anything runs: of a zygote and its children */

static const char *model_of(int argc, char **argv)
{
        for (int i = 1; i + 1 < argc; i++) {
                if (!strcmp(argv[i], "--model"))
                        return argv[i + 1];
        }
        return "";
}

static int spin(void)
{
        struct sl_call_list calls;
        struct sl_sandbox_limits limits = {.address_bytes = 1ull << 30,
                .data_bytes = SL_SANDBOX_NO_LIMIT,
                .file_bytes = 1ull << 30,
                .seconds = 1,
                .parent = getppid(),
                .calls = &calls};
        const char *missing;

        sl_call_list_init(&calls);
        if (sl_sandbox_enter(&limits, &missing, NULL) < 0)
                return 19;
        for (volatile uint64_t turns = 0;; turns = turns + 1)
                ;
}

/* One digit for each, as far as they go. */
static int descriptors(void)
{
        char line[64] = "1 ";
        size_t n = strlen(line);

        for (int fd = 0; fd < 40; fd++)
                if (fcntl(fd, F_GETFD) >= 0)
                        line[n++] = (char)('0' + fd);
        line[n++] = '\n';
        return write(SL_CHILD_REPORT_FD, line, n) == (ssize_t)n ? 1 : 19;
}

/* Also of a process that a zygote has forked. */
static int run(int argc, char **argv)
{
        const char *model = model_of(argc, argv);

        /* Under a sanitizer its handler would turn the signal into an exit. */
        if (!strcmp(model, "crash")) {
                signal(SIGSEGV, SIG_DFL);
                raise(SIGSEGV);
        }
        if (!strncmp(model, ESCAPE_PREFIX, strlen(ESCAPE_PREFIX)))
                return escape_main(model + strlen(ESCAPE_PREFIX));
        if (!strcmp(model, "spin"))
                return spin();
        if (!strcmp(model, "sleep"))
                sleep(600);
        if (!strcmp(model, "silent"))
                return 3;
        if (!strcmp(model, "origin"))
                return is_forked ? 5 : 4;
        if (!strcmp(model, "descriptors"))
                return descriptors();
        return sl_compile_child_main(argc, argv);
}

int main(int argc, char **argv)
{
        if (sl_worker_is_meant(argc, argv))
                return sl_worker_main(argc, argv);
        is_forked = sl_compile_zygote_is_meant(argc, argv);
        return is_forked ? sl_compile_zygote_main(argc, argv, run) : run(argc, argv);
}
