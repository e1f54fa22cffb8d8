/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model or task of an offline job, and whether its input suits that: one input, one output, and a first axis that counts
 * samples. One thread.
 */
#pragma once

#include "offline_data.h"
#include "offline_job.h"

/* Return: as starling_model_open() and starling_query_open(). */
int offline_model_open(struct starling_client *client, const struct offline_description *description,
        struct starling_model **ret_model, struct starling_error *error);

/* @ret_output: of all samples. Return: 0; -EINVAL the data do not suit; -ENOTSUP no job can take such a model. */
int offline_model_check(const struct starling_model *model, const struct offline_description *description,
        const struct offline_data *data, struct offline_shape *ret_output, struct sl_error *error);

/*
 * Connects to the runtime, and compares the model with the input: what can be wrong is said before there is a job. Fills what the
 * description lacks of samples. Return: 0; -ENOTCONN no runtime is there; -EPERM it refuses this user; else -errno; with text.
 */
int offline_check(struct offline_description *description, struct offline_shape *ret_output, struct sl_error *error);
