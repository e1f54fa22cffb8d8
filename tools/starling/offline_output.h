/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of an offline job: a .npy file beside it, of its full size from the start, that takes its name when all samples are
 * there. One thread.
 */
#pragma once

#include "offline_data.h"
#include "offline_job.h"

struct offline_output {
        int fd; /* -1: not open */
        struct offline_shape shape;
        uint64_t begin; /* of its data */
        uint64_t row_bytes;
};

/* With its header and all of its room. Return: 0; -ENOSPC, -errno. */
int offline_output_make(const struct offline_job *job, const struct offline_shape *shape, struct sl_error *error);

/* Return: 0; -ENOENT it is gone; -EINVAL damaged; -errno. */
int offline_output_open(const struct offline_job *job, struct offline_output *ret_output, struct sl_error *error);
void offline_output_close(struct offline_output *output);

int offline_output_write(
        const struct offline_output *output, uint64_t first, uint32_t samples, const void *from, struct sl_error *error);

/* It takes the name of the output. Return: 0; -EEXIST there is one; -errno. */
int offline_output_publish(const struct offline_job *job, const struct offline_output *output, struct sl_error *error);

/* It has, though nobody may have said so. */
bool offline_output_is_published(const struct offline_job *job);
void offline_output_remove(const struct offline_job *job);
