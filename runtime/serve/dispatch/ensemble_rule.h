/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rule of an ensemble makes of its members' ports: whether they suit it, and all that the accumulator is told of it. For
 * sl_ensemble_new(), which has checked that members take the same inputs.
 */
#pragma once

struct sl_ensemble;
struct sl_ensemble_options;
struct sl_error;

/* Before the ensemble has ports. Return: 0; -EINVAL with a text that names ensemble, member, value. */
int sl_ensemble_check_rule(const struct sl_ensemble *ensemble, const struct sl_ensemble_options *options, struct sl_error *error);

/* When it has: fills what the assembly says of the rule. Return: 0; -EINVAL, -ENOMEM with text. */
int sl_ensemble_init_rule(struct sl_ensemble *ensemble, const struct sl_ensemble_options *options, struct sl_error *error);
void sl_ensemble_deinit_rule(struct sl_ensemble *ensemble);
