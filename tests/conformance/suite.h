/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cases that this machine has: ONNX's own and those of made/, and their verdicts. Processes share them, so that one that
 * crashes is one failure; verdicts come back through shared memory.
 */
#pragma once

#include "table.h"
#include "trial.h"

#include <stdatomic.h>

#define OPSET_MAX        28
#define CASES_MAX        6144
#define CASE_NAME_BYTES  160
#define SUITE_PATH_BYTES 600

struct one_case {
        uint32_t folder;
        char name[CASE_NAME_BYTES];
        const struct scope_row *out_of_scope;
        struct verdict verdict;
};

/* Shared by all processes: a worker writes the verdicts of the cases that it took. */
struct suite {
        const struct trial_backend *(*backend)(void);
        atomic_uint next;
        uint32_t n_cases, n_missing_folders;
        struct one_case cases[CASES_MAX];
};

/* The cases, none of which has run. */
struct suite *suite_find(void);

/*
 * Runs all cases in scope on @n_workers processes. @backend: what is tried; asked for each case, in the process that runs it. The
 * suite is unmapped by suite_free().
 */
struct suite *suite_run(uint32_t n_workers, const struct trial_backend *(*backend)(void));
void suite_free(struct suite *suite);

const char *suite_folder(const struct one_case *one);

/* The folder of the case itself. */
void suite_case_path(const struct one_case *one, char path[SUITE_PATH_BYTES]);
