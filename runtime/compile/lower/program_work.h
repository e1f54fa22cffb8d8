/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much work one run of a program is, and whether `work_max` allows it (lower_options.h). Pure; any thread.
 */
#pragma once

#include <stdint.h>

struct sl_error;
struct sl_lower_options;
struct sl_program;

/*
 * Adds up what all steps but the dynamic ones are, each by what a step counts on its backend. Return: 0; -E2BIG above work_max: the
 * text names the dearest node, its work, the sum and the limit; -ENOMEM.
 */
int sl_program_work_check(const struct sl_program *program, const struct sl_lower_options *options, struct sl_error *error);

/* The elementary steps that one run may take on `ref`, which counts them as it goes. */
uint64_t sl_program_work_on_ref(const struct sl_lower_options *options);
