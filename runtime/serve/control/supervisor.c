/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "gpu_host.h"
#include "process_executor.h"
#include "stats.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define LOG_WARNING 1 /* as sl_runtime_log_fn counts */

struct sl_supervisor {
        struct sl_supervisor_options options;
        int epoll_fd;
        struct sl_gpu_hosts gpu_hosts;
};

int sl_supervisor_new(const struct sl_supervisor_options *options, struct sl_supervisor **ret_supervisor)
{
        struct sl_supervisor *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        s->options = *options;
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

static void hear_worker(struct sl_supervisor *s, struct sl_executor *executor)
{
        struct sl_error warning, error;
        int r = sl_process_executor_hear(executor, &warning, &error);

        if (warning.text[0])
                s->options.say(s->options.context, LOG_WARNING, "sandbox-incomplete", executor->stats->model, warning.text);
        if (r == 0)
                return;
        s->options.say(s->options.context, LOG_WARNING, "worker-ended", executor->stats->model, error.text);
        sl_supervisor_unwatch(s, executor);
}

void sl_supervisor_hear(struct sl_supervisor *s)
{
        struct epoll_event event;

        while (epoll_wait(s->epoll_fd, &event, 1, 0) == 1)
                hear_worker(s, event.data.ptr);
}
