/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the backend "cuda" has of ONNX's operators: each case of the conformance suite (tests/conformance) is planned and run on a
 * GPU that is not there, and agrees with ref and with the case's own values. What is refused must be in coverage.inc with its
 * reason, and what is there must be refused, so that neither shrinks nor grows unseen.
 */
#include "fake_ground.h"
#include "suite.h"

#include <criterion/criterion.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS 2

static const struct scope_row refused_rows[] = {
#include "coverage.inc"
};
#define N_ROWS (sizeof(refused_rows) / sizeof(refused_rows[0]))

/* Of a worker's process: a GPU for all of its cases. */
static const struct trial_backend *cuda(void)
{
        static struct trial_backend backend = {.name = "cuda"};

        backend.ground = fake_ground();
        return &backend;
}

static int row_of(const struct one_case *one)
{
        for (uint32_t i = 0; i < N_ROWS; i++)
                if (fnmatch(refused_rows[i].pattern, one->name, FNM_EXTMATCH) == 0)
                        return (int)i;
        return -1;
}

/* Of what ref passes. */
static bool counts(const struct one_case *one)
{
        uint32_t ref = one->verdict.outcomes[BACKEND_REF];

        return !one->out_of_scope && (ref == OUTCOME_PASSED || ref == OUTCOME_CONSTANT || ref == OUTCOME_CRASHED);
}

/* What is wrong with the case; NULL: nothing. */
static const char *check_case(const struct one_case *one, int row)
{
        switch (one->verdict.outcomes[BACKEND_CPU]) {
        case OUTCOME_PASSED:
        case OUTCOME_CONSTANT:
                if (one->verdict.open_batch == OUTCOME_DIFFERS)
                        return "DIFFERS with an open batch";
                return row >= 0 ? "PASSES, but coverage.inc has it" : NULL;
        case OUTCOME_REFUSED:
                return row < 0 ? "REFUSED" : NULL;
        case OUTCOME_DIFFERS:
                return "DIFFERS";
        default:
                return "CRASHED";
        }
}

/* Of each reason how many cases. */
static void report(const uint32_t n_refused[N_ROWS], uint32_t n_cases)
{
        uint32_t all = 0;

        for (uint32_t i = 0; i < N_ROWS; i++) {
                uint32_t n = 0;
                bool first = true;

                for (uint32_t k = 0; k < N_ROWS; k++) {
                        bool same = !strcmp(refused_rows[k].reason, refused_rows[i].reason);

                        n += same ? n_refused[k] : 0;
                        first = first && !(same && k < i);
                }
                if (first)
                        fprintf(stderr, "refused: %4u cases: %s\n", n, refused_rows[i].reason);
                all += n_refused[i];
        }
        fprintf(stderr, "%u of the %u cases that ref passes are planned and run, %u are refused\n", n_cases - all, n_cases, all);
}

Test(coverage, is_what_coverage_inc_says)
{
        struct suite *suite = suite_run(WORKERS, cuda);
        uint32_t n_refused[N_ROWS] = {0}, n_cases = 0, wrong = 0;

        for (uint32_t i = 0; i < suite->n_cases; i++) {
                const struct one_case *one = &suite->cases[i];
                int row = row_of(one);
                const char *what = counts(one) ? check_case(one, row) : NULL;

                n_cases += counts(one);
                if (row >= 0 && counts(one))
                        n_refused[row]++;
                if (what)
                        fprintf(stderr, "%s: %s/%s: %s\n", what, suite_folder(one), one->name, one->verdict.text);
                wrong += what != NULL;
        }
        for (uint32_t i = 0; i < N_ROWS && !suite->n_missing_folders; i++)
                if (!n_refused[i]) {
                        fprintf(stderr, "coverage.inc has %s, which is no case that ref passes\n", refused_rows[i].pattern);
                        wrong++;
                }
        report(n_refused, n_cases);
        suite_free(suite);
        cr_assert_eq(wrong, 0u, "%u cases are other than coverage.inc says", wrong);
}
