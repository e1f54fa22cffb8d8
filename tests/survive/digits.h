/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests for the digits networks, and whether their answers are right: for tests and for the client programs that they start, so
 * nothing here knows of a test framework. Errors are results.
 */
#pragma once

#include "starling.h"

#include <stdbool.h>
#include <stddef.h>

#define DIGITS_N      599u /* samples of the test split */
#define DIGITS_INPUTS 64u
#define DIGITS_OUT    10u

struct digits_data {
        float *images, *expected; /* [DIGITS_N, ...], on the heap */
};

/* Where they are: in the source tree, or where STARLING_DIGITS says. */
const char *digits_folder(void);

/* Test images and what @model predicts for them. Return: false when a file cannot be read. */
bool digits_read(struct digits_data *data, const char *model);
void digits_release(struct digits_data *data);

/* One request with memory of its own, for up to DIGITS_N samples. */
struct digits_job {
        struct starling_tensor input, output; /* as large as it goes; the images are in the input */
        struct starling_tensor in, out;       /* of the request that flies */
        uint32_t start, samples;
};

/* Return: 0; as starling_tensor_alloc(). */
int digits_job_alloc(struct digits_job *job, const struct digits_data *data, struct starling_client *client);
void digits_job_free(struct digits_job *job, struct starling_client *client);

/* A request for @samples from @start on; the output is overwritten with NaN. */
struct starling_request digits_ask(struct digits_job *job, struct starling_model *model, uint32_t start, uint32_t samples);

/* A request for some samples, mostly few, whose size and place @seed chooses. */
struct starling_request digits_fill(struct digits_job *job, struct starling_model *model, uint32_t *seed);

/* Are the predictions in the output right to 1e-5? @ret_text says what is wrong. */
bool digits_right(const struct digits_job *job, const struct digits_data *data, char *ret_text, size_t bytes);

/* A small generator: the same rounds for the same seed. */
uint32_t digits_random(uint32_t *seed, uint32_t below);
