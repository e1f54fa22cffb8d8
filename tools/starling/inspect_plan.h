/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plan file says of itself: for `starling inspect`. No state.
 */
#pragma once

#include <stdbool.h>

struct sl_error;

/* A file that begins as plan files do; whether it is whole is for inspect_plan() to find out. */
bool is_plan_file(const char *path);

/* On stdout. Return: 0; -errno with text. */
int inspect_plan(const char *path, bool json, struct sl_error *error);
