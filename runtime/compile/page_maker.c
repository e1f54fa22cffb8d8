/* SPDX-License-Identifier: Apache-2.0 */
#include "page_maker.h"

#include "base/thread.h"
#include "huge_pages.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define NICENESS 10 /* the child's */

/* Between two looks at the length of the file. */
#define PAUSE_US 100

/* Fewer bytes are cleared sooner than a thread is started. */
#define BYTES_MIN (2ull * SL_HUGE_PAGE_BYTES)

struct sl_page_maker {
        pthread_t thread;
        int fd;
        uint64_t most;
        atomic_bool ends; /* the owner's; it guards no data */
};

static void *page_maker_run(void *argument)
{
        struct sl_page_maker *maker = argument;
        enum sl_huge_pages_step step = SL_HUGE_PAGES_MADE;
        struct sl_huge_pages pages = {0};

        (void)setpriority(PRIO_PROCESS, 0, NICENESS);
        while (!atomic_load_explicit(&maker->ends, memory_order_relaxed) && step != SL_HUGE_PAGES_DONE) {
                step = sl_huge_pages_next(&pages, maker->fd, maker->most);
                if (step == SL_HUGE_PAGES_WAIT)
                        usleep(PAUSE_US);
        }
        sl_huge_pages_deinit(&pages);
        return NULL;
}

struct sl_page_maker *sl_page_maker_start(int plan_fd, uint64_t bytes, uint64_t most)
{
        struct sl_page_maker *maker;

        if (bytes < BYTES_MIN || !sl_huge_pages_lengthen(plan_fd, bytes))
                return NULL;
        maker = calloc(1, sizeof(*maker));
        if (!maker)
                return NULL;
        maker->fd = plan_fd;
        maker->most = most;
        atomic_init(&maker->ends, false);
        if (sl_thread_start_aside(NULL, "sl-pages", page_maker_run, maker, &maker->thread) == 0)
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
