/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include "job_runner.h"

#include <limits.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned passes = UINT_MAX; /* jobs that may go through; UINT_MAX: all */
static unsigned answered;

static void set_passes(unsigned n)
{
        pthread_mutex_lock(&lock);
        passes = n;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
}

void gate_shut(void)
{
        set_passes(0);
}

void gate_open(void)
{
        set_passes(UINT_MAX);
}

void gate_let_one_through(void)
{
        pthread_mutex_lock(&lock);
        unsigned until = answered + 1;

        passes = 1;
        pthread_cond_broadcast(&changed);
        while (answered != until)
                pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
}

static void wait_at_gate(void)
{
        pthread_mutex_lock(&lock);
        while (passes == 0)
                pthread_cond_wait(&changed, &lock);
        if (passes != UINT_MAX)
                passes--;
        pthread_mutex_unlock(&lock);
}

static void leave_gate(void)
{
        pthread_mutex_lock(&lock);
        answered++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
}

uint64_t __real_sl_job_runner_run(
        struct sl_job_runner *runner, struct sl_job *job, uint64_t begun_ns, sl_answer_fn *answer, void *context);
uint64_t __wrap_sl_job_runner_run(
        struct sl_job_runner *runner, struct sl_job *job, uint64_t begun_ns, sl_answer_fn *answer, void *context);

/* ld --wrap: every job passes here. */
uint64_t __wrap_sl_job_runner_run(
        struct sl_job_runner *runner, struct sl_job *job, uint64_t begun_ns, sl_answer_fn *answer, void *context)
{
        uint64_t ended_ns;

        wait_at_gate();
        ended_ns = __real_sl_job_runner_run(runner, job, begun_ns, answer, context);
        leave_gate();
        return ended_ns;
}
