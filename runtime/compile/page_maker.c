/* SPDX-License-Identifier: Apache-2.0 */
#include "page_maker.h"

#include "huge_pages.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define STACK_BYTES (256u << 10)
#define NICENESS    10 /* the child's */

/* Fewer bytes are cleared sooner than a thread is started. */
#define BYTES_MIN (2ull * SL_HUGE_PAGE_BYTES)

struct sl_page_maker {
        pthread_t thread;
        int fd;
        uint64_t bytes;
        atomic_bool ends; /* the owner's; it guards no data */
};

static void *page_maker_run(void *argument)
{
        struct sl_page_maker *maker = argument;
        struct sl_huge_pages pages = {0};

        prctl(PR_SET_NAME, "sl-pages");
        (void)setpriority(PRIO_PROCESS, 0, NICENESS);
        while (!atomic_load_explicit(&maker->ends, memory_order_relaxed) && sl_huge_pages_next(&pages, maker->fd, maker->bytes))
                ;
        sl_huge_pages_deinit(&pages);
        return NULL;
}

/* Signals are for the threads that wait for them. */
static int start_thread(struct sl_page_maker *maker)
{
        pthread_attr_t attributes;
        sigset_t all;
        int r = pthread_attr_init(&attributes);

        if (r)
                return -r;
        sigfillset(&all);
        r = pthread_attr_setsigmask_np(&attributes, &all);
        if (r == 0)
                r = pthread_attr_setstacksize(&attributes, STACK_BYTES);
        if (r == 0)
                r = pthread_create(&maker->thread, &attributes, page_maker_run, maker);
        pthread_attr_destroy(&attributes);
        return -r;
}

struct sl_page_maker *sl_page_maker_start(int plan_fd, uint64_t bytes)
{
        struct sl_page_maker *maker;

        if (bytes < BYTES_MIN || !sl_huge_pages_lengthen(plan_fd, bytes))
                return NULL;
        maker = calloc(1, sizeof(*maker));
        if (!maker)
                return NULL;
        maker->fd = plan_fd;
        maker->bytes = bytes;
        atomic_init(&maker->ends, false);
        if (start_thread(maker) == 0)
                return maker;
        free(maker);
        return NULL;
}

struct sl_page_maker *sl_page_maker_end(struct sl_page_maker *maker)
{
        if (!maker)
                return NULL;
        atomic_store_explicit(&maker->ends, true, memory_order_relaxed);
        pthread_join(maker->thread, NULL);
        free(maker);
        return NULL;
}
