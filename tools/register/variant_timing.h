/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a candidate's batches take: `starling profile` measures what its store lacks or has of another file, processor or version,
 * in a process of its own; the store is read afterwards. One thread.
 */
#pragma once

#include "registration.h"

struct sl_error;

struct timing {
        const char *store;       /* of profiles */
        const char *threads;     /* "1,2": of teams */
        double seconds;          /* of each measurement, at most */
        const uint32_t *batches; /* [n_batches] */
        uint32_t n_batches;
};

/* @path: the candidate's file. Fills its points and weights. Return: 0; -EIO with the last line of what was said; -errno. */
int time_variant(const struct timing *timing, const char *path, struct registered *candidate, struct sl_error *error);
