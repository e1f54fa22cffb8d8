/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an administrator has been told is what everybody sees: the catalogue and the stats page say it before the answer does. The
 * control thread of a runtime in this process stands still right behind each answer, until the test has looked.
 */
#include "attach.h"
#include "service.h"
#include "stats.h"

#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

static atomic_bool stands_still;
static sem_t looked;

int __real_sl_message_send(int socket, const struct sl_message *message, const int *fds, uint32_t n_fds);

int __wrap_sl_message_send(int socket, const struct sl_message *message, const int *fds, uint32_t n_fds);

int __wrap_sl_message_send(int socket, const struct sl_message *message, const int *fds, uint32_t n_fds)
{
        int r = __real_sl_message_send(socket, message, fds, n_fds);

        if (message->type == SL_MESSAGE_DONE && atomic_load(&stands_still))
                sem_wait(&looked);
        return r;
}

struct scene {
        struct service service;
        struct starling_client *admin, *client;
        struct sl_stats_view *stats;
};

static void begin(struct scene *s)
{
        static const char *const members[2] = {"lenet", "mlp"};

        sem_init(&looked, 0, 0);
        service_init(&s->service);
        s->service.specs[2] = s->service.specs[5]; /* "digits", of two */
        s->service.specs[2].members = members;
        s->service.specs[2].n_members = 2;
        s->service.specs[1] = s->service.specs[4];
        s->service.n_specs = 3;
        service_start(&s->service);
        service_expect_log(&s->service, "ensemble-ready");
        s->admin = service_connect(&s->service, STARLING_ROLE_ADMIN);
        s->client = service_connect(&s->service, STARLING_ROLE_CLIENT);
        cr_assert_eq(sl_stats_open(s->service.options.name, NULL, &s->stats, NULL), 0);
        atomic_store(&stands_still, true);
}

static void go_on(void)
{
        sem_post(&looked);
}

static void end(struct scene *s)
{
        atomic_store(&stands_still, false);
        sl_stats_close(s->stats);
        starling_close(s->admin);
        starling_close(s->client);
        service_stop(&s->service);
        sem_destroy(&looked);
}

/* What the catalogue has of the model. */
static bool list(const struct scene *s, const char *name, struct starling_model_entry *ret_entry)
{
        struct starling_model_entry entries[SERVICE_MODELS_MAX];
        int n = starling_model_list(s->client, entries, SERVICE_MODELS_MAX);

        cr_assert_leq(n, SERVICE_MODELS_MAX);
        for (int i = 0; i < n; i++) {
                *ret_entry = entries[i];
                if (strcmp(entries[i].name, name) == 0)
                        return true;
        }
        return false;
}

static bool show(const struct scene *s, const char *name, struct sl_model_stats *ret_model)
{
        for (uint32_t i = 0; i < sl_stats_count(s->stats, SL_STATS_MODELS); i++)
                if (sl_stats_read_model(s->stats, i, ret_model) == 0 && strcmp(ret_model->name, name) == 0)
                        return true;
        return false;
}

Test(answers, what_was_unloaded_is_listed_no_more, .timeout = 120)
{
        struct starling_model_entry entry;
        struct sl_model_stats shown;
        struct scene s;

        begin(&s);
        cr_expect_eq(starling_admin_unload(s.admin, "digits", NULL), 0);
        cr_expect_not(list(&s, "digits", &entry));
        cr_expect_not(show(&s, "digits", &shown));
        go_on();
        end(&s);
}

Test(answers, what_was_loaded_is_listed_as_ready, .timeout = 120)
{
        struct starling_model_entry entry;
        struct sl_model_stats shown;
        struct scene s;

        begin(&s);
        go_on();
        cr_assert_eq(starling_admin_unload(s.admin, "digits", NULL), 0);
        cr_expect_eq(starling_admin_load(s.admin, "digits", NULL), 0);
        cr_expect(list(&s, "digits", &entry) && entry.state == STARLING_MODEL_READY);
        cr_expect(show(&s, "digits", &shown) && shown.state == SL_STATS_MODEL_READY && shown.want == shown.want_served);
        go_on();
        end(&s);
}

Test(answers, what_was_replaced_is_shown_as_what_is_wanted, .timeout = 120)
{
        struct sl_model_stats before, after;
        struct scene s;

        begin(&s);
        cr_assert(show(&s, "mlp", &before));
        service_touch(&s.service);
        cr_expect_eq(starling_admin_reload(s.admin, "mlp", NULL), 0, "%s", s.service.log);
        cr_assert(show(&s, "mlp", &after));
        cr_expect_gt(after.want, before.want);
        cr_expect_eq(after.want_served, after.want);
        cr_expect_eq(after.loads, before.loads + 1);
        cr_expect_eq(after.state, SL_STATS_MODEL_READY);
        go_on();
        end(&s);
}

Test(answers, what_failed_is_shown_with_its_cause, .timeout = 120)
{
        struct starling_error error;
        struct sl_model_stats shown;
        struct scene s;

        begin(&s);
        pthread_mutex_lock(&s.service.specs_lock);
        s.service.specs[1].path = DIGITS "/models/none/1/model.onnx";
        pthread_mutex_unlock(&s.service.specs_lock);
        cr_expect_lt(starling_admin_reload(s.admin, "mlp", &error), 0);
        cr_expect(show(&s, "mlp", &shown) && shown.want_failed == shown.want && shown.load_failures == 1);
        cr_expect_str_not_empty(shown.cause);
        go_on();
        end(&s);
}

Test(answers, workers_that_were_applied_are_shown, .timeout = 120)
{
        const struct starling_allotment workers[] = {{"mlp", "cpu", 4}, {"mlp", "cpu", 8}};
        struct sl_model_stats shown;
        struct scene s;

        begin(&s);
        go_on(); /* the row */
        go_on();
        cr_expect_eq(starling_admin_apply(s.admin, workers, 2, NULL), 0, "%s", s.service.log);
        cr_expect(show(&s, "mlp", &shown) && shown.workers_wanted == 2 && shown.workers_serving == 2);
        go_on();
        end(&s);
}
