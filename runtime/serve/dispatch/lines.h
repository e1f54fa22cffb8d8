/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the models that are variants of a task take just now, in the lines of the page of tasks (shm/task_page.h): what a request
 * that comes would wait, and what jobs take. Waits are written at the end of every pass in which they change, times once a
 * millisecond and before a sleep. Where there is no task nothing is looked at. Dispatcher only; relaxed stores, as nothing is read
 * behind them.
 */
#pragma once

#include <stdint.h>

struct sl_dispatcher;
struct sl_variant_line;

/* From now on what is served at @index has this line; NULL: no longer, and it is cleared. */
void sl_lines_watch(struct sl_dispatcher *dispatcher, uint32_t index, struct sl_variant_line *line);

/* Waits, at the end of a pass. */
void sl_lines_show_waits(struct sl_dispatcher *dispatcher);

/* Waits, what jobs take, and how far that is to be doubted. */
void sl_lines_show(struct sl_dispatcher *dispatcher, uint64_t now_ns);
