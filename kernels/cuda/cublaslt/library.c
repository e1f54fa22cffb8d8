/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cublaslt/library.h"

#include "base/error.h"

#include <dlfcn.h>

#define TOOLKIT_PATH "/usr/local/cuda/lib64/libcublasLt.so.13"

/* It stays where it is when it is closed: what it has told the driver of itself must not be gone when the context ends. */
#define HOW (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)

static void *open_library(const char *path)
{
        void *library = dlopen(path ? path : "libcublasLt.so.13", HOW);

        return library || path ? library : dlopen(TOOLKIT_PATH, HOW);
}

static int load_version(struct sl_cublaslt *library, struct sl_error *error)
{
        __typeof__(cublasLtGetVersion) *get_version = (__typeof__(get_version))dlsym(library->library, "cublasLtGetVersion");

        if (!get_version)
                return sl_error_set(error, ELIBBAD, "what was opened for cuBLASLt is another library: it lacks cublasLtGetVersion");
        library->version = (int)get_version();
        if (library->version < SL_CUBLASLT_VERSION)
                return sl_error_set(error, EPROTONOSUPPORT, "cuBLASLt %d.%d is there, and 13.0 or newer is needed",
                        library->version / 10000, library->version / 100 % 100);
        return 0;
}

static int load_calls(struct sl_cublaslt *library, struct sl_error *error)
{
#define X(field, name)                                                                                                             \
        library->field = (__typeof__(library->field))dlsym(library->library, #name);                                               \
        if (!library->field)                                                                                                       \
                return sl_error_set(error, ELIBBAD, "cuBLASLt lacks " #name);
        SL_CUBLASLT_CALLS(X)
#undef X
        return 0;
}

int sl_cublaslt_open(const char *path, struct sl_cublaslt *ret_library, struct sl_error *error)
{
        struct sl_cublaslt library = {.library = open_library(path)};
        int r;

        if (!library.library)
                return sl_error_set(error, ENOENT, "there is no cuBLASLt 13: %s", dlerror());
        r = load_version(&library, error);
        if (r == 0)
                r = load_calls(&library, error);
        if (r < 0)
                sl_cublaslt_close(&library);
        else
                *ret_library = library;
        return r;
}

void sl_cublaslt_close(struct sl_cublaslt *library)
{
        if (library->library)
                dlclose(library->library);
        *library = (struct sl_cublaslt){.library = NULL};
}
