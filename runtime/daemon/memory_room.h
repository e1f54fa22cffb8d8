/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory this process may take before the kernel would kill somebody for it: the tightest of the control groups that it is
 * in, version 1 or 2, each up to the root, and of the host's MemAvailable. What others in a group have taken already is gone from
 * its limit, but for pages of files, which the kernel drops first.
 *
 * Reads files; without state. Any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SL_MEMORY_ROOM_TEXT_BYTES 256

struct sl_memory_room {
        uint64_t bytes;                         /* UINT64_MAX when nothing says how much */
        char source[SL_MEMORY_ROOM_TEXT_BYTES]; /* the file that said so; "" */
};

/* @root: "", or the folder that stands for the root of the file system in a test. */
void sl_memory_room_read(const char *root, struct sl_memory_room *ret_room);

/* What a runtime may promise of so much room: an eighth is left for what no ledger counts, as code, stacks and kernels. */
uint64_t sl_memory_room_usable(uint64_t bytes);
