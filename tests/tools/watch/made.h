/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stats pages that a test writes, in the test's process: a folder of its own for each test, and snapshots of them.
 */
#pragma once

#include "snapshot.h"

extern char made_folder[];

void made_init(void);
void made_deinit(void);

/* The page of runtime "made". */
struct sl_stats *made_stats(void);

/* What is in it now; the caller frees. */
struct snapshot *made_snapshot(void);
