/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_fetch.h"

#include "backend.h"
#include "base/assert.h"
#include "base/background.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"
#include "compile.h"
#include "compile_need.h"
#include "plan.h"
#include "stop.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Behind the time that reading may take, of which the thread hears between two reads. */
#define LATE_SECONDS 1

struct sl_plan_fetch {
        struct sl_plan_fetch_options options;
        struct sl_lower_options lowering;
        char *path, *compile_program; /* NULL: this one */
        int fd;                       /* a timer: goes off at the end, or when the time is over */
        pthread_t thread;
        bool runs;                /* the thread has to be joined, or left */
        _Atomic int32_t verdict;  /* the owner's word to it (stop.h) */
        _Atomic bool ended;       /* (E1) thread: all is found, then store-release.  (E2) owner: load-acquire. */
        _Atomic uint32_t holders; /* (H) owner and thread: fetch-sub-acq-rel; the last one frees */
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

        found->status =
                sl_plan_cache_key(cache, fetch->path, fetch->compile_program, &fetch->lowering, &stop, &found->key, &found->error);
        if (found->status < 0)
                return;
        found->keyed = true;
        find_base(fetch);
        if (found->plan)
                return;
        sl_plan_cache_key_on(&found->key, found->base);
        (void)sl_plan_cache_find(cache, &found->key, found->base, &found->plan, &found->error); /* The text is enough. */
}

/* Of external data, which only the content tells of, nobody knows before it is compiled. */
static void identify_file(struct sl_plan_fetch *fetch)
{
        struct sl_plan_found *found = &fetch->found;
        int64_t changed;

        if (found->keyed)
                found->file = (struct sl_model_identity){.digest = found->key.identity, .known = true, .folder = found->key.folder};
        else
                found->file.known = sl_model_identify(fetch->path, false, &found->file.digest, &changed) == 0;
}

static void search(struct sl_plan_fetch *fetch)
{
        if (fetch->options.cache)
                search_cache(fetch);
        identify_file(fetch);
        if (!fetch->found.plan)
                fetch->found.need = sl_compile_need(fetch->path, &fetch->found.files);
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

        found->status = sl_compile_seal(found->plan_fd, &found->error);
        if (found->status == 0)
                found->status = sl_plan_open_on(found->plan_fd, found->base, &found->plan, &found->error);
        if (found->status == 0 && is_identified(fetch))
                (void)sl_plan_identity(found->plan); /* which is known from now on */
}

static void drop(struct sl_plan_fetch *fetch)
{
        if (atomic_fetch_sub_explicit(&fetch->holders, 1, memory_order_acq_rel) > 1) /* H */
                return;
        sl_cleanup_fd(&fetch->fd);
        sl_cleanup_fd(&fetch->found.plan_fd);
        sl_plan_free(fetch->found.plan);
        sl_plan_free(fetch->found.base);
        sl_plan_cache_drop(fetch->options.cache);
        free(fetch->compile_program);
        free(fetch->path);
        free(fetch);
}

static int set_timer(const struct sl_plan_fetch *fetch, uint64_t ns)
{
        const struct itimerspec time = {
                .it_value = {.tv_sec = (time_t)(ns / SL_NS_PER_SECOND), .tv_nsec = (long)(ns % SL_NS_PER_SECOND)}};

        return timerfd_settime(fetch->fd, 0, &time, NULL) < 0 ? -errno : 0;
}

static void *fetch_main(void *context)
{
        struct sl_plan_fetch *fetch = context;

        sl_background_thread(fetch->options.background);
        if (fetch->options.plan_fd >= 0)
                open_compiled(fetch);
        else
                search(fetch);
        atomic_store_explicit(&fetch->ended, true, memory_order_release); /* E1 */
        (void)set_timer(fetch, 1);
        drop(fetch);
        return NULL;
}

static int start_thread(struct sl_plan_fetch *fetch)
{
        int r = fetch->options.plan_fd < 0 ? set_timer(fetch, (fetch->options.seconds + LATE_SECONDS) * SL_NS_PER_SECOND) : 0;

        if (r < 0)
                return r;
        atomic_store_explicit(&fetch->holders, 2, memory_order_relaxed); /* nobody else yet */
        r = sl_thread_start_aside(&fetch->options.cores, "sl-plan-fetch", fetch_main, fetch, &fetch->thread);
        fetch->runs = r == 0;
        if (r < 0)
                atomic_store_explicit(&fetch->holders, 1, memory_order_relaxed);
        return r;
}

int sl_plan_fetch_new(const struct sl_plan_fetch_options *options, struct sl_plan_fetch **ret_fetch)
{
        struct sl_plan_fetch *fetch = calloc(1, sizeof(*fetch));
        int r, plan_fd = options->plan_fd;

        if (!fetch) {
                sl_cleanup_fd(&plan_fd);
                return -ENOMEM;
        }
        fetch->holders = 1;
        fetch->options = *options;
        fetch->found.plan_fd = plan_fd;
        fetch->options.cache = sl_plan_cache_hold(options->cache);
        fetch->lowering = *options->lowering;
        fetch->found.base = sl_plan_hold(options->base);
        fetch->path = strdup(options->path);
        fetch->compile_program = options->compile_program ? strdup(options->compile_program) : NULL;
        fetch->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        r = !fetch->path || !fetch->compile_program != !options->compile_program ? -ENOMEM : fetch->fd < 0 ? -errno : 0;
        if (r == 0)
                r = start_thread(fetch);
        if (r < 0) {
                sl_plan_fetch_free(fetch);
                return r;
        }
        *ret_fetch = fetch;
        return 0;
}

/* What is searched for may lie where a read never returns, and a thread that has ended may wait long for a core to leave on: nobody
 * waits for either. */
static void leave_thread(struct sl_plan_fetch *fetch)
{
        pthread_detach(fetch->thread);
        fetch->runs = false;
}

struct sl_plan_fetch *sl_plan_fetch_free(struct sl_plan_fetch *fetch)
{
        if (!fetch)
                return NULL;
        atomic_store_explicit(&fetch->verdict, -ECANCELED, memory_order_release); /* V1 of stop.h */
        if (fetch->runs)
                leave_thread(fetch);
        drop(fetch);
        return NULL;
}

int sl_plan_fetch_fd(const struct sl_plan_fetch *fetch)
{
        return fetch->fd;
}

void sl_plan_fetch_take(struct sl_plan_fetch *fetch, struct sl_plan_found *ret_found)
{
        *ret_found = (struct sl_plan_found){.status = -ETIME, .plan_fd = -1};
        if (!atomic_load_explicit(&fetch->ended, memory_order_acquire) /* E2 */) {
                SL_ASSERT(fetch->options.plan_fd < 0); /* which alone has a time */
                sl_error_set(&ret_found->error, ETIME, "%s: a read of it has not returned after %" PRIu64 " s", fetch->path,
                        fetch->options.seconds + LATE_SECONDS);
                return;
        }
        *ret_found = fetch->found;
        fetch->found.plan = fetch->found.base = NULL;
        fetch->found.plan_fd = -1;
}
