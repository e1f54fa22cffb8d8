/* SPDX-License-Identifier: Apache-2.0 */
#include "library.h"

#include <dlfcn.h>
#include <string.h>

/* The same pointer as a function's: POSIX says so of dlsym(), the language does not. */
static const char *look_up(void *file, const char *name, void *ret_call)
{
        void *symbol = dlsym(file, name);

        if (!symbol)
                return dlerror();
        memcpy(ret_call, &symbol, sizeof(symbol));
        return NULL;
}

const char *sl_library_open(struct library *library, const char *path)
{
        struct library found = {.file = NULL};
        const char *wrong = NULL;

        if (library->file)
                return NULL;
        found.file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!found.file)
                return dlerror();
#define SL_LIBRARY_LOOK_UP(name)                                                                                                   \
        if (!wrong)                                                                                                                \
                wrong = look_up(found.file, "starling_" #name, &found.name);
        SL_LIBRARY_CALLS(SL_LIBRARY_LOOK_UP)
#undef SL_LIBRARY_LOOK_UP
        if (!wrong)
                *library = found;
        return wrong;
}
