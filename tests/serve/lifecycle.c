/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to requests that do not simply run: refused, late, cancelled, overtaken, and caught by a change of what is served or
 * by the end of the runtime. A runtime in this process with the digits networks. "Slow" requests are long ones, and what has to be
 * in flight still when something else happens is held by the gate: nothing here depends on how long anything takes.
 */
#include "gate.h"
#include "service.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CANCELS 40u
#define BUSY    "mlp" /* the smallest, as a sanitizer makes all of it much */
#else
#define CANCELS 200u
#define BUSY    "digits"
#endif
#define SLOW_SAMPLES 640u /* more than are out at a time: two segments of 128 for an only worker, and as many that wait */
#define REQUESTS_MAX 64u
#define FOREVER_NS   SERVICE_LIMIT_NS

/* A client with one queue pair, and one input and output that all of its slow requests share: nobody looks at their results. */
struct guest {
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *model;
        struct starling_tensor input, output;
        struct starling_request requests[REQUESTS_MAX];
        int32_t status[REQUESTS_MAX];
        uint32_t seen[REQUESTS_MAX]; /* completions of each */
        uint32_t order[REQUESTS_MAX];
        uint32_t n_seen;
};

static void enter(struct guest *guest, struct service *service, const char *model)
{
        memset(guest, 0, sizeof(*guest));
        guest->client = service_connect(service, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(guest->client, &guest->queue, NULL), 0);
        cr_assert_eq(starling_model_open(guest->client, model, &guest->model, NULL), 0);
        cr_assert_eq(starling_tensor_alloc(guest->client, STARLING_F32, 4, (uint32_t[]){SLOW_SAMPLES, 1, 8, 8}, &guest->input), 0);
        cr_assert_eq(
                starling_tensor_alloc(guest->client, STARLING_F32, 2, (uint32_t[]){SLOW_SAMPLES, DIGITS_CLASSES}, &guest->output),
                0);
        memset(guest->input.data, 0, guest->input.bytes);
}

/* With BUSY as the last; under a sanitizer, where each load takes seconds, as the only one. */
static void init(struct service *service)
{
        service_init(service);
        if (strcmp(BUSY, "digits") != 0)
                service_keep(service, BUSY);
}

static struct starling_request slow(struct guest *guest, uint64_t number)
{
        return (struct starling_request){.model = guest->model,
                .inputs = &guest->input,
                .n_inputs = 1,
                .outputs = &guest->output,
                .n_outputs = 1,
                .user_data = number};
}

/* Published as one, so that the dispatcher finds them all at once. */
static void submit(struct guest *guest, uint32_t n, uint64_t *ret_ids)
{
        int r = starling_submit_many(guest->queue, guest->requests, n, ret_ids);

        cr_assert_eq(r, (int)n, "%s", starling_queue_error(guest->queue));
}

static void submit_slow(struct guest *guest, uint32_t n, uint64_t *ret_ids)
{
        for (uint32_t i = 0; i < n; i++)
                guest->requests[i] = slow(guest, i);
        submit(guest, n, ret_ids);
}

static void take(struct guest *guest, const struct starling_completion *completions, int n)
{
        for (int i = 0; i < n; i++) {
                uint64_t number = completions[i].user_data;

                cr_assert_lt(number, REQUESTS_MAX);
                cr_assert_eq(guest->seen[number]++, 0, "request %u completed twice", (unsigned)number);
                guest->status[number] = completions[i].status;
                guest->order[guest->n_seen++] = (uint32_t)number;
        }
}

static void reap_some(struct guest *guest)
{
        struct starling_completion completions[REQUESTS_MAX];
        int n = starling_wait(guest->queue, completions, REQUESTS_MAX, FOREVER_NS);

        cr_assert_gt(n, 0, "after %u completions: %s", guest->n_seen, starling_strerror(n));
        take(guest, completions, n);
}

static void reap(struct guest *guest, uint32_t until)
{
        while (guest->n_seen < until)
                reap_some(guest);
        cr_assert_eq(starling_queue_in_flight(guest->queue), 0);
}

/* A no-op is answered when all that was submitted before it has been taken: it is accepted then, or refused. */
static void wait_taken(struct guest *guest)
{
        cr_assert_eq(starling_infer(guest->queue, &(struct starling_request){.flags = STARLING_NOOP}, NULL), 0);
}

static void cancel_all(struct guest *guest, const uint64_t *ids, uint32_t n)
{
        wait_taken(guest);
        for (uint32_t i = 0; i < n; i++)
                starling_cancel(guest->queue, ids[i]);
}

static uint32_t count(const struct guest *guest, uint32_t n, int32_t status)
{
        uint32_t found = 0;

        for (uint32_t i = 0; i < n; i++)
                found += guest->seen[i] == 1 && guest->status[i] == status;
        return found;
}

/* ---- refusals ---- */

Test(lifecycle, a_full_queue_refuses_exactly_what_goes_beyond_it, .timeout = 60)
{
        struct service service;
        struct guest guest;
        uint64_t ids[16];

        init(&service);
        service.specs[service.n_specs - 1].queue_requests = 4;
        service_start(&service);
        enter(&guest, &service, BUSY);
        gate_shut();
        submit_slow(&guest, 16, ids);
        cancel_all(&guest, ids, 16);
        gate_open();
        reap(&guest, 16);
        cr_expect_eq(count(&guest, 16, -EBUSY), 12);
        for (uint32_t i = 0; i < 4; i++)
                cr_expect(guest.status[i] == 0 || guest.status[i] == -ECANCELED, "request %u: %d", i, guest.status[i]);
        starling_close(guest.client);
        service_stop(&service);
}

Test(lifecycle, a_client_has_no_more_in_flight_than_its_quota, .timeout = 60)
{
        struct service service;
        struct guest guest;
        uint64_t ids[16];

        init(&service);
        service.options.client_quota.in_flight = 5;
        service_start(&service);
        enter(&guest, &service, BUSY);
        gate_shut();
        submit_slow(&guest, 16, ids);
        cancel_all(&guest, ids, 16);
        gate_open();
        reap(&guest, 16);
        cr_expect_eq(count(&guest, 16, -EDQUOT), 11);
        starling_close(guest.client);
        service_stop(&service);
}

Test(lifecycle, clients_of_one_user_share_its_quota, .timeout = 60)
{
        struct service service;
        struct guest first, second;
        uint64_t ids[8], more[8];

        init(&service);
        service.options.uid_quota.in_flight = 6;
        service_start(&service);
        enter(&first, &service, BUSY);
        enter(&second, &service, BUSY);
        gate_shut();
        submit_slow(&first, 4, ids);
        wait_taken(&first);
        submit_slow(&second, 8, more);
        cancel_all(&second, more, 8);
        gate_open();
        reap(&second, 8);
        cancel_all(&first, ids, 4);
        reap(&first, 4);
        cr_expect_eq(count(&first, 4, -EDQUOT), 0);
        cr_expect_eq(count(&second, 8, -EDQUOT), 6);
        starling_close(first.client);
        starling_close(second.client);
        service_stop(&service);
}

Test(lifecycle, an_arena_grows_to_its_quota_and_no_further, .timeout = 60)
{
        struct service service;
        struct starling_client *client;
        void *block;

        service_init(&service);
        service_keep(&service, "mlp");
        service.options.client_quota.arena_bytes = 20u << 20;
        service_start(&service);
        client = service_connect(&service, STARLING_ROLE_CLIENT); /* 16 MiB */
        block = starling_alloc(client, 12u << 20);
        cr_assert_not_null(block);
        errno = 0;
        cr_expect_null(starling_alloc(client, 12u << 20));
        cr_expect_eq(errno, EDQUOT, "%s", strerror(errno));
        cr_expect_not_null(starling_alloc(client, 1u << 20), "what is there can still be used");
        starling_close(client);
        service_stop(&service);
}

Test(lifecycle, arenas_of_one_user_share_its_quota, .timeout = 60)
{
        struct service service;
        struct starling_client *first, *second;
        struct starling_error error = {""};
        struct starling_options options = {.runtime = service.socket_path, .arena_bytes = 16u << 20};

        service_init(&service);
        service_keep(&service, "mlp");
        service.options.uid_quota.arena_bytes = 40u << 20;
        service_start(&service);
        first = service_connect(&service, STARLING_ROLE_CLIENT); /* 16 MiB */
        cr_assert_not_null(starling_alloc(first, 12u << 20));
        cr_assert_not_null(starling_alloc(first, 12u << 20), "32 MiB are granted");
        cr_assert_eq(starling_connect(&options, &second, &error), -EDQUOT);
        cr_expect_not_null(strstr(error.text, "the limit of a user is 41943040"), "%s", error.text);
        options.arena_bytes = 8u << 20;
        cr_assert_eq(starling_connect(&options, &second, &error), 0, "%s", error.text);
        errno = 0;
        cr_expect_null(starling_alloc(first, 12u << 20));
        cr_expect_eq(errno, EDQUOT);
        starling_close(first);
        void *block = NULL;
        SERVICE_AWAIT(&service, (block = starling_alloc(second, 12u << 20))); /* the runtime hears that the first has gone */
        starling_close(second);
        service_stop(&service);
}

Test(lifecycle, a_client_too_many_is_refused_until_another_leaves, .timeout = 60)
{
        struct service service;
        struct starling_client *clients[2], *third;
        struct starling_error error;

        service_init(&service);
        service_keep(&service, "mlp");
        service.options.clients_max = 2;
        service_start(&service);
        clients[0] = service_connect(&service, STARLING_ROLE_CLIENT);
        clients[1] = service_connect(&service, STARLING_ROLE_CLIENT);
        struct starling_options options = {.runtime = service.socket_path};
        cr_assert_eq(starling_connect(&options, &third, &error), -EDQUOT);
        cr_expect_not_null(strstr(error.text, "clients_max is 2"), "%s", error.text);
        starling_close(clients[0]);
        int r;
        SERVICE_AWAIT(&service, (r = starling_connect(&options, &third, &error)) != -EDQUOT);
        cr_assert_eq(r, 0, "%s", error.text);
        starling_close(third);
        starling_close(clients[1]);
        service_stop(&service);
}

/* ---- deadlines ---- */

Test(lifecycle, what_is_late_completes_as_late_wherever_it_is, .timeout = 60)
{
        struct service service;
        struct guest guest;
        uint64_t ids[4];

        init(&service);
        service_start(&service);
        enter(&guest, &service, BUSY);
        for (uint32_t i = 0; i < 4; i++)
                guest.requests[i] = slow(&guest, i);
        guest.requests[0].deadline_ns = 1;                                /* at admission */
        guest.requests[1].deadline_ns = starling_clock_ns() + 2000000;    /* while it computes, or before it is combined */
        guest.requests[2].deadline_ns = starling_clock_ns() + 2000000;    /* in the queue behind the one before, or foreseen */
        guest.requests[3].deadline_ns = starling_clock_ns() + FOREVER_NS; /* not at all */
        gate_shut();
        submit(&guest, 4, ids);
        while (starling_clock_ns() < guest.requests[2].deadline_ns)
                usleep(1000);
        gate_open();
        reap(&guest, 4);
        cr_expect_eq(guest.order[0], 0);
        cr_expect_eq(guest.status[0], -ETIME);
        cr_expect_eq(guest.status[1], -ETIME);
        cr_expect(guest.status[2] == -ETIME || guest.status[2] == -EBUSY, "%d", guest.status[2]);
        cr_expect_eq(guest.status[3], 0);
        starling_close(guest.client);
        service_stop(&service);
}

/* ---- cancellation ---- */

static void cancel_after(struct guest *guest, struct digits *digits, uint32_t turns)
{
        struct starling_tensor input, output;
        struct starling_request request = digits_request(digits, guest->model, 0, 300, &input, &output);
        struct starling_completion completion;
        uint64_t id;

        cr_assert_eq(starling_submit(guest->queue, &request, &id), 0);
        for (volatile uint32_t i = 0; i < turns; i++)
                ;
        int r = starling_cancel(guest->queue, id);
        cr_assert(r == 0 || r == -ENOENT, "%s", starling_strerror(r));
        cr_assert_eq(starling_wait(guest->queue, &completion, 1, FOREVER_NS), 1);
        cr_assert_eq(completion.id, id);
        cr_assert(completion.status == 0 || completion.status == -ECANCELED, "%s", starling_strerror(completion.status));
        cr_assert_eq(starling_queue_in_flight(guest->queue), 0);
        cr_assert_leq(starling_poll(guest->queue, &completion, 1), 0);
}

/* From before the entry is read to after the result is there. */
Test(lifecycle, a_cancelled_request_completes_once_at_every_stage, .timeout = 60)
{
        struct service service;
        struct digits digits;
        struct guest guest;

        service_init(&service);
        service_start(&service);
        enter(&guest, &service, "digits");
        digits_load(&digits, guest.client, "digits");
        for (uint32_t i = 0; i < CANCELS; i++)
                cancel_after(&guest, &digits, i * i * (4000000 / CANCELS / CANCELS));
        digits_check(&digits, guest.queue, guest.model, 0, 300);
        digits_free(&digits);
        starling_close(guest.client);
        service_stop(&service);
}

/* ---- turns ---- */

Test(priority, the_more_urgent_request_overtakes_those_that_wait, .timeout = 60)
{
        struct service service;
        struct guest guest;

        init(&service);
        service_start(&service);
        enter(&guest, &service, BUSY);
        for (uint32_t i = 0; i < 6; i++) {
                guest.requests[i] = slow(&guest, i);
                guest.requests[i].priority = i == 5 ? 0 : 3;
        }
        gate_shut();
        submit(&guest, 6, NULL);
        wait_taken(&guest);
        gate_open();
        reap(&guest, 6);
        cr_expect(
                guest.order[0] == 5 || guest.order[1] == 5, "the urgent one came after %u and %u", guest.order[0], guest.order[1]);
        cr_expect_eq(count(&guest, 6, 0), 6);
        starling_close(guest.client);
        service_stop(&service);
}

/* What is there once the dispatcher has heard of every job that was answered: it hears them in a pass that took an entry. */
static void look(struct guest *guest)
{
        struct starling_completion completions[REQUESTS_MAX];

        wait_taken(guest); /* in this pass, or in an earlier one */
        wait_taken(guest); /* in a later one */
        take(guest, completions, starling_poll(guest->queue, completions, REQUESTS_MAX));
}

Test(turns, a_client_with_much_to_do_leaves_the_other_its_turns, .timeout = 60)
{
        struct service service;
        struct guest busy, modest;

        init(&service);
        service_start(&service);
        enter(&busy, &service, BUSY);
        enter(&modest, &service, BUSY);
        gate_shut();
        submit_slow(&busy, 8, NULL);
        wait_taken(&busy);
        submit_slow(&modest, 1, NULL);
        wait_taken(&modest);
        for (look(&modest); modest.n_seen == 0; look(&modest))
                gate_let_one_through();
        look(&busy);
        cr_expect_leq(busy.n_seen, 1, "%u of the busy client's requests came before the only one of the other", busy.n_seen);
        gate_open();
        reap(&busy, 8);
        cr_expect_eq(count(&busy, 8, 0), 8);
        starling_close(busy.client);
        starling_close(modest.client);
        service_stop(&service);
}

/* ---- fork ---- */

Test(fork, a_forked_child_cannot_touch_what_its_parent_has_in_flight, .timeout = 60)
{
        struct service service;
        struct digits digits;
        struct guest guest;
        int status;

        init(&service);
        service_start(&service);
        enter(&guest, &service, BUSY);
        digits_load(&digits, guest.client, BUSY);
        gate_shut();
        submit_slow(&guest, 4, NULL);
        pid_t pid = fork();
        if (pid == 0) {
                struct starling_completion completion;
                struct starling_request request = slow(&guest, 9);
                bool refused = starling_submit(guest.queue, &request, NULL) == -ECHILD &&
                               starling_poll(guest.queue, &completion, 1) == -ECHILD;

                _exit(refused ? 0 : 1);
        }
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        gate_open();
        reap(&guest, 4);
        cr_expect_eq(count(&guest, 4, 0), 4);
        digits_check(&digits, guest.queue, guest.model, 0, 32);
        digits_free(&digits);
        starling_close(guest.client);
        service_stop(&service);
}

/* ---- a connection made anew ---- */

static _Atomic bool reconnected;

static void *reconnect(void *context)
{
        struct guest *guest = context;
        struct starling_error error = {""};

        cr_expect_eq(starling_reconnect(guest->client, FOREVER_NS, &error), 0, "%s", error.text);
        atomic_store(&reconnected, true);
        return NULL;
}

/* Buffers of what has completed as -EPIPE are the client's: nobody writes to them when it has connected again. */
Test(reconnect, waits_until_what_was_in_flight_before_writes_nothing_any_more, .timeout = 60)
{
        struct service service;
        struct guest guest;
        pthread_t thread;

        init(&service);
        service_start(&service);
        enter(&guest, &service, BUSY);
        gate_shut();
        submit_slow(&guest, 1, NULL);
        wait_taken(&guest);
        cr_assert_eq(pthread_create(&thread, NULL, reconnect, &guest), 0);
        usleep(300000);
        cr_expect_not(atomic_load(&reconnected), "a worker has the buffers still");
        gate_open();
        pthread_join(thread, NULL);
        reap(&guest, 1);
        cr_expect_eq(count(&guest, 1, -EPIPE), 1);
        submit_slow(&guest, 2, NULL);
        guest.seen[0] = 0;
        reap(&guest, 3);
        cr_expect_eq(count(&guest, 2, 0), 2);
        starling_close(guest.client);
        service_stop(&service);
}

/* ---- change ---- */

/* Five models are replaced under a client that never waits for them: nothing is lost, nothing refused, every answer right. */
Test(reload, a_reload_replaces_models_without_losing_or_refusing_a_request, .timeout = 60)
{
        struct service service;
        struct digits digits;
        struct guest guest;

        service_init(&service);
        service_start(&service);
        enter(&guest, &service, "digits");
        digits_load(&digits, guest.client, "digits");
        for (uint32_t round = 1; round <= 3; round++) {
                service_touch(&service);
                service_reload(&service);
                for (uint32_t i = 0; service_count_logged(&service, "model-replaced") < 5 * round; i++)
                        digits_check(&digits, guest.queue, guest.model, i % 8 * 8, 1 + i % 200);
        }
        digits_check(&digits, guest.queue, guest.model, 0, 599);
        cr_expect_eq(service_count_logged(&service, "model-not-replaced"), 0, "%s", service.log);
        digits_free(&digits);
        starling_close(guest.client);
        service_stop(&service);
}

Test(reload, an_end_in_the_middle_of_a_reload_leaves_nothing, .timeout = 60)
{
        struct service service;
        struct guest guest;

        service_init(&service);
        service_start(&service);
        enter(&guest, &service, BUSY);
        submit_slow(&guest, 2, NULL);
        service_touch(&service);
        service_reload(&service);
        service_expect_log(&service, "model-replaced");
        service_stop(&service);
        reap(&guest, 2);
        starling_close(guest.client);
}

struct administration {
        struct service *service;
        int first_wrong;
        atomic_bool done;
};

static void *administer(void *argument)
{
        struct administration *a = argument;
        struct starling_options options = {.runtime = a->service->socket_path, .role = STARLING_ROLE_ADMIN};
        struct starling_client *admin;
        int r = starling_connect(&options, &admin, NULL);

        for (int i = 0; i < 10 && r == 0; i++) {
                r = starling_admin_unload(admin, "mlp", NULL);
                if (r == 0)
                        r = starling_admin_load(admin, "mlp", NULL);
                if (r == 0)
                        r = starling_admin_reload(admin, "mlp", NULL);
        }
        if (r == 0 && starling_admin_load(admin, "mlp", NULL) != -EEXIST)
                r = -EEXIST;
        if (r == 0 && starling_admin_unload(admin, "nobody", NULL) != -ENOENT)
                r = -ENOENT;
        if (r == 0)
                starling_close(admin);
        a->first_wrong = r;
        atomic_store(&a->done, true);
        return NULL;
}

Test(administration, an_administrator_loads_and_unloads_while_others_are_served, .timeout = 60)
{
        struct service service;
        struct administration administration = {.service = &service};
        struct digits digits;
        struct guest guest;
        pthread_t thread;

        service_init(&service);
        service_keep(&service, "lenet mlp"); /* without the ensemble, which would hold its members */
        service_start(&service);
        enter(&guest, &service, "lenet");
        digits_load(&digits, guest.client, "lenet");
        pthread_create(&thread, NULL, administer, &administration);
        for (uint32_t i = 0; !atomic_load(&administration.done); i++)
                digits_check(&digits, guest.queue, guest.model, i % 8 * 8, 1 + i % 200);
        pthread_join(thread, NULL);
        cr_expect_eq(administration.first_wrong, 0, "%s\n%s", starling_strerror(administration.first_wrong), service.log);
        digits_free(&digits);
        starling_close(guest.client);
        service_stop(&service);
}

/* What was unloaded is gone for those who had it open, and its handle says so. */
Test(administration, a_request_for_an_unloaded_model_is_refused_as_stale, .timeout = 60)
{
        struct service service;
        struct starling_client *admin;
        struct guest guest;

        service_init(&service);
        service_keep(&service, "mlp");
        service_start(&service);
        enter(&guest, &service, "mlp");
        submit_slow(&guest, 3, NULL);
        admin = service_connect(&service, STARLING_ROLE_ADMIN);
        cr_assert_eq(starling_admin_unload(admin, "mlp", NULL), 0);
        reap(&guest, 3);
        cr_expect_eq(count(&guest, 3, 0) + count(&guest, 3, -ESTALE), 3);
        struct starling_request request = slow(&guest, 0);
        uint64_t end_ns = starling_clock_ns() + FOREVER_NS;
        int32_t status = 0;

        while (status == 0 && starling_clock_ns() < end_ns) /* the dispatcher hears of it a little later than who asked for it */
                status = starling_infer(guest.queue, &request, NULL);
        cr_expect_eq(status, -ESTALE, "%s", starling_strerror(status));
        starling_close(admin);
        starling_close(guest.client);
        service_stop(&service);
}

/* ---- the end ---- */

/* Until the runtime says that it is stopping: each of these requests is late, and refused at once one way or the other. */
static void wait_closed(struct guest *guest)
{
        struct starling_request late = slow(guest, 0);
        int32_t status = -ETIME;

        for (late.deadline_ns = 1; status == -ETIME; usleep(1000))
                status = starling_infer(guest->queue, &late, NULL);
        cr_assert_eq(status, -ECANCELED, "%s", starling_strerror(status));
}

Test(grace, what_is_in_flight_at_the_end_is_finished_within_the_grace_time, .timeout = 60)
{
        struct service service;
        struct guest guest;

        init(&service);
        service.options.grace_ns = 20 * FOREVER_NS;
        service_start(&service);
        enter(&guest, &service, BUSY);
        gate_shut();
        submit_slow(&guest, 8, NULL);
        wait_taken(&guest);
        service_ask_to_stop(&service);
        wait_closed(&guest);
        gate_open();
        service_join(&service);
        reap(&guest, 8);
        cr_expect_eq(count(&guest, 8, 0), 8);
        struct starling_request request = slow(&guest, 0);
        cr_expect_eq(starling_infer(guest.queue, &request, NULL), -EPIPE);
        starling_close(guest.client);
}

Test(grace, what_the_grace_time_does_not_suffice_for_is_cancelled, .timeout = 60)
{
        struct service service;
        struct starling_client *idle;
        struct guest guest;
        char page[128];

        init(&service);
        service.options.grace_ns = 1;
        service_start(&service);
        enter(&guest, &service, BUSY);
        gate_shut();
        submit_slow(&guest, 32, NULL);
        wait_taken(&guest);
        idle = service_connect(&service, STARLING_ROLE_CLIENT); /* its queue pairs have nothing to cancel */
        snprintf(page, sizeof(page), "/dev/shm/starling.%s", service.options.name);
        cr_expect_eq(access(page, F_OK), 0);
        service_ask_to_stop(&service);
        reap_some(&guest); /* what no worker has */
        cr_expect_eq(count(&guest, 32, -ECANCELED), guest.n_seen);
        gate_open();
        service_join(&service);
        cr_expect_neq(access(page, F_OK), 0, "the stats page is left behind");
        reap(&guest, 32);
        cr_expect_eq(count(&guest, 32, 0) + count(&guest, 32, -ECANCELED), 32);
        starling_close(guest.client);
        starling_close(idle);
}

Test(closing, nothing_new_is_admitted_while_the_rest_is_finished, .timeout = 60)
{
        struct service service;
        struct guest guest;

        init(&service);
        service.options.grace_ns = 20 * FOREVER_NS;
        service_start(&service);
        enter(&guest, &service, BUSY);
        gate_shut();
        submit_slow(&guest, 8, NULL);
        wait_taken(&guest);
        service_ask_to_stop(&service);
        wait_closed(&guest);
        gate_open();
        reap(&guest, 8);
        cr_expect_eq(count(&guest, 8, 0), 8);
        service_join(&service);
        starling_close(guest.client);
}
