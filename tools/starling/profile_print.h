/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile of nodes as text, as JSON and as a Chrome trace. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct sl_node_profile;

/* By operator, and with @nodes every step as well, the slowest first. */
void profile_print_text(const struct sl_node_profile *profile, bool nodes, FILE *stream);

/* The same, always with the steps, in the order in which they run. Return: 0, -ENOMEM, -EIO. */
int profile_print_json(const struct sl_node_profile *profile, FILE *stream);

/* For chrome://tracing and Perfetto: the medians, one after the other. Return: 0, -ENOMEM, -EIO. */
int profile_print_trace(const struct sl_node_profile *profile, FILE *stream);
