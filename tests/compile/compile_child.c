/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `starling` is to the runtime, for the tests: the compiler's process and a worker's. Some names of models make it misbehave
 * instead; those of the sandbox are in escape.c.
 */
#include "call_list.h"
#include "compile.h"
#include "escape.h"
#include "sandbox.h"
#include "worker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int main(int argc, char **argv)
{
        const char *model = model_of(argc, argv);

        if (sl_worker_is_meant(argc, argv))
                return sl_worker_main(argc, argv);
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
        return sl_compile_child_main(argc, argv);
}
