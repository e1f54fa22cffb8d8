/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which cases do not count, and which are known to fail. A pattern is one of fnmatch(3) over the name of a case, or over
 * FOLDER/NAME when it has a slash.
 */
#pragma once

#include "trial.h"

struct scope_row {
        const char *pattern;
        const char *reason;
};

struct known_row {
        enum backend backend; /* the first that fails: one that fails on ref is not tried on cpu */
        const char *pattern;
        const char *reason;
};

/* The tolerance that the case needs beyond that of its type; 0 for none. */
double tolerance_find(const char *folder, const char *name);

/* The row that takes the case out of scope, or NULL. */
const struct scope_row *scope_find(const char *folder, const char *name);

/* The row that knows the case to fail on that backend; -1 if none does. */
int known_find(enum backend backend, const char *folder, const char *name);

extern const struct known_row known_rows[];
extern const int n_known_rows;
