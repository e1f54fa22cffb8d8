/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model whose workers have processes of their own (isolation: process): they are killed at random moments, and what was in flight
 * on them, and only that, ends with the cause or runs again; they give up what they do not need, and go with the runtime.
 */
#include "base/clock.h"
#include "digits.h"
#include "freeze.h"
#include "honest.h"
#include "world.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOBS        12u
#define WORKERS_MAX 8u
#define BACK_NS     WORLD_PATIENCE_NS

/* That a process may answer nothing; it starts within ten times as long, which an instrumented one needs beside others. */
#define HANG "hang_ms: " HANG_MS "\n"
#if WORLD_SLOW
#define HANG_MS "1000"
#else
#define HANG_MS "200"
#endif

static struct world world;
static struct digits_data data;

/* One queue pair and what it has in flight. */
struct guest {
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *model;
        struct digits_job jobs[JOBS];
        bool flying[JOBS];
        uint32_t n_flying, seed;
        uint64_t done, lost;
        const char *cause; /* of what is lost */
};

static void set_up(void)
{
        world_init(&world);
        world_keep(&world, "lenet mlp");
        cr_assert(digits_read(&data, "lenet"));
}

static void tear_down(void)
{
        digits_release(&data);
        world_free(&world);
}

TestSuite(processes, .init = set_up, .fini = tear_down, .timeout = 120);
TestSuite(hangs, .init = set_up, .fini = tear_down, .timeout = 120);

static void guest_enter(struct guest *guest, const char *model)
{
        memset(guest, 0, sizeof(*guest));
        guest->seed = 7;
        guest->cause = "its process was killed by signal 9 (Killed)";
        guest->client = world_connect(&world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(guest->client, &guest->queue, NULL), 0);
        cr_assert_eq(starling_model_open(guest->client, model, &guest->model, NULL), 0, "%s", world_log(&world));
        for (uint32_t i = 0; i < JOBS; i++)
                cr_assert_eq(digits_job_alloc(&guest->jobs[i], &data, guest->client), 0);
}

static void guest_submit(struct guest *guest)
{
        for (uint32_t i = 0; i < JOBS; i++) {
                if (guest->flying[i])
                        continue;
                struct starling_request request = digits_fill(&guest->jobs[i], guest->model, &guest->seed);

                request.user_data = i;
                cr_assert_eq(starling_submit(guest->queue, &request, NULL), 0);
                guest->flying[i] = true;
                guest->n_flying++;
        }
}

static void guest_take(struct guest *guest, const struct starling_completion *completion)
{
        char text[256];

        cr_assert_lt(completion->user_data, JOBS);
        cr_assert(guest->flying[completion->user_data], "request %llu completed twice", (unsigned long long)completion->user_data);
        guest->flying[completion->user_data] = false;
        guest->n_flying--;
        if (completion->status == 0) {
                cr_assert(digits_right(&guest->jobs[completion->user_data], &data, text, sizeof(text)), "%s", text);
                guest->done++;
                return;
        }
        cr_assert_eq(completion->status, -EIO, "%s", starling_strerror(completion->status));
        starling_reason_text(completion, text, sizeof(text));
        cr_assert(strstr(text, guest->cause), "%s", text);
        guest->lost++;
}

static uint32_t guest_reap(struct guest *guest, uint64_t limit_ns)
{
        struct starling_completion completions[JOBS];
        int n = starling_wait(guest->queue, completions, JOBS, limit_ns);

        for (int i = 0; i < n; i++)
                guest_take(guest, &completions[i]);
        return n > 0 ? (uint32_t)n : 0;
}

static void guest_reap_all(struct guest *guest)
{
        uint64_t end_ns = sl_clock_ns() + BACK_NS;

        while (guest->n_flying) {
                guest_reap(guest, SL_NS_PER_SECOND);
                cr_assert_lt(sl_clock_ns(), end_ns, "%u requests have no completion:\n%s", guest->n_flying, world_log(&world));
        }
}

/* The worker processes that there are now: the runtime's children that have started to be one. */
static uint32_t find_workers(pid_t ret_pids[WORKERS_MAX])
{
        char path[64], line[256];
        uint32_t n = 0;
        int pid;
        FILE *children;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/children", world.pid, world.pid);
        children = fopen(path, "r");
        cr_assert(children);
        while (fscanf(children, "%d", &pid) == 1 && n < WORKERS_MAX) {
                snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
                FILE *file = fopen(path, "r");
                size_t bytes = file ? fread(line, 1, sizeof(line) - 1, file) : 0;

                line[bytes] = 0;
                if (bytes && strcmp(line + strlen(line) + 1, "worker") == 0)
                        ret_pids[n++] = pid;
                if (file)
                        fclose(file);
        }
        fclose(children);
        return n;
}

static pid_t one_worker(void)
{
        uint64_t end_ns = sl_clock_ns() + BACK_NS;
        pid_t pids[WORKERS_MAX];

        while (find_workers(pids) == 0) {
                cr_assert_lt(sl_clock_ns(), end_ns, "no worker process:\n%s", world_log(&world));
                world_pause_us(1000);
        }
        return pids[0];
}

/* All that was in flight has its completion, and one request more is done. Return: how long it took. */
static uint64_t wait_until_back(struct guest *guest)
{
        uint64_t begun_ns = sl_clock_ns(), done;

        guest_reap_all(guest);
        done = guest->done;
        while (guest->done == done) {
                guest_submit(guest);
                guest_reap(guest, SL_NS_PER_SECOND);
                cr_assert_lt(sl_clock_ns(), begun_ns + BACK_NS, "it does not come back:\n%s", world_log(&world));
        }
        return sl_clock_ns() - begun_ns;
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static void print_times(uint64_t *ns, uint32_t n)
{
        qsort(ns, n, sizeof(*ns), compare);
        if (n)
                printf("back after a kill: p50 %.1f ms, p99 %.1f ms, most %.1f ms of %u\n", (double)ns[n / 2] / 1e6,
                        (double)ns[(uint64_t)n * 99 / 100] / 1e6, (double)ns[n - 1] / 1e6, n);
}

Test(processes, a_worker_killed_at_any_moment_fails_what_it_had_and_comes_back)
{
        uint32_t rounds = world_rounds("STARLING_KILLED_WORKERS", 500), round, seed = 3;
        uint64_t *back_ns = calloc(rounds, sizeof(*back_ns)), begun_ns = sl_clock_ns(), lost;
        struct guest guest;
        struct honest *honest;

        world_copy_model(&world, "lenet", "own", "isolation: process\n");
        world_start(&world);
        guest_enter(&guest, "own");
        honest = honest_start(&world, "mlp");
        for (round = 0; round < rounds && (!guest.lost || world_has_time("STARLING_KILLED_WORKERS", round, begun_ns)); round++) {
                guest_submit(&guest);
                for (uint32_t i = digits_random(&seed, 20); i > 0; i--) {
                        guest_reap(&guest, 0);
                        guest_submit(&guest);
                }
                world_pause_us(digits_random(&seed, 300));
                kill(one_worker(), SIGKILL);
                back_ns[round] = wait_until_back(&guest);
        }
        guest_reap_all(&guest);
        lost = guest.lost;
        honest_expect_progress(honest, 10);
        honest_stop(honest);
        print_times(back_ns, round);
        printf("%llu requests done, %llu lost with their process\n", (unsigned long long)guest.done, (unsigned long long)lost);
        cr_expect_gt(lost, 0, "no kill has met a request");
        starling_close(guest.client);
        world_stop(&world);
        free(back_ns);
}

/* The output's numbers of all samples. */
static void predict(struct guest *guest, float *ret_numbers)
{
        struct starling_request request = digits_ask(&guest->jobs[0], guest->model, 0, DIGITS_N);
        struct starling_completion done = {0};

        cr_assert_eq(starling_infer(guest->queue, &request, &done), 0, "%s", starling_strerror(done.status));
        memcpy(ret_numbers, guest->jobs[0].out.data, sizeof(float) * DIGITS_N * DIGITS_OUT);
}

/* What the processor has for products of bytes, tiles that a process must ask the system for among it, is there behind the filter.
 */
Test(processes, an_int8_model_is_computed_in_a_process_of_its_own_as_in_a_thread)
{
        float *numbers = calloc(2 * DIGITS_N * DIGITS_OUT, sizeof(*numbers));
        const char *const names[] = {"shared", "own"};

        cr_assert_not_null(numbers);
        world_copy_int8_model(&world, "resnet", names[0], "");
        world_copy_int8_model(&world, "resnet", names[1], "isolation: process\n");
        world_start(&world);
        for (uint32_t i = 0; i < 2; i++) {
                struct guest guest;

                guest_enter(&guest, names[i]);
                predict(&guest, numbers + i * DIGITS_N * DIGITS_OUT);
                starling_close(guest.client);
        }
        cr_expect_arr_eq(numbers, numbers + DIGITS_N * DIGITS_OUT, sizeof(float) * DIGITS_N * DIGITS_OUT);
        cr_expect_gt(numbers[0] * numbers[0] + numbers[1] * numbers[1], 0.0f, "nothing was predicted");
        world_stop(&world);
        free(numbers);
}

Test(processes, what_is_to_run_again_does_so_once)
{
        uint32_t rounds = world_rounds("STARLING_KILLED_WORKERS", 100), seed = 5;
        uint64_t begun_ns = sl_clock_ns();
        struct guest guest;

        world_copy_model(&world, "lenet", "own", "isolation: process\non_crash: rerun\ninstances: 2\n");
        world_start(&world);
        guest_enter(&guest, "own");
        for (uint32_t round = 0; round < rounds && world_has_time("STARLING_KILLED_WORKERS", round, begun_ns); round++) {
                guest_submit(&guest);
                world_pause_us(digits_random(&seed, 300));
                kill(one_worker(), SIGKILL);
                guest_reap_all(&guest);
        }
        cr_expect_eq(guest.lost, 0);
        starling_close(guest.client);
        world_stop(&world);
}

/* Where a request is cut depends on the time that its members took, and each size of a plan rounds in its own way. */
static void expect_near(const struct digits_job *x, const struct digits_job *y)
{
        const float *left = x->output.data, *right = y->output.data;

        cr_assert_eq(x->samples, y->samples);
        for (uint32_t i = 0; i < x->samples * DIGITS_OUT; i++)
                cr_assert(fabsf(left[i] - right[i]) <= 1e-5f, "%u samples, element %u: %g, expected %g", x->samples, i,
                        (double)right[i], (double)left[i]);
}

Test(processes, an_ensemble_with_a_member_of_its_own_process_answers_the_same)
{
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *plain, *mixed;
        struct digits_job jobs[2];

        world_copy_model(&world, "lenet", "own", "isolation: process\n");
        world_add_model_config(&world, "plain", "ensemble: {members: [lenet, mlp], rule: mean}\n");
        world_add_model_config(&world, "mixed", "ensemble: {members: [own, mlp], rule: mean}\n");
        world_start(&world);
        client = world_connect(&world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        cr_assert_eq(starling_model_open(client, "plain", &plain, NULL), 0, "%s", world_log(&world));
        cr_assert_eq(starling_model_open(client, "mixed", &mixed, NULL), 0, "%s", world_log(&world));
        for (uint32_t i = 0; i < 2; i++)
                cr_assert_eq(digits_job_alloc(&jobs[i], &data, client), 0);
        for (uint32_t i = 0; i < 50; i++) {
                uint32_t seeds[2] = {i, i};
                struct starling_request request = digits_fill(&jobs[0], plain, &seeds[0]);

                cr_assert_eq(starling_infer(queue, &request, NULL), 0);
                request = digits_fill(&jobs[1], mixed, &seeds[1]);
                cr_assert_eq(starling_infer(queue, &request, NULL), 0);
                expect_near(&jobs[0], &jobs[1]);
        }
        starling_close(client);
        world_stop(&world);
}

/* A line "NAME:\tVALUE" of /proc/PID/status. */
static void read_status(pid_t pid, const char *name, char *ret_value, size_t bytes)
{
        char path[64], line[256];
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/status", pid);
        file = fopen(path, "r");
        cr_assert(file);
        *ret_value = 0;
        while (fgets(line, sizeof(line), file))
                if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
                        snprintf(ret_value, bytes, "%.*s", (int)strcspn(line + strlen(name) + 2, "\n"), line + strlen(name) + 2);
        fclose(file);
}

static void expect_status(pid_t pid, const char *name, const char *wanted)
{
        char value[128];

        read_status(pid, name, value, sizeof(value));
        cr_expect_str_eq(value, wanted, "%s: %s", name, value);
}

/* What is behind its descriptors, but for standard streams. */
static void expect_descriptors(pid_t pid)
{
        static const char *const known[] = {"socket:", "anon_inode:[eventfd]", "/memfd:starling-plan", "/memfd:starling-order",
                "/memfd:starling-reply", "/memfd:starling-verdicts", ".plan"};
        char path[64], target[256];
        struct dirent *entry;
        DIR *folder;

        snprintf(path, sizeof(path), "/proc/%d/fd", pid);
        folder = opendir(path);
        cr_assert(folder);
        while ((entry = readdir(folder))) {
                bool is_known = entry->d_name[0] == '.' || atoi(entry->d_name) < 3;
                ssize_t n = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);

                target[n > 0 ? n : 0] = 0;
                for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                        is_known |= strstr(target, known[i]) != NULL;
                cr_expect(is_known, "descriptor %s is %s", entry->d_name, target);
        }
        closedir(folder);
}

Test(processes, a_worker_has_given_up_what_it_does_not_need)
{
        pid_t pid;

        world_copy_model(&world, "lenet", "own", "isolation: process\n");
        world_start(&world);
        pid = one_worker();
        expect_status(pid, "Seccomp", "2");
        expect_status(pid, "NoNewPrivs", "1");
        expect_status(pid, "CapEff", "0000000000000000");
        expect_status(pid, "CapBnd", "0000000000000000");
        expect_status(pid, "Threads", "1");
        expect_descriptors(pid);
        world_stop(&world);
}

/* What nobody has reaped yet does not. */
static bool lives(pid_t pid)
{
        char state[64];

        if (kill(pid, 0) < 0 && errno == ESRCH)
                return false;
        read_status(pid, "State", state, sizeof(state));
        return *state != 'Z';
}

Test(processes, workers_go_with_the_runtime_however_it_ends)
{
        pid_t pid;

        world_copy_model(&world, "lenet", "own", "isolation: process\n");
        world_start(&world);
        pid = one_worker();
        world_kill(&world);
        WORLD_AWAIT(!lives(pid));
        cr_expect_not(lives(pid), "worker process %d is left", pid);
}

Test(processes, a_signal_to_all_processes_lets_what_runs_end)
{
        struct guest guest;
        pid_t pid;

        world_copy_model(&world, "lenet", "own", "isolation: process\n");
        world_start(&world);
        guest_enter(&guest, "own");
        pid = one_worker();
        kill(pid, SIGTERM);
        kill(pid, SIGINT);
        guest_submit(&guest);
        guest_reap_all(&guest);
        cr_expect_eq(guest.lost, 0);
        cr_expect_eq(one_worker(), pid);
        starling_close(guest.client);
        world_stop(&world);
}

Test(hangs, a_worker_that_hangs_does_not_hold_up_the_end)
{
        struct guest guest;

        world_copy_model(&world, "lenet", "own", "isolation: process\n");
        world_configure(&world, "grace_seconds: 1\n");
        world_start(&world);
        guest_enter(&guest, "own");
        cr_assert(freeze(one_worker()));
        guest_submit(&guest);
        world_stop(&world);
        starling_close(guest.client);
}

Test(hangs, a_worker_that_hangs_ends_as_one_that_crashes)
{
        struct guest guest;

        world_copy_model(&world, "lenet", "own", "isolation: process\n" HANG);
        world_start(&world);
        guest_enter(&guest, "own");
        guest.cause = "its process was killed, as it answered nothing for";
        for (uint32_t round = 0; round < 100 && !guest.lost; round++) {
                guest_submit(&guest);
                world_pause_us(digits_random(&guest.seed, 300));
                kill(one_worker(), SIGSTOP);
                wait_until_back(&guest);
        }
        cr_expect_gt(guest.lost, 0, "no stop has met a request that had begun");
        starling_close(guest.client);
        world_stop(&world);
}

static void stop_workers(void)
{
        pid_t pids[WORKERS_MAX];

        for (uint32_t n = find_workers(pids); n-- > 0;)
                kill(pids[n], SIGSTOP);
}

#define LEAVES (WORLD_SLOW ? 8u : 20u)

/* One worker more or less at each round, so that some are stopped while they are to leave. */
Test(hangs, a_worker_that_hangs_while_it_leaves_ends_as_one_that_stays)
{
        struct starling_client *admin;
        struct guest guest;
        char config[96];

        world_copy_model(&world, "lenet", "own", "isolation: process\n" HANG "instances: 2\n");
        world_start(&world);
        guest_enter(&guest, "own");
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
        guest.cause = "its process was killed, as it answered nothing for";
        for (uint32_t round = 0; round < LEAVES || !guest.lost; round++) {
                guest_submit(&guest);
                world_pause_us(digits_random(&guest.seed, 300));
                stop_workers();
                snprintf(config, sizeof(config), "isolation: process\n" HANG "instances: %u\n", 1 + round % 2);
                world_add_model_config(&world, "own", config);
                cr_assert_eq(starling_admin_reload(admin, "own", NULL), 0, "%s", world_log(&world));
                wait_until_back(&guest);
        }
        starling_close(admin);
        starling_close(guest.client);
        world_stop(&world);
}

/* Stops the first worker that is seen before it is ready. Return: false: it was ready by then. */
static bool stop_while_it_starts(void)
{
        uint64_t begun_ns = sl_clock_ns();
        pid_t pids[WORKERS_MAX];

        world_launch(&world);
        while (!find_workers(pids))
                ;
        (void)freeze(pids[0]); /* where it has been slow, it is killed without that */
        world_expect_log(&world, "event=ready");
        cr_expect_lt(sl_clock_ns() - begun_ns, BACK_NS, "it was looked at once a second");
        return world_count_log(&world, "failed_models=1");
}

Test(hangs, a_worker_that_hangs_while_it_starts_is_killed_and_its_load_fails)
{
        bool stopped = false;

        world_copy_model(&world, "lenet", "own", "isolation: process\nhang_ms: 30\n");
        world_configure(&world, "grace_seconds: 1\n");
        for (uint32_t round = 0; round < 100 && !stopped; round++) {
                stopped = stop_while_it_starts();
                if (stopped)
                        cr_expect(strstr(world_log(&world), "its process was killed, as it was not ready for"), "%s", world_log(&world));
                world_stop(&world);
        }
        cr_expect(stopped, "no stop has met one that had begun to start");
}

/* Kills each worker as soon as it is seen, until the model is said to be down. */
static void kill_until_down(struct guest *guest, char *ret_text, size_t bytes)
{
        uint64_t end_ns = sl_clock_ns() + BACK_NS;
        struct starling_completion completion;
        pid_t pids[WORKERS_MAX];

        *ret_text = 0;
        while (!strstr(ret_text, "no worker lives long enough")) {
                struct starling_request request = digits_fill(&guest->jobs[0], guest->model, &guest->seed);

                cr_assert_lt(sl_clock_ns(), end_ns, "%s", ret_text);
                cr_assert_eq(starling_submit(guest->queue, &request, NULL), 0);
                do {
                        for (uint32_t n = find_workers(pids); n-- > 0;)
                                kill(pids[n], SIGKILL);
                } while (starling_poll(guest->queue, &completion, 1) == 0);
                if (completion.status)
                        starling_reason_text(&completion, ret_text, bytes);
        }
}

/* As one whose model is down for a moment does. */
static void try_until_done(struct guest *guest)
{
        for (uint64_t end_ns = sl_clock_ns() + BACK_NS; guest->done == 0;) {
                struct starling_request request = digits_fill(&guest->jobs[0], guest->model, &guest->seed);
                int r = starling_infer(guest->queue, &request, NULL);

                cr_assert(r == 0 || r == -EIO, "%s", starling_strerror(r));
                guest->done += r == 0;
                cr_assert_lt(sl_clock_ns(), end_ns, "it does not come back:\n%s", world_log(&world));
        }
}

Test(processes, a_model_whose_workers_die_at_once_says_so_and_comes_back)
{
        struct guest guest;
        char text[256];

        world_copy_model(&world, "lenet", "own", "isolation: process\n");
        world_start(&world);
        guest_enter(&guest, "own");
        kill_until_down(&guest, text, sizeof(text));
        cr_expect(strstr(text, "killed by signal 9"), "%s", text);
        try_until_done(&guest);
        starling_close(guest.client);
        world_stop(&world);
}

/* While none is there, more than memory allows are asked for: what was there before still comes back. */
Test(processes, more_workers_that_are_refused_while_the_only_one_is_down_change_nothing)
{
        static const char config[] = "isolation: process\nbatch_max: 1024\nsegment_samples: 1024\n";
        struct starling_error error = {""};
        struct starling_client *admin;
        struct guest guest;
        char text[256];

        world_copy_model(&world, "lenet", "own", config);
        world_configure(&world, "models: [own]\nlimits: {memory_max: 384 MiB}\n");
        world_start(&world);
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
        guest_enter(&guest, "own");
        kill_until_down(&guest, text, sizeof(text));
        snprintf(text, sizeof(text), "%sinstances: 60\n", config);
        world_add_model_config(&world, "own", text);
        cr_expect_eq(starling_admin_reload(admin, "own", &error), -ENOMEM, "%s", error.text);
        try_until_done(&guest);
        starling_close(admin);
        starling_close(guest.client);
        world_stop(&world);
}

/* Of clients, that a process has mapped. */
static uint32_t count_arenas(pid_t pid)
{
        char path[64], line[256];
        uint32_t n = 0;

        snprintf(path, sizeof(path), "/proc/%d/maps", pid);
        FILE *file = fopen(path, "r");
        cr_assert(file);
        while (fgets(line, sizeof(line), file))
                n += strstr(line, "starling-arena") != NULL;
        fclose(file);
        return n;
}

Test(processes, a_client_that_comes_and_goes_leaves_nothing_in_a_worker)
{
        struct footprint before;
        struct guest guest;
        pid_t pid;

        world_copy_model(&world, "lenet", "own", "isolation: process\n");
        world_start(&world);
        pid = one_worker();
        before = world_footprint(&world);
        for (uint32_t round = 0; round < 20; round++) {
                guest_enter(&guest, "own");
                guest_submit(&guest);
                if (round % 2)
                        guest_reap_all(&guest); /* else it leaves with requests in flight */
                starling_close(guest.client);
        }
        world_expect_footprint(&world, &before);
        WORLD_AWAIT(!count_arenas(pid));
        cr_expect_eq(count_arenas(pid), 0);
        cr_expect_eq(one_worker(), pid);
        world_stop(&world);
}
