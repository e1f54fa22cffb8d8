/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <signal.h>

#define STACK_BYTES (8u << 20)

/* A failure so far is handed on. The attributes are gone behind it. */
static int start(
        int r, pthread_attr_t *attributes, const char *name, sl_thread_main_fn *main, void *argument, pthread_t *ret_thread)
{
        if (!r)
                r = pthread_attr_setstacksize(attributes, STACK_BYTES);
        if (!r)
                r = pthread_create(ret_thread, attributes, main, argument);
        pthread_attr_destroy(attributes);
        if (!r)
                pthread_setname_np(*ret_thread, name);
        return -r;
}

int sl_thread_start(const cpu_set_t *cores, const char *name, sl_thread_main_fn *main, void *argument, pthread_t *ret_thread)
{
        pthread_attr_t attributes;
        int r = pthread_attr_init(&attributes);

        if (r)
                return -r;
        if (CPU_COUNT(cores))
                r = pthread_attr_setaffinity_np(&attributes, sizeof(*cores), cores);
        return start(r, &attributes, name, main, argument, ret_thread);
}

int sl_thread_start_aside(const char *name, sl_thread_main_fn *main, void *argument, pthread_t *ret_thread)
{
        pthread_attr_t attributes;
        sigset_t all;
        int r = pthread_attr_init(&attributes);

        if (r)
                return -r;
        sigfillset(&all);
        r = pthread_attr_setsigmask_np(&attributes, &all);
        return start(r, &attributes, name, main, argument, ret_thread);
}
