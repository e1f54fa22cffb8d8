/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target of a load that is a runtime: one connection, one queue pair, and sets of tensors for each model, filled once and sent
 * again and again. Sets are made when they are first needed, and before anything is measured as many as are usual.
 *
 * Threads: made on one, used on another, never on two at once.
 */
#pragma once

#include "generator.h"

struct starling_error;
struct sl_load_client;

/* What the tensors of an input are, where models leave more than the batch open. */
struct sl_load_shape {
        const char *input; /* of name_bytes */
        size_t name_bytes;
        uint32_t rank, dims[8];
};

#define SL_LOAD_SHAPES_MAX 16u
#define SL_LOAD_MODELS_MAX 64u

struct sl_load_client_options {
        const char *runtime;
        const char *const *models; /* names; "" is a request that no model sees */
        const uint32_t *samples;   /* of a request to each, at most */
        uint32_t n_models;
        uint32_t in_flight;   /* at most; 1 to 1024 */
        uint64_t deadline_ns; /* after a request was due; 0: none */
        bool spin;            /* never sleep */
        uint32_t n_shapes;
        struct sl_load_shape shapes[SL_LOAD_SHAPES_MAX]; /* what is open and is not here is 1 */
};

/* Return: 0; -errno with text, which names the model, the value and the limit. What @options points to outlives the client. */
int sl_load_client_new(
        const struct sl_load_client_options *options, struct sl_load_client **ret_client, struct starling_error *error);
struct sl_load_client *sl_load_client_free(struct sl_load_client *client);

/* On the clock sl_clock_ns(). */
struct sl_load_target sl_load_client_target(struct sl_load_client *client);

/* Why the last request was refused that the library did not take, or the first that failed; "". */
const char *sl_load_client_error(const struct sl_load_client *client);
