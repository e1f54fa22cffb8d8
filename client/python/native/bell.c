/* SPDX-License-Identifier: Apache-2.0 */
#include "bell.h"

#include <time.h>

#define SLICE_NS      100000000 /* so that signals are heard */
#define NS_PER_SECOND 1000000000

void sl_bell_init(struct bell *bell)
{
        pthread_condattr_t attributes;

        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&bell->rung, &attributes);
        pthread_condattr_destroy(&attributes);
        pthread_mutex_init(&bell->lock, NULL);
}

void sl_bell_deinit(struct bell *bell)
{
        pthread_cond_destroy(&bell->rung);
        pthread_mutex_destroy(&bell->lock);
}

/* The lock is never held by somebody who waits for the interpreter's. */
void sl_bell_ring(struct bell *bell)
{
        pthread_mutex_lock(&bell->lock);
        bell->rings++;
        pthread_cond_broadcast(&bell->rung);
        pthread_mutex_unlock(&bell->lock);
}

static void sleep_until_rung(struct bell *bell, uint32_t rings, uint64_t limit_ns)
{
        struct timespec until;
        int r = 0;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += limit_ns < SLICE_NS ? (long)limit_ns : SLICE_NS;
        until.tv_sec += until.tv_nsec / NS_PER_SECOND;
        until.tv_nsec %= NS_PER_SECOND;
        pthread_mutex_lock(&bell->lock);
        while (r == 0 && bell->rings == rings)
                r = pthread_cond_timedwait(&bell->rung, &bell->lock, &until);
        pthread_mutex_unlock(&bell->lock);
}

void sl_bell_sleep(struct bell *bell, uint64_t limit_ns)
{
        uint32_t rings = bell->rings;

        Py_BEGIN_ALLOW_THREADS sleep_until_rung(bell, rings, limit_ns);
        Py_END_ALLOW_THREADS
}

int sl_bell_wait(struct bell *bell)
{
        sl_bell_sleep(bell, SLICE_NS);
        return PyErr_CheckSignals();
}
