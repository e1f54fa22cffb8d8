/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/libraries.h"

#include "base/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

static struct {
        pthread_mutex_t lock;
        struct sl_cuda_libraries held;
        const struct sl_cudnn *cudnn;
        const struct sl_cublaslt *cublaslt;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The lock is held. */
static int open_all(const struct sl_cuda_driver *driver, struct sl_error *error)
{
        struct sl_cuda_libraries *held = &process.held;
        int r = 0;

        if (process.cudnn)
                held->cudnn = *process.cudnn;
        else
                r = sl_cudnn_open(NULL, &held->cudnn, error);
        if (r < 0)
                return r;
        if (process.cublaslt)
                held->cublaslt = *process.cublaslt;
        else
                r = sl_cublaslt_open(NULL, &held->cublaslt, error);
        if (r == 0)
                r = sl_cuda_own_open(driver, &held->own, error);
        if (r == 0)
                return 0;
        if (!process.cublaslt)
                sl_cublaslt_close(&held->cublaslt);
        if (!process.cudnn)
                sl_cudnn_close(&held->cudnn);
        return r;
}

int sl_cuda_libraries_hold(
        const struct sl_cuda_driver *driver, const struct sl_cuda_libraries **ret_libraries, struct sl_error *error)
{
        int r;

        pthread_mutex_lock(&process.lock);
        r = process.held.holders ? 0 : open_all(driver, error);
        process.held.holders += r == 0;
        pthread_mutex_unlock(&process.lock);
        *ret_libraries = &process.held;
        return r;
}

void sl_cuda_libraries_release(void)
{
        pthread_mutex_lock(&process.lock);
        if (--process.held.holders == 0) {
                sl_cuda_own_close(&process.held.own);
                if (!process.cublaslt)
                        sl_cublaslt_close(&process.held.cublaslt);
                if (!process.cudnn)
                        sl_cudnn_close(&process.held.cudnn);
        }
        pthread_mutex_unlock(&process.lock);
}

const struct sl_cuda_libraries *sl_cuda_libraries_held(void)
{
        bool held;

        pthread_mutex_lock(&process.lock);
        held = process.held.holders > 0;
        pthread_mutex_unlock(&process.lock);
        return held ? &process.held : NULL;
}

uint32_t sl_cuda_libraries_folders(char ret_folders[SL_CUDA_FOLDERS][PATH_MAX])
{
        uint32_t n = 0;

        pthread_mutex_lock(&process.lock);
        void *const libraries[SL_CUDA_FOLDERS] = {process.held.cudnn.library, process.held.cublaslt.library};

        for (uint32_t i = 0; i < SL_CUDA_FOLDERS && process.held.holders; i++)
                n += libraries[i] && dlinfo(libraries[i], RTLD_DI_ORIGIN, ret_folders[n]) == 0;
        pthread_mutex_unlock(&process.lock);
        return n;
}

void sl_cuda_libraries_use(const struct sl_cudnn *cudnn, const struct sl_cublaslt *cublaslt)
{
        process.cudnn = cudnn;
        process.cublaslt = cublaslt;
}
