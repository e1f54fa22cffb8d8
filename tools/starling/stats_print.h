/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `starling stats` prints, on stdout: all of a page once, or an interval in a line; as text or as JSON. One thread.
 */
#pragma once

#include "interval.h"
#include "quantity.h"

void stats_print_text(const struct snapshot *snapshot);
void stats_print_json(const struct snapshot *snapshot);

/* @shown: of @interval, `all` or a model. */
void stats_print_heading(void);
void stats_print_line(const struct interval *interval, const struct model_interval *shown);
void stats_print_line_json(const struct interval *interval, const struct model_interval *shown);
