/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fields.h"
#include "gpu_host.h"
#include "process_executor.h"
#include "stats.h"
#include "tunings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define LOG_WARNING 1 /* as sl_runtime_log_fn counts */
#define LOG_INFO    2

struct sl_supervisor {
        struct sl_supervisor_options options;
        int epoll_fd;
        struct sl_gpu_hosts gpu_hosts;
        struct sl_tunings tunings;
};

int sl_supervisor_new(const struct sl_supervisor_options *options, struct sl_supervisor **ret_supervisor)
{
        struct sl_supervisor *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        s->options = *options;
        s->tunings.cache = options->cache;
        s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (s->epoll_fd < 0) {
                int r = -errno;

                free(s);
                return r;
        }
        *ret_supervisor = s;
        return 0;
}

struct sl_supervisor *sl_supervisor_free(struct sl_supervisor *s)
{
        if (!s)
                return NULL;
        sl_cleanup_fd(&s->epoll_fd);
        free(s);
        return NULL;
}

struct sl_gpu_hosts *sl_supervisor_gpu_hosts(struct sl_supervisor *s)
{
        return &s->gpu_hosts;
}

struct sl_tunings *sl_supervisor_tunings(struct sl_supervisor *s)
{
        return &s->tunings;
}

int sl_supervisor_fd(const struct sl_supervisor *s)
{
        return s->epoll_fd;
}

int sl_supervisor_watch(struct sl_supervisor *s, struct sl_executor *executor)
{
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = executor};

        return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, sl_process_executor_fd(executor), &event) < 0 ? -errno : 0;
}

void sl_supervisor_unwatch(struct sl_supervisor *s, const struct sl_executor *executor)
{
        (void)epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, sl_process_executor_fd(executor), NULL);
}

static void say_of(const struct sl_supervisor *s, const struct sl_executor *executor, const char *event, const char *cause)
{
        s->options.say(s->options.context, LOG_WARNING, event, executor->stats->model, cause);
}

static void tell_tuned(const struct sl_supervisor *s, const struct sl_executor *executor, const struct sl_gpu_choices_facts *facts)
{
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "model", executor->stats->model);
        sl_fields_add_number(&fields, "batch", executor->batch_max);
        sl_fields_add_number(&fields, "nodes", facts->n_timed);
        sl_fields_add_number(&fields, "untimed", facts->n_choices - facts->n_timed);
        sl_fields_add_number(&fields, "candidates", facts->n_candidates);
        sl_fields_add_real(&fields, "timed_seconds", (double)facts->timed_ns / SL_NS_PER_SECOND);
        s->options.tell(s->options.context, LOG_INFO, "gpu-tuned", fields.text);
}

/* What is no such thing is not kept, and the worker goes on. */
static void hear_choices(struct sl_supervisor *s, struct sl_executor *executor)
{
        struct sl_gpu_choices_facts facts;
        struct sl_process_choices choices;
        struct sl_error error = {""};

        if (!sl_process_executor_take_choices(executor, &choices))
                return;
        if (choices.ignored[0])
                say_of(s, executor, "gpu-choices-ignored", choices.ignored);
        if (choices.fd < 0)
                return;
        if (sl_tunings_keep(&s->tunings, sl_process_executor_options(executor), choices.fd, &facts, &error) < 0)
                say_of(s, executor, "gpu-choices-ignored", error.text);
        else
                tell_tuned(s, executor, &facts);
        sl_cleanup_fd(&choices.fd);
}

/* Who comes next takes the first candidates. */
static void hear_end(struct sl_supervisor *s, struct sl_executor *executor)
{
        if (!sl_process_executor_is_timing(executor))
                return;
        sl_tunings_abandon(&s->tunings, sl_process_executor_options(executor));
        say_of(s, executor, "gpu-tuning-abandoned", "its process ended while candidates were timed: they are not timed again");
}

static void hear_worker(struct sl_supervisor *s, struct sl_executor *executor)
{
        struct sl_error warning, error;
        int r = sl_process_executor_hear(executor, &warning, &error);

        hear_choices(s, executor);

        if (warning.text[0])
                say_of(s, executor, "sandbox-incomplete", warning.text);
        if (r == 0)
                return;
        say_of(s, executor, "worker-ended", error.text);
        hear_end(s, executor);
        sl_supervisor_unwatch(s, executor);
}

void sl_supervisor_hear(struct sl_supervisor *s)
{
        struct epoll_event event;

        while (epoll_wait(s->epoll_fd, &event, 1, 0) == 1)
                hear_worker(s, event.data.ptr);
}
