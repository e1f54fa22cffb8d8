/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sessions of a process compute with: cuDNN, cuBLASLt and the own kernels, opened once for a driver. Whoever closes a
 * sandbox around himself opens them before.
 */
#pragma once

#include "cuda/cublaslt/library.h"
#include "cuda/cudnn/library.h"
#include "cuda/own/own.h"

#include <limits.h>
#include <stdint.h>

struct sl_error;

struct sl_cuda_libraries {
        struct sl_cudnn cudnn;
        struct sl_cublaslt cublaslt;
        struct sl_cuda_own own;
        unsigned holders;
};

/*
 * One more holder of the libraries of this process, which are opened where they are not open; a context is current. All sessions
 * have one driver. May take seconds. Any thread. Return: 0; -ENOENT one is missing; -EPROTONOSUPPORT one is too old; -EINVAL,
 * -ENOMEM, -EIO the driver refuses the own kernels.
 */
int sl_cuda_libraries_hold(
        const struct sl_cuda_driver *driver, const struct sl_cuda_libraries **ret_libraries, struct sl_error *error);
void sl_cuda_libraries_release(void);

/* Those that somebody holds, as long as he does; NULL: nobody. Any thread. */
const struct sl_cuda_libraries *sl_cuda_libraries_held(void);

/*
 * The folders in which cuDNN and cuBLASLt of this process lie, where they are held: they open parts of theirs late. Return: how
 * many, up to SL_CUDA_FOLDERS. Any thread.
 */
#define SL_CUDA_FOLDERS 2
uint32_t sl_cuda_libraries_folders(char ret_folders[SL_CUDA_FOLDERS][PATH_MAX]);

/* From now on those functions in the place of libraries, which nobody holds; NULL: those of the system. */
void sl_cuda_libraries_use(const struct sl_cudnn *cudnn, const struct sl_cublaslt *cublaslt);
