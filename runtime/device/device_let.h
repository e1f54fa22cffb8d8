/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices and lets on which workers run and are measured, by the names that profiles and allocations have for them:
 *
 *     cpu            all cores that are allowed
 *     cpu:2          one core
 *     cpu:0-1+4      a let of three
 *
 * GPUs are named in gpu_let.h. Plain values; any thread.
 */
#pragma once

#include <sched.h>
#include <stdint.h>

struct sl_error;

#define SL_DEVICE_LET_NAME_BYTES 64

struct sl_device_let {
        char name[SL_DEVICE_LET_NAME_BYTES]; /* canonical: ranges, ascending */
        cpu_set_t cores;
        uint32_t n_cores;
};

/* @allowed: NULL: what this process may use. Return: 0; -EINVAL with the text: no such kind, no core, or one that is not allowed. */
int sl_device_let_parse(const char *text, const cpu_set_t *allowed, struct sl_device_let *ret_let, struct sl_error *error);

/* Core @index of it, from the beginning again behind the last. */
int sl_device_let_core(const struct sl_device_let *let, uint32_t index);
