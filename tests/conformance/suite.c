/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Beside AddressSanitizer as where they could not be fetched: "onnx-1.23" has them all but six, of a newer opset. */
#ifdef __SANITIZE_ADDRESS__
#define FETCHED ""
#else
#define FETCHED ONNX_CASES "/node"
#endif

/* The release whose newest opset is 23 calls its folder as Debian does. */
static const struct {
        const char *name, *path;
} folders[] = {
        {"node", "/usr/share/libonnx-testdata/data/node"},
        {"simple", "/usr/share/libonnx-testdata/data/simple"},
        {"pytorch-converted", "/usr/share/libonnx-testdata/data/pytorch-converted"},
        {"pytorch-operator", "/usr/share/libonnx-testdata/data/pytorch-operator"},
        {"onnx-1.18", FETCHED},
        {"made", MADE_CASES},
        {"onnx-1.23", COLLECTED_CASES},
};
#define N_FOLDERS (sizeof(folders) / sizeof(*folders))

static const struct scope_row later_opset = {"", "an opset after 28, or another domain"};

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

                if (!strncmp(entries[i]->d_name, "test_", 5) && strlen(entries[i]->d_name) < CASE_NAME_BYTES) {
                        cr_assert_lt(++suite->n_cases, (uint32_t)CASES_MAX);
                        one->folder = folder;
                        memcpy(one->name, entries[i]->d_name, strlen(entries[i]->d_name));
                        one->out_of_scope = scope_find(folders[folder].name, one->name);
                }
                free(entries[i]);
        }
        free(entries);
}

void suite_case_path(const struct one_case *one, char path[SUITE_PATH_BYTES])
{
        snprintf(path, SUITE_PATH_BYTES, "%s/%s", folders[one->folder].path, one->name);
}

static void run_case(const struct suite *suite, struct one_case *one)
{
        char path[SUITE_PATH_BYTES];

        if (one->out_of_scope)
                return;
        suite_case_path(one, path);
        one->verdict.opset = trial_opset(path);
        if (!one->verdict.opset || one->verdict.opset > OPSET_MAX) {
                one->out_of_scope = &later_opset;
                return;
        }
        one->verdict.outcomes[BACKEND_REF] = OUTCOME_CRASHED;
        one->verdict.outcomes[BACKEND_CPU] = OUTCOME_CRASHED;
        trial_run(path, tolerance_find(folders[one->folder].name, one->name), suite->backend(), &one->verdict);
}

static void work(struct suite *suite)
{
        for (;;) {
                uint32_t i = atomic_fetch_add(&suite->next, 1);

                if (i >= suite->n_cases)
                        exit(0);
                run_case(suite, &suite->cases[i]);
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
static void run_cases(struct suite *suite, uint32_t most)
{
        uint32_t n_workers = 0;
        int status;

        while (n_workers < most && start_worker(suite))
                n_workers++;
        while (n_workers) {
                cr_assert_gt(wait(&status), 0);
                if (WIFEXITED(status) && !WEXITSTATUS(status))
                        n_workers--;
                else
                        start_worker(suite);
        }
}

struct suite *suite_find(void)
{
        struct suite *suite = mmap(NULL, sizeof(*suite), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        cr_assert_neq(suite, MAP_FAILED);
        for (uint32_t i = 0; i < N_FOLDERS; i++)
                find_cases(suite, i);
        return suite;
}

struct suite *suite_run(uint32_t n_workers, const struct trial_backend *(*backend)(void))
{
        struct suite *suite = suite_find();

        suite->backend = backend;
        run_cases(suite, n_workers);
        return suite;
}

void suite_free(struct suite *suite)
{
        munmap(suite, sizeof(*suite));
}

const char *suite_folder(const struct one_case *one)
{
        return folders[one->folder].name;
}
