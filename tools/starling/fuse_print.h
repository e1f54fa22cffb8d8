/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `starling fuse` has found out, for people or as JSON. No state.
 */
#pragma once

#include "fuse.h"
#include "fuse_models.h"
#include "plan_info.h"

#include <stdbool.h>
#include <stdint.h>

#define FUSE_TRIALS_MAX 64

/* A copy of what sl_fuse told of one block. */
struct fuse_trial {
        uint32_t first, n_lanes;
        int status;
        bool compiled;
        char *cause, *notes;
        struct sl_fuse_table table;
        uint32_t n_common, n_merged; /* of status 0 */
        uint64_t weights_bytes, member_bytes, stacked_bytes, workspace_bytes;
};

/* One group of models, and what came of it. */
struct fuse_group {
        uint32_t n_members;
        const struct fuse_model *members[SL_FUSE_LANES_MAX];
        uint32_t n_left_out; /* beyond those */
        uint32_t n_trials;
        struct fuse_trial trials[FUSE_TRIALS_MAX];
        uint32_t n_blocks; /* that a runtime would use */
        struct {
                uint32_t first, n_lanes;
        } blocks[SL_FUSE_BLOCKS_MAX];
        char text[SL_ERROR_TEXT_BYTES]; /* why something stays unmerged; "" */
};

void fuse_print_text(const struct fuse_models *models, const struct fuse_group *groups, uint32_t n_groups, bool explain);
void fuse_print_json(const struct fuse_models *models, const struct fuse_group *groups, uint32_t n_groups);
