/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a merged plan beside the single plans of its lanes on the calling thread, which has nothing else to do meanwhile: whether
 * they make the same of the same inputs, and what each way of running them takes (fuse_table.h). Functions without state; any
 * thread.
 */
#pragma once

#include "fuse_table.h"

#include <stdatomic.h>
#include <stdint.h>

struct sl_error;
struct sl_plan;

#define SL_FUSE_DIFFERENCE_MAX 1e-4 /* of an output, as a share of its largest value */

struct sl_fuse_measure {
        struct sl_plan *merged;
        struct sl_plan *const *singles; /* of its lanes, in order */
        uint32_t n_lanes;
        uint64_t neighbour_bytes;       /* weights of the others that are served beside these: what those leave of a cache */
        uint32_t batch_max;             /* larger ones are not asked for; 0: the plan's largest */
        uint64_t budget_ns;             /* of all that is timed; what began before goes on to its end */
        const _Atomic int32_t *verdict; /* not 0: it ends soon, and that is returned; NULL: nobody ends it */
};

/*
 * The outputs of inputs at random at the smallest batch. @table gets `difference` and no rows: which is enough where a table of the
 * same architecture is known. Return: 0; -EINVAL the ports of the plans do not go together; -EBADMSG the outputs differ; what
 * sl_instance_new() and sl_instance_run() say; with text.
 */
int sl_fuse_check(const struct sl_fuse_measure *measure, struct sl_fuse_table *ret_table, struct sl_error *error);

/* The same, at each batch that is timed, and a table with one row and more. Return: as above. */
int sl_fuse_measure(const struct sl_fuse_measure *measure, struct sl_fuse_table *ret_table, struct sl_error *error);
