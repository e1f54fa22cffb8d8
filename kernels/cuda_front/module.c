/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda_front/module.h"

#include "base/error.h"

#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* From the folder of the program: beside it, as installed, and as installed for programs in libexec/starling. */
static const char *const folders[] = {"", SL_CUDA_MODULE_FOLDER "/", "../" SL_CUDA_MODULE_FOLDER "/"};

bool sl_cuda_module_find(char ret_path[PATH_MAX], struct sl_error *error)
{
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        const char *folder;

        self[n < 0 ? 0 : n] = 0;
        folder = dirname(self);
        for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
                if (snprintf(ret_path, PATH_MAX, "%s/%s%s", folder, folders[i], SL_CUDA_MODULE_NAME) < PATH_MAX &&
                        access(ret_path, R_OK) == 0)
                        return true;
        (void)sl_error_set(error, ENOENT,
                "%s, which drives GPUs, is neither in %s nor in %s/%s: install starling-cuda, or build where CUDA is",
                SL_CUDA_MODULE_NAME, folder, folder, SL_CUDA_MODULE_FOLDER);
        return false;
}

int sl_cuda_module_open_at(const char *path, const struct sl_cuda_module **ret_module, struct sl_error *error)
{
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        const struct sl_cuda_module *module = library ? dlsym(library, "starling_cuda_module") : NULL;
        int r = 0;

        if (!library)
                return sl_error_set(error, ELIBBAD, "the CUDA module cannot be opened: %s", dlerror());
        if (!module)
                r = sl_error_set(error, ELIBBAD, "%s is no CUDA module of Starling", path);
        else if (module->version != SL_CUDA_MODULE_VERSION)
                r = sl_error_set(error, EPROTONOSUPPORT, "%s has version %u, and this program wants %u", path, module->version,
                        SL_CUDA_MODULE_VERSION);
        else if (strcmp(module->release, SL_CUDA_MODULE_RELEASE))
                r = sl_error_set(error, EPROTONOSUPPORT, "%s is of Starling %s, and this program of %s", path, module->release,
                        SL_CUDA_MODULE_RELEASE);
        if (r < 0)
                dlclose(library);
        else
                *ret_module = module;
        return r;
}

int sl_cuda_module_open(const struct sl_cuda_module **ret_module, struct sl_error *error)
{
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static const struct sl_cuda_module *_Atomic opened; /* release by who opened it, acquire by who uses it */
        const struct sl_cuda_module *module = atomic_load_explicit(&opened, memory_order_acquire);
        char path[PATH_MAX];
        int r = 0;

        if (!module) {
                pthread_mutex_lock(&lock);
                module = atomic_load_explicit(&opened, memory_order_relaxed);
                if (!module)
                        r = sl_cuda_module_find(path, error) ? sl_cuda_module_open_at(path, &module, error) : -ENOENT;
                if (r == 0)
                        atomic_store_explicit(&opened, module, memory_order_release);
                pthread_mutex_unlock(&lock);
        }
        if (r == 0)
                *ret_module = module;
        return r;
}
