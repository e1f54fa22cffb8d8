/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices and lets on which a worker is measured, by the names under which profiles are kept:
 *
 *     cpu            all cores that this process may use
 *     cpu:2          one core
 *     cpu:0-1+4      a let of three
 *
 * Any other kind of device would have another word in front. Plain values; any thread.
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

/* Return: 0; -EINVAL with the text: no such kind, no core, or one that this process may not use. */
int sl_device_let_parse(const char *text, struct sl_device_let *ret_let, struct sl_error *error);

/* Core @index of it, from the beginning again behind the last. */
int sl_device_let_core(const struct sl_device_let *let, uint32_t index);
