/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dispatcher, worker and client that sleep after every request, with their insurance taken away: whoever is not woken while there
 * is work sleeps until the limit, and is counted. A runtime in this process.
 */
#include "futex_watch.h"
#include "service.h"
#include "wait.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS       300u /* at least */
#ifdef __SANITIZE_THREAD__
#define SAMPLES 16u
#else
#define SAMPLES 128u
#endif
#define ROUNDS_MAX   (40 * ROUNDS)
#define INSURANCE_NS 1000000000ull
#define LIMIT_NS     (FUTEX_LIMIT_SECONDS * INSURANCE_NS)

enum sleeper { DISPATCHER, WORKER, ANOTHER, N_SLEEPERS };
static _Atomic uint32_t n_sleeps[N_SLEEPERS], n_lost[N_SLEEPERS];
static atomic_bool asks; /* a request is in flight: who sleeps on for want of one is not lost */

static enum sleeper find_sleeper(void)
{
        char name[16] = "";

        pthread_getname_np(pthread_self(), name, sizeof(name));
        return strcmp(name, "sl-dispatcher") == 0 ? DISPATCHER : strcmp(name, "sl-lenet-0") == 0 ? WORKER : ANOTHER;
}

int __real_sl_wait_for(struct sl_wait *wait, struct sl_wait_event *ret_events, uint32_t n, uint64_t timeout_ns);
int __wrap_sl_wait_for(struct sl_wait *wait, struct sl_wait_event *ret_events, uint32_t n, uint64_t timeout_ns);

/* ld --wrap: every wait of the runtime passes here. */
int __wrap_sl_wait_for(struct sl_wait *wait, struct sl_wait_event *ret_events, uint32_t n, uint64_t timeout_ns)
{
        enum sleeper sleeper = find_sleeper();
        bool insured = timeout_ns == INSURANCE_NS && sleeper != ANOTHER;
        int r = __real_sl_wait_for(wait, ret_events, n, insured ? LIMIT_NS : timeout_ns);

        if (insured) {
                atomic_fetch_add(&n_sleeps[sleeper], 1);
                atomic_fetch_add(&n_lost[sleeper], r == 0 && atomic_load(&asks));
        }
        return r;
}

/* Enough to say that it was woken each time. */
static bool slept(enum sleeper sleeper)
{
        return atomic_load(&n_sleeps[sleeper]) > ROUNDS / 4;
}

static bool client_slept(void)
{
        return futex_sleeps() > ROUNDS / 20;
}

/* Where cores are busy a thread may find all done before it gets to sleep: the rounds go on until each did sleep. */
static void infer_with_rests(struct service *service)
{
        struct starling_client *client = service_connect(service, STARLING_ROLE_CLIENT);
        struct starling_queue *queue;
        struct starling_model *model;
        struct digits digits;

        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        cr_assert_eq(starling_model_open(client, "lenet", &model, NULL), 0, "%s", service->log);
        digits_load(&digits, client, "lenet");
        for (uint32_t i = 0; i < ROUNDS_MAX; i++) {
                if (i >= ROUNDS && slept(DISPATCHER) && slept(WORKER) && client_slept())
                        break;
                atomic_store(&asks, true);
                digits_check(&digits, queue, model, i % ROUNDS, 1 + i % SAMPLES);
                atomic_store(&asks, false);
                usleep(i % 7 * 100);
        }
        digits_free(&digits);
        starling_close(client);
}

static void expect_sleep(enum sl_wait_kind kind)
{
        struct service service;

        service_init(&service);
        service.n_specs = 1;
        service.options.spin_ns = 0;
        service.options.wait = kind;
        service_start(&service);
        infer_with_rests(&service);
        cr_expect(slept(DISPATCHER), "the dispatcher is not shown to sleep");
        cr_expect(slept(WORKER), "the worker is not shown to sleep");
        cr_expect(client_slept(), "the client is not shown to sleep");
        cr_expect_eq(atomic_load(&n_lost[DISPATCHER]), 0);
        cr_expect_eq(atomic_load(&n_lost[WORKER]), 0);
        cr_expect_eq(futex_sleeps_lost(), 0);
        service_stop(&service);
}

Test(sleepers, are_woken_by_those_who_have_work_for_them_and_by_nothing_else, .timeout = 60)
{
        expect_sleep(SL_WAIT_ANY);
}

Test(sleepers, are_woken_as_well_where_io_uring_is_denied, .timeout = 60)
{
        expect_sleep(SL_WAIT_EPOLL);
}
