/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the measuring is, on stderr: on a terminal one line that is written over, else a line for each task. One owner.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
        uint32_t n_tasks, n_done;
        uint64_t start_ns;
        double seconds; /* of a task, as long as none is done */
        bool terminal;
};

void progress_begin(struct progress *progress, uint32_t n_tasks, double seconds);

/* What is measured now, with a bar and the time that is left. */
void progress_task(const struct progress *progress, const char *text);

/* It is done: what came out. */
void progress_done(struct progress *progress, const char *text);
