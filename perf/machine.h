/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a figure was measured on, and when. No state; any thread.
 */
#pragma once

#include <stddef.h>

struct json_t;

/* "AMD EPYC 9354, family 25, model 17, 2 CPUs, Linux 6.18.1" */
void sl_machine_line(char *ret_text, size_t bytes);

/*
 * {"date", "cpu", "cpus", "memory_bytes", "kernel", "load_average", "governor", "isolated_cpus", "allowed_cpus", "starling",
 * "compiler"}; the caller's reference.
 */
struct json_t *sl_machine_json(void);
