/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How nodes were cut that were provided before: whether parts of a node have the bits of the whole may have to be tried, and
 * networks repeat their blocks. Nodes are equal that differ in nothing but their data; the values of constants decide nothing about
 * the order of sums. What was found longest ago is forgotten first. A value of its owner; zeros are empty.
 */
#pragma once

#include "part.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_backend;
struct sl_kernel_source;
struct sl_provision;

#define SL_KNOWN_SPLITS 256u

struct sl_known_splits {
        uint32_t n; /* ever put; the last SL_KNOWN_SPLITS of them are here */
        struct {
                uint64_t key;
                struct sl_split splits[SL_TEAM_SIZE_COUNT];
                struct sl_split_seconds seconds;
        } rows[SL_KNOWN_SPLITS];
};

/* What a node is to its backend, as a number. */
uint64_t sl_known_splits_key(const struct sl_backend *backend, const struct sl_kernel_source *source);

/* Splits and seconds of the provision; false: it is as it was. */
bool sl_known_splits_find(const struct sl_known_splits *known, uint64_t key, struct sl_provision *ret_provision);
void sl_known_splits_put(struct sl_known_splits *known, uint64_t key, const struct sl_provision *provision);
