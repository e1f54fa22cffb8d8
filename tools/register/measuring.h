/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes and measures the candidates of a task, the most useful first, until all are known or the budget is over; what is known is
 * written down after each. One thread.
 */
#pragma once

#include "registration.h"

struct register_wish;
struct sl_error;

/* Networks, candidates and their keys. Return: 0; -errno with a text that names model or option. Deinit it in either case. */
int registration_init(const struct register_wish *wish, struct registration *ret_registration, struct sl_error *error);
void registration_deinit(struct registration *registration);

/* Return: 0, also where the budget was over; -errno with text. */
int registration_measure(const struct register_wish *wish, struct registration *registration, struct sl_error *error);
