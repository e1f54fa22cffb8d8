/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that follow a load. A runtime in this process, and clients that ask as fast as they are answered: one worker is then
 * busy all the time, whatever the machine.
 */
#include "executor.h"
#include "service.h"
#include "service_time.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define LENET     0
#define CUSTOMERS 3

struct customer {
        struct service *service;
        _Atomic bool stop;
        _Atomic uint32_t requests;
        pthread_t thread;
};

/* While set, no worker is ready: what has begun to start them is under way for as long as a test needs. */
static _Atomic bool starts_are_held;

int32_t __real_sl_executor_started(const struct sl_executor *executor);
int32_t __wrap_sl_executor_started(const struct sl_executor *executor);

int32_t __wrap_sl_executor_started(const struct sl_executor *executor)
{
        int32_t state = __real_sl_executor_started(executor);

        return state == SL_EXECUTOR_READY && starts_are_held ? SL_EXECUTOR_STARTING : state;
}

/* While set, all jobs are learned as such: 1,000 times as long as they were. */
static _Atomic bool jobs_are_slow;

void __real_sl_service_time_learn(struct sl_service_time *times, uint32_t samples, uint64_t ns);
void __wrap_sl_service_time_learn(struct sl_service_time *times, uint32_t samples, uint64_t ns);

void __wrap_sl_service_time_learn(struct sl_service_time *times, uint32_t samples, uint64_t ns)
{
        __real_sl_service_time_learn(times, samples, jobs_are_slow ? 1000 * ns : ns);
}

static void *customer_main(void *argument)
{
        struct customer *customer = argument;
        struct starling_client *client = service_connect(customer->service, STARLING_ROLE_CLIENT);
        struct starling_queue *queue;
        struct starling_model *model;
        struct starling_error error = {""};
        struct digits digits;

        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        cr_assert_eq(starling_model_open(client, "lenet", &model, &error), 0, "%s", error.text);
        digits_load(&digits, client, "lenet");
        for (; !customer->stop; customer->requests++)
                digits_check(&digits, queue, model, 0, DIGITS_SAMPLES);
        digits_free(&digits);
        starling_close(client);
        return NULL;
}

static void init(struct service *service, enum sl_autoscale_mode mode)
{
        service_init(service);
        service->n_specs = 1;
        service->options.inline_ns = 0;
        service->options.autoscale.mode = mode;
        service->options.autoscale.slack = 1.05;
}

static void start_customers(struct service *service, struct customer customers[CUSTOMERS])
{
        for (uint32_t i = 0; i < CUSTOMERS; i++) {
                customers[i] = (struct customer){.service = service};
                cr_assert_eq(pthread_create(&customers[i].thread, NULL, customer_main, &customers[i]), 0);
        }
}

static void begin(struct service *service, struct customer customers[CUSTOMERS])
{
        service_start(service);
        start_customers(service, customers);
}

static void end(struct customer customers[CUSTOMERS])
{
        for (uint32_t i = 0; i < CUSTOMERS; i++)
                customers[i].stop = true;
        for (uint32_t i = 0; i < CUSTOMERS; i++)
                pthread_join(customers[i].thread, NULL);
}

static const struct sl_task_spec *list_tasks(void *context, uint32_t *ret_n)
{
        static const char *const variants[] = {"lenet"};
        static const double accuracies[] = {0.9};
        static const struct sl_task_spec task = {.name = "read", .variants = variants, .accuracies = accuracies, .n = 1};

        (void)context;
        *ret_n = 1;
        return &task;
}

/* Waits until the task's variant is said to be overloaded, or no longer: then a busy machine may have it interfered with. */
static void expect_overload(struct service *service, struct starling_client *client, bool wanted)
{
        struct starling_variant variant = {.workers = 0};

        SERVICE_AWAIT(service, starling_task_variants(client, "read", &variant, 1) == 1 && variant.condition &&
                                       (variant.condition == STARLING_CONDITION_OVERLOADED) == wanted);
        cr_expect_eq(variant.workers, 1u);
}

/* Three clients ask as fast as they are answered, each for more than one job: work waits whenever a job ends. */
Test(autoscale, a_variant_is_overloaded_while_more_waits_than_it_does, .timeout = 120)
{
        struct customer customers[CUSTOMERS];
        struct service service;
        struct starling_client *client;

        init(&service, SL_AUTOSCALE_OFF);
        service.options.tasks = list_tasks;
        begin(&service, customers);
        client = service_connect(&service, STARLING_ROLE_READER);
        expect_overload(&service, client, true);
        end(customers);
        expect_overload(&service, client, false);
        starling_close(client);
        service_stop(&service);
}

static uint64_t latency_ns(struct starling_client *client)
{
        struct starling_variant variant;

        cr_assert_eq(starling_task_variants(client, "read", &variant, 1), 1);
        return variant.latency_ns;
}

static int ask_for_one(struct digits *digits, struct starling_queue *queue, struct starling_model *model)
{
        struct starling_tensor input, output;
        struct starling_request request = digits_request(digits, model, 0, 1, &input, &output);
        struct starling_completion completion;

        return starling_infer(queue, &request, &completion);
}

/* Jobs are said to take 80 times as long and more, and then as long as they do: nobody but queries asks for it. */
Test(autoscale, queries_come_again_to_what_was_slow_once, .timeout = 120)
{
        struct starling_query query = {.accuracy = 0.5};
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *lenet, *read;
        struct starling_error error = {""};
        struct service service;
        struct digits digits;
        uint64_t quick_ns;
        int r;

        init(&service, SL_AUTOSCALE_OFF);
        service.options.tasks = list_tasks;
        service_start(&service);
        client = service_connect(&service, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        cr_assert_eq(starling_model_open(client, "lenet", &lenet, &error), 0, "%s", error.text);
        digits_load(&digits, client, "lenet");
        for (uint32_t i = 0; i < 30; i++)
                cr_assert_eq(ask_for_one(&digits, queue, lenet), 0);
        SERVICE_AWAIT(&service, (quick_ns = latency_ns(client)) > 0);
        query.latency_ns = 50 * quick_ns;
        cr_assert_eq(starling_query_open(client, "read", &query, &read, &error), 0, "%s", error.text);
        jobs_are_slow = true;
        SERVICE_AWAIT(&service, ask_for_one(&digits, queue, lenet) == 0 && latency_ns(client) > 80 * quick_ns);
        jobs_are_slow = false;
        SERVICE_AWAIT(&service, (r = ask_for_one(&digits, queue, read)) != -EDOM);
        cr_expect_eq(r, 0, "%s", starling_queue_error(queue));
        SERVICE_AWAIT(&service, latency_ns(client) <= query.latency_ns);
        cr_expect_eq(ask_for_one(&digits, queue, read), 0, "one quick job is enough: %s", starling_queue_error(queue));
        digits_free(&digits);
        starling_close(client);
        service_stop(&service);
}

static bool has_two_cores(void)
{
        cpu_set_t cores;

        cr_assert_eq(sched_getaffinity(0, sizeof(cores), &cores), 0);
        return CPU_COUNT(&cores) >= 2;
}

/* All answers are right, whichever worker leaves. */
Test(autoscale, workers_come_with_a_load_and_go_after_it, .timeout = 120)
{
        struct customer customers[CUSTOMERS];
        struct service service;

        if (!has_two_cores())
                cr_skip_test("one core has one worker");
        init(&service, SL_AUTOSCALE_ON);
        begin(&service, customers);
        service_expect_log(&service, "autoscale model=lenet");
        service_expect_log(&service, "workers=2 workers_before=1");
        service_expect_log(&service, "allocation-applied");
        end(customers);
        service_expect_log(&service, "verdict=shrinks workers=1");
        service_stop(&service);
        cr_expect_null(strstr(service.log, "workers=0"), "%s", service.log);
}

Test(autoscale, advice_changes_nothing_and_is_said_when_it_changes, .timeout = 120)
{
        struct customer customers[CUSTOMERS];
        struct service service;
        char said = '1'; /* as there are */

        if (!has_two_cores())
                cr_skip_test("one core has one worker");
        init(&service, SL_AUTOSCALE_ADVISE);
        begin(&service, customers);
        service_expect_log(&service, "autoscale-advice model=lenet");
        for (uint32_t until = customers[0].requests + 10; customers[0].requests < until;)
                usleep(10000);
        end(customers);
        service_stop(&service);
        cr_expect_null(strstr(service.log, "allocation-applied"), "%s", service.log);
        for (const char *line = service.log; (line = strstr(line, "autoscale-advice")); line++) {
                const char *workers = strstr(line, " workers=");

                cr_assert_not_null(workers);
                cr_expect_neq(workers[9], said, "%s", service.log);
                said = workers[9];
        }
}

Test(autoscale, workers_that_a_configuration_places_are_left_alone, .timeout = 120)
{
        struct customer customers[CUSTOMERS];
        struct service service;

        if (!has_two_cores())
                cr_skip_test("one core has one worker");
        init(&service, SL_AUTOSCALE_ON);
        CPU_SET(0, &service.specs[LENET].workers.wishes[0].cores);
        begin(&service, customers);
        while (customers[0].requests < 10)
                usleep(10000);
        end(customers);
        service_stop(&service);
        cr_expect_null(strstr(service.log, "autoscale model="), "%s", service.log); /* its name is in labels */
}

/* The autoscaler has begun a change, which does not end. */
static void begin_held_change(struct service *service, struct customer customers[CUSTOMERS])
{
        init(service, SL_AUTOSCALE_ON);
        service->specs[LENET].workers.wishes[0].batch_size = 32;
        service_start(service);
        service_expect_log(service, "model-ready");
        starts_are_held = true;
        start_customers(service, customers);
        service_expect_log(service, "autoscale model=lenet");
}

Test(autoscale, an_administrator_who_asks_for_the_configuration_ends_a_change_under_way, .timeout = 120)
{
        struct customer customers[CUSTOMERS];
        struct service service;
        struct starling_client *administrator;
        struct starling_error error = {""};

        if (!has_two_cores())
                cr_skip_test("one core has one worker");
        begin_held_change(&service, customers);
        administrator = service_connect(&service, STARLING_ROLE_ADMIN);
        cr_expect_eq(starling_admin_apply(administrator, NULL, 0, &error), 0, "%s", error.text);
        service_expect_log(&service, "allocation-not-applied models=1 workers=");
        service_expect_log(&service, "an administrator has asked for workers");
        starts_are_held = false;
        service_expect_log(&service, "allocation-applied"); /* the autoscaler tries again */
        end(customers);
        starling_close(administrator);
        service_stop(&service);
}

/* Workers can start again once the autoscaler's change has been given up. */
static void *let_start_after_all(void *argument)
{
        service_expect_log(argument, "an administrator has asked for workers");
        starts_are_held = false;
        return NULL;
}

Test(autoscale, what_an_administrator_has_applied_is_left_alone_until_the_configuration_counts_again, .timeout = 120)
{
        const struct starling_allotment one = {"lenet", "cpu", 32};
        struct customer customers[CUSTOMERS];
        struct service service;
        struct starling_client *administrator;
        struct starling_error error = {""};
        pthread_t thread;
        uint32_t decided;

        if (!has_two_cores())
                cr_skip_test("one core has one worker");
        begin_held_change(&service, customers);
        administrator = service_connect(&service, STARLING_ROLE_ADMIN);
        cr_assert_eq(pthread_create(&thread, NULL, let_start_after_all, &service), 0);
        cr_assert_eq(starling_admin_apply(administrator, &one, 1, &error), 0, "%s", error.text);
        pthread_join(thread, NULL);
        decided = service_count_logged(&service, "autoscale model=");
        /* What would go wrong shows as soon as it is looked at again: a second after a change that was given up. */
        for (uint32_t i = 0, until = customers[0].requests + 3; i < 150 || customers[0].requests < until; i++)
                usleep(10000);
        cr_expect_eq(service_count_logged(&service, "autoscale model="), decided, "%s", service.log);
        cr_assert_eq(starling_admin_apply(administrator, NULL, 0, &error), 0, "%s", error.text);
        while (service_count_logged(&service, "autoscale model=") == decided)
                usleep(10000);
        end(customers);
        starling_close(administrator);
        service_stop(&service);
}
