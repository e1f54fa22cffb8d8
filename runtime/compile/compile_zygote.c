/* SPDX-License-Identifier: Apache-2.0 */
#include "compile_zygote.h"

#include "child_args.h"
#include "child_environment.h"
#include "zygote.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sl_compile_zygote {
        pthread_mutex_t lock; /* of the zygote */
        struct sl_zygote *zygote;
        char *program, **environment;
        char parent[16];
        char *argv[4];
};

SL_DEFINE_CLEANUP(struct sl_compile_zygote *, sl_compile_zygote_free)

int sl_compile_zygote_new(const char *program, struct sl_compile_zygote **ret_zygote)
{
        SL_CLEANUP(sl_cleanup_sl_compile_zygote_free) struct sl_compile_zygote *made = calloc(1, sizeof(*made));
        int r;

        if (!made)
                return -ENOMEM;
        pthread_mutex_init(&made->lock, NULL);
        made->program = strdup(program ? program : "/proc/self/exe");
        made->environment = sl_child_environment();
        if (!made->program || !made->environment)
                return -ENOMEM;
        snprintf(made->parent, sizeof(made->parent), "%d", (int)getpid());
        made->argv[0] = made->program;
        made->argv[1] = (char *)SL_ZYGOTE_COMMAND;
        made->argv[2] = made->parent;
        r = sl_zygote_new(
                &(struct sl_zygote_options){.program = made->program, .argv = made->argv, .environment = made->environment},
                &made->zygote);
        if (r == 0)
                *ret_zygote = sl_take(made);
        return r;
}

struct sl_compile_zygote *sl_compile_zygote_free(struct sl_compile_zygote *zygote)
{
        if (!zygote)
                return NULL;
        sl_zygote_free(zygote->zygote);
        pthread_mutex_destroy(&zygote->lock);
        free(zygote->environment);
        free(zygote->program);
        free(zygote);
        return NULL;
}

int sl_compile_zygote_fork(struct sl_compile_zygote *zygote, char *const *argv, const int *fds, uint32_t n_fds, pid_t *ret_pid)
{
        int r;

        pthread_mutex_lock(&zygote->lock);
        r = sl_zygote_fork(zygote->zygote, argv, fds, n_fds, ret_pid);
        pthread_mutex_unlock(&zygote->lock);
        return r;
}

void sl_compile_zygote_renew(struct sl_compile_zygote *zygote)
{
        pthread_mutex_lock(&zygote->lock);
        sl_zygote_renew(zygote->zygote);
        pthread_mutex_unlock(&zygote->lock);
}

void sl_compile_zygote_hear(struct sl_compile_zygote *zygote)
{
        pthread_mutex_lock(&zygote->lock);
        sl_zygote_hear(zygote->zygote);
        pthread_mutex_unlock(&zygote->lock);
}

struct sl_zygote *sl_compile_zygote_of(const struct sl_compile_zygote *zygote)
{
        return zygote->zygote;
}
