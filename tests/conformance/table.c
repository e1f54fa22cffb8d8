/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct scope_row scope_rows[] = {
#include "out_of_scope.inc"
};

static const struct {
        const char *pattern;
        double tolerance;
        const char *reason;
} tolerance_rows[] = {
#include "tolerances.inc"
};

#define REF BACKEND_REF
#define CPU BACKEND_CPU
const struct known_row known_rows[] = {
#include "known_failures.inc"
        {N_BACKENDS, "", ""}, /* the table may be empty */
};

const int n_known_rows = sizeof(known_rows) / sizeof(*known_rows);

static bool fits(const char *pattern, const char *folder, const char *name)
{
        char id[400];

        if (!strchr(pattern, '/'))
                return fnmatch(pattern, name, 0) == 0;
        snprintf(id, sizeof(id), "%s/%s", folder, name);
        return fnmatch(pattern, id, 0) == 0;
}

const struct scope_row *scope_find(const char *folder, const char *name)
{
        for (size_t i = 0; i < sizeof(scope_rows) / sizeof(*scope_rows); i++)
                if (fits(scope_rows[i].pattern, folder, name))
                        return &scope_rows[i];
        return NULL;
}

double tolerance_find(const char *folder, const char *name)
{
        for (size_t i = 0; i < sizeof(tolerance_rows) / sizeof(*tolerance_rows); i++)
                if (fits(tolerance_rows[i].pattern, folder, name))
                        return tolerance_rows[i].tolerance;
        return 0;
}

int known_find(enum backend backend, const char *folder, const char *name)
{
        for (int i = 0; i < n_known_rows; i++)
                if (known_rows[i].backend == backend && fits(known_rows[i].pattern, folder, name))
                        return i;
        return -1;
}
