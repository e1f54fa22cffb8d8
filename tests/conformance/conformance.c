/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX's own cases, as far as they are in scope (out_of_scope.inc), and those that made/ makes with ONNX Runtime, on `ref` and on
 * `cpu`. What fails must be in known_failures.inc, what is there must fail, and the share that passes must not fall. Two processes
 * share the cases, so that one that crashes is one failure; verdicts come back through shared memory.
 */
#include "table.h"
#include "trial.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* Of the cases in scope, in percent; raise it as coverage grows. */
#define LEAST_SHARE 97.4

#define OPSET_MAX  23
#define WORKERS    2
#define CASES_MAX  4096
#define NAME_BYTES 160

/* The release whose newest opset is 23 calls its folder as Debian does. */
static const struct {
        const char *name, *path;
} folders[] = {
        {"node", "/usr/share/libonnx-testdata/data/node"},
        {"simple", "/usr/share/libonnx-testdata/data/simple"},
        {"pytorch-converted", "/usr/share/libonnx-testdata/data/pytorch-converted"},
        {"pytorch-operator", "/usr/share/libonnx-testdata/data/pytorch-operator"},
        {"onnx-1.18", ONNX_CASES "/node"},
        {"made", MADE_CASES},
};
#define N_FOLDERS (sizeof(folders) / sizeof(*folders))

struct one_case {
        uint32_t folder;
        char name[NAME_BYTES];
        const struct scope_row *out_of_scope;
        struct verdict verdict;
};

/* Shared by all processes: a worker writes the verdicts of the cases that it took. */
struct suite {
        atomic_uint next;
        uint32_t n_cases, n_missing_folders;
        struct one_case cases[CASES_MAX];
};

static const struct scope_row later_opset = {"", "an opset after 23, or another domain"};

static void find_cases(struct suite *suite, uint32_t folder)
{
        struct dirent **entries = NULL;
        int n_entries = scandir(folders[folder].path, &entries, NULL, alphasort);

        if (n_entries <= 0) {
                fprintf(stderr, "conformance: no cases in %s\n", folders[folder].path);
                suite->n_missing_folders++;
        }
        for (int i = 0; i < n_entries; i++) {
                struct one_case *one = &suite->cases[suite->n_cases];

                if (!strncmp(entries[i]->d_name, "test_", 5) && strlen(entries[i]->d_name) < NAME_BYTES) {
                        cr_assert_lt(++suite->n_cases, (uint32_t)CASES_MAX);
                        one->folder = folder;
                        memcpy(one->name, entries[i]->d_name, strlen(entries[i]->d_name));
                        one->out_of_scope = scope_find(folders[folder].name, one->name);
                }
                free(entries[i]);
        }
        free(entries);
}

static void run_case(struct one_case *one)
{
        char path[600];

        if (one->out_of_scope)
                return;
        snprintf(path, sizeof(path), "%s/%s", folders[one->folder].path, one->name);
        one->verdict.opset = trial_opset(path);
        if (!one->verdict.opset || one->verdict.opset > OPSET_MAX) {
                one->out_of_scope = &later_opset;
                return;
        }
        one->verdict.outcomes[BACKEND_REF] = OUTCOME_CRASHED;
        one->verdict.outcomes[BACKEND_CPU] = OUTCOME_CRASHED;
        trial_run(path, tolerance_find(folders[one->folder].name, one->name), &one->verdict);
}

static void work(struct suite *suite)
{
        for (;;) {
                uint32_t i = atomic_fetch_add(&suite->next, 1);

                if (i >= suite->n_cases)
                        exit(0);
                run_case(&suite->cases[i]);
        }
}

static pid_t start_worker(struct suite *suite)
{
        pid_t child;

        fflush(NULL);
        child = fork();
        cr_assert_geq(child, 0);
        if (!child)
                work(suite);
        return child;
}

/* A worker that crashed has left its mark on the case; another one goes on behind it. */
static void run_cases(struct suite *suite)
{
        uint32_t n_workers = 0;
        int status;

        while (n_workers < WORKERS && start_worker(suite))
                n_workers++;
        while (n_workers) {
                cr_assert_gt(wait(&status), 0);
                if (WIFEXITED(status) && !WEXITSTATUS(status))
                        n_workers--;
                else
                        start_worker(suite);
        }
}

/* One case, its outcomes on ref, on cpu and with an open batch, for whoever looks for what to do next. */
static void list_cases(const struct suite *suite, FILE *stream)
{
        static const char *const names[] = {"-", "passed", "constant", "refused", "differs", "crashed"};

        for (uint32_t i = 0; i < suite->n_cases; i++) {
                const struct one_case *one = &suite->cases[i];

                if (one->out_of_scope)
                        fprintf(stream, "out %s/%s %s\n", folders[one->folder].name, one->name, one->out_of_scope->reason);
                else
                        fprintf(stream, "%s %s %s %lld %s/%s %s\n", names[one->verdict.outcomes[BACKEND_REF]],
                                names[one->verdict.outcomes[BACKEND_CPU]], names[one->verdict.open_batch],
                                (long long)one->verdict.opset, folders[one->folder].name, one->name, one->verdict.text);
        }
}

struct tally {
        uint32_t in_scope, out_of_scope, open_batch, outcomes[N_BACKENDS][N_OUTCOMES];
};

static void count(const struct one_case *one, struct tally *tally)
{
        tally->out_of_scope += one->out_of_scope != NULL;
        tally->in_scope += one->out_of_scope == NULL;
        for (uint32_t b = 0; b < N_BACKENDS && !one->out_of_scope; b++)
                tally->outcomes[b][one->verdict.outcomes[b]]++;
        tally->open_batch += !one->out_of_scope && one->verdict.open_batch == OUTCOME_PASSED;
}

static void print_tally(const char *what, const struct tally *tally)
{
        const uint32_t *ref = tally->outcomes[BACKEND_REF], *cpu = tally->outcomes[BACKEND_CPU];

        if (tally->in_scope)
                fprintf(stderr,
                        "%-8s %5u in scope | ref: %5u pass %4u refused %4u differ %3u crash | cpu: %5u pass, %4u with an open "
                        "batch | %4u pass with constant parameters\n",
                        what, tally->in_scope, ref[OUTCOME_PASSED], ref[OUTCOME_REFUSED], ref[OUTCOME_DIFFERS],
                        ref[OUTCOME_CRASHED], cpu[OUTCOME_PASSED], tally->open_batch, ref[OUTCOME_CONSTANT]);
}

static struct tally report(const struct suite *suite)
{
        struct tally tallies[OPSET_MAX + 1] = {0}, all = {0};
        char name[32];

        for (uint32_t i = 0; i < suite->n_cases; i++) {
                const struct one_case *one = &suite->cases[i];

                count(one, &all);
                if (!one->out_of_scope)
                        count(one, &tallies[one->verdict.opset]);
        }
        for (int64_t opset = 1; opset <= OPSET_MAX; opset++) {
                snprintf(name, sizeof(name), "opset %lld", (long long)opset);
                print_tally(name, &tallies[opset]);
        }
        print_tally("all", &all);
        return all;
}

static void report_out_of_scope(const struct suite *suite)
{
        for (uint32_t i = 0; i < suite->n_cases; i++) {
                const struct scope_row *row = suite->cases[i].out_of_scope;
                uint32_t n_before = 0, n = 0;

                for (uint32_t k = 0; k < suite->n_cases && row; k++) {
                        const struct scope_row *other = suite->cases[k].out_of_scope;
                        bool same = other && !strcmp(other->reason, row->reason);

                        n_before += same && k < i;
                        n += same;
                }
                if (n && !n_before)
                        fprintf(stderr, "out of scope: %4u cases: %s\n", n, row->reason);
        }
}

/* What a known row says of the case, and what has become of it, must agree. */
static uint32_t check_case(const struct one_case *one, bool *used)
{
        const char *folder = folders[one->folder].name;
        uint32_t wrong = 0;

        for (enum backend b = BACKEND_REF; b < N_BACKENDS; b++) {
                enum outcome outcome = one->verdict.outcomes[b];
                bool fails = outcome != OUTCOME_PASSED && outcome != OUTCOME_CONSTANT;
                int row = known_find(b, folder, one->name);

                if (row >= 0)
                        used[row] = true;
                if (fails && row < 0)
                        fprintf(stderr, "FAILS: %s/%s: %s\n", folder, one->name, one->verdict.text);
                if (!fails && row >= 0)
                        fprintf(stderr, "PASSES, but known_failures.inc has %s: %s/%s\n", known_rows[row].pattern, folder,
                                one->name);
                wrong += fails != (row >= 0);
                if (fails)
                        return wrong;
        }
        if (one->verdict.open_batch == OUTCOME_DIFFERS) {
                fprintf(stderr, "FAILS: %s/%s: %s\n", folder, one->name, one->verdict.text);
                wrong++;
        }
        return wrong;
}

static uint32_t check_all(const struct suite *suite)
{
        bool *used = calloc((size_t)n_known_rows, sizeof(*used));
        uint32_t wrong = 0;

        for (uint32_t i = 0; i < suite->n_cases; i++)
                if (!suite->cases[i].out_of_scope)
                        wrong += check_case(&suite->cases[i], used);
        for (int i = 0; i < n_known_rows - 1 && !suite->n_missing_folders; i++) {
                if (used[i])
                        continue;
                fprintf(stderr, "known_failures.inc has %s, which is no case\n", known_rows[i].pattern);
                wrong++;
        }
        free(used);
        return wrong;
}

Test(conformance, what_fails_is_known_and_the_share_that_passes_does_not_fall)
{
        struct suite *suite = mmap(NULL, sizeof(*suite), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        const char *list = getenv("CONFORMANCE_LIST");
        struct tally all;
        uint32_t wrong;
        double share;

        cr_assert_neq(suite, MAP_FAILED);
        for (uint32_t i = 0; i < N_FOLDERS; i++)
                find_cases(suite, i);
        run_cases(suite);
        if (list) {
                FILE *stream = fopen(list, "w");

                cr_assert(stream);
                list_cases(suite, stream);
                fclose(stream);
        }
        report_out_of_scope(suite);
        all = report(suite);
        wrong = check_all(suite);
        cr_assert(all.in_scope || suite->n_missing_folders, "no case is in scope");
        share = all.in_scope ? 100.0 * all.outcomes[BACKEND_CPU][OUTCOME_PASSED] / all.in_scope : 100;
        fprintf(stderr, "%.1f %% of the cases in scope pass on both backends, at least %.1f %% must\n", share, LEAST_SHARE);
        munmap(suite, sizeof(*suite));
        cr_assert_eq(wrong, 0u, "%u cases are other than known_failures.inc says", wrong);
        cr_assert_geq(share, LEAST_SHARE);
}
