#include "plan_search.h"

#include "base/cleanup.h"
#include "plan.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct sl_plan_search {
        struct sl_plan_search_options options;
        struct sl_lower_options lowering;
        char *path;
        int fd;
        pthread_t thread;
        bool runs; /* the thread has to be joined */
        struct sl_plan_found found;
};

/* No base is loaded: the cache may know which one it was. The plan that is looked for may be that one itself. */
static void find_base(struct sl_plan_search *search)
{
        struct sl_plan_found *found = &search->found;
        bool own;

        if (!search->options.sized || found->base ||
                sl_plan_cache_find_base(search->options.cache, &found->key, &found->base, &own, &found->error) < 0 || !own)
                return;
        found->plan = sl_take(found->base);
}

static void search_cache(struct sl_plan_search *search)
{
        struct sl_plan_cache *cache = search->options.cache;
        struct sl_plan_found *found = &search->found;

        if (sl_plan_cache_key(cache, search->path, search->options.compile_program, &search->lowering, &found->key, &found->error) <
                0)
                return;
        found->keyed = true;
        find_base(search);
        if (found->plan)
                return;
        sl_plan_cache_key_on(&found->key, found->base);
        (void)sl_plan_cache_find(cache, &found->key, found->base, &found->plan, &found->error); /* The text is enough. */
}

static void *run(void *context)
{
        struct sl_plan_search *search = context;

        search_cache(search);
        (void)eventfd_write(search->fd, 1);
        return NULL;
}

/* Signals are for the threads that wait for them. */
static int start_thread(struct sl_plan_search *search)
{
        sigset_t all, before;
        int r;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&search->thread, NULL, run, search);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        search->runs = r == 0;
        return -r;
}

int sl_plan_search_new(const struct sl_plan_search_options *options, struct sl_plan_search **ret_search)
{
        struct sl_plan_search *search = calloc(1, sizeof(*search));
        int r;

        if (!search)
                return -ENOMEM;
        search->options = *options;
        search->lowering = *options->lowering;
        search->found.base = sl_plan_hold(options->base);
        search->path = strdup(options->path);
        search->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        r = !search->path ? -ENOMEM : search->fd < 0 ? -errno : start_thread(search);
        if (r < 0) {
                sl_plan_search_free(search);
                return r;
        }
        *ret_search = search;
        return 0;
}

struct sl_plan_search *sl_plan_search_free(struct sl_plan_search *search)
{
        if (!search)
                return NULL;
        if (search->runs)
                pthread_join(search->thread, NULL);
        sl_cleanup_fd(&search->fd);
        sl_plan_free(search->found.plan);
        sl_plan_free(search->found.base);
        free(search->path);
        free(search);
        return NULL;
}

int sl_plan_search_fd(const struct sl_plan_search *search)
{
        return search->fd;
}

void sl_plan_search_take(struct sl_plan_search *search, struct sl_plan_found *ret_found)
{
        if (search->runs)
                pthread_join(search->thread, NULL);
        search->runs = false;
        *ret_found = search->found;
        search->found.plan = search->found.base = NULL;
}
