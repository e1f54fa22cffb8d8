/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace: requests in the order in which they are due, recorded or generated, in a text file that people and scripts can write.
 *
 *     # starling trace 1
 *     # due_ns model samples
 *     0 digits 1
 *     1250000 mobilenetv2 4
 *
 * Lines that begin with '#' are comments, but for the first, which says what this is. Names hold no blanks. Owned by who made it;
 * one thread while it is filled, any afterwards.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

struct sl_error;

struct sl_load_request {
        uint64_t due_ns; /* after the start */
        uint32_t model;  /* its number in the trace, or in the mix */
        uint32_t samples;
};

#define SL_TRACE_NAME_BYTES 1152u /* of a name, terminated */

struct sl_trace {
        char (*models)[SL_TRACE_NAME_BYTES]; /* in the order in which they first appear */
        uint32_t n_models;
        struct sl_load_request *requests;
        size_t n_requests, room;
};

void sl_trace_deinit(struct sl_trace *trace);

/* The number of this model, new or not. Return: 0; -ENAMETOOLONG; -EINVAL: empty, or with blanks; -ENOMEM. */
int sl_trace_model(struct sl_trace *trace, const char *name, uint32_t *ret_model);

/* Adds a request behind the others. Return: 0; -EINVAL: it is due before the last one, has no samples, or no such model; -ENOMEM.
 */
int sl_trace_add(struct sl_trace *trace, const struct sl_load_request *request);

/* Fills a trace that is all zeros. The text names @path, the line and what is wrong with it. Return: 0; -EINVAL, -ENOMEM, -errno.
 */
int sl_trace_read(const char *path, struct sl_trace *trace, struct sl_error *error);

/* Return: 0, -errno. */
int sl_trace_write(const struct sl_trace *trace, FILE *file);
