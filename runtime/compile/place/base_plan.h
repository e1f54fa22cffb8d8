/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base plan as the compiler of other sizes sees it: which of its constants are equal to one at hand, and which algorithms it
 * has taken, so that the weights of both get the same form. Checked whole when it is opened. Immutable; any thread.
 */
#pragma once

#include "plan.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_base_plan;
struct sl_error;
struct sl_packed;

/* @fd: of the plan file, borrowed for the call. Return: 0; as sl_plan_open(); -EINVAL it is derived itself, or a signature. */
int sl_base_plan_open(int fd, struct sl_base_plan **ret_base, struct sl_error *error);
struct sl_base_plan *sl_base_plan_free(struct sl_base_plan *base);

/* Its checksum, which is known: else sl_base_plan_identity() reads all of a file that has none. */
void sl_base_plan_know_sum(struct sl_base_plan *base, uint64_t sum);

struct sl_plan_identity sl_base_plan_identity(const struct sl_base_plan *base);

/* Where bytes of a constant lie in the base. */
struct sl_base_place {
        uint32_t index;
        bool part; /* from @offset on in a larger constant; else they are all of it */
        uint64_t offset;
};

/*
 * Its constant of this content and form (NULL: plain), or a lane of one that has several such side by side, as those of a merged
 * plan have: of the same content, whatever form the others see in it. @hash: sl_constants_hash() of content and form. False: there
 * is none, or no @base.
 */
bool sl_base_plan_find(const struct sl_base_plan *base, const void *data, uint64_t bytes, const struct sl_packed *packed,
        uint64_t hash, struct sl_base_place *ret_place);

/* The bytes of a constant that was found. */
const void *sl_base_plan_data(const struct sl_base_plan *base, const struct sl_base_place *place);

/* What it computes the node of that name and operator by; SL_ALGORITHM_AUTO: nothing is known of it, or there is no @base. */
uint32_t sl_base_plan_algorithm(const struct sl_base_plan *base, const char *name, uint32_t op);
