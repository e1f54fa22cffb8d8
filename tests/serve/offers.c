/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A variant that autoscaling offers, and for which there is no memory: it is offered again, later each time, and comes once there
 * is some. A runtime in this process, and clients that ask the accurate variant as fast as it answers.
 */
#include "base/clock.h"
#include "base/error.h"
#include "memory.h"
#include "requested.h"
#include "service.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#define CUSTOMERS 3
#define OFFERS    16u

/* When the variant was offered. */
static uint64_t offered_ns[OFFERS];
static _Atomic uint32_t n_offered;

/* While set, there is none for workers. */
static _Atomic bool memory_is_short;

int __real_sl_requested_ask(struct sl_registry *registry, struct sl_served *served, uint32_t uid, struct sl_error *error);
int __wrap_sl_requested_ask(struct sl_registry *registry, struct sl_served *served, uint32_t uid, struct sl_error *error);
int __real_sl_memory_take(struct sl_memory *memory, enum sl_memory_use use, uint64_t bytes, struct sl_error *error);
int __wrap_sl_memory_take(struct sl_memory *memory, enum sl_memory_use use, uint64_t bytes, struct sl_error *error);

int __wrap_sl_requested_ask(struct sl_registry *registry, struct sl_served *served, uint32_t uid, struct sl_error *error)
{
        if (n_offered < OFFERS) {
                offered_ns[n_offered] = sl_clock_ns();
                n_offered++;
        }
        return __real_sl_requested_ask(registry, served, uid, error);
}

int __wrap_sl_memory_take(struct sl_memory *memory, enum sl_memory_use use, uint64_t bytes, struct sl_error *error)
{
        if (use == SL_MEMORY_WORKERS && memory_is_short)
                return error ? sl_error_set(error, ENOMEM, "this test leaves none") : -ENOMEM;
        return __real_sl_memory_take(memory, use, bytes, error);
}

static const struct sl_task_spec *list_tasks(void *context, uint32_t *ret_n)
{
        static const char *const variants[] = {"mlp", "densenet"};
        static const double accuracies[] = {0.9783, 0.9967};
        static const struct sl_task_spec task = {.name = "read", .variants = variants, .accuracies = accuracies, .n = 2};

        (void)context;
        *ret_n = 1;
        return &task;
}

struct customer {
        struct service *service;
        _Atomic bool stop;
        pthread_t thread;
};

static void *customer_main(void *argument)
{
        struct customer *customer = argument;
        struct starling_client *client = service_connect(customer->service, STARLING_ROLE_CLIENT);
        struct starling_queue *queue;
        struct starling_model *model;
        struct starling_error error = {""};
        struct digits digits;

        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        cr_assert_eq(starling_model_open(client, "densenet", &model, &error), 0, "%s", error.text);
        digits_load(&digits, client, "densenet");
        while (!customer->stop)
                digits_check(&digits, queue, model, 0, DIGITS_SAMPLES);
        digits_free(&digits);
        starling_close(client);
        return NULL;
}

/* densenet has a worker on the first core, and there is no other; mlp is there as a plan. */
static void begin(struct service *service)
{
        cpu_set_t usable;
        int core = 0;

        service_init(service);
        service_keep(service, "densenet mlp");
        for (uint32_t i = 0; i < service->n_specs; i++)
                if (strcmp(service->specs[i].name, "mlp") == 0)
                        service->specs[i].on_request = service->specs[i].plan_first = true;
        cr_assert_eq(sched_getaffinity(0, sizeof(usable), &usable), 0);
        while (!CPU_ISSET(core, &usable))
                core++;
        CPU_SET(core, &service->options.worker_cpus);
        service->options.inline_ns = 0;
        service->options.tasks = list_tasks;
        service->options.autoscale.mode = SL_AUTOSCALE_ON;
        service->options.autoscale.slack = 1.05;
        service_start(service);
}

static enum starling_variant_state state_of_mlp(struct starling_client *client)
{
        struct starling_variant variants[2];

        cr_assert_eq(starling_task_variants(client, "read", variants, 2), 2);
        return variants[0].state;
}

Test(offers, what_lacks_memory_is_offered_again_after_longer_and_longer_pauses_and_comes_when_there_is_some, .timeout = 240)
{
        struct customer customers[CUSTOMERS];
        struct starling_client *client;
        struct service service;

        begin(&service);
        client = service_connect(&service, STARLING_ROLE_READER);
        SERVICE_AWAIT(&service, state_of_mlp(client) == STARLING_VARIANT_AVAILABLE);
        memory_is_short = true;
        for (uint32_t i = 0; i < CUSTOMERS; i++) {
                customers[i] = (struct customer){.service = &service};
                cr_assert_eq(pthread_create(&customers[i].thread, NULL, customer_main, &customers[i]), 0);
        }
        SERVICE_AWAIT(&service, n_offered >= 3);
        cr_expect_geq(offered_ns[1] - offered_ns[0], SL_NS_PER_SECOND);
        cr_expect_geq(offered_ns[2] - offered_ns[1], 2 * SL_NS_PER_SECOND);
        SERVICE_AWAIT(&service, service_count_logged(&service, "model-failed model=mlp") >= 3);
        cr_expect_eq(state_of_mlp(client), STARLING_VARIANT_AVAILABLE, "it has not failed");
        memory_is_short = false;
        SERVICE_AWAIT(&service, state_of_mlp(client) == STARLING_VARIANT_SERVES);
        for (uint32_t i = 0; i < CUSTOMERS; i++)
                customers[i].stop = true;
        for (uint32_t i = 0; i < CUSTOMERS; i++)
                pthread_join(customers[i].thread, NULL);
        starling_close(client);
        service_stop(&service);
}
