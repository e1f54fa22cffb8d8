/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend for Triton that answers with its first input: the shortest way through that server, without an interpreter behind it.
 * The server calls TRITONBACKEND_ModelInstanceExecute() on a thread of the instance and may call nothing else; the functions below
 * are the server's own, declared as its manual says. Whatever goes wrong becomes the response's error, if there is a response.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define RELEASE_ALL 1u
#define FINAL       1u

struct handle; /* whatever the server hands out */

#define EXPORTED __attribute__((visibility("default")))

EXPORTED struct handle *TRITONBACKEND_ModelInstanceExecute(struct handle *instance, struct handle **requests, uint32_t n);

struct handle *TRITONBACKEND_RequestInputByIndex(struct handle *request, uint32_t index, struct handle **input);
struct handle *TRITONBACKEND_InputProperties(struct handle *input, const char **name, int *type, const int64_t **shape,
        uint32_t *rank, uint64_t *bytes, uint32_t *n_buffers);
struct handle *TRITONBACKEND_InputBuffer(
        struct handle *input, uint32_t index, const void **buffer, uint64_t *bytes, int *memory_type, int64_t *memory_id);
struct handle *TRITONBACKEND_ResponseNew(struct handle **response, struct handle *request);
struct handle *TRITONBACKEND_ResponseOutput(
        struct handle *response, struct handle **output, const char *name, int type, const int64_t *shape, uint32_t rank);
struct handle *TRITONBACKEND_OutputBuffer(
        struct handle *output, void **buffer, uint64_t bytes, int *memory_type, int64_t *memory_id);
struct handle *TRITONBACKEND_ResponseSend(struct handle *response, uint32_t flags, struct handle *error);
struct handle *TRITONBACKEND_ModelInstanceReportStatistics(struct handle *instance, struct handle *request, bool success,
        uint64_t begin_ns, uint64_t compute_begin_ns, uint64_t compute_end_ns, uint64_t end_ns);
struct handle *TRITONBACKEND_ModelInstanceReportBatchStatistics(struct handle *instance, uint64_t batch_size, uint64_t begin_ns,
        uint64_t compute_begin_ns, uint64_t compute_end_ns, uint64_t end_ns);
struct handle *TRITONBACKEND_RequestRelease(struct handle *request, uint32_t flags);

/* Copies the buffers of an input, one behind the other. */
static struct handle *copy_input(struct handle *input, uint32_t n_buffers, char *to)
{
        struct handle *error = NULL;

        for (uint32_t i = 0; !error && i < n_buffers; i++) {
                const void *buffer;
                uint64_t bytes;
                int64_t memory_id = 0;
                int memory_type = 0; /* CPU */

                error = TRITONBACKEND_InputBuffer(input, i, &buffer, &bytes, &memory_type, &memory_id);
                if (!error) {
                        memcpy(to, buffer, bytes);
                        to += bytes;
                }
        }
        return error;
}

static struct handle *fill_response(struct handle *request, struct handle *response)
{
        struct handle *input, *output, *error;
        const char *name;
        const int64_t *shape;
        uint32_t rank, n_buffers;
        uint64_t bytes;
        int64_t memory_id = 0;
        int type, memory_type = 0;
        void *to;

        if ((error = TRITONBACKEND_RequestInputByIndex(request, 0, &input)) ||
                (error = TRITONBACKEND_InputProperties(input, &name, &type, &shape, &rank, &bytes, &n_buffers)) ||
                (error = TRITONBACKEND_ResponseOutput(response, &output, "y", type, shape, rank)) ||
                (error = TRITONBACKEND_OutputBuffer(output, &to, bytes, &memory_type, &memory_id)))
                return error;
        return copy_input(input, n_buffers, to);
}

static uint64_t now_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Triton's own client wants statistics, as every backend reports them. */
static void answer(struct handle *instance, struct handle *request)
{
        uint64_t begin_ns = now_ns();
        struct handle *response, *error = TRITONBACKEND_ResponseNew(&response, request);

        if (!error) {
                error = fill_response(request, response);
                TRITONBACKEND_ResponseSend(response, FINAL, error);
        }
        uint64_t end_ns = now_ns();

        TRITONBACKEND_ModelInstanceReportStatistics(instance, request, !error, begin_ns, begin_ns, end_ns, end_ns);
        TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, 1, begin_ns, begin_ns, end_ns, end_ns);
        TRITONBACKEND_RequestRelease(request, RELEASE_ALL);
}

struct handle *TRITONBACKEND_ModelInstanceExecute(struct handle *instance, struct handle **requests, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                answer(instance, requests[i]);
        return NULL;
}
