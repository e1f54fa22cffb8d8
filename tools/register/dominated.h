/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which candidates no query would ever choose: another one is no less accurate, at no batch and team slower, has no more weights in
 * memory, and is better in one of these. Of equals the first stays. Pure.
 */
#pragma once

#include "registration.h"

/* Does @a dominate @b? Both have been made and profiled; only points that both have are compared, and there is at least one. */
bool registered_dominates(const struct registered *a, const struct registered *b);

/* Gives each dominated candidate a reason, which names one that is not dominated itself. */
void registered_leave_out(struct registered *candidates, uint32_t n);
