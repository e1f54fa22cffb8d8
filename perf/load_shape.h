/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "INPUT=2x3x4" of a command line. No state.
 */
#pragma once

struct sl_load_client_options;

/* Adds a shape, whose name stays in @text; what is none is named on stderr. Return: 0, -EINVAL. */
int sl_load_add_shape(const char *benchmark, const char *text, struct sl_load_client_options *to);
