/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers of a model come and go while requests are in flight, or while the model itself comes and goes. A runtime in this process.
 */
#include "service.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LENET 0

static void set_workers(struct service *service, uint32_t workers)
{
        pthread_mutex_lock(&service->specs_lock);
        service->specs[LENET].workers.n = workers;
        pthread_mutex_unlock(&service->specs_lock);
}

struct customer {
        struct service *service;
        const char *model;
        _Atomic bool stop;
        _Atomic uint32_t requests;
        pthread_t thread;
};

/* A member's worker that leaves is one of an ensemble, too. */
static void *customer_main(void *argument)
{
        struct customer *customer = argument;
        struct starling_client *client = service_connect(customer->service, STARLING_ROLE_CLIENT);
        struct starling_queue *queue;
        struct starling_model *model;
        struct starling_error error = {""};
        struct digits digits;

        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        cr_assert_eq(starling_model_open(client, customer->model, &model, &error), 0, "%s", error.text);
        digits_load(&digits, client, customer->model);
        while (!customer->stop) {
                uint32_t n = 1 + customer->requests % 97 * 6;

                digits_check(&digits, queue, model, 0, n < DIGITS_SAMPLES ? n : DIGITS_SAMPLES);
                customer->requests++;
        }
        digits_free(&digits);
        starling_close(client);
        return NULL;
}

/* Whoever opens a model while the catalogue changes may have to try again: it is open before anything changes. */
static void customer_start(struct customer *customer, struct service *service, const char *model)
{
        *customer = (struct customer){.service = service, .model = model};
        cr_assert_eq(pthread_create(&customer->thread, NULL, customer_main, customer), 0);
        while (!customer->requests)
                usleep(1000);
}

static void customer_stop(struct customer *customer)
{
        customer->stop = true;
        pthread_join(customer->thread, NULL);
}

Test(resize, at_any_moment_loses_no_request, .timeout = 60)
{
        static const uint32_t counts[] = {3, 1, 2, 4, 1, 3, 2, 1};
        struct service service;
        struct customer customers[2];
        struct starling_client *admin;
        struct starling_error error = {""};

        service_init(&service);
        service_start(&service);
        customer_start(&customers[0], &service, "lenet");
        customer_start(&customers[1], &service, "digits");
        admin = service_connect(&service, STARLING_ROLE_ADMIN);
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
                set_workers(&service, counts[i]);
                cr_assert_eq(starling_admin_reload(admin, "lenet", &error), 0, "%s", error.text);
                usleep(10000);
        }
        for (int i = 0; i < 2; i++)
                customer_stop(&customers[i]);
        starling_close(admin);
        service_stop(&service);
        cr_expect_null(strstr(service.log, "model-replaced"), "%s", service.log);
}

/* Whatever is under way when the model goes, or is replaced, goes with it. */
Test(resize, ends_with_the_model, .timeout = 60)
{
        struct service service;
        struct customer customer;
        struct starling_client *admin;
        struct starling_error error = {""};

        service_init(&service);
        service.specs[LENET].batch_bytes_max = 64 << 20;
        service.n_specs = 1;
        service_start(&service);
        customer_start(&customer, &service, "lenet");
        admin = service_connect(&service, STARLING_ROLE_ADMIN);
        set_workers(&service, 8);
        service_reload(&service);
        service_touch(&service);
        set_workers(&service, 2);
        service_reload(&service);
        service_expect_log(&service, "model-replaced");
        customer_stop(&customer);
        set_workers(&service, 6);
        service_reload(&service);
        while (starling_admin_unload(admin, "lenet", &error) == -EBUSY)
                ;
        service_expect_log(&service, "model-unloaded");
        starling_close(admin);
        service_stop(&service);
}
