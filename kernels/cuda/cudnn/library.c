/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cudnn/library.h"

#include "base/error.h"

#include <dlfcn.h>

#define TOOLKIT_PATH "/usr/local/cuda/lib64/libcudnn.so.9"

/* It stays where it is when it is closed: what it has told the driver of itself must not be gone when the context ends. */
#define HOW (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)

static void *open_library(const char *path)
{
        void *library = dlopen(path ? path : "libcudnn.so.9", HOW);

        return library || path ? library : dlopen(TOOLKIT_PATH, HOW);
}

static int load_version(struct sl_cudnn *library, struct sl_error *error)
{
        __typeof__(cudnnGetVersion) *get_version = (__typeof__(get_version))dlsym(library->library, "cudnnGetVersion");

        if (!get_version)
                return sl_error_set(error, ELIBBAD, "what was opened for cuDNN is another library: it lacks cudnnGetVersion");
        library->version = (int)get_version();
        if (library->version < SL_CUDNN_VERSION || library->version >= 100000)
                return sl_error_set(error, EPROTONOSUPPORT, "cuDNN %d.%d is there, and cuDNN 9.8 or a newer 9 is needed",
                        library->version / 10000, library->version / 100 % 100);
        return 0;
}

static int load_calls(struct sl_cudnn *library, struct sl_error *error)
{
#define X(field, name)                                                                                                             \
        library->field = (__typeof__(library->field))dlsym(library->library, #name);                                               \
        if (!library->field)                                                                                                       \
                return sl_error_set(error, ELIBBAD, "cuDNN lacks " #name);
        SL_CUDNN_CALLS(X)
#undef X
        return 0;
}

int sl_cudnn_open(const char *path, struct sl_cudnn *ret_library, struct sl_error *error)
{
        struct sl_cudnn library = {.library = open_library(path)};
        int r;

        if (!library.library)
                return sl_error_set(error, ENOENT, "there is no cuDNN 9: %s", dlerror());
        r = load_version(&library, error);
        if (r == 0)
                r = load_calls(&library, error);
        if (r < 0)
                sl_cudnn_close(&library);
        else
                *ret_library = library;
        return r;
}

void sl_cudnn_close(struct sl_cudnn *library)
{
        if (library->library)
                dlclose(library->library);
        *library = (struct sl_cudnn){.library = NULL};
}
