/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wants that meet: whoever asks for the same waits for the same, and a later want takes the place of an earlier one whatever is
 * under way for that. A runtime in this process, whose compiler waits as long as a file is there that says so.
 */
#include "draft.h"
#include "service.h"
#include "stats.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASKERS 8

enum order { LOAD, RELOAD, UNLOAD, APPLY, CONFIGURE };

struct asker {
        struct service *service;
        enum order order;
        const char *model;
        uint32_t batch; /* APPLY: of its two workers */
        int result;
        struct starling_error error;
        pthread_t thread;
};

/* Scans of the one runtime that a test has: how many have begun, and whether they come to an end. */
static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        sl_runtime_scan_fn scan;
        uint32_t begun;
        bool held;
} scans = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int scan_when_let(void *context, const struct sl_model_spec **ret_specs, uint32_t *ret_n, struct sl_error *error)
{
        pthread_mutex_lock(&scans.lock);
        scans.begun++;
        while (scans.held)
                pthread_cond_wait(&scans.changed, &scans.lock);
        pthread_mutex_unlock(&scans.lock);
        return scans.scan(context, ret_specs, ret_n, error);
}

static void set_scans_held(bool held)
{
        pthread_mutex_lock(&scans.lock);
        scans.held = held;
        pthread_cond_signal(&scans.changed);
        pthread_mutex_unlock(&scans.lock);
}

static uint32_t scans_begun(void)
{
        uint32_t begun;

        pthread_mutex_lock(&scans.lock);
        begun = scans.begun;
        pthread_mutex_unlock(&scans.lock);
        return begun;
}

static int ask(struct starling_client *admin, struct asker *asker)
{
        const struct starling_allotment workers[] = {{asker->model, "cpu", asker->batch}, {asker->model, "cpu", asker->batch}};

        switch (asker->order) {
        case LOAD:
                return starling_admin_load(admin, asker->model, &asker->error);
        case RELOAD:
                return starling_admin_reload(admin, asker->model, &asker->error);
        case UNLOAD:
                return starling_admin_unload(admin, asker->model, &asker->error);
        case APPLY:
                return starling_admin_apply(admin, workers, 2, &asker->error);
        case CONFIGURE:
                return starling_admin_apply(admin, NULL, 0, &asker->error);
        }
        return -EINVAL;
}

static void *ask_main(void *argument)
{
        struct asker *asker = argument;
        struct starling_client *admin = service_connect(asker->service, STARLING_ROLE_ADMIN);

        asker->result = ask(admin, asker);
        starling_close(admin);
        return NULL;
}

static void begin_with(struct asker *asker, struct service *service, enum order order, uint32_t batch)
{
        *asker = (struct asker){.service = service, .order = order, .model = "lenet", .batch = batch};
        cr_assert_eq(pthread_create(&asker->thread, NULL, ask_main, asker), 0);
}

static void begin(struct asker *asker, struct service *service, enum order order)
{
        begin_with(asker, service, order, 1);
}

static int end(struct asker *asker)
{
        pthread_join(asker->thread, NULL);
        return asker->result;
}

static void check(struct service *service, const char *model, const char *expected)
{
        struct starling_client *client = service_connect(service, STARLING_ROLE_CLIENT);
        struct starling_queue *queue;
        struct starling_model *handle;
        struct digits digits;

        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        cr_assert_eq(starling_model_open(client, model, &handle, NULL), 0, "%s", service->log);
        digits_load(&digits, client, expected);
        digits_check(&digits, queue, handle, 0, DIGITS_SAMPLES);
        digits_free(&digits);
        starling_close(client);
}

/* Another file under the name of the first model, from the next scan on. */
static void set_file(struct service *service, const char *path)
{
        pthread_mutex_lock(&service->specs_lock);
        service->specs[0].path = path;
        service->specs[0].stamp++;
        pthread_mutex_unlock(&service->specs_lock);
}

/* While this file is there a compilation that begins does not end. */
static void hold_path(const struct service *service, char path[128])
{
        snprintf(path, 128, "%s/hold", service->directory);
}

static void hold(const struct service *service)
{
        char path[128];
        FILE *file;

        hold_path(service, path);
        file = fopen(path, "w");
        cr_assert_not_null(file);
        fclose(file);
}

static void let_go(const struct service *service)
{
        char path[128];

        hold_path(service, path);
        cr_assert_eq(unlink(path), 0);
}

static void write_compiler(const struct service *service, char program[128])
{
        char path[128];
        FILE *file;

        hold_path(service, path);
        snprintf(program, 128, "%s/compiler", service->directory);
        file = fopen(program, "w");
        cr_assert_not_null(file);
        fprintf(file, "#!/bin/sh\n[ -e '%s' ] && exec sleep 1000\nexec '%s' \"$@\"\n", path, COMPILE_CHILD);
        cr_assert_eq(fchmod(fileno(file), 0700), 0);
        fclose(file);
}

static void start(struct service *service)
{
        static char program[128];

        service_init(service);
        write_compiler(service, program);
        service->options.compile_program = program;
        scans.scan = service->options.scan;
        service->options.scan = scan_when_let;
        service->n_specs = 1;
        service_start(service);
        check(service, "lenet", "lenet");
}

static void stop(struct service *service)
{
        char path[128];

        hold_path(service, path);
        unlink(path);
        unlink(service->options.compile_program);
        service_stop(service);
}

Test(want, whoever_asks_for_the_same_waits_for_the_same, .timeout = 120)
{
        struct asker askers[ASKERS];
        struct service service;

        start(&service);
        service_touch(&service);
        for (uint32_t i = 0; i < ASKERS; i++)
                begin(&askers[i], &service, RELOAD);
        for (uint32_t i = 0; i < ASKERS; i++)
                cr_expect_eq(end(&askers[i]), 0, "%s", askers[i].error.text);
        check(&service, "lenet", "lenet");
        stop(&service);
}

/* A folder that does not answer holds up those who want what it has, and nobody else. */
Test(want, a_storm_of_orders_takes_two_scans_and_holds_up_nobody_who_looks, .timeout = 120)
{
        static const enum order kinds[ASKERS] = {RELOAD, LOAD, CONFIGURE, RELOAD, UNLOAD, LOAD, RELOAD, LOAD};
        struct asker first, askers[ASKERS];
        struct service service;
        uint32_t before;

        start(&service);
        set_scans_held(true);
        before = scans_begun();
        begin(&first, &service, RELOAD);
        SERVICE_AWAIT(&service, scans_begun() == before + 1);
        for (uint32_t i = 0; i < ASKERS; i++)
                begin(&askers[i], &service, kinds[i]);
        SERVICE_AWAIT(&service, service_count_logged(&service, "order order=") == 2 + ASKERS);
        check(&service, "lenet", "lenet");
        cr_expect_eq(scans_begun(), before + 1, "they wait for the next one");
        set_scans_held(false);
        end(&first);
        for (uint32_t i = 0; i < ASKERS; i++) {
                int result = end(&askers[i]);
                bool fits = result == 0 || result == -ECANCELED || result == -EEXIST || result == -ENOENT;

                cr_expect(fits, "%u: %d %s", i, result, askers[i].error.text);
        }
        cr_expect_eq(scans_begun(), before + 2);
        stop(&service);
}

/* What is written before somebody asks is what the answer is of, also during a scan that has not seen it. */
Test(want, an_order_waits_for_a_scan_that_begins_after_it, .timeout = 120)
{
        struct asker first, second;
        struct service service;
        uint32_t before;

        start(&service);
        set_scans_held(true);
        before = scans_begun();
        begin(&first, &service, RELOAD);
        SERVICE_AWAIT(&service, scans_begun() == before + 1);
        begin(&second, &service, RELOAD);
        SERVICE_AWAIT(&service, service_count_logged(&service, "order order=reload") == 2);
        set_scans_held(false);
        end(&first);
        cr_expect_eq(end(&second), 0, "%s", second.error.text);
        cr_expect_eq(scans_begun(), before + 2);
        stop(&service);
}

Test(want, a_later_one_takes_the_place_of_what_is_being_loaded, .timeout = 120)
{
        struct asker first, second;
        struct service service;

        start(&service);
        hold(&service);
        set_file(&service, service.specs[4].path);
        begin(&first, &service, RELOAD);
        service_expect_log(&service, "step=load model=lenet want=3");
        check(&service, "lenet", "lenet");
        let_go(&service);
        set_file(&service, service.specs[4].path);
        begin(&second, &service, RELOAD);
        cr_expect_eq(end(&second), 0, "%s", second.error.text);
        cr_expect_eq(end(&first), 0, "who asked before is answered with what has come of the last want: %s", first.error.text);
        check(&service, "lenet", "mlp");
        cr_expect_eq(service_count_logged(&service, "load-cancelled model=lenet"), 1, "%s", service.log);
        cr_expect_eq(service_count_logged(&service, "model-replaced model=lenet"), 1, "%s", service.log);
        stop(&service);
}

Test(want, what_served_is_wanted_again_and_nothing_is_loaded, .timeout = 120)
{
        struct asker first;
        struct service service;
        const char *lenet;
        uint64_t stamp;

        start(&service);
        lenet = service.specs[0].path;
        stamp = service.specs[0].stamp;
        hold(&service);
        set_file(&service, service.specs[4].path);
        begin(&first, &service, RELOAD);
        service_expect_log(&service, "step=load model=lenet want=3");
        pthread_mutex_lock(&service.specs_lock);
        service.specs[0].path = lenet;
        service.specs[0].stamp = stamp;
        pthread_mutex_unlock(&service.specs_lock);
        service_reload(&service);
        cr_expect_eq(end(&first), 0, "%s", first.error.text);
        service_expect_log(&service, "load-cancelled model=lenet");
        cr_expect_eq(service_count_logged(&service, "model-replaced"), 0, "%s", service.log);
        cr_expect_eq(service_count_logged(&service, "step=load"), 2, "%s", service.log);
        check(&service, "lenet", "lenet");
        stop(&service);
}

static bool says(struct sl_stats_view *view, const char *model, const char *why, struct sl_model_stats *ret_stats)
{
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_MODELS); i++)
                if (sl_stats_read_model(view, i, ret_stats) == 0 && !strcmp(ret_stats->name, model) && !strcmp(ret_stats->why, why))
                        return true;
        return false;
}

static struct sl_model_stats expect_why(struct service *service, struct sl_stats_view *view, const char *model, const char *why)
{
        struct sl_model_stats stats;

        SERVICE_AWAIT(service, says(view, model, why, &stats));
        return stats;
}

/* What clients are told that would open it. */
static void expect_unopened(struct service *service, const char *model, const char *text)
{
        struct starling_client *client = service_connect(service, STARLING_ROLE_CLIENT);
        struct starling_error error = {""};
        struct starling_model *handle;

        cr_expect_eq(starling_model_open(client, model, &handle, &error), -EAGAIN);
        cr_expect_not_null(strstr(error.text, text), "%s", error.text);
        starling_close(client);
}

static void expect_wait(const struct sl_model_stats *model, const char *awaits, const char *step)
{
        cr_expect_str_eq(model->awaits, awaits);
        cr_expect_str_eq(model->step, step, "%s: then %s", model->name, model->step);
        cr_expect_str_eq(model->origin, "repository");
        cr_expect(model->want && !model->want_served && !model->want_failed);
        cr_expect(model->wanted_ns && model->awaits_ns >= model->wanted_ns, "it waits once it is wanted");
}

/* The page that `starling stats` and `starling top` read. */
Test(want, what_is_on_its_way_says_what_it_waits_for, .timeout = 120)
{
        struct asker first, second;
        struct sl_model_stats digits, first_one, last_one, lenet, of;
        struct sl_stats_view *view;
        struct service service;

        start(&service);
        cr_assert_eq(sl_stats_open(service.options.name, NULL, &view, NULL), 0);
        hold(&service);
        pthread_mutex_lock(&service.specs_lock);
        service.n_specs = 6; /* "digits" is an ensemble of all */
        pthread_mutex_unlock(&service.specs_lock);
        service_reload(&service);
        digits = expect_why(&service, view, "digits", "waits for its members");
        first_one = expect_why(&service, view, service.specs[1].name, "waits for its load");
        last_one = expect_why(&service, view, service.specs[4].name, "waits for the end of other loads");
        lenet = expect_why(&service, view, "lenet", "");
        expect_wait(&digits, "its members", "compose");
        expect_wait(&first_one, "its load", "serve");
        expect_wait(&last_one, "the end of other loads", "load");
        cr_assert_eq(sl_stats_read_model(view, digits.awaits_of, &of), 0);
        cr_expect_str_eq(of.name, service.specs[1].name, "the first member that is not there");
        cr_expect(lenet.want && lenet.want_served == lenet.want && !lenet.awaits[0]);
        expect_unopened(&service, "digits", "still loading: it waits for its members");
        expect_unopened(&service, service.specs[1].name, "still loading: it waits for its load");
        begin(&first, &service, LOAD);
        cr_expect_eq(end(&first), -EEXIST, "what serves is not held up: %s", first.error.text);
        begin(&second, &service, UNLOAD);
        cr_expect_eq(end(&second), -EBUSY, "an ensemble needs it: %s", second.error.text);
        sl_stats_close(view);
        stop(&service);
}

static uint64_t steps_taken(struct sl_stats_view *view, const char *kind)
{
        struct sl_step_stats stats;

        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_STEPS); i++)
                if (sl_stats_read_step(view, i, &stats) == 0 && !strcmp(stats.name, kind))
                        return sl_counter_read(&stats.taken);
        cr_assert_fail("no slot of the step \"%s\"", kind);
        return 0;
}

static const char *const kinds[] = {
        "load", "cancel", "serve", "fail", "share", "compose", "workers", "settle", "withdraw", "forget"};

/* The log has a line for each; some steps come behind the answer. */
static bool each_is_counted(struct service *service, struct sl_stats_view *view)
{
        bool same = true;
        char line[32];

        for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
                snprintf(line, sizeof(line), "step=%s ", kinds[i]);
                same &= steps_taken(view, kinds[i]) == service_count_logged(service, line);
        }
        return same;
}

Test(want, each_step_is_counted_by_its_kind, .timeout = 120)
{
        struct sl_stats_view *view;
        struct service service;
        struct asker asker;

        start(&service);
        cr_assert_eq(sl_stats_open(service.options.name, NULL, &view, NULL), 0);
        service_touch(&service);
        begin(&asker, &service, RELOAD);
        cr_expect_eq(end(&asker), 0, "%s", asker.error.text);
        begin(&asker, &service, APPLY);
        cr_expect_eq(end(&asker), 0, "%s", asker.error.text);
        begin(&asker, &service, UNLOAD);
        cr_expect_eq(end(&asker), 0, "%s", asker.error.text);
        SERVICE_AWAIT(&service, each_is_counted(&service, view));
        cr_expect_eq(steps_taken(view, "load"), 2);
        cr_expect_eq(steps_taken(view, "withdraw"), 1);
        sl_stats_close(view);
        stop(&service);
}

Test(want, an_unload_ends_what_is_being_loaded, .timeout = 120)
{
        struct asker first, second;
        struct service service;

        start(&service);
        hold(&service);
        set_file(&service, service.specs[4].path);
        begin(&first, &service, RELOAD);
        service_expect_log(&service, "step=load model=lenet want=3");
        begin(&second, &service, UNLOAD);
        cr_expect_eq(end(&second), 0, "%s", second.error.text);
        cr_expect_eq(end(&first), -ECANCELED);
        cr_expect_not_null(strstr(first.error.text, "it was unloaded"), "%s", first.error.text);
        service_expect_log(&service, "model-unloaded model=lenet");
        stop(&service);
}

Test(want, a_load_takes_the_place_of_an_unload, .timeout = 120)
{
        struct asker askers[2 * ASKERS];
        struct service service;
        uint32_t gone = 0;

        start(&service);
        for (uint32_t i = 0; i < 2 * ASKERS; i++)
                begin(&askers[i], &service, i % 2 ? LOAD : UNLOAD);
        for (uint32_t i = 0; i < 2 * ASKERS; i++) {
                int result = end(&askers[i]);
                bool fits = result == 0 || result == -ECANCELED || result == (i % 2 ? -EEXIST : -ENOENT);

                cr_expect(fits, "%u: %d %s", i, result, askers[i].error.text);
                gone += !(i % 2) && result == 0;
        }
        begin(&askers[0], &service, LOAD);
        end(&askers[0]);
        cr_expect(askers[0].result == 0 || askers[0].result == -EEXIST, "%s", askers[0].error.text);
        cr_expect_leq(gone, ASKERS);
        check(&service, "lenet", "lenet");
        stop(&service);
}

static uint32_t workers_of_any(struct sl_stats_view *view)
{
        struct sl_worker_stats worker;
        uint32_t n = 0;

        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_WORKERS); i++)
                n += sl_stats_read_worker(view, i, &worker) == 0 && worker.state == SL_STATS_WORKER_SERVING &&
                     strcmp(worker.executor, "inline") != 0;
        return n;
}

static void expect_workers_of_any(struct service *service, struct sl_stats_view *view, uint32_t n)
{
        SERVICE_AWAIT(service, workers_of_any(view) == n);
}

/* A second name of the first one's file, with that many workers, while the first is to have two. */
static void check_twins(uint32_t more)
{
        struct sl_stats_view *view;
        struct service service;
        struct asker asker;

        start(&service);
        cr_assert_eq(sl_stats_open(service.options.name, NULL, &view, NULL), 0);
        pthread_mutex_lock(&service.specs_lock);
        service.specs[1] = service.specs[0];
        service.specs[1].name = "twin";
        service.specs[0].workers.n = 2;
        service.specs[1].workers.n = more;
        service.n_specs = 2;
        pthread_mutex_unlock(&service.specs_lock);
        service_reload(&service);
        service_expect_log(&service, "step=share model=twin");
        expect_workers_of_any(&service, view, more > 2 ? more : 2);
        asker = (struct asker){.service = &service, .order = UNLOAD, .model = "twin"};
        cr_assert_eq(pthread_create(&asker.thread, NULL, ask_main, &asker), 0);
        cr_expect_eq(end(&asker), 0, "%s", asker.error.text);
        expect_workers_of_any(&service, view, 2);
        check(&service, "lenet", "lenet");
        sl_stats_close(view);
        stop(&service);
}

Test(want, names_of_a_file_have_the_most_workers_that_one_of_them_wants, .timeout = 240)
{
        check_twins(1);
        check_twins(3);
}

static void reload(struct service *service, const char *model)
{
        struct asker asker = {.service = service, .order = RELOAD, .model = model};

        cr_assert_eq(pthread_create(&asker.thread, NULL, ask_main, &asker), 0);
        cr_expect_eq(end(&asker), 0, "%s: %s", model, asker.error.text);
}

/* Nothing of the file has changed: who reloads knows better, of this name. */
Test(want, a_reload_is_loaded_whatever_other_names_of_the_file_have, .timeout = 120)
{
        struct sl_stats_view *view;
        struct service service;
        uint64_t loads;

        start(&service);
        cr_assert_eq(sl_stats_open(service.options.name, NULL, &view, NULL), 0);
        pthread_mutex_lock(&service.specs_lock);
        service.specs[1] = service.specs[0];
        service.specs[1].name = "twin";
        service.n_specs = 2;
        pthread_mutex_unlock(&service.specs_lock);
        service_reload(&service);
        service_expect_log(&service, "step=share model=twin");
        loads = steps_taken(view, "load");
        for (uint32_t i = 0; i < 3; i++) {
                reload(&service, "lenet");
                cr_expect_eq(steps_taken(view, "load"), ++loads, "%s", service.log);
                reload(&service, "twin");
                cr_expect_eq(steps_taken(view, "load"), ++loads, "%s", service.log);
        }
        cr_expect_eq(steps_taken(view, "share"), 1);
        check(&service, "lenet", "lenet");
        check(&service, "twin", "lenet");
        sl_stats_close(view);
        stop(&service);
}

/* How many more allotments there is memory for. Whether those of a session count depends on the linker. */
static atomic_int allotments_left = INT_MAX;

struct sl_allotment *__real_sl_draft_add(struct sl_draft *draft, const char *model);
struct sl_allotment *__wrap_sl_draft_add(struct sl_draft *draft, const char *model);

struct sl_allotment *__wrap_sl_draft_add(struct sl_draft *draft, const char *model)
{
        return atomic_fetch_sub(&allotments_left, 1) > 0 ? __real_sl_draft_add(draft, model) : NULL;
}

static void start_three(struct service *service, struct starling_allotment ret_workers[3])
{
        start(service);
        pthread_mutex_lock(&service->specs_lock);
        service->n_specs = 3;
        pthread_mutex_unlock(&service->specs_lock);
        service_reload(service);
        for (uint32_t i = 0; i < 3; i++)
                ret_workers[i] = (struct starling_allotment){service->specs[i].name, "cpu", 2};
}

static void expect_loaded(struct starling_client *admin, const char *model)
{
        struct starling_error error = {""};
        int result = starling_admin_load(admin, model, &error);

        cr_expect(result == 0 || result == -EEXIST, "%s: %d %s", model, result, error.text);
}

/* The connection of who asks would have a second answer for that of its next question. */
Test(want, who_applies_without_memory_is_answered_once_and_nothing_has_changed, .timeout = 120)
{
        struct starling_allotment workers[3];
        struct starling_error error = {""};
        struct starling_client *admin;
        struct service service;
        uint32_t changes;
        int needed;

        start_three(&service, workers);
        admin = service_connect(&service, STARLING_ROLE_ADMIN);
        for (uint32_t i = 0; i < 3; i++)
                expect_loaded(admin, workers[i].model);
        cr_expect_eq(starling_admin_apply(admin, workers, 3, &error), 0, "%s", error.text);
        needed = INT_MAX - atomic_load(&allotments_left);
        cr_expect_eq(starling_admin_apply(admin, NULL, 0, &error), 0, "%s", error.text);
        changes = service_count_logged(&service, "step=workers");
        cr_expect_geq(changes, 3);
        atomic_store(&allotments_left, needed - 1);
        cr_expect_eq(starling_admin_apply(admin, workers, 3, &error), -ENOMEM, "%s", error.text);
        atomic_store(&allotments_left, INT_MAX);
        for (uint32_t i = 0; i < 3; i++)
                cr_expect_eq(starling_admin_load(admin, workers[i].model, &error), -EEXIST, "%s", error.text);
        cr_expect_eq(service_count_logged(&service, "step=workers"), changes, "%s", service.log);
        cr_expect_eq(starling_admin_apply(admin, workers, 3, &error), 0, "%s", error.text);
        cr_expect_gt(service_count_logged(&service, "step=workers"), changes, "%s", service.log);
        starling_close(admin);
        stop(&service);
}

Test(want, allocations_that_meet_are_applied_together, .timeout = 120)
{
        struct asker askers[ASKERS];
        struct service service;

        start(&service);
        for (uint32_t i = 0; i < ASKERS; i++)
                begin_with(&askers[i], &service, APPLY, 1u << i % 4);
        for (uint32_t i = 0; i < ASKERS; i++)
                cr_expect_eq(end(&askers[i]), 0, "%s", askers[i].error.text);
        check(&service, "lenet", "lenet");
        begin(&askers[0], &service, CONFIGURE);
        cr_expect_eq(end(&askers[0]), 0, "%s", askers[0].error.text);
        check(&service, "lenet", "lenet");
        stop(&service);
}

/* Several ask at the same time, again and again, and each is answered. */
static void storm(enum order order)
{
        struct asker askers[ASKERS];
        struct service service;
        uint32_t answered = 0;

        start(&service);
        for (uint32_t round = 0; round < 20; round++) {
                for (uint32_t i = 0; i < ASKERS; i++)
                        begin(&askers[i], &service, order);
                for (uint32_t i = 0; i < ASKERS; i++)
                        answered += end(&askers[i]) == 0;
        }
        cr_expect_eq(answered, 20 * ASKERS, "%s", service.log);
        check(&service, "lenet", "lenet");
        stop(&service);
}

Test(want, a_storm_of_reloads_is_answered_to_the_last, .timeout = 240)
{
        storm(RELOAD);
}

Test(want, a_storm_of_allocations_is_answered_to_the_last, .timeout = 240)
{
        storm(APPLY);
}

Test(want, a_storm_of_the_configurations_allocation_is_answered_to_the_last, .timeout = 240)
{
        storm(CONFIGURE);
}
