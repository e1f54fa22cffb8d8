/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models that share workers, and change while they serve. A runtime in this process with copies of the digits networks, which are
 * merged by fours from two occupied lanes on.
 *
 * SL_FUSE_ROUNDS=1000 for the long run.
 */
#include "base/clock.h"
#include "compile.h"
#include "fuse_measure.h"
#include "fuse_table.h"
#include "inline_executor.h"
#include "memory.h"
#include "plan.h"
#include "sandbox.h"
#include "service.h"
#include "stats.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPIES 8u
#define LANES  4u

int __wrap_sl_fuse_measure(const struct sl_fuse_measure *measure, struct sl_fuse_table *ret_table, struct sl_error *error);

/* Outputs are compared as ever; times are said. On a busy machine a merged plan may be slower, or get no time to be measured in. */
int __wrap_sl_fuse_measure(const struct sl_fuse_measure *measure, struct sl_fuse_table *ret_table, struct sl_error *error)
{
        const struct sl_plan_info *info = sl_plan_info(measure->merged);
        struct sl_fuse_row row = {
                .batch = measure->batch_max ? measure->batch_max : info->batches[info->n_batches - 1],
                .n_turns = 3,
        };
        int r = sl_fuse_check(measure, ret_table, error);

        for (uint32_t i = 0; r == 0 && i < ret_table->n_occupancies; i++) {
                row.separate[i] = row.one_job[i] = 1e-6 * ret_table->occupied[i];
                row.merged[i] = 1.5e-6;
        }
        if (r == 0)
                ret_table->rows[ret_table->n_rows++] = row;
        return r;
}

int __wrap_sl_compile_start(
        const struct sl_compile_options *options, struct sl_compilation **ret_compilation, struct sl_error *error);
int __real_sl_compile_start(
        const struct sl_compile_options *options, struct sl_compilation **ret_compilation, struct sl_error *error);

static _Atomic uint32_t merges_started, merges_started_elsewhere; /* by the thread that is for that; by another one */

/* Whoever starts a process waits until that has got a processor. */
int __wrap_sl_compile_start(
        const struct sl_compile_options *options, struct sl_compilation **ret_compilation, struct sl_error *error)
{
        char thread[16] = "";

        pthread_getname_np(pthread_self(), thread, sizeof(thread));
        if (options->n_members)
                atomic_fetch_add(strcmp(thread, "sl-compilers") == 0 ? &merges_started : &merges_started_elsewhere, 1);
        return __real_sl_compile_start(options, ret_compilation, error);
}

int __wrap_sl_inline_trial_run(const struct sl_job_runner_options *options, struct sl_job_runner *tried, uint64_t limit_ns,
        uint64_t bound_ns, struct sl_inline_trial *ret_trial);
int __real_sl_inline_trial_run(const struct sl_job_runner_options *options, struct sl_job_runner *tried, uint64_t limit_ns,
        uint64_t bound_ns, struct sl_inline_trial *ret_trial);

/* What was tried is for the dispatcher, though a sanitizer or others on the machine made it slow. */
int __wrap_sl_inline_trial_run(const struct sl_job_runner_options *options, struct sl_job_runner *tried, uint64_t limit_ns,
        uint64_t bound_ns, struct sl_inline_trial *ret_trial)
{
        int r;

        (void)limit_ns;
        (void)bound_ns;
        r = __real_sl_inline_trial_run(options, tried, SL_NS_PER_SECOND, SL_NS_PER_SECOND, ret_trial);
        ret_trial->sample_ns = 1000;
        return r;
}

/* Copies of two networks, in turns, behind the fixture's models, which go. */
static void copy_models(struct service *service, uint32_t instances)
{
        static const char *const names[COPIES] = {"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"};
        struct sl_model_spec mlp = service->specs[4], lenet = service->specs[0];

        for (uint32_t i = 0; i < COPIES; i++) {
                service->specs[i] = i % 2 ? lenet : mlp;
                service->specs[i].name = names[i];
                service->specs[i].stamp = 100 * i; /* a model of its own, though its file is that of others */
                service->specs[i].fuse = SL_SHARING_AUTO;
                service->specs[i].lowering.merge_seconds = 0; /* Algorithm 1 decides, and no cost that a busy machine shows */
                service->specs[i].workers.n = instances;
        }
        service->n_specs = COPIES;
}

/* The first by itself: oneDNN makes tables of its own once, in a way that ThreadSanitizer does not see. */
static void start(struct service *service)
{
        uint32_t instances = service->specs[0].workers.n;

        service->n_specs = service->specs[0].workers.n = 1;
        service_start(service);
        service_expect_log(service, "model-ready model=c0");
        pthread_mutex_lock(&service->specs_lock);
        service->n_specs = COPIES;
        service->specs[0].workers.n = instances;
        pthread_mutex_unlock(&service->specs_lock);
        service_reload(service);
        service_expect_log(service, "model-ready model=c7");
}

struct user {
        struct service *service;
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *models[COPIES];
        struct digits digits[2];
        bool alike;        /* all requests of a round have as many samples: one to four */
        uint32_t n_models; /* that it sends to, from the first */
        pthread_t thread;
        atomic_bool stop;
        _Atomic uint32_t done;
};

static void user_init(struct user *user, struct service *service, uint32_t n_models)
{
        char name[16];

        memset(user, 0, sizeof(*user));
        user->service = service;
        user->n_models = n_models;
        user->client = service_connect(service, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(user->client, &user->queue, NULL), 0);
        for (uint32_t i = 0; i < n_models; i++) {
                snprintf(name, sizeof(name), "c%u", i);
                cr_assert_eq(starling_model_open(user->client, name, &user->models[i], NULL), 0);
        }
        digits_load(&user->digits[0], user->client, "mlp");
        digits_load(&user->digits[1], user->client, "lenet");
}

static void user_free(struct user *user)
{
        digits_free(&user->digits[0]);
        digits_free(&user->digits[1]);
        starling_close(user->client);
}

static uint32_t samples_of(const struct user *user, uint32_t round, uint32_t i)
{
        return user->alike ? 1u << round % 3 : 1 + (round + i) % 16;
}

/* A request for each model at once, of one to sixteen samples, and whether every answer is right. */
static void send_round(struct user *user, uint32_t round)
{
        struct starling_tensor inputs[COPIES], outputs[COPIES];
        struct starling_completion completions[COPIES];
        struct starling_request requests[COPIES];
        uint32_t left = user->n_models;

        for (uint32_t i = 0; i < user->n_models; i++) {
                requests[i] = digits_request(
                        &user->digits[i % 2], user->models[i], 32 * i, samples_of(user, round, i), &inputs[i], &outputs[i]);
                requests[i].user_data = i;
        }
        cr_assert_eq(starling_submit_many(user->queue, requests, user->n_models, NULL), (int)user->n_models);
        while (left) {
                int n = starling_wait(user->queue, completions, COPIES, SERVICE_LIMIT_NS);

                cr_assert_gt(n, 0);
                for (int i = 0; i < n; i++)
                        cr_assert_eq(completions[i].status, 0, "%s", starling_strerror(completions[i].status));
                left -= (uint32_t)n;
        }
        for (uint32_t i = 0; i < user->n_models; i++) {
                const struct digits *digits = &user->digits[i % 2];
                const float *made = outputs[i].data, *expected = digits->expected + 32 * i * DIGITS_CLASSES;

                for (uint32_t k = 0; k < samples_of(user, round, i) * DIGITS_CLASSES; k++)
                        cr_assert_float_eq(made[k], expected[k], 1e-5, "c%u, value %u: %g, not %g", i, k, made[k], expected[k]);
        }
        atomic_fetch_add(&user->done, 1);
}

static void *user_main(void *argument)
{
        struct user *user = argument;

        for (uint32_t round = 0; !atomic_load(&user->stop); round++)
                send_round(user, round);
        return NULL;
}

static void user_start(struct user *user)
{
        pthread_create(&user->thread, NULL, user_main, user);
}

static void user_stop(struct user *user)
{
        atomic_store(&user->stop, true);
        pthread_join(user->thread, NULL);
}

static void check_all(uint32_t instances, uint64_t inline_ns)
{
        struct service service;
        struct user user;

        service_init(&service);
        service.options.inline_ns = inline_ns;
        copy_models(&service, instances);
        start(&service);
        user_init(&user, &service, COPIES);
        for (uint32_t round = 0; round < 40; round++)
                send_round(&user, round);
        user_free(&user);
        service_stop(&service);
        cr_expect_not_null(strstr(service.log, "bundle-joined model=c2"), "%s", service.log);
        cr_expect_not_null(strstr(service.log, "bundle-joined model=c3"), "%s", service.log);
}

Test(fuse, one_carrier_answers_for_all_of_an_architecture, .timeout = 60)
{
        check_all(1, 0);
}

Test(fuse, several_carriers_answer_for_all_of_an_architecture, .timeout = 60)
{
        check_all(3, 0);
}

Test(fuse, the_dispatcher_computes_them_itself, .timeout = 60)
{
        check_all(1, 20000);
}

/* Batches of the model that merged plans have computed, by the workers of @executor that it has now; NULL: by all. */
static uint64_t count_merged(const struct sl_stats_view *view, const char *model, const char *executor)
{
        struct sl_worker_stats worker;
        uint64_t merged = 0;

        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_WORKERS); i++)
                if (sl_stats_read_worker(view, i, &worker) == 0 && strcmp(worker.model, model) == 0 &&
                        (!executor || strcmp(worker.executor, executor) == 0))
                        merged += sl_counter_read(&worker.merged);
        return merged;
}

static bool all_are_merged(const struct sl_stats_view *view)
{
        char name[16];

        for (uint32_t i = 0; i < COPIES; i++) {
                snprintf(name, sizeof(name), "c%u", i);
                if (!count_merged(view, name, NULL))
                        return false;
        }
        return true;
}

/* Everybody's answers are right before, while and after it is merged. */
static void send_until_merged(struct user *user, const struct sl_stats_view *view)
{
        uint32_t round = 0;

        do
                send_round(user, round++);
        while (!all_are_merged(view)); /* the test's limit ends it */
        for (uint32_t i = 0; i < 30; i++)
                send_round(user, round + i);
}

/* The copies of a service that was initialised, and what is to be seen of them. */
static struct sl_stats_view *watch(struct service *service, uint32_t instances, uint64_t inline_ns)
{
        struct sl_stats_view *view;

        service->options.inline_ns = inline_ns;
        copy_models(service, instances);
        start(service);
        cr_assert_eq(sl_stats_open(service->options.name, NULL, &view, NULL), 0);
        return view;
}

static struct sl_stats_view *start_watched(struct service *service, uint32_t instances, uint64_t inline_ns)
{
        service_init(service);
        return watch(service, instances, inline_ns);
}

Test(merge, members_are_merged_for_each_of_their_carriers, .timeout = 240)
{
        struct sl_stats_view *view;
        struct service service;
        struct user user;

        view = start_watched(&service, 2, 0);
        user_init(&user, &service, COPIES);
        user.alike = true;
        send_until_merged(&user, view);
        user_free(&user);
        sl_stats_close(view);
        service_stop(&service);
        cr_expect_not_null(strstr(service.log, "bundle-merged model=c0 models=4"), "%s", service.log);
        cr_expect_not_null(strstr(service.log, "bundle-merged model=c1 models=4"), "%s", service.log);
        cr_expect_gt(atomic_load(&merges_started), 0);
        cr_expect_eq(atomic_load(&merges_started_elsewhere), 0, "the control thread waits for no process");
}

static uint64_t bytes_of(const struct sl_stats_view *view, const char *use)
{
        struct sl_memory_stats memory;

        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_MEMORY); i++)
                if (sl_stats_read_memory(view, i, &memory) == 0 && strcmp(memory.name, use) == 0)
                        return sl_counter_read(&memory.bytes);
        return 0;
}

static void unload_all(struct starling_client *admin)
{
        struct starling_error error = {""};
        char name[16];

        for (uint32_t i = 0; i < COPIES; i++) {
                snprintf(name, sizeof(name), "c%u", i);
                cr_assert_eq(starling_admin_unload(admin, name, &error), 0, "%s", error.text);
        }
}

/* One of each network in turns, and all are sent to meanwhile. */
static void change_round(struct user *user, struct starling_client *admin, uint32_t round)
{
        struct starling_error error = {""};
        char name[16];

        service_touch(user->service);
        for (uint32_t i = 0; i < 2; i++) {
                snprintf(name, sizeof(name), "c%u", 2 * (round % LANES) + i);
                cr_assert_eq(starling_admin_reload(admin, name, &error), 0, "%s", error.text);
                send_round(user, round);
        }
}

Test(merge, the_dispatcher_computes_them_itself, .timeout = 240)
{
        struct sl_stats_view *view;
        struct service service;
        uint32_t round = 0;
        struct user user;

        view = start_watched(&service, 1, 10000000); /* also where a sanitizer makes them slow */
        user_init(&user, &service, COPIES);
        user.alike = true;
        do
                send_round(&user, round++);
        while (!count_merged(view, "c0", "inline"));
        user_free(&user);
        sl_stats_close(view);
        service_stop(&service);
}

Test(merge, who_changes_is_merged_again_and_nothing_is_kept, .timeout = 0)
{
        uint32_t rounds = getenv("SL_FUSE_ROUNDS") ? (uint32_t)atoi(getenv("SL_FUSE_ROUNDS")) : 2;
        struct starling_client *admin;
        struct sl_stats_view *view;
        struct service service;
        struct user user;

        view = start_watched(&service, 1, 0);
        admin = service_connect(&service, STARLING_ROLE_ADMIN);
        user_init(&user, &service, COPIES);
        user.alike = true;
        for (uint32_t round = 0; round < rounds; round++) {
                send_until_merged(&user, view);
                change_round(&user, admin, round);
        }
        user_free(&user);
        unload_all(admin);
        SERVICE_AWAIT(&service, !bytes_of(view, "workers") && !bytes_of(view, "plans") && !bytes_of(view, "compilers"));
        starling_close(admin);
        sl_stats_close(view);
        service_stop(&service);
}

Test(merge, nothing_is_merged_beyond_the_bound, .timeout = 60)
{
        struct service service;
        struct user user;

        service_init(&service);
        service.options.inline_ns = 0;
        service.options.fuse_bytes = 20000;
        copy_models(&service, 1);
        start(&service);
        user_init(&user, &service, COPIES);
        for (uint32_t round = 0; round < 10; round++)
                send_round(&user, round);
        service_expect_log(&service, "fuse_bytes is 20000");
        user_free(&user);
        service_stop(&service);
        cr_expect_null(strstr(service.log, "bundle-merged"), "%s", service.log);
}

static const char *find_last(const char *log, const char *text)
{
        const char *last = NULL;

        for (const char *at = strstr(log, text); at; at = strstr(at + 1, text))
                last = at;
        return last;
}

/* Whether the last line with @text is one that comes behind the last with @before. */
static bool has_logged_behind(struct service *service, const char *text, const char *before)
{
        pthread_mutex_lock(&service->log_lock);
        const char *last = find_last(service->log, text), *first = find_last(service->log, before);
        pthread_mutex_unlock(&service->log_lock);
        return last && first && last > first;
}

/* A client has all of the memory while a member goes, so that the others cannot be merged anew; then it leaves. */
Test(merge, what_was_refused_for_memory_is_merged_once_there_is_some, .timeout = 60)
{
        struct starling_error error = {""};
        struct starling_client *admin, *rich;
        struct starling_tensor tensor;
        struct service service;

        if (SL_SANITIZED)
                cr_skip("under a sanitizer a compiler's process has no limit of memory");
        service_init(&service);
        service.options.inline_ns = 0;
        service.options.memory_max = 112ull << 20;
        service.options.compile_memory_bytes = 512ull << 20;
        copy_models(&service, 1);
        start(&service);
        service_expect_log(&service, "bundle-merged model=c0 models=4");
        service_expect_log(&service, "bundle-merged model=c1 models=4");
        admin = service_connect(&service, STARLING_ROLE_ADMIN);
        cr_assert_eq(
                starling_connect(&(struct starling_options){.runtime = service.socket_path, .arena_bytes = 1 << 20}, &rich, &error),
                0, "%s", error.text);
        for (uint32_t mib = 256; mib; mib /= 2) /* all that there is for one user */
                while (starling_tensor_alloc(rich, STARLING_F32, 2, (const uint32_t[]){mib, 1 << 18}, &tensor) == 0)
                        ;
        cr_assert_eq(starling_admin_unload(admin, "c6", &error), 0, "%s", error.text);
        service_expect_log(&service, "bundle-not-merged model=c0 models=3");
        starling_close(rich);
        SERVICE_AWAIT(
                &service, has_logged_behind(&service, "bundle-merged model=c0 models=3", "bundle-not-merged model=c0 models=3"));
        starling_close(admin);
        service_stop(&service);
}

/* A compiler that merges nothing as long as there is a file @hold. */
static void write_compiler(const char *program, const char *hold)
{
        FILE *file = fopen(program, "w");

        cr_assert_not_null(file);
        fprintf(file, "#!/bin/sh\ncase \"$*\" in *--member*) while [ -e '%s' ]; do sleep 0.02; done;; esac\nexec '%s' \"$@\"\n",
                hold, COMPILE_CHILD);
        cr_assert_eq(fchmod(fileno(file), 0700), 0);
        fclose(file);
        file = fopen(hold, "w");
        cr_assert_not_null(file);
        fclose(file);
}

/* One of each network is to change while they are merged, and cannot: what it serves is in no file any more. */
Test(merge, who_fails_to_change_serves_on_and_the_others_are_merged, .timeout = 120)
{
        struct starling_error error = {""};
        struct starling_client *admin;
        struct sl_stats_view *view;
        struct service service;
        char program[128], hold[128];

        service_init(&service);
        snprintf(program, sizeof(program), "%s/compiler", service.directory);
        snprintf(hold, sizeof(hold), "%s/hold", service.directory);
        write_compiler(program, hold);
        service.options.compile_program = program;
        view = watch(&service, 1, 0);
        admin = service_connect(&service, STARLING_ROLE_ADMIN);
        SERVICE_AWAIT(&service, bytes_of(view, "compilers") > 0);
        for (uint32_t i = COPIES - 2; i < COPIES; i++) {
                pthread_mutex_lock(&service.specs_lock);
                service.specs[i].path = "/none.onnx";
                service.specs[i].stamp++;
                pthread_mutex_unlock(&service.specs_lock);
                cr_assert_lt(starling_admin_reload(admin, service.specs[i].name, &error), 0);
        }
        service_expect_log(&service, "one of its models goes or changes");
        cr_assert_eq(unlink(hold), 0);
        service_expect_log(&service, "model-not-merged model=c6");
        service_expect_log(&service, "model-not-merged model=c7");
        service_expect_log(&service, "bundle-merged model=c0 models=3");
        service_expect_log(&service, "bundle-merged model=c1 models=3");
        starling_close(admin);
        sl_stats_close(view);
        unlink(program);
        service_stop(&service);
}

/* Those that are sent to stay as they are. */
static void change_the_last(struct service *service, struct starling_client *admin, uint32_t round)
{
        static const char *const names[] = {"c4", "c5", "c6", "c7"};
        struct starling_error error = {""};
        const char *name = names[round % 4];

        switch (round % 3) {
        case 0:
                service_touch(service);
                cr_assert_eq(starling_admin_reload(admin, name, &error), 0, "%s", error.text);
                break;
        case 1:
                cr_assert_eq(starling_admin_unload(admin, name, &error), 0, "%s", error.text);
                cr_assert_eq(starling_admin_load(admin, name, &error), 0, "%s", error.text);
                break;
        default:
                pthread_mutex_lock(&service->specs_lock);
                service->specs[4 + round % 4].workers.n = 1 + round % 2;
                pthread_mutex_unlock(&service->specs_lock);
                cr_assert_eq(starling_admin_reload(admin, name, &error), 0, "%s", error.text);
        }
}

Test(fuse, members_come_and_go_while_others_serve, .timeout = 60)
{
        struct starling_client *admin;
        struct service service;
        struct user users[2];
        uint32_t done;

        service_init(&service);
        service.options.inline_ns = 0;
        copy_models(&service, 2);
        start(&service);
        admin = service_connect(&service, STARLING_ROLE_ADMIN);
        for (uint32_t i = 0; i < 2; i++) {
                user_init(&users[i], &service, 4);
                user_start(&users[i]);
        }
        for (uint32_t round = 0; round < 12; round++)
                change_the_last(&service, admin, round);
        done = atomic_load(&users[0].done);
        SERVICE_AWAIT(&service, atomic_load(&users[0].done) >= done + 2);
        for (uint32_t i = 0; i < 2; i++) {
                user_stop(&users[i]);
                user_free(&users[i]);
        }
        starling_close(admin);
        service_stop(&service);
}

Test(fuse, who_comes_back_with_another_architecture_leaves_with_one_line, .timeout = 60)
{
        struct starling_client *admin;
        struct starling_error error = {""};
        struct service service;
        struct user user;

        service_init(&service);
        copy_models(&service, 1);
        start(&service);
        admin = service_connect(&service, STARLING_ROLE_ADMIN);
        pthread_mutex_lock(&service.specs_lock);
        service.specs[6].path = service.specs[1].path; /* the other network */
        pthread_mutex_unlock(&service.specs_lock);
        service_touch(&service);
        cr_assert_eq(starling_admin_reload(admin, "c6", &error), 0, "%s", error.text);
        user_init(&user, &service, 4);
        send_round(&user, 0);
        user_free(&user);
        starling_close(admin);
        service_stop(&service);
        cr_expect_not_null(strstr(service.log, "1 bundle-left model=c6 "), "%s", service.log);
        cr_expect_null(strstr(service.log, "bundle-left model=c0"), "%s", service.log);
}
