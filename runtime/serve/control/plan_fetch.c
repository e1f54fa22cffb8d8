/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_fetch.h"

#include "backend.h"
#include "base/background.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"
#include "plan.h"
#include "stop.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct sl_plan_fetch {
        struct sl_plan_fetch_options options;
        struct sl_lower_options lowering;
        char *path;
        int fd;
        pthread_t thread;
        bool runs;               /* the thread has to be joined */
        _Atomic int32_t verdict; /* the owner's word to it (stop.h) */
        struct sl_plan_found found;
};

/* No base is loaded: the cache may know which one it was. The plan that is looked for may be that one itself. */
static void find_base(struct sl_plan_fetch *fetch)
{
        struct sl_plan_found *found = &fetch->found;
        bool own;

        if (!fetch->options.sized || found->base ||
                sl_plan_cache_find_base(fetch->options.cache, &found->key, &found->base, &own, &found->error) < 0 || !own)
                return;
        found->plan = sl_take(found->base);
}

static void search_cache(struct sl_plan_fetch *fetch)
{
        struct sl_plan_cache *cache = fetch->options.cache;
        struct sl_plan_found *found = &fetch->found;
        const struct sl_stop stop = {
                .verdict = &fetch->verdict, .deadline_ns = sl_clock_ns() + fetch->options.seconds * SL_NS_PER_SECOND};

        found->status = sl_plan_cache_key(
                cache, fetch->path, fetch->options.compile_program, &fetch->lowering, &stop, &found->key, &found->error);
        if (found->status < 0)
                return;
        found->keyed = true;
        find_base(fetch);
        if (found->plan)
                return;
        sl_plan_cache_key_on(&found->key, found->base);
        (void)sl_plan_cache_find(cache, &found->key, found->base, &found->plan, &found->error); /* The text is enough. */
}

/* Other sizes are derived from it, or what a GPU finds out about it is kept: the control thread will ask what plan it is. */
static bool is_identified(const struct sl_plan_fetch *fetch)
{
        const struct sl_backend *backend = sl_backend_find(sl_plan_info(fetch->found.plan)->backend);

        return fetch->options.sized || (backend && backend->runner && backend->runner->memory);
}

static void open_compiled(struct sl_plan_fetch *fetch)
{
        struct sl_plan_found *found = &fetch->found;

        found->status = sl_plan_open_on(fetch->options.plan_fd, found->base, &found->plan, &found->error);
        if (found->status == 0 && is_identified(fetch))
                (void)sl_plan_identity(found->plan); /* which is known from now on */
}

static void *fetch_main(void *context)
{
        struct sl_plan_fetch *fetch = context;

        sl_background_thread(fetch->options.background);
        if (fetch->options.plan_fd >= 0)
                open_compiled(fetch);
        else
                search_cache(fetch);
        (void)eventfd_write(fetch->fd, 1);
        return NULL;
}

static int start_thread(struct sl_plan_fetch *fetch)
{
        int r = sl_thread_start_aside("sl-plan-fetch", fetch_main, fetch, &fetch->thread);

        fetch->runs = r == 0;
        return r;
}

int sl_plan_fetch_new(const struct sl_plan_fetch_options *options, struct sl_plan_fetch **ret_fetch)
{
        struct sl_plan_fetch *fetch = calloc(1, sizeof(*fetch));
        int r;

        if (!fetch)
                return -ENOMEM;
        fetch->options = *options;
        fetch->lowering = *options->lowering;
        fetch->found.base = sl_plan_hold(options->base);
        fetch->path = strdup(options->path);
        fetch->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        r = !fetch->path ? -ENOMEM : fetch->fd < 0 ? -errno : 0;
        if (r == 0 && options->at_once)
                open_compiled(fetch);
        else if (r == 0)
                r = start_thread(fetch);
        if (r < 0) {
                sl_plan_fetch_free(fetch);
                return r;
        }
        *ret_fetch = fetch;
        return 0;
}

struct sl_plan_fetch *sl_plan_fetch_free(struct sl_plan_fetch *fetch)
{
        if (!fetch)
                return NULL;
        atomic_store_explicit(&fetch->verdict, -ECANCELED, memory_order_release); /* V1 of stop.h */
        if (fetch->runs)
                pthread_join(fetch->thread, NULL);
        sl_cleanup_fd(&fetch->fd);
        sl_plan_free(fetch->found.plan);
        sl_plan_free(fetch->found.base);
        free(fetch->path);
        free(fetch);
        return NULL;
}

int sl_plan_fetch_fd(const struct sl_plan_fetch *fetch)
{
        return fetch->fd;
}

void sl_plan_fetch_take(struct sl_plan_fetch *fetch, struct sl_plan_found *ret_found)
{
        if (fetch->runs)
                pthread_join(fetch->thread, NULL);
        fetch->runs = false;
        *ret_found = fetch->found;
        fetch->found.plan = fetch->found.base = NULL;
}
