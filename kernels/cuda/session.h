/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session of the CUDA backend: a stream, the handles of the libraries on it, and the word in which kernels leave a finding. One
 * thread at a time, whose current context is that of the device.
 */
#pragma once

#include "cuda/libraries.h"
#include "cuda/session_device.h"
#include "runner.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_session {
        struct sl_device device;
        struct sl_cuda_driver own_driver; /* of a session that was given no device */
        struct sl_cuda_device own_device;
        bool owns_device, owns_stream;
        const struct sl_cuda_libraries *libraries;
        cudnnHandle_t cudnn;       /* NULL: no kernel has wanted it */
        cublasLtHandle_t cublaslt; /* the same */
        uint32_t *error_word;      /* memory of the host that the device writes to, too; NULL: its device has one (session_device.h) */
        CUdeviceptr error_word_there;
        CUevent event;
        bool launched; /* something, behind the event */
        bool lost;
};

/* The functions of kernels/runner.h. */
int sl_cuda_session_prepare(struct sl_device *device, struct sl_error *error);
int sl_cuda_session_open(struct sl_device *device, const struct sl_blob *blobs, uint64_t n_blobs, struct sl_session **ret_session,
        struct sl_error *error);
struct sl_session *sl_cuda_session_close(struct sl_session *session);
int sl_cuda_session_poll(struct sl_session *session);
int sl_cuda_session_wait(struct sl_session *session, uint64_t until_ns);
extern const struct sl_device_memory sl_cuda_memory;

/*
 * What kernels have found since it was asked last: 0; -ERANGE an index of the data was out of its range. For who waits for the
 * stream himself, as for a graph that was captured of it: nothing of it is in flight.
 */
int sl_cuda_session_finding(struct sl_session *session);

/* The handles, made when they are first wanted. Load time. Return: 0; -ENOMEM; -EIO. */
int sl_cuda_session_use_cudnn(struct sl_session *session, struct sl_error *error);
int sl_cuda_session_use_cublaslt(struct sl_session *session, struct sl_error *error);

/* Something was queued with that answer. Return: -EINPROGRESS; -EIO, which stays; -ENOMEM; -EINVAL. */
int sl_cuda_session_queued(struct sl_session *session, CUresult result);
