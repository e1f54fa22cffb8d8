/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_asks.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "gpu_host.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define ONCE_MORE 8 /* part of the limit */

static void start_clock(struct sl_gpu_asks *asks)
{
        asks->was_due = false;
        asks->due_ns = asks->limit_ns ? sl_clock_ns() + asks->limit_ns : UINT64_MAX;
}

static int ask(struct sl_gpu_asks *asks, uint32_t gpu, struct sl_error *error)
{
        struct sl_gpu_ask *asked = &asks->list[asks->n++];
        int r;

        *asked = (struct sl_gpu_ask){.gpu = gpu, .answer_fd = -1};
        r = sl_gpu_host_hold(asks->hosts, gpu, asks->program, &asked->host, error);
        return r < 0 ? r : sl_gpu_host_ask(asked->host, &asked->answer_fd, error);
}

int sl_gpu_asks_begin(struct sl_gpu_asks *asks, struct sl_gpu_hosts *hosts, const char *program, const struct sl_worker_set *set,
        uint64_t limit_ns, struct sl_error *error)
{
        uint32_t gpus[SL_GPUS_MAX] = {0}, n;
        int r = 0;

        *asks = (struct sl_gpu_asks){
                .hosts = hosts, .program = program, .finds = sl_worker_set_wants_each(set), .limit_ns = limit_ns};
        start_clock(asks);
        n = asks->finds ? 1 : sl_worker_set_gpus(set, gpus);
        if (n == 0)
                return sl_error_set(error, EINVAL, "its device is a GPU, and none of its workers is on one");
        for (uint32_t i = 0; i < n && r == 0; i++)
                r = ask(asks, gpus[i], error);
        return r;
}

int sl_gpu_asks_fd(const struct sl_gpu_asks *asks)
{
        return asks->next < asks->n ? asks->list[asks->next].answer_fd : -1;
}

uint64_t sl_gpu_asks_due_ns(const struct sl_gpu_asks *asks)
{
        return sl_gpu_asks_fd(asks) >= 0 ? asks->due_ns : UINT64_MAX;
}

/* The first one has said how many there are. */
static int ask_others(struct sl_gpu_asks *asks, uint32_t n_gpus, struct sl_error *error)
{
        int r = 0;

        start_clock(asks);
        for (uint32_t gpu = 1; gpu < n_gpus && gpu < SL_GPUS_MAX && r == 0; gpu++)
                r = ask(asks, gpu, error);
        return r;
}

static bool is_there(const struct sl_gpu_asks *asks)
{
        struct pollfd answer = {.fd = sl_gpu_asks_fd(asks), .events = POLLIN};

        return poll(&answer, 1, 0) != 0;
}

static int hear(struct sl_gpu_ask *asked, bool is_there, uint64_t limit_ns, uint32_t *ret_n_gpus)
{
        *ret_n_gpus = 0;
        if (is_there)
                return sl_gpu_host_answer(asked->host, asked->answer_fd, ret_n_gpus, &asked->figures, &asked->fault);
        return sl_error_set(&asked->fault, ETIMEDOUT,
                "gpu:%u: its process has not said for %.1f s whether it can be used (hang_ms)", asked->gpu,
                (double)limit_ns / SL_NS_PER_SECOND);
}

/* Return: 1: it may come yet. */
static int wait_once_more(struct sl_gpu_asks *asks)
{
        uint64_t now_ns = sl_clock_ns();

        if (now_ns >= asks->due_ns && asks->was_due)
                return 0;
        if (now_ns >= asks->due_ns) {
                asks->was_due = true;
                asks->due_ns = now_ns + asks->limit_ns / ONCE_MORE;
        }
        return 1;
}

int sl_gpu_asks_advance(struct sl_gpu_asks *asks, struct sl_error *error)
{
        bool there = is_there(asks);
        struct sl_gpu_let usable[SL_GPUS_MAX];
        struct sl_gpu_ask *asked;
        int r, asking = 0;
        uint32_t n_gpus;

        if (!there && wait_once_more(asks))
                return 0;
        asked = &asks->list[asks->next++];
        r = hear(asked, there, asks->limit_ns, &n_gpus);
        close(sl_take_fd(&asked->answer_fd));
        if (r == 0)
                asked->fault.text[0] = 0;
        if (r < 0 && !asks->finds) {
                *error = asked->fault;
                return r;
        }
        if (asks->finds && asked->gpu == 0)
                asking = ask_others(asks, n_gpus, error);
        if (asking < 0)
                return asking;
        if (asks->next < asks->n)
                return 0;
        if (sl_gpu_asks_usable(asks, usable))
                return 1;
        *error = asks->list[0].fault;
        return -ENODEV;
}

uint32_t sl_gpu_asks_usable(const struct sl_gpu_asks *asks, struct sl_gpu_let ret_lets[SL_GPUS_MAX])
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < asks->next; i++)
                if (!asks->list[i].fault.text[0])
                        ret_lets[n++] = sl_gpu_let_of(asks->list[i].gpu, 100);
        return n;
}

struct sl_cuda_figures sl_gpu_asks_figures(const struct sl_gpu_asks *asks)
{
        uint32_t i = 0;

        while (i < asks->next && asks->list[i].fault.text[0])
                i++;
        return i < asks->next ? asks->list[i].figures : (struct sl_cuda_figures){0};
}

void sl_gpu_asks_end(struct sl_gpu_asks *asks)
{
        for (uint32_t i = 0; i < asks->n; i++) {
                sl_cleanup_fd(&asks->list[i].answer_fd);
                asks->list[i].host = sl_gpu_host_drop(asks->list[i].host);
        }
        asks->n = asks->next = 0;
}
