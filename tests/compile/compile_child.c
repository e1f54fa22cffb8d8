/*
 * What `starling compile` is to the runtime, for the tests. Some names of models make it misbehave instead.
 */
#include "compile.h"

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

int main(int argc, char **argv)
{
        const char *model = model_of(argc, argv);

        /* Under a sanitizer its handler would turn the signal into an exit. */
        if (!strcmp(model, "crash")) {
                signal(SIGSEGV, SIG_DFL);
                raise(SIGSEGV);
        }
        if (!strcmp(model, "sleep"))
                sleep(600);
        if (!strcmp(model, "silent"))
                return 3;
        return sl_compile_child_main(argc, argv);
}
