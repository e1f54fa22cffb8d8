/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/session.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "cuda/record.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* Between two looks of who waits. */
#define LOOK_NS 20000

SL_DEFINE_CLEANUP(struct sl_session *, sl_cuda_session_close)

static const struct sl_cuda_driver *driver_of(const struct sl_session *session)
{
        return session->device.cuda->driver;
}

/* The first GPU that there is, where nobody says which. */
static int open_device(struct sl_session *session, struct sl_error *error)
{
        int r = sl_cuda_driver_open(NULL, &session->own_driver, error);

        if (r < 0)
                return r == -ENOENT ? -ENODEV : r;
        r = sl_cuda_device_open(&session->own_driver, 0, &session->own_device, error);
        if (r < 0) {
                sl_cuda_driver_close(&session->own_driver);
                return r;
        }
        session->owns_device = true;
        session->device.cuda = &session->own_device;
        return 0;
}

static int make_stream(struct sl_session *session, struct sl_error *error)
{
        const struct sl_cuda_driver *driver = driver_of(session);
        int r = 0;

        if (!session->device.stream) {
                r = sl_cuda_check(driver, driver->stream_create_with_priority(&session->device.stream, CU_STREAM_NON_BLOCKING, 0),
                        error, "a stream");
                session->owns_stream = r == 0;
        }
        return r < 0 ? r : sl_cuda_check(driver, driver->event_create(&session->event, CU_EVENT_DISABLE_TIMING), error, "an event");
}

static int make_error_word(struct sl_session *session, struct sl_error *error)
{
        const struct sl_cuda_driver *driver = driver_of(session);
        int r;

        session->error_word_there = session->device.finding;
        if (session->device.finding)
                return 0;
        r = sl_cuda_check(driver,
                driver->mem_host_alloc((void **)&session->error_word, sizeof(*session->error_word), CU_MEMHOSTALLOC_DEVICEMAP),
                error, "the word of a session's errors");

        if (r < 0)
                return r;
        *session->error_word = 0;
        return sl_cuda_check(driver, driver->mem_host_get_device_pointer(&session->error_word_there, session->error_word, 0), error,
                "the word of a session's errors");
}

static int check_records(const struct sl_blob *blobs, uint64_t n_blobs, struct sl_error *error)
{
        struct sl_cuda_record record;
        int r = 0;

        for (uint64_t i = 0; i < n_blobs && r == 0; i++)
                r = sl_cuda_record_read(&blobs[i], &record, error);
        return r;
}

/* They stay open as long as the process. */
int sl_cuda_session_prepare(struct sl_device *device, struct sl_error *error)
{
        const struct sl_cuda_libraries *libraries;

        return sl_cuda_libraries_hold(device->cuda->driver, &libraries, error);
}

int sl_cuda_session_open(struct sl_device *device, const struct sl_blob *blobs, uint64_t n_blobs, struct sl_session **ret_session,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_cuda_session_close) struct sl_session *session = NULL;
        int r = check_records(blobs, n_blobs, error);

        if (r < 0)
                return r;
        session = calloc(1, sizeof(*session));
        if (!session)
                return sl_error_set(error, ENOMEM, "no memory for a session");
        if (device)
                session->device = *device;
        else
                r = open_device(session, error);
        if (r == 0)
                r = sl_cuda_libraries_hold(driver_of(session), &session->libraries, error);
        if (r < 0) {
                session->libraries = NULL;
                return r;
        }
        r = make_stream(session, error);
        if (r == 0)
                r = make_error_word(session, error);
        if (r < 0)
                return r;
        *ret_session = sl_take(session);
        return 0;
}

struct sl_session *sl_cuda_session_close(struct sl_session *session)
{
        const struct sl_cuda_driver *driver;

        if (!session)
                return NULL;
        driver = session->device.cuda ? driver_of(session) : NULL;
        if (session->cudnn)
                session->libraries->cudnn.handle_destroy(session->cudnn);
        if (session->cublaslt)
                session->libraries->cublaslt.destroy(session->cublaslt);
        if (session->error_word)
                driver->mem_free_host(session->error_word);
        if (session->event)
                driver->event_destroy(session->event);
        if (session->owns_stream)
                driver->stream_destroy(session->device.stream);
        if (session->libraries)
                sl_cuda_libraries_release();
        if (session->owns_device) {
                sl_cuda_device_close(&session->own_device);
                sl_cuda_driver_close(&session->own_driver);
        }
        free(session);
        return NULL;
}

int sl_cuda_session_use_cudnn(struct sl_session *session, struct sl_error *error)
{
        const struct sl_cudnn *cudnn = &session->libraries->cudnn;
        cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

        if (session->cudnn)
                return 0;
        status = cudnn->handle_create(&session->cudnn);
        if (status == CUDNN_STATUS_SUCCESS)
                status = cudnn->handle_set_stream(session->cudnn, (cudaStream_t)session->device.stream);
        if (status == CUDNN_STATUS_SUCCESS)
                return 0;
        return sl_error_set(error, status == CUDNN_STATUS_ALLOC_FAILED ? ENOMEM : ENOTSUP,
                "cuDNN does not start on the device: status %d", (int)status);
}

int sl_cuda_session_use_cublaslt(struct sl_session *session, struct sl_error *error)
{
        cublasStatus_t status = session->cublaslt ? CUBLAS_STATUS_SUCCESS : session->libraries->cublaslt.create(&session->cublaslt);

        if (status == CUBLAS_STATUS_SUCCESS)
                return 0;
        return sl_error_set(error, status == CUBLAS_STATUS_ALLOC_FAILED ? ENOMEM : ENOTSUP,
                "cuBLASLt does not start on the device: status %d", (int)status);
}

/* ---- what is in flight ---- */

int sl_cuda_session_queued(struct sl_session *session, CUresult result)
{
        if (result == CUDA_SUCCESS) {
                session->launched = true;
                return -EINPROGRESS;
        }
        session->lost = session->lost || sl_cuda_is_lost(result);
        return sl_cuda_errno(result);
}

int sl_cuda_session_finding(struct sl_session *session)
{
        bool found = session->error_word && __atomic_load_n(session->error_word, __ATOMIC_ACQUIRE) != 0;

        if (found)
                __atomic_store_n(session->error_word, 0, __ATOMIC_RELAXED);
        return found ? -ERANGE : 0;
}

int sl_cuda_session_poll(struct sl_session *session)
{
        const struct sl_cuda_driver *driver = driver_of(session);
        CUresult result = CUDA_SUCCESS;

        if (session->lost)
                return -EIO;
        if (session->launched) {
                result = driver->event_record(session->event, session->device.stream);
                session->launched = result != CUDA_SUCCESS;
        }
        if (result == CUDA_SUCCESS)
                result = driver->event_query(session->event);
        if (result == CUDA_SUCCESS)
                return sl_cuda_session_finding(session);
        session->lost = sl_cuda_is_lost(result);
        return sl_cuda_errno(result);
}

int sl_cuda_session_wait(struct sl_session *session, uint64_t until_ns)
{
        const struct timespec soon = {.tv_nsec = LOOK_NS};
        int r;

        while ((r = sl_cuda_session_poll(session)) == -EINPROGRESS && sl_clock_ns() < until_ns)
                nanosleep(&soon, NULL);
        return r;
}

/* ---- memory ---- */

static CUdeviceptr address(const void *memory)
{
        return (CUdeviceptr)(uintptr_t)memory;
}

static int allocate(struct sl_session *session, uint64_t bytes, void **ret_memory, struct sl_error *error)
{
        const struct sl_cuda_driver *driver = driver_of(session);
        CUdeviceptr memory = 0;
        CUresult result = driver->mem_alloc(&memory, bytes ? bytes : 1);

        if (result == CUDA_ERROR_OUT_OF_MEMORY)
                return sl_error_set(error, ENOMEM, "CUDA device %d (%s) has no room for %llu bytes", session->device.cuda->number,
                        session->device.cuda->name, (unsigned long long)bytes);
        *ret_memory = (void *)(uintptr_t)memory;
        return sl_cuda_check(driver, result, error, "%llu bytes of memory of CUDA device %d (%s)", (unsigned long long)bytes,
                session->device.cuda->number, session->device.cuda->name);
}

static void *release(struct sl_session *session, void *memory)
{
        if (memory)
                driver_of(session)->mem_free(address(memory));
        return NULL;
}

static int upload(struct sl_session *session, void *to, const void *from, uint64_t bytes)
{
        if (!bytes || session->lost)
                return bytes ? -EIO : 0;
        return sl_cuda_session_queued(
                session, driver_of(session)->memcpy_htod_async(address(to), from, bytes, session->device.stream));
}

static int download(struct sl_session *session, void *to, const void *from, uint64_t bytes)
{
        if (!bytes || session->lost)
                return bytes ? -EIO : 0;
        return sl_cuda_session_queued(
                session, driver_of(session)->memcpy_dtoh_async(to, address(from), bytes, session->device.stream));
}

const struct sl_device_memory sl_cuda_memory = {.allocate = allocate, .release = release, .upload = upload, .download = download};
