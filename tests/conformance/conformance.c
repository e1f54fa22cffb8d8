/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX's own cases, as far as they are in scope (out_of_scope.inc), and those that made/ makes with ONNX Runtime, on `ref` and on
 * `cpu`, and written by export. What fails must be in known_failures.inc, what is there must fail, and the share that passes must
 * not fall.
 */
#include "suite.h"

#include "base/error.h"
#include "broken.h"
#include "check_open.h"
#include "compile.h"
#include "graph.h"
#include "import.h"
#include "lower_options.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of the cases in scope, in percent; raise it as coverage grows. */
#define LEAST_SHARE 98.0

#define WORKERS 2

/* One case, its outcomes on ref, on cpu and with an open batch, for whoever looks for what to do next. */
static void list_cases(const struct suite *suite, FILE *stream)
{
        static const char *const names[] = {"-", "passed", "constant", "refused", "differs", "crashed"};

        for (uint32_t i = 0; i < suite->n_cases; i++) {
                const struct one_case *one = &suite->cases[i];

                if (one->out_of_scope)
                        fprintf(stream, "out %s/%s %s\n", suite_folder(one), one->name, one->out_of_scope->reason);
                else
                        fprintf(stream, "%s %s %s %lld %s/%s %s\n", names[one->verdict.outcomes[BACKEND_REF]],
                                names[one->verdict.outcomes[BACKEND_CPU]], names[one->verdict.open_batch],
                                (long long)one->verdict.opset, suite_folder(one), one->name, one->verdict.text);
        }
}

struct tally {
        uint32_t in_scope, out_of_scope, open_batch, any_size, exported, outcomes[N_BACKENDS][N_OUTCOMES];
};

static void count(const struct one_case *one, struct tally *tally)
{
        tally->out_of_scope += one->out_of_scope != NULL;
        tally->in_scope += one->out_of_scope == NULL;
        for (uint32_t b = 0; b < N_BACKENDS && !one->out_of_scope; b++)
                tally->outcomes[b][one->verdict.outcomes[b]]++;
        tally->open_batch += !one->out_of_scope && one->verdict.open_batch == OUTCOME_PASSED;
        tally->any_size += !one->out_of_scope && one->verdict.any_size == OUTCOME_PASSED;
        tally->exported += !one->out_of_scope && one->verdict.exported == OUTCOME_PASSED;
}

static void print_tally(const char *what, const struct tally *tally)
{
        const uint32_t *ref = tally->outcomes[BACKEND_REF], *cpu = tally->outcomes[BACKEND_CPU];

        if (tally->in_scope)
                fprintf(stderr,
                        "%-8s %5u in scope | ref: %5u pass %4u refused %4u differ %3u crash | cpu: %5u pass, %4u with an open "
                        "batch, %4u of any size | %4u pass with constant parameters | %5u exported\n",
                        what, tally->in_scope, ref[OUTCOME_PASSED], ref[OUTCOME_REFUSED], ref[OUTCOME_DIFFERS],
                        ref[OUTCOME_CRASHED], cpu[OUTCOME_PASSED], tally->open_batch, tally->any_size, ref[OUTCOME_CONSTANT],
                        tally->exported);
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
        const char *folder = suite_folder(one);
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
        if (one->verdict.open_batch == OUTCOME_DIFFERS || one->verdict.any_size == OUTCOME_DIFFERS ||
                one->verdict.exported == OUTCOME_DIFFERS) {
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

static const struct trial_backend *cpu(void)
{
        static const struct trial_backend backend = {.name = "cpu"};

        return &backend;
}

Test(conformance, what_fails_is_known_and_the_share_that_passes_does_not_fall)
{
        struct suite *suite = suite_run(WORKERS, cpu);
        const char *list = getenv("CONFORMANCE_LIST");
        struct tally all;
        uint32_t wrong;
        double share;

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
        suite_free(suite);
        cr_assert_eq(wrong, 0u, "%u cases are other than known_failures.inc says", wrong);
        cr_assert_geq(share, LEAST_SHARE);
}

/* One case in so many is broken, unless CONFORMANCE_BROKEN asks for all of them. */
#define BROKEN_STEP 12

/* As a load does it, but in this process: the file that is to be served, or why it cannot be. */
static int compile_bytes(const uint8_t *bytes, size_t n_bytes, struct sl_error *error)
{
        char path[] = "/tmp/starling-broken-XXXXXX";
        struct sl_lower_options options;
        int fd = mkstemp(path), plan_fd = memfd_create("plan", MFD_CLOEXEC), r;

        cr_assert(fd >= 0 && plan_fd >= 0 && write(fd, bytes, n_bytes) == (ssize_t)n_bytes);
        close(fd);
        sl_lower_options_init(&options);
        r = sl_compile_here(path, &options, -1, plan_fd, error);
        unlink(path);
        close(plan_fd);
        return r;
}

/* Return: how many of its forms there are. */
static uint32_t expect_broken_is_refused(const struct one_case *one, uint32_t at)
{
        char path[SUITE_PATH_BYTES];
        uint32_t n = 0;

        suite_case_path(one, path);
        for (enum broken_form form = BROKEN_BATCH; form < N_BROKEN_FORMS; form++) {
                struct sl_error error = {""};
                size_t n_bytes;
                uint8_t *bytes = broken_case(path, form, at, &n_bytes);

                if (!bytes)
                        continue;
                n++;
                cr_expect_eq(compile_bytes(bytes, n_bytes, &error), -ENOTSUP, "%s, form %d: \"%s\"", path, form, error.text);
                cr_expect(strstr(error.text, "operator " BROKEN_OPERATOR " of domain"), "%s, form %d: \"%s\"", path, form,
                        error.text);
                free(bytes);
        }
        return n;
}

/* Of a model that some sizes suit, those that its file had. Return: how many of its forms there are. */
static uint32_t expect_open_does_not_contradict_itself(const struct one_case *one)
{
        struct sl_graph_limits limits = sl_graph_limits_default;
        char path[SUITE_PATH_BYTES];
        uint32_t n = 0;

        limits.sizes_unknown = true;
        suite_case_path(one, path);
        for (enum broken_form form = BROKEN_BATCH; form < N_BROKEN_FORMS; form++) {
                struct sl_graph *graph = NULL;
                struct sl_error error = {""};
                size_t n_bytes;
                uint8_t *bytes = broken_case(path, form, BROKEN_NOWHERE, &n_bytes);

                if (!bytes)
                        continue;
                n++;
                if (sl_import_onnx_bytes(bytes, n_bytes, &limits, &graph, &error) == -EBADMSG)
                        cr_expect(false, "%s, form %d: \"%s\"", path, form, error.text);
                if (graph && form != BROKEN_BATCH) /* whose sizes the file may have had different */
                        cr_expect_eq(sl_graph_check_open(graph, &error), 0, "%s, form %d: \"%s\"", path, form, error.text);
                sl_graph_free(graph);
                free(bytes);
        }
        return n;
}

Test(conformance, a_model_that_some_sizes_suit_does_not_contradict_itself_when_it_is_open)
{
        struct suite *suite = suite_find();
        uint32_t n = 0;

        for (uint32_t i = 0; i < suite->n_cases; i++) {
                char path[SUITE_PATH_BYTES], file[SUITE_PATH_BYTES + 16];
                struct sl_graph *graph = NULL;

                suite_case_path(&suite->cases[i], path);
                snprintf(file, sizeof(file), "%s/model.onnx", path);
                if (sl_import_onnx(file, NULL, &graph, NULL) == 0)
                        n += expect_open_does_not_contradict_itself(&suite->cases[i]);
                sl_graph_free(graph);
        }
        fprintf(stderr, "%u open models were imported\n", n);
        cr_expect(n || suite->n_missing_folders);
        suite_free(suite);
}

Test(conformance, an_open_model_with_an_operator_that_nobody_knows_is_refused_before_it_has_sizes)
{
        struct suite *suite = suite_find();
        uint32_t step = getenv("CONFORMANCE_BROKEN") ? 1 : BROKEN_STEP, n = 0;

        for (uint32_t i = 0; i < suite->n_cases; i += step) {
                char path[SUITE_PATH_BYTES];

                suite_case_path(&suite->cases[i], path);
                if (!suite->cases[i].out_of_scope && trial_opset(path) > 0 && trial_opset(path) <= OPSET_MAX)
                        n += expect_broken_is_refused(&suite->cases[i], i);
        }
        fprintf(stderr, "%u broken models were refused\n", n);
        cr_expect(n || suite->n_missing_folders);
        suite_free(suite);
}
