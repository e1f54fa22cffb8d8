/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a call of oneDNN can be cut for teams: along its rows, where its parts give the bits of the whole. It does not say in which
 * order it adds: that is tried, at load time, on random numbers. Any thread; the kernel's.
 */
#pragma once

#include "part.h"

struct sl_kernel;
struct sl_kernel_source;
struct sl_runner;

/* @kernel: of @source, divided as it can be; it may be divided otherwise afterwards. Fills @ret_splits for teams of two, and of four and
 * more, as far as parts agree; others stay as they are. */
void sl_cpu_try_splits(const struct sl_runner *runner, struct sl_kernel *kernel, const struct sl_kernel_source *source,
        struct sl_split ret_splits[SL_TEAM_SIZE_COUNT]);
