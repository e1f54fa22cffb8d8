/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_asks.h"

#include "base/cleanup.h"
#include "gpu_host.h"

#include <errno.h>
#include <unistd.h>

static int ask(struct sl_gpu_asks *asks, uint32_t gpu, struct sl_error *error)
{
        struct sl_gpu_ask *asked = &asks->list[asks->n++];
        int r;

        *asked = (struct sl_gpu_ask){.gpu = gpu, .answer_fd = -1};
        r = sl_gpu_host_hold(asks->hosts, gpu, asks->program, &asked->host, error);
        return r < 0 ? r : sl_gpu_host_ask(asked->host, &asked->answer_fd, error);
}

int sl_gpu_asks_begin(struct sl_gpu_asks *asks, struct sl_gpu_hosts *hosts, const char *program, const struct sl_worker_set *set,
        struct sl_error *error)
{
        uint32_t gpus[SL_GPUS_MAX] = {0}, n;
        int r = 0;

        *asks = (struct sl_gpu_asks){.hosts = hosts, .program = program, .finds = sl_worker_set_wants_each(set)};
        n = asks->finds ? 1 : sl_worker_set_gpus(set, gpus);
        for (uint32_t i = 0; i < n && r == 0; i++)
                r = ask(asks, gpus[i], error);
        return r;
}

int sl_gpu_asks_fd(const struct sl_gpu_asks *asks)
{
        return asks->next < asks->n ? asks->list[asks->next].answer_fd : -1;
}

/* The first one has said how many there are. */
static int ask_others(struct sl_gpu_asks *asks, uint32_t n_gpus, struct sl_error *error)
{
        int r = 0;

        for (uint32_t gpu = 1; gpu < n_gpus && gpu < SL_GPUS_MAX && r == 0; gpu++)
                r = ask(asks, gpu, error);
        return r;
}

int sl_gpu_asks_advance(struct sl_gpu_asks *asks, struct sl_error *error)
{
        struct sl_gpu_ask *asked = &asks->list[asks->next++];
        struct sl_gpu_let usable[SL_GPUS_MAX];
        uint32_t n_gpus = 0;
        int r = sl_gpu_host_answer(asked->host, asked->answer_fd, &n_gpus, &asked->fault), asking = 0;

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

void sl_gpu_asks_end(struct sl_gpu_asks *asks)
{
        for (uint32_t i = 0; i < asks->n; i++) {
                sl_cleanup_fd(&asks->list[i].answer_fd);
                asks->list[i].host = sl_gpu_host_drop(asks->list[i].host);
        }
        asks->n = asks->next = 0;
}
