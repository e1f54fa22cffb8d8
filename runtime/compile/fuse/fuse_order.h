/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

struct sl_plan_info;

/*
 * The order in which members are merged, as blocks are of neighbours: what is of one architecture lies together, first what there
 * is most of, else as it was. @n: up to SL_FUSE_LANES_MAX. @ret_order: n numbers of members. Pure.
 */
void sl_fuse_order(const struct sl_plan_info *const *infos, uint32_t n, uint32_t *ret_order);
