/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much processor time this process may take: the tightest quota of the control groups that it is in, version 1 or 2. Reads
 * files; without state. Any thread.
 */
#pragma once

#include <stdint.h>

struct sl_cpu_quota {
        uint32_t milli;     /* thousandths of a core; 0: no limit */
        uint64_t throttled; /* periods in which the group that says so had none left */
        char group[256];    /* its folder; "" */
};

/* @root: "", or the folder that stands for the root of the file system in a test. */
void sl_cpu_quota_read(const char *root, struct sl_cpu_quota *ret_quota);

/* Thousandths of a core out of the text of a cpu.max file ("50000 100000"); 0 for "max 100000" and for what is no such text. Pure.
 */
uint32_t sl_cpu_max_parse(const char *text);
