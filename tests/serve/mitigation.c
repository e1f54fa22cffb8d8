/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What follows where a worker is interfered with: it moves to a core on which no worker is; where there is none, queries with a
 * latency have another variant. A runtime in this process. How long jobs take is said by this test, not by a clock: 1 ms a sample,
 * and four times that where a neighbour is.
 */
#include "base/error.h"
#include "conditions.h"
#include "executor.h"
#include "let.h"
#include "memory.h"
#include "model.h"
#include "service.h"
#include "stats.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define MS         1000000ull
#define NOWHERE    (-1)
#define EVERYWHERE (-2)

/* On which core the neighbour is, and where the last job of each variant was. */
static _Atomic int neighbour = NOWHERE;
static _Atomic int mlp_core = NOWHERE;

void __real_sl_conditions_learn(struct sl_dispatcher *dispatcher, struct sl_model *model, struct sl_executor *worker,
        const struct sl_prediction *prediction);
void __wrap_sl_conditions_learn(struct sl_dispatcher *dispatcher, struct sl_model *model, struct sl_executor *worker,
        const struct sl_prediction *prediction);

/* While set, no worker that starts is ready, or there is no memory for one. */
static _Atomic bool starts_fail, memory_is_short;

int32_t __real_sl_executor_started(const struct sl_executor *executor);
int32_t __wrap_sl_executor_started(const struct sl_executor *executor);
int __real_sl_memory_take(struct sl_memory *memory, enum sl_memory_use use, uint64_t bytes, struct sl_error *error);
int __wrap_sl_memory_take(struct sl_memory *memory, enum sl_memory_use use, uint64_t bytes, struct sl_error *error);

int32_t __wrap_sl_executor_started(const struct sl_executor *executor)
{
        int32_t state = __real_sl_executor_started(executor);

        return state == SL_EXECUTOR_READY && starts_fail ? -EIO : state;
}

int __wrap_sl_memory_take(struct sl_memory *memory, enum sl_memory_use use, uint64_t bytes, struct sl_error *error)
{
        if (use == SL_MEMORY_WORKERS && memory_is_short)
                return error ? sl_error_set(error, ENOMEM, "this test leaves none") : -ENOMEM;
        return __real_sl_memory_take(memory, use, bytes, error);
}

static int core_of(const struct sl_executor *worker)
{
        for (int core = 0; core < CPU_SETSIZE; core++)
                if (CPU_ISSET(core, &worker->let->cpus))
                        return core;
        return NOWHERE;
}

void __wrap_sl_conditions_learn(struct sl_dispatcher *dispatcher, struct sl_model *model, struct sl_executor *worker,
        const struct sl_prediction *prediction)
{
        bool is_mlp = strcmp(model->name, "mlp") == 0;
        int core = is_mlp ? core_of(worker) : NOWHERE;
        struct sl_prediction said = *prediction;

        if (is_mlp)
                mlp_core = core;
        said.busy_ns = MS * said.job_samples * (is_mlp && (neighbour == EVERYWHERE || neighbour == core) ? 4 : 1);
        __real_sl_conditions_learn(dispatcher, model, worker, &said);
}

static const struct sl_task_spec *list_tasks(void *context, uint32_t *ret_n)
{
        static const char *const variants[] = {"mlp", "lenet"};
        static const double accuracies[] = {0.9783, 0.9866}, costs[] = {1, 3}, latencies[] = {0.1, 0.1};
        static const struct sl_task_spec task = {
                .name = "read", .variants = variants, .accuracies = accuracies, .costs = costs, .latencies_ms = latencies, .n = 2};

        (void)context;
        *ret_n = 1;
        return &task;
}

struct scene {
        struct service service;
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *in_time, *any_time;
        struct digits mlp, lenet;
};

/* The first @n cores that this process may use. Return: whether there are so many. */
static bool first_cores(uint32_t n, cpu_set_t *ret_cores)
{
        cpu_set_t usable;

        CPU_ZERO(ret_cores);
        cr_assert_eq(sched_getaffinity(0, sizeof(usable), &usable), 0);
        for (int core = 0; core < CPU_SETSIZE && n; core++)
                if (CPU_ISSET(core, &usable)) {
                        CPU_SET(core, ret_cores);
                        n--;
                }
        return !n;
}

static void begin_with(struct scene *s, const char *models, uint32_t cores, enum sl_autoscale_mode mode)
{
        const struct starling_query in_time = {.accuracy = 0.97, .latency_ns = 60000 * MS}, any_time = {.accuracy = 0.97};
        struct starling_error error = {""};

        memset(s, 0, sizeof(*s));
        neighbour = NOWHERE;
        starts_fail = memory_is_short = false;
        service_init(&s->service);
        service_keep(&s->service, models);
        s->service.options.inline_ns = 0;
        s->service.options.tasks = list_tasks;
        s->service.options.autoscale.mode = mode;
        s->service.options.autoscale.slack = 1.05;
        if (!first_cores(cores, &s->service.options.worker_cpus))
                cr_skip_test("this needs %u cores", cores);
        service_start(&s->service);
        s->client = service_connect(&s->service, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(s->client, &s->queue, NULL), 0);
        digits_load(&s->mlp, s->client, "mlp");
        digits_load(&s->lenet, s->client, "lenet");
        cr_assert_eq(starling_query_open(s->client, "read", &in_time, &s->in_time, &error), 0, "%s", error.text);
        cr_assert_eq(starling_query_open(s->client, "read", &any_time, &s->any_time, &error), 0, "%s", error.text);
}

static void begin(struct scene *s, const char *models, uint32_t cores)
{
        begin_with(s, models, cores, SL_AUTOSCALE_OFF);
}

static void end(struct scene *s)
{
        digits_free(&s->mlp);
        digits_free(&s->lenet);
        starling_close(s->client);
        service_stop(&s->service);
}

/* Return: whether mlp has answered; else lenet has. What either says is right. */
static bool mlp_answers(struct scene *s, struct starling_model *query)
{
        struct starling_tensor input, output;
        struct starling_request request = digits_request(&s->mlp, query, 0, 1, &input, &output);
        struct starling_completion completion;
        struct starling_answer answer;
        const float *got = output.data, *wanted;
        int r = starling_infer(s->queue, &request, &completion);
        bool is_mlp;

        cr_assert_eq(r, 0, "%s: %s", starling_strerror(r), starling_queue_error(s->queue));
        cr_assert_eq(starling_completion_variant(s->queue, &completion, &answer), 0);
        is_mlp = strcmp(answer.variant, "mlp") == 0;
        wanted = is_mlp ? s->mlp.expected : s->lenet.expected;
        for (uint32_t i = 0; i < DIGITS_CLASSES; i++)
                cr_assert_float_eq(got[i], wanted[i], 1e-5, "%s, element %u", answer.variant, i);
        return is_mlp;
}

static struct starling_variant look(struct scene *s)
{
        struct starling_variant variants[2];

        cr_assert_eq(starling_task_variants(s->client, "read", variants, 2), 2);
        return variants[0];
}

static bool is_interfered(struct scene *s)
{
        return look(s).condition == STARLING_CONDITION_INTERFERED;
}

/* mlp has shown what is usual. */
static void warm_up(struct scene *s)
{
        for (uint32_t i = 0; i < 40; i++)
                cr_expect(mlp_answers(s, s->in_time));
}

static uint32_t count_logged(struct service *service, const char *text)
{
        uint32_t n = 0;

        pthread_mutex_lock(&service->log_lock);
        for (const char *at = service->log; (at = strstr(at, text)); at++)
                n++;
        pthread_mutex_unlock(&service->log_lock);
        return n;
}

Test(mitigation, a_worker_that_is_interfered_with_moves_to_an_idle_core_and_stays_there, .timeout = 240)
{
        struct scene s;
        char wanted[64];
        int before;

        begin(&s, "mlp", 2);
        warm_up(&s);
        before = mlp_core;
        neighbour = before;
        while (mlp_core == before)
                cr_expect(mlp_answers(&s, s.in_time)); /* the other variant is not there */
        snprintf(wanted, sizeof(wanted), "worker-moves model=mlp core=%d cause=", before);
        service_expect_log(&s.service, wanted);
        service_expect_log(&s.service, "workers-changed model=mlp");
        for (uint32_t i = 0; i < 200; i++) {
                cr_expect(mlp_answers(&s, s.in_time));
                cr_expect_neq(mlp_core, before);
        }
        cr_expect_not(is_interfered(&s));
        cr_expect_eq(look(&s).workers, 1u);
        cr_expect_eq(count_logged(&s.service, "worker-moves"), 1u);
        end(&s);
}

/* mlp is to move, and cannot: answers go on as they were. */
static int fail_moves(struct scene *s, _Atomic bool *cause, uint32_t times)
{
        int before = mlp_core;

        *cause = true;
        neighbour = before;
        while (count_logged(&s->service, "workers-not-changed model=mlp") < times) {
                cr_expect(mlp_answers(s, s->in_time));
                cr_expect_eq(mlp_core, before);
        }
        cr_expect_eq(count_logged(&s->service, "worker-moves model=mlp"), times);
        cr_expect_eq(look(s).state, STARLING_VARIANT_SERVES);
        cr_expect_eq(look(s).workers, 1u);
        return before;
}

static void expect_second_try(_Atomic bool *cause)
{
        struct scene s;
        int before;

        begin(&s, "mlp", 2);
        warm_up(&s);
        before = fail_moves(&s, cause, 2);
        *cause = false;
        while (mlp_core == before)
                cr_expect(mlp_answers(&s, s.in_time));
        service_expect_log(&s.service, "workers-changed model=mlp");
        cr_expect_eq(count_logged(&s.service, "worker-moves model=mlp"), 3u);
        cr_expect_eq(look(&s).workers, 1u);
        end(&s);
}

Test(mitigation, a_worker_whose_successor_cannot_start_stays_and_moves_when_one_can, .timeout = 240)
{
        expect_second_try(&starts_fail);
}

Test(mitigation, a_worker_stays_where_there_is_no_memory_for_two_and_moves_when_there_is_some, .timeout = 240)
{
        expect_second_try(&memory_is_short);
}

/* Three requests of all samples wait or are computed at any time. */
static void keep_busy(struct scene *s)
{
        struct starling_tensor input, output;
        struct starling_request request = digits_request(&s->mlp, s->any_time, 0, DIGITS_SAMPLES, &input, &output);
        struct starling_completion done[3];
        int n;

        while (starling_queue_in_flight(s->queue) < 3)
                cr_assert_eq(starling_submit(s->queue, &request, NULL), 0, "%s", starling_queue_error(s->queue));
        n = starling_wait(s->queue, done, 3, SERVICE_LIMIT_NS);
        cr_assert_gt(n, 0);
        for (int i = 0; i < n; i++)
                cr_assert_eq(done[i].status, 0, "%s", starling_strerror(done[i].status));
}

static void await_all(struct scene *s)
{
        struct starling_completion done[3];

        while (starling_queue_in_flight(s->queue))
                cr_assert_gt(starling_wait(s->queue, done, 3, SERVICE_LIMIT_NS), 0);
}

/* The set of workers that it is to have is no other than before, and has not failed. */
Test(mitigation, workers_come_with_a_load_after_a_move_that_failed, .timeout = 240)
{
        struct scene s;

        begin_with(&s, "mlp", 2, SL_AUTOSCALE_ON);
        warm_up(&s);
        fail_moves(&s, &starts_fail, 1);
        neighbour = NOWHERE;
        while (is_interfered(&s))
                cr_expect(mlp_answers(&s, s.in_time));
        starts_fail = false;
        while (!service_has_logged(&s.service, "workers=2 workers_before=1"))
                keep_busy(&s);
        await_all(&s);
        end(&s);
}

Test(mitigation, where_no_core_is_idle_queries_with_a_latency_have_another_variant_until_it_is_calm, .timeout = 240)
{
        uint32_t others = 0, asked = 0;
        struct scene s;

        begin(&s, "mlp lenet", 1);
        warm_up(&s);
        neighbour = EVERYWHERE;
        /* It is tried again after a second without a job, and so found again and again. */
        while (others < 100) {
                bool was = is_interfered(&s), is_mlp = mlp_answers(&s, s.in_time);

                others += !is_mlp;
                asked += was;
                cr_expect(!is_mlp || !was || !is_interfered(&s)); /* it was forgotten in between */
        }
        cr_expect_gt(asked, 0u);
        for (uint32_t i = 0; i < 10; i++)
                cr_expect(mlp_answers(&s, s.any_time)); /* the cheapest: nobody asks for its time */
        neighbour = NOWHERE;
        while (is_interfered(&s) || !mlp_answers(&s, s.in_time))
                ;
        for (uint32_t i = 0; i < 100; i++)
                cr_expect(mlp_answers(&s, s.in_time));
        cr_expect_eq(count_logged(&s.service, "worker-moves"), 0u);
        end(&s);
}
