/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ensemble, or one model, that `starling optimize FOLDER` is for: its members in the repository, what they cost on this host,
 * and under which name the cache has its best allocation. One owner.
 */
#pragma once

#include "allocation_cache.h"
#include "layout.h"
#include "model_file.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_error;

#define ENSEMBLE_MEMBERS_MAX 64u

struct optimize_ensemble {
        char repository[PATH_MAX], name[SL_MODEL_NAME_BYTES];
        const char *members[ENSEMBLE_MEMBERS_MAX]; /* its own name, of one model */
        uint32_t n_members;
        char *columns; /* the same, with "," between them */
        char *rows;    /* the devices */
        char cache_name[SL_CACHE_NAME_BYTES];
        char folder[PATH_MAX], costs[PATH_MAX]; /* a folder and a file that nobody wants afterwards; "": none */
        uint64_t digest;                        /* of the costs */
        struct sl_data_folders data_folders;    /* whoever measures sets them; the command line's */
};

/* @devices NULL: each core of this process. Return: 0; -errno with text: no folder of a repository, or one that cannot be served.
 * Deinit it in either case. */
int optimize_ensemble_init(struct optimize_ensemble *ensemble, const char *folder, const char *devices, struct sl_error *error);
void optimize_ensemble_deinit(struct optimize_ensemble *ensemble);

/*
 * Measures what is not measured yet (`starling profile`, which says how far it is), each at most so long, and writes the costs.
 * @disturbed: also what was measured, and whose interval stayed too wide.
 * @interrupts: a signalfd; what comes there ends it. Return: 0; -EINTR, -errno with text.
 */
int optimize_ensemble_measure(struct optimize_ensemble *ensemble, const char *folder, const char *batches, double seconds,
        bool disturbed, int interrupts, struct sl_error *error);
