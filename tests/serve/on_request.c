/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models that are loaded on request, in a runtime in this process: who waits for a load and how it ends, and that none is unloaded
 * which a request is in flight for.
 */
#include "builder.h"
#include "gate.h"
#include "prepared.h"
#include "service.h"
#include "stats.h"
#include "warm_up.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define NAMES 3u

static const char *const names[NAMES] = {"a", "b", "c"};

struct scene {
        struct service service;
        char models[NAMES][96], program[96], hold[96];
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_tensor input, output;
};

static void write_file(const char *path, const void *bytes, size_t n, mode_t mode)
{
        FILE *file = fopen(path, "wb");

        cr_assert(file && fwrite(bytes, 1, n, file) == n);
        fclose(file);
        chmod(path, mode);
}

/* y [N, width] = x + number. */
static void write_model(struct scene *s, uint32_t i, float number, int64_t width)
{
        struct builder *b = builder_new(13);
        size_t n_bytes;
        const uint8_t *bytes;

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, width));
        builder_floats(b, "c", DIMS(1), (float[]){number});
        builder_node(b, "Add", "x,c", "y");
        builder_declare_output(b, "y", SL_DTYPE_F32, DIMS(-1, width));
        bytes = builder_pack(b, &n_bytes);
        unlink(s->models[i]);
        write_file(s->models[i], bytes, n_bytes, 0600);
        builder_free(b);
}

/* Compiles nothing as long as the file `hold` is there. */
static void write_program(struct scene *s)
{
        char text[512];
        int n = snprintf(
                text, sizeof(text), "#!/bin/sh\nwhile [ -e %s ]; do sleep 0.02; done\nexec %s \"$@\"\n", s->hold, COMPILE_CHILD);

        write_file(s->program, text, (size_t)n, 0700);
        s->service.options.compile_program = s->program;
}

static void hold_loads(struct scene *s)
{
        write_file(s->hold, "", 0, 0600);
}

static void begin(struct scene *s)
{
        memset(s, 0, sizeof(*s));
        service_init(&s->service);
        snprintf(s->program, sizeof(s->program), "%s/compiler", s->service.directory);
        snprintf(s->hold, sizeof(s->hold), "%s/hold", s->service.directory);
        for (uint32_t i = 0; i < NAMES; i++) {
                snprintf(s->models[i], sizeof(s->models[i]), "%s/%s.onnx", s->service.directory, names[i]);
                write_model(s, i, (float)i, 4);
                s->service.specs[i].name = names[i];
                s->service.specs[i].path = s->models[i];
                s->service.specs[i].on_request = true;
        }
        s->service.n_specs = NAMES;
        s->service.options.inline_ns = 0;
}

static void start(struct scene *s)
{
        service_start(&s->service);
        s->client = service_connect(&s->service, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(s->client, &s->queue, NULL), 0);
        cr_assert_eq(starling_tensor_alloc(s->client, STARLING_F32, 2, (uint32_t[]){1, 4}, &s->input), 0);
        cr_assert_eq(starling_tensor_alloc(s->client, STARLING_F32, 2, (uint32_t[]){1, 4}, &s->output), 0);
        for (int i = 0; i < 4; i++)
                ((float *)s->input.data)[i] = (float)i;
}

static void end(struct scene *s)
{
        starling_close(s->client);
        unlink(s->hold);
        unlink(s->program);
        for (uint32_t i = 0; i < NAMES; i++)
                unlink(s->models[i]);
        service_stop(&s->service);
}

static struct starling_model *open_model(struct scene *s, const char *name)
{
        struct starling_model *model;
        struct starling_error error;

        cr_assert_eq(starling_model_open(s->client, name, &model, &error), 0, "%s", error.text);
        return model;
}

static struct starling_request request(struct scene *s, struct starling_model *model)
{
        return (struct starling_request){.model = model, .inputs = &s->input, .n_inputs = 1, .outputs = &s->output, .n_outputs = 1};
}

static int infer(struct scene *s, struct starling_model *model)
{
        struct starling_request wanted = request(s, model);
        struct starling_completion done;

        return starling_infer(s->queue, &wanted, &done);
}

static void expect_answer(struct scene *s, struct starling_model *model, float number)
{
        memset(s->output.data, 0, 16);
        cr_assert_eq(infer(s, model), 0);
        for (int i = 0; i < 4; i++)
                cr_expect_eq(((float *)s->output.data)[i], (float)i + number);
}

static enum starling_model_state state_of(struct scene *s, const char *name)
{
        static struct starling_model_entry entries[4096];
        int n = starling_model_list(s->client, entries, 4096);

        for (int i = 0; i < n; i++)
                if (strcmp(entries[i].name, name) == 0)
                        return entries[i].state;
        return 0;
}

static void await_state(struct scene *s, const char *name, enum starling_model_state state)
{
        SERVICE_AWAIT(&s->service, state_of(s, name) == state);
}

Test(on_request, nothing_is_loaded_that_nobody_has_asked_for, .timeout = 60)
{
        struct scene s;

        begin(&s);
        start(&s);
        for (uint32_t i = 0; i < NAMES; i++)
                cr_expect_eq(state_of(&s, names[i]), STARLING_MODEL_AVAILABLE);
        expect_answer(&s, open_model(&s, "b"), 1);
        await_state(&s, "b", STARLING_MODEL_READY);
        cr_expect_eq(state_of(&s, "a"), STARLING_MODEL_AVAILABLE);
        cr_expect_not(service_has_logged(&s.service, "model=a"));
        end(&s);
}

/* As the statistics have it. */
static struct sl_model_stats read_model(struct scene *s, const char *name)
{
        struct sl_model_stats model = {.name = ""};
        struct sl_stats_view *stats;

        cr_assert_eq(sl_stats_open(s->service.options.name, NULL, &stats, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(stats, SL_STATS_MODELS) && strcmp(model.name, name); i++)
                if (sl_stats_read_model(stats, i, &model) < 0)
                        model.name[0] = 0;
        sl_stats_close(stats);
        return model;
}

static uint32_t count_workers(struct scene *s, const char *name)
{
        struct sl_worker_stats worker;
        struct sl_stats_view *stats;
        uint32_t n = 0;

        cr_assert_eq(sl_stats_open(s->service.options.name, NULL, &stats, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(stats, SL_STATS_WORKERS); i++)
                n += sl_stats_read_worker(stats, i, &worker) == 0 && strcmp(worker.model, name) == 0;
        sl_stats_close(stats);
        return n;
}

/* With a queue and an output of its own. */
static void infer_beside(struct scene *s, struct starling_model *model, float number)
{
        struct starling_request wanted = request(s, model);
        struct starling_queue *queue;
        struct starling_tensor output;

        cr_assert_eq(starling_queue_open(s->client, &queue, NULL), 0);
        cr_assert_eq(starling_tensor_alloc(s->client, STARLING_F32, 2, (uint32_t[]){1, 4}, &output), 0);
        wanted.outputs = &output;
        cr_assert_eq(starling_infer(queue, &wanted, NULL), 0);
        for (int i = 0; i < 4; i++)
                cr_expect_eq(((float *)output.data)[i], (float)i + number);
        starling_queue_close(queue);
}

/* Its workers leave behind the last request. */
static void expect_standby(struct scene *s, const char *name)
{
        await_state(s, name, STARLING_MODEL_STANDBY);
        SERVICE_AWAIT(&s->service, count_workers(s, name) == 0);
}

Test(on_request, a_plan_on_standby_is_there_before_anybody_asks_and_stays_when_nobody_does, .timeout = 60)
{
        struct starling_model *a;
        struct scene s;

        begin(&s);
        for (uint32_t i = 0; i < NAMES; i++)
                s.service.specs[i].standby = true;
        s.service.specs[0].idle_standby_ns = s.service.specs[0].idle_unload_ns = 50000000;
        start(&s);
        for (uint32_t i = 0; i < NAMES; i++)
                expect_standby(&s, names[i]);
        a = open_model(&s, "a");
        cr_expect_eq(state_of(&s, "a"), STARLING_MODEL_STANDBY, "who opens it waits for nothing");
        for (int i = 0; i < 3; i++) {
                unlink(s.models[0]); /* it is not read again */
                expect_answer(&s, a, 0);
                expect_standby(&s, "a");
        }
        expect_answer(&s, open_model(&s, "b"), 1);
        await_state(&s, "b", STARLING_MODEL_READY);
        SERVICE_AWAIT(&s.service, count_workers(&s, "b") == 1);
        end(&s);
}

int __wrap_sl_warm_up_first(struct sl_warm_up *warm_up);
int __real_sl_warm_up_first(struct sl_warm_up *warm_up);

static _Atomic uint32_t first_samples; /* that workers have run before they were ready */
static _Atomic uint64_t first_takes_ns;

int __wrap_sl_warm_up_first(struct sl_warm_up *warm_up)
{
        int r = __real_sl_warm_up_first(warm_up);

        atomic_fetch_add(&first_samples, 1);
        if (atomic_load(&first_takes_ns))
                warm_up->first_ns = atomic_load(&first_takes_ns);
        return r;
}

/* It is woken by a request, which computes a sample itself. One that the dispatcher may compute has to be timed. */
Test(on_request, what_has_run_before_runs_no_sample_when_it_is_woken, .timeout = 60)
{
        struct starling_model *a;
        struct scene s;

        atomic_store(&first_takes_ns, 1000000000);
        begin(&s);
        s.service.specs[0].standby = true;
        s.service.specs[0].idle_standby_ns = 50000000;
        start(&s);
        expect_standby(&s, "a");
        a = open_model(&s, "a");
        for (int i = 0; i < 3; i++) {
                expect_answer(&s, a, 0);
                expect_standby(&s, "a");
                cr_expect_eq(atomic_load(&first_samples), 1);
        }
        end(&s);
}

/* What no request has shown to be so may have been slow by chance: by that alone a variant would never be chosen. */
Test(on_request, what_has_been_woken_in_vain_runs_a_sample_when_it_is_woken_again, .timeout = 60)
{
        struct starling_client *admin;
        struct starling_model *a;
        struct scene s;

        atomic_store(&first_takes_ns, 1000000000);
        begin(&s);
        s.service.specs[0].standby = true;
        s.service.specs[0].idle_standby_ns = 50000000;
        start(&s);
        admin = service_connect(&s.service, STARLING_ROLE_ADMIN);
        expect_standby(&s, "a");
        for (uint32_t i = 0; i < 3; i++) {
                cr_assert_eq(starling_admin_load(admin, "a", NULL), 0);
                expect_standby(&s, "a");
                cr_expect_eq(atomic_load(&first_samples), i + 1);
        }
        a = open_model(&s, "a");
        expect_answer(&s, a, 0);
        expect_standby(&s, "a");
        cr_expect_eq(atomic_load(&first_samples), 4);
        expect_answer(&s, a, 0);
        expect_standby(&s, "a");
        cr_expect_eq(atomic_load(&first_samples), 4);
        starling_close(admin);
        end(&s);
}

Test(on_request, what_may_be_inline_runs_a_sample_each_time_it_is_woken, .timeout = 60)
{
        struct starling_model *a;
        struct scene s;

        atomic_store(&first_takes_ns, 1);
        begin(&s);
        s.service.options.inline_ns = 20000;
        s.service.specs[0].standby = true;
        s.service.specs[0].idle_standby_ns = 50000000;
        start(&s);
        expect_standby(&s, "a");
        a = open_model(&s, "a");
        for (uint32_t i = 0; i < 3; i++) {
                expect_answer(&s, a, 0);
                expect_standby(&s, "a");
                cr_expect_eq(atomic_load(&first_samples), i + 1);
        }
        end(&s);
}

/* Whichever time is shorter. */
Test(on_request, of_a_plan_that_stays_the_workers_leave_after_idle_unload_as_well, .timeout = 60)
{
        struct starling_model *a;
        struct scene s;

        begin(&s);
        s.service.specs[0].standby = true;
        s.service.specs[0].idle_unload_ns = 50000000;
        s.service.specs[0].idle_standby_ns = 3600ull * 1000000000;
        start(&s);
        expect_standby(&s, "a");
        a = open_model(&s, "a");
        for (int i = 0; i < 2; i++) {
                expect_answer(&s, a, 0);
                expect_standby(&s, "a");
        }
        end(&s);
}

/* Each new file stands by before anybody asks, serves, and gives its place to the next one. */
Test(on_request, what_stands_by_gives_way_to_the_next_file_as_often_as_it_changes, .timeout = 60)
{
        struct starling_client *admin;
        struct starling_model *a;
        struct scene s;

        begin(&s);
        s.service.specs[0].standby = true;
        start(&s);
        admin = service_connect(&s.service, STARLING_ROLE_ADMIN);
        expect_standby(&s, "a");
        a = open_model(&s, "a");
        for (int i = 1; i <= 3; i++) {
                expect_answer(&s, a, i == 1 ? 0 : (float)(i - 1));
                write_model(&s, 0, (float)i, 4);
                cr_assert_eq(starling_admin_reload(admin, "a", NULL), 0, "%s", s.service.log);
        }
        expect_answer(&s, a, 3);
        cr_expect_eq(starling_admin_unload(admin, "a", NULL), 0);
        cr_expect_eq(starling_admin_load(admin, "a", NULL), 0, "%s", s.service.log);
        starling_close(admin);
        end(&s);
}

void __wrap_sl_prepared_free(struct sl_prepared *prepared);
void __real_sl_prepared_free(struct sl_prepared *prepared);

static _Atomic bool workers_stay;      /* whoever ends waits until this is false */
static _Atomic uint32_t workers_ended; /* that have come so far */

void __wrap_sl_prepared_free(struct sl_prepared *prepared)
{
        atomic_fetch_add(&workers_ended, 1);
        while (atomic_load(&workers_stay))
                usleep(1000);
        __real_sl_prepared_free(prepared);
}

/* Whoever asks the control thread for something else is answered meanwhile. */
Test(on_request, nobody_waits_for_a_worker_that_cannot_end, .timeout = 60)
{
        struct starling_client *admin;
        struct scene s;

        begin(&s);
        start(&s);
        admin = service_connect(&s.service, STARLING_ROLE_ADMIN);
        expect_answer(&s, open_model(&s, "a"), 0);
        atomic_store(&workers_stay, true);
        cr_expect_eq(starling_admin_unload(admin, "a", NULL), 0);
        while (!atomic_load(&workers_ended))
                usleep(1000);
        expect_answer(&s, open_model(&s, "b"), 1);
        cr_expect_eq(starling_admin_load(admin, "a", NULL), 0);
        expect_answer(&s, open_model(&s, "a"), 0);
        cr_expect_eq(count_workers(&s, "a"), 2, "the one that cannot end has its place");
        atomic_store(&workers_stay, false);
        for (int i = 0; i < 6000 && count_workers(&s, "a") > 1; i++)
                usleep(10000);
        cr_expect_eq(count_workers(&s, "a"), 1);
        starling_close(admin);
        end(&s);
}

Test(on_request, what_is_idle_goes_on_standby_and_then_altogether, .timeout = 60)
{
        struct starling_model *a;
        struct scene s;

        begin(&s);
        s.service.specs[0].idle_standby_ns = 20000000;
        s.service.specs[0].idle_unload_ns = 200000000;
        start(&s);
        cr_expect_eq(state_of(&s, "a"), STARLING_MODEL_AVAILABLE, "nothing of it is there before somebody asks");
        a = open_model(&s, "a");
        /* A runtime that has no processor meanwhile finds it idle for both at once, but not each time. */
        for (int i = 0; i < 2 || !service_has_logged(&s.service, "standby-ended model=a"); i++) {
                expect_answer(&s, a, 0);
                usleep(300000);
                await_state(&s, "a", STARLING_MODEL_AVAILABLE);
        }
        service_expect_log(&s.service, "model-standby model=a");
        service_expect_log(&s.service, "standby-ended model=a");
        end(&s);
}

Test(on_request, what_is_on_standby_waits_for_no_load_of_others, .timeout = 60)
{
        struct starling_completion done;
        struct starling_request wanted;
        struct starling_model *a, *b;
        struct scene s;
        uint64_t id;

        begin(&s);
        s.service.options.compile_jobs = 1;
        s.service.specs[0].standby = true;
        s.service.specs[1].idle_unload_ns = 50000000;
        write_program(&s);
        start(&s);
        expect_standby(&s, "a");
        a = open_model(&s, "a");
        b = open_model(&s, "b");
        expect_answer(&s, b, 1);
        service_expect_log(&s.service, "model-unloaded-idle model=b"); /* an answer may come before the catalogue has its state */
        await_state(&s, "b", STARLING_MODEL_AVAILABLE);
        hold_loads(&s);
        wanted = request(&s, b);
        cr_assert_eq(starling_submit(s.queue, &wanted, &id), 0);
        while (read_model(&s, "b").state != SL_STATS_MODEL_LOADING) /* the only one at a time */
                usleep(1000);
        infer_beside(&s, a, 0);
        cr_expect_eq(read_model(&s, "b").state, SL_STATS_MODEL_LOADING);
        unlink(s.hold);
        cr_assert_eq(starling_wait(s.queue, &done, 1, STARLING_FOREVER), 1);
        cr_expect_eq(done.status, 0);
        end(&s);
}

/* The dispatcher has taken a request for "a". */
static bool is_in_flight(struct scene *s)
{
        struct sl_model_stats model = read_model(s, "a");

        return sl_counter_read(&model.in_flight) > 0;
}

Test(on_request, no_model_makes_room_that_a_request_is_in_flight_for, .timeout = 60)
{
        struct starling_completion done;
        struct starling_request wanted;
        struct starling_error error;
        struct starling_model *a, *b;
        struct scene s;
        uint64_t id;

        begin(&s);
        s.service.options.models_max = 1;
        start(&s);
        a = open_model(&s, "a");
        await_state(&s, "a", STARLING_MODEL_READY);
        wanted = request(&s, a);
        gate_shut();
        cr_assert_eq(starling_submit(s.queue, &wanted, &id), 0);
        while (!is_in_flight(&s)) /* a worker is about to compute it */
                usleep(1000);
        cr_expect_eq(starling_model_open(s.client, "b", &b, &error), -EAGAIN, "\"a\" has made room: %s", s.service.log);
        cr_expect(strstr(error.text, "model \"b\" is not loaded: limits.models_max_loaded is 1"), "%s", error.text);
        cr_expect_eq(state_of(&s, "b"), STARLING_MODEL_AVAILABLE);
        gate_open();
        cr_assert_eq(starling_wait(s.queue, &done, 1, STARLING_FOREVER), 1);
        cr_expect_eq(done.status, 0);
        b = open_model(&s, "b");
        expect_answer(&s, b, 1);
        await_state(&s, "a", STARLING_MODEL_AVAILABLE);
        expect_answer(&s, a, 0); /* its handle is as good as before, and "b" goes */
        await_state(&s, "b", STARLING_MODEL_AVAILABLE);
        end(&s);
}

Test(on_request, who_waits_longer_than_load_wait_is_told_and_the_load_goes_on, .timeout = 60)
{
        struct starling_error error;
        struct starling_model *a;
        struct scene s;

        begin(&s);
        s.service.options.load_wait_ns = 100000000;
        write_program(&s);
        hold_loads(&s);
        start(&s);
        cr_expect_eq(starling_model_open(s.client, "a", &a, &error), -EAGAIN);
        cr_expect(strstr(error.text, "model \"a\" is not loaded yet: its load takes longer than limits.load_wait_s"), "%s",
                error.text);
        unlink(s.hold);
        await_state(&s, "a", STARLING_MODEL_READY);
        expect_answer(&s, open_model(&s, "a"), 0);
        end(&s);
}

static void hear_alarm(int signal)
{
        (void)signal;
}

Test(on_request, a_signal_ends_the_wait_of_who_opens_and_the_load_goes_on, .timeout = 60)
{
        const struct itimerval soon = {.it_value = {.tv_usec = 100000}, .it_interval = {.tv_usec = 100000}}, never = {{0}, {0}};
        struct starling_error error;
        struct starling_model *a;
        struct scene s;

        begin(&s);
        write_program(&s);
        hold_loads(&s);
        start(&s);
        sigaction(SIGALRM, &(struct sigaction){.sa_handler = hear_alarm, .sa_flags = SA_RESTART}, NULL);
        setitimer(ITIMER_REAL, &soon, NULL);
        cr_expect_eq(starling_model_open(s.client, "a", &a, &error), -EINTR);
        setitimer(ITIMER_REAL, &never, NULL);
        unlink(s.hold);
        expect_answer(&s, open_model(&s, "a"), 0);
        end(&s);
}

/* "a" rests: it has been loaded, and then nobody has asked. */
static struct starling_model *make_it_rest(struct scene *s)
{
        struct starling_model *a;

        s->service.specs[0].idle_unload_ns = 100000000;
        start(s);
        a = open_model(s, "a");
        expect_answer(s, a, 0);
        service_expect_log(&s->service, "model-unloaded-idle model=a");
        await_state(s, "a", STARLING_MODEL_AVAILABLE);
        return a;
}

/* Its file has changed, as the runtime is about to see. */
static void change(struct scene *s)
{
        struct starling_client *admin;

        pthread_mutex_lock(&s->service.specs_lock);
        s->service.specs[0].stamp++;
        pthread_mutex_unlock(&s->service.specs_lock);
        admin = service_connect(&s->service, STARLING_ROLE_ADMIN);
        (void)starling_admin_apply(admin, NULL, 0, NULL); /* the repository is read anew */
        starling_close(admin);
}

/* Pauses about as long as it may be idle: some requests come when it is about to be unloaded. */
Test(on_request, whenever_it_is_unloaded_each_request_is_answered, .timeout = 120)
{
        struct starling_model *a;
        struct scene s;

        begin(&s);
        s.service.specs[0].idle_unload_ns = 10000000;
        start(&s);
        a = open_model(&s, "a");
        for (int i = 0; i < 200 || !service_has_logged(&s.service, "model-unloaded-idle"); i++) {
                expect_answer(&s, a, 0);
                usleep((useconds_t)(i % 10) * 3000);
        }
        end(&s);
}

Test(on_request, a_request_that_waits_is_cancelled_as_any_other, .timeout = 60)
{
        struct starling_completion done;
        struct starling_request wanted;
        struct starling_model *a;
        struct scene s;
        uint64_t id;

        begin(&s);
        write_program(&s);
        a = make_it_rest(&s);
        write_model(&s, 0, 10, 4);
        hold_loads(&s);
        change(&s);
        wanted = request(&s, a);
        cr_assert_eq(starling_submit(s.queue, &wanted, &id), 0);
        cr_assert_eq(starling_wait(s.queue, &done, 1, 200000000), -ETIMEDOUT, "it waits");
        cr_assert_eq(starling_cancel(s.queue, id), 0);
        cr_assert_eq(starling_wait(s.queue, &done, 1, STARLING_FOREVER), 1);
        cr_expect_eq(done.status, -ECANCELED);
        unlink(s.hold);
        expect_answer(&s, a, 10);
        end(&s);
}

Test(on_request, a_request_for_inputs_that_the_model_has_no_more_is_stale, .timeout = 60)
{
        struct starling_model *a;
        struct scene s;

        begin(&s);
        a = make_it_rest(&s);
        write_model(&s, 0, 10, 8);
        change(&s);
        cr_expect_eq(infer(&s, a), -ESTALE);
        SERVICE_AWAIT(&s.service, service_count_logged(&s.service, "model-ready model=a ") == 2); /* by now it may rest again */
        cr_expect_eq(starling_model_describe(open_model(&s, "a"))->inputs[0].dims[1], 8);
        end(&s);
}

Test(on_request, what_cannot_be_loaded_again_ends_the_requests_with_its_cause, .timeout = 60)
{
        struct starling_error error;
        struct starling_model *a;
        struct scene s;

        begin(&s);
        a = make_it_rest(&s);
        write_file(s.models[0], "no model", 8, 0600);
        change(&s);
        cr_expect_lt(infer(&s, a), 0);
        await_state(&s, "a", STARLING_MODEL_FAILED);
        cr_expect_eq(infer(&s, a), -EIO, "a later one does not load it again");
        cr_expect_eq(starling_model_open(s.client, "a", &a, &error), -EIO);
        end(&s);
}

Test(on_request, what_rests_is_unloaded_and_comes_back_by_its_name, .timeout = 60)
{
        struct starling_client *admin;
        struct starling_error error;
        struct starling_model *a;
        struct scene s;

        begin(&s);
        a = make_it_rest(&s);
        admin = service_connect(&s.service, STARLING_ROLE_ADMIN);
        cr_assert_eq(starling_admin_unload(admin, "a", &error), 0, "%s", error.text);
        cr_expect_lt(infer(&s, a), 0);
        await_state(&s, "b", STARLING_MODEL_AVAILABLE);
        pthread_mutex_lock(&s.service.specs_lock);
        s.service.specs[0].idle_unload_ns = 0; /* it stays, to be looked at */
        pthread_mutex_unlock(&s.service.specs_lock);
        cr_assert_eq(starling_admin_load(admin, "a", &error), 0, "%s", error.text);
        cr_expect_eq(state_of(&s, "a"), STARLING_MODEL_READY, "an administrator's load is one");
        expect_answer(&s, open_model(&s, "a"), 0);
        starling_close(admin);
        end(&s);
}

#define MANY        2000u
#define MANY_LOADED 6u

/* As many names as a large repository has; each model adds the number of its own. */
struct many {
        struct scene scene;
        struct sl_model_spec specs[MANY];
        char names[MANY][16], paths[MANY][96];
};

static int scan_many(void *context, const struct sl_model_spec **ret_specs, uint32_t *ret_n, struct sl_error *error)
{
        struct many *many = (struct many *)((char *)context - offsetof(struct many, scene.service));

        (void)error;
        *ret_specs = many->specs;
        *ret_n = MANY;
        return 0;
}

static struct many *begin_many(void)
{
        struct many *many = calloc(1, sizeof(*many));

        cr_assert_not_null(many);
        begin(&many->scene);
        for (uint32_t i = 0; i < MANY; i++) {
                many->specs[i] = many->scene.service.specs[0];
                many->specs[i].name = many->names[i];
                many->specs[i].path = many->paths[i];
                snprintf(many->names[i], sizeof(many->names[i]), "m%04u", i);
                snprintf(many->paths[i], sizeof(many->paths[i]), "%s/m%04u.onnx", many->scene.service.directory, i);
        }
        many->scene.service.options.scan = scan_many;
        many->scene.service.options.models_max = MANY_LOADED;
        return many;
}

static void end_many(struct many *many)
{
        for (uint32_t i = 0; i < MANY; i++)
                unlink(many->paths[i]);
        end(&many->scene);
        free(many);
}

/* Return: how many are in this state. */
static uint32_t count_states(struct scene *s, enum starling_model_state state)
{
        static struct starling_model_entry entries[2 * MANY];
        int n = starling_model_list(s->client, entries, 2 * MANY);
        uint32_t count = 0;

        for (int i = 0; i < n && i < (int)(2 * MANY); i++)
                count += entries[i].state == state;
        return count;
}

static void write_numbered(struct many *many, uint32_t i)
{
        char path[96];

        memcpy(path, many->scene.models[0], sizeof(path));
        memcpy(many->scene.models[0], many->paths[i], sizeof(path));
        write_model(&many->scene, 0, (float)i, 4);
        memcpy(many->scene.models[0], path, sizeof(path));
}

Test(on_request, of_thousands_of_names_each_answers_and_no_more_are_loaded_than_may_be, .timeout = 120)
{
        static const uint32_t order[] = {0, 1999, 7, 1000, 1999, 255, 256, 1998, 7, 1024, 0, 512, 1999, 3};
        struct many *many = begin_many();
        struct scene *s = &many->scene;
        uint32_t n_models;

        for (uint32_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
                write_numbered(many, order[i]);
        start(s);
        cr_assert_eq(count_states(s, STARLING_MODEL_AVAILABLE), MANY);
        for (uint32_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
                struct starling_model *model = open_model(s, many->names[order[i]]);

                expect_answer(s, model, (float)order[i]);
                n_models = count_states(s, STARLING_MODEL_READY);
                cr_expect(n_models >= 1 && n_models <= MANY_LOADED, "%u are loaded", n_models);
                starling_model_close(model);
        }
        SERVICE_AWAIT(&s->service, count_states(s, STARLING_MODEL_READY) + count_states(s, STARLING_MODEL_AVAILABLE) == MANY);
        cr_expect_not(service_has_logged(&s->service, "without-histograms"));
        end_many(many);
}

/* What sleeps is woken by whoever asks for it: an administrator, one who reads the repository, a name that has gone and come. */
Test(on_request, a_name_among_thousands_goes_and_comes, .timeout = 120)
{
        struct many *many = begin_many();
        struct scene *s = &many->scene;
        struct starling_client *admin;
        struct starling_error error;
        struct starling_model *model;

        write_numbered(many, 1500);
        start(s);
        admin = service_connect(&s->service, STARLING_ROLE_ADMIN);
        cr_assert_eq(starling_admin_unload(admin, "m1500", &error), 0, "%s", error.text);
        cr_expect_eq(count_states(s, STARLING_MODEL_AVAILABLE), MANY - 1);
        cr_expect_eq(starling_model_open(s->client, "m1500", &model, NULL), -ENOENT);
        cr_assert_eq(starling_admin_load(admin, "m1500", &error), 0, "%s", error.text);
        cr_expect_eq(state_of(s, "m1500"), STARLING_MODEL_READY);
        expect_answer(s, open_model(s, "m1500"), 1500);
        cr_expect_lt(starling_admin_load(admin, "m0001", &error), 0);
        await_state(s, "m0001", STARLING_MODEL_FAILED); /* it has no file */
        write_numbered(many, 1);
        cr_assert_eq(starling_admin_load(admin, "m0001", &error), 0, "%s", error.text);
        expect_answer(s, open_model(s, "m0001"), 1);
        starling_close(admin);
        end_many(many);
}
