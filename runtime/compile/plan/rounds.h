/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an If, a Loop or a Scan runs whose layout is settled (rounds_layout.h). One thread, that of the instance.
 */
#pragma once

#include <stdint.h>

struct sl_executable;
struct sl_executable_step;
struct sl_interpreter;

/* Runs a settled step. Return: 0; what sl_executable_run() of a body says; -E2BIG no steps or work left; -EIO a trip count that the
 * shapes deny. */
int sl_rounds_run(struct sl_interpreter *interpreter, const struct sl_executable_step *step);

/* Takes what one round of the body may: its steps, and their work. -E2BIG there is not as much left; what the pace says. */
int sl_rounds_charge(struct sl_interpreter *interpreter, uint32_t op, const struct sl_executable *body);
