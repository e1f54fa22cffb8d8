/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#define STACK_BYTES (8u << 20)
#define NAME_BYTES  16 /* as the kernel has it */

/* What a thread is to do; its own, which frees it. */
struct beginning {
        sl_thread_main_fn *main;
        void *argument;
        char name[NAME_BYTES];
};

/* A thread names itself by one system call. Whoever names another one opens a file of /proc. */
static void *begin(void *context)
{
        struct beginning beginning = *(struct beginning *)context;

        free(context);
        (void)prctl(PR_SET_NAME, beginning.name);
        return beginning.main(beginning.argument);
}

/* A failure so far is handed on. The attributes are gone behind it. */
static int start(
        int r, pthread_attr_t *attributes, const char *name, sl_thread_main_fn *main, void *argument, pthread_t *ret_thread)
{
        struct beginning *beginning = r ? NULL : malloc(sizeof(*beginning));

        if (beginning) {
                *beginning = (struct beginning){.main = main, .argument = argument};
                snprintf(beginning->name, sizeof(beginning->name), "%s", name);
        } else if (!r) {
                r = ENOMEM;
        }
        if (!r)
                r = pthread_attr_setstacksize(attributes, STACK_BYTES);
        if (!r)
                r = pthread_create(ret_thread, attributes, begin, beginning);
        pthread_attr_destroy(attributes);
        if (r)
                free(beginning);
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

int sl_thread_start_aside(const cpu_set_t *cores, const char *name, sl_thread_main_fn *main, void *argument, pthread_t *ret_thread)
{
        pthread_attr_t attributes;
        sigset_t all;
        int r = pthread_attr_init(&attributes);

        if (r)
                return -r;
        sigfillset(&all);
        r = pthread_attr_setsigmask_np(&attributes, &all);
        if (!r && cores && CPU_COUNT(cores))
                r = pthread_attr_setaffinity_np(&attributes, sizeof(*cores), cores);
        return start(r, &attributes, name, main, argument, ret_thread);
}
