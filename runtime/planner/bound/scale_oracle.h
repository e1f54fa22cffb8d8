/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no scaler can be cheaper than: the integer programme of INFaaS (../scale/scale.h), solved to its optimum with CBC. For tests
 * and experiments; nothing that serves asks for it.
 */
#pragma once

#include <stdint.h>

struct sl_error;
struct sl_scale_problem;

/*
 * @ret_change: [n_kinds]. Resources count as (3) says, also those that both sides of a change hold. Return: 0; -ENOSPC nothing
 * satisfies all constraints; -ENOSYS the library is not installed; -ENOMEM.
 */
int sl_scale_oracle(const struct sl_scale_problem *problem, int32_t *ret_change, struct sl_error *error);
