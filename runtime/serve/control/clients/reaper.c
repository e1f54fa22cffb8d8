/* SPDX-License-Identifier: Apache-2.0 */
#include "reaper.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NUDGE_NS SL_NS_PER_MS
#define END_NS   SL_NS_PER_SECOND

/* More empty packets than a socket's queue holds: they look like the end of file. */
#define EMPTY_PACKETS 1024u

struct fd_queue {
        int *fds; /* ~fd: a socket */
        uint32_t n, room;
};

struct sl_reaper {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct fd_queue waiting; /* under the lock */
        bool stop;               /* under the lock */
};

/* ---- the reaper's thread ---- */

static void ignore_nudge(int signal)
{
        (void)signal;
}

static bool make_nudger(timer_t *ret_timer)
{
        struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG};

        event._sigev_un._tid = gettid();
        return timer_create(CLOCK_MONOTONIC, &event, ret_timer) == 0;
}

static void set_nudger(timer_t timer, uint64_t interval_ns)
{
        struct timespec interval = {.tv_nsec = (long)interval_ns};

        timer_settime(timer, 0, &(struct itimerspec){.it_interval = interval, .it_value = interval}, NULL);
}

/*
 * Another thread's io_uring may hold the socket for a moment longer than this one: its queue is emptied here, so that the last
 * close finds nothing in it. Nothing more comes in after the shutdown.
 */
static void empty_socket(int socket)
{
        uint32_t n_empty = 0;
        char byte;

        while (n_empty < EMPTY_PACKETS) {
                ssize_t n = recv(socket, &byte, 1, MSG_DONTWAIT);

                if (n < 0 && errno != EINTR)
                        return;
                n_empty += n == 0;
        }
}

static void close_all(const struct fd_queue *queue)
{
        for (uint32_t i = 0; i < queue->n; i++) {
                int fd = queue->fds[i];

                if (fd < 0)
                        empty_socket(~fd);
                close(fd < 0 ? ~fd : fd);
        }
}

/* Takes all that waits, and leaves an empty queue in its place. Return: false when there is nothing and the end has come. */
static bool take_waiting(struct sl_reaper *reaper, struct fd_queue *queue)
{
        struct fd_queue empty = {.fds = queue->fds, .room = queue->room};

        pthread_mutex_lock(&reaper->lock);
        while (!reaper->waiting.n && !reaper->stop)
                pthread_cond_wait(&reaper->changed, &reaper->lock);
        *queue = reaper->waiting;
        reaper->waiting = empty;
        pthread_mutex_unlock(&reaper->lock);
        return queue->n > 0;
}

static void *reaper_run(void *argument)
{
        struct sl_reaper *reaper = argument;
        struct fd_queue queue = {0};
        timer_t timer;
        bool nudged = make_nudger(&timer);

        while (take_waiting(reaper, &queue)) {
                if (nudged)
                        set_nudger(timer, NUDGE_NS);
                close_all(&queue);
                if (nudged)
                        set_nudger(timer, 0);
        }
        if (nudged)
                timer_delete(timer);
        free(queue.fds);
        return NULL;
}

/* ---- the control thread ---- */

/* Only the reaper's thread takes the nudges. */
static int start_thread(struct sl_reaper *reaper)
{
        struct sigaction nudge = {.sa_handler = ignore_nudge, .sa_flags = SA_RESTART};
        cpu_set_t anywhere;
        sigset_t all, before;
        int r;

        sigemptyset(&nudge.sa_mask);
        sigaction(SIGURG, &nudge, NULL);
        sigfillset(&all);
        sigdelset(&all, SIGURG);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        CPU_ZERO(&anywhere);
        r = sl_thread_start(&anywhere, "sl-reaper", reaper_run, reaper, &reaper->thread);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return -r;
}

int sl_reaper_new(struct sl_reaper **ret_reaper, struct sl_error *error)
{
        struct sl_reaper *reaper = calloc(1, sizeof(*reaper));
        int code;

        if (!reaper)
                return sl_error_set(error, ENOMEM, "no memory for the reaper");
        pthread_mutex_init(&reaper->lock, NULL);
        pthread_cond_init(&reaper->changed, NULL);
        code = start_thread(reaper);
        if (code) {
                free(reaper);
                return sl_error_set(error, code, "no thread for the reaper: %s", strerror(code));
        }
        *ret_reaper = reaper;
        return 0;
}

static bool grow(struct fd_queue *queue)
{
        uint32_t room = queue->room ? 2 * queue->room : 64;
        int *fds = queue->n < queue->room ? queue->fds : realloc(queue->fds, room * sizeof(*fds));

        if (!fds)
                return false;
        queue->room = queue->n < queue->room ? queue->room : room;
        queue->fds = fds;
        return true;
}

/* Without memory for one more it stays open until the process ends: to close it here would be to wait for it. */
static void reaper_put(struct sl_reaper *reaper, int value)
{
        pthread_mutex_lock(&reaper->lock);
        if (grow(&reaper->waiting))
                reaper->waiting.fds[reaper->waiting.n++] = value;
        pthread_cond_signal(&reaper->changed);
        pthread_mutex_unlock(&reaper->lock);
}

void sl_reaper_close(struct sl_reaper *reaper, int fd)
{
        reaper_put(reaper, fd);
}

void sl_reaper_end(struct sl_reaper *reaper, int socket)
{
        shutdown(socket, SHUT_RDWR);
        reaper_put(reaper, ~socket);
}

struct sl_reaper *sl_reaper_free(struct sl_reaper *reaper)
{
        struct timespec until;

        if (!reaper)
                return NULL;
        pthread_mutex_lock(&reaper->lock);
        reaper->stop = true;
        pthread_cond_signal(&reaper->changed);
        pthread_mutex_unlock(&reaper->lock);
        clock_gettime(CLOCK_REALTIME, &until); /* ThreadSanitizer knows no join with another clock */
        until.tv_sec += (time_t)(END_NS / SL_NS_PER_SECOND);
        if (pthread_timedjoin_np(reaper->thread, NULL, &until) != 0) {
                pthread_detach(reaper->thread);
                return NULL;
        }
        pthread_cond_destroy(&reaper->changed);
        pthread_mutex_destroy(&reaper->lock);
        free(reaper->waiting.fds);
        free(reaper);
        return NULL;
}
