/* SPDX-License-Identifier: Apache-2.0 */
#include "compilers.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/thread.h"
#include "bell.h"
#include "compile.h"
#include "lower_options.h"
#include "tried_sizes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Its owner's until it is queued, then the thread's until `done`, then its owner's. One that is cancelled is the thread's. */
struct sl_compile_order {
        struct sl_compilers *compilers;
        struct sl_compile_order *next;
        struct sl_compile_options options; /* what it points to lies in this order, or outlives it */
        struct sl_lower_options lowering;
        struct sl_tried_sizes tried;
        char *program, *path, **members;
        int base_fd; /* -1: there is none */
        cpu_set_t cores;
        int fd;         /* an event, when it is done */
        bool done;      /* under the lock */
        bool cancelled; /* under the lock */
        bool ends;      /* nothing is started: `compilation` ends */
        uint64_t bytes; /* of one that is cancelled: promised to it */
        struct sl_compilation *compilation;
        int result;
        struct sl_error error;
};

struct sl_compilers {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct sl_compile_order *first, **last; /* under the lock */
        bool stop;                              /* under the lock */
        struct {
                uint32_t n;
                uint64_t bytes;
        } gone;          /* under the lock: of those that end, since they were heard last */
        uint32_t ending; /* its owner's: those that end, and have not been heard */
        struct sl_bell *owner;
};

static struct sl_compile_order *order_free(struct sl_compile_order *order)
{
        sl_cleanup_fd(&order->base_fd);
        sl_cleanup_fd(&order->fd);
        free(order->program);
        free(order->path);
        for (uint32_t i = 0; order->members && i < order->options.n_members; i++)
                free(order->members[i]);
        free(order->members);
        free(order);
        return NULL;
}

/* Its process is reaped, or there has been none. */
static void note_gone(struct sl_compilers *compilers, uint64_t bytes)
{
        pthread_mutex_lock(&compilers->lock);
        compilers->gone.n++;
        compilers->gone.bytes += bytes;
        pthread_mutex_unlock(&compilers->lock);
        sl_bell_ring(compilers->owner, NULL);
}

/* ---- the thread ---- */

static void start(struct sl_compile_order *order)
{
        (void)sched_setaffinity(0, sizeof(order->cores), &order->cores);
        order->result = sl_compile_start(&order->options, &order->compilation, &order->error);
}

/* Nobody waits for it any more, or somebody hears of it. */
static void finish(struct sl_compile_order *order)
{
        struct sl_compilers *compilers = order->compilers;
        bool cancelled;

        pthread_mutex_lock(&compilers->lock);
        cancelled = order->cancelled;
        order->done = true;
        if (!cancelled)
                (void)eventfd_write(order->fd, 1);
        pthread_mutex_unlock(&compilers->lock);
        if (!cancelled)
                return;
        sl_compile_cancel(order->compilation);
        note_gone(compilers, order->bytes);
        order_free(order);
}

static struct sl_compile_order *take_order(struct sl_compilers *compilers)
{
        struct sl_compile_order *order;

        pthread_mutex_lock(&compilers->lock);
        while (!compilers->first && !compilers->stop)
                pthread_cond_wait(&compilers->changed, &compilers->lock);
        order = compilers->first;
        if (order) {
                compilers->first = order->next;
                if (!compilers->first)
                        compilers->last = &compilers->first;
        }
        pthread_mutex_unlock(&compilers->lock);
        return order;
}

static bool is_cancelled(struct sl_compile_order *order)
{
        bool cancelled;

        pthread_mutex_lock(&order->compilers->lock);
        cancelled = order->cancelled;
        pthread_mutex_unlock(&order->compilers->lock);
        return cancelled;
}

static void *compilers_main(void *argument)
{
        struct sl_compilers *compilers = argument;
        struct sl_compile_order *order;

        while ((order = take_order(compilers))) {
                if (!order->ends && !is_cancelled(order))
                        start(order);
                finish(order);
        }
        return NULL;
}

/* ---- whoever orders ---- */

int sl_compilers_new(struct sl_bell *owner, struct sl_compilers **ret_compilers)
{
        struct sl_compilers *compilers = calloc(1, sizeof(*compilers));
        int r;

        if (!compilers)
                return -ENOMEM;
        pthread_mutex_init(&compilers->lock, NULL);
        pthread_cond_init(&compilers->changed, NULL);
        compilers->last = &compilers->first;
        compilers->owner = owner;
        r = sl_thread_start_aside(NULL, "sl-compilers", compilers_main, compilers, &compilers->thread);
        if (r < 0) {
                pthread_cond_destroy(&compilers->changed);
                pthread_mutex_destroy(&compilers->lock);
                free(compilers);
                return r;
        }
        *ret_compilers = compilers;
        return 0;
}

struct sl_compilers *sl_compilers_free(struct sl_compilers *compilers)
{
        if (!compilers)
                return NULL;
        pthread_mutex_lock(&compilers->lock);
        compilers->stop = true;
        pthread_cond_signal(&compilers->changed);
        pthread_mutex_unlock(&compilers->lock);
        pthread_join(compilers->thread, NULL);
        pthread_cond_destroy(&compilers->changed);
        pthread_mutex_destroy(&compilers->lock);
        free(compilers);
        return NULL;
}

static void queue_order(struct sl_compilers *compilers, struct sl_compile_order *order)
{
        order->compilers = compilers;
        pthread_mutex_lock(&compilers->lock);
        *compilers->last = order;
        compilers->last = &order->next;
        pthread_cond_signal(&compilers->changed);
        pthread_mutex_unlock(&compilers->lock);
}

static struct sl_compile_order *order_new(void)
{
        struct sl_compile_order *order = calloc(1, sizeof(*order));

        if (order)
                order->fd = order->base_fd = -1;
        return order;
}

static int copy_members(struct sl_compile_order *order, const struct sl_compile_options *options)
{
        if (!options->n_members)
                return 0;
        order->members = calloc(options->n_members, sizeof(*order->members));
        if (!order->members)
                return -ENOMEM;
        order->options.members = (const char *const *)order->members;
        for (uint32_t i = 0; i < options->n_members; i++)
                if (!(order->members[i] = strdup(options->members[i])))
                        return -ENOMEM;
        return 0;
}

/* Return: 0; -ENOMEM, -EMFILE, ... */
static int copy_options(struct sl_compile_order *order, const struct sl_compile_options *options)
{
        order->options = *options;
        order->program = options->program ? strdup(options->program) : NULL;
        order->path = strdup(options->model_path);
        if (!order->path || !order->program != !options->program || copy_members(order, options) < 0)
                return -ENOMEM;
        order->options.program = order->program;
        order->options.model_path = order->path;
        order->lowering = *options->lowering;
        order->options.lowering = &order->lowering;
        if (options->tried) {
                order->tried = *options->tried;
                order->options.tried = &order->tried;
        }
        if (options->base_fd) {
                order->base_fd = fcntl(options->base_fd, F_DUPFD_CLOEXEC, 3);
                if (order->base_fd < 0)
                        return -errno;
                order->options.base_fd = order->base_fd;
        }
        order->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        return order->fd < 0 || sched_getaffinity(0, sizeof(order->cores), &order->cores) < 0 ? -errno : 0;
}

int sl_compilers_start(struct sl_compilers *compilers, const struct sl_compile_options *options,
        struct sl_compile_order **ret_order, struct sl_error *error)
{
        struct sl_compile_order *order = order_new();
        int r = order ? copy_options(order, options) : -ENOMEM;

        if (r < 0) {
                if (order)
                        order_free(order);
                return sl_error_set(error, -r, "its compiler cannot be started: %s", strerror(-r));
        }
        queue_order(compilers, order);
        *ret_order = order;
        return 0;
}

int sl_compile_order_fd(const struct sl_compile_order *order)
{
        return order->fd;
}

bool sl_compile_order_is_done(const struct sl_compile_order *order)
{
        struct pollfd done = {.fd = order->fd, .events = POLLIN};

        return poll(&done, 1, 0) == 1;
}

int sl_compile_order_take(struct sl_compile_order *order, struct sl_compilation **ret_compilation, struct sl_error *error)
{
        struct pollfd done = {.fd = order->fd, .events = POLLIN};
        struct sl_compilers *compilers = order->compilers;
        int r;

        while (poll(&done, 1, -1) < 0 && errno == EINTR)
                ;
        pthread_mutex_lock(&compilers->lock); /* the thread has said so, and lets go */
        pthread_mutex_unlock(&compilers->lock);
        r = order->result;
        if (r < 0)
                *error = order->error;
        else
                *ret_compilation = order->compilation;
        order_free(order);
        return r;
}

/* True: the thread will not see it. Under the lock. */
static bool take_out(struct sl_compilers *compilers, struct sl_compile_order *order)
{
        struct sl_compile_order **link = &compilers->first;

        while (*link && *link != order)
                link = &(*link)->next;
        if (!*link)
                return false;
        *link = order->next;
        if (!*link)
                compilers->last = link;
        return true;
}

struct sl_compile_order *sl_compile_order_cancel(struct sl_compile_order *order, uint64_t bytes)
{
        struct sl_compilers *compilers;
        bool waits, done;

        if (!order)
                return NULL;
        compilers = order->compilers;
        pthread_mutex_lock(&compilers->lock);
        order->cancelled = true;
        order->bytes = bytes;
        done = order->done;
        waits = take_out(compilers, order);
        pthread_mutex_unlock(&compilers->lock);
        if (done && order->compilation) {
                sl_compilers_end(compilers, order->compilation, bytes);
                order_free(order);
                return NULL;
        }
        compilers->ending++;
        if (!done && !waits) /* it is being started: the thread ends it */
                return NULL;
        note_gone(compilers, bytes);
        order_free(order);
        return NULL;
}

/* Without memory for an order it is waited for here. */
void sl_compilers_end(struct sl_compilers *compilers, struct sl_compilation *compilation, uint64_t bytes)
{
        struct sl_compile_order *order;

        if (!compilation)
                return;
        compilers->ending++;
        order = order_new();
        if (!order) {
                sl_compile_cancel(compilation);
                note_gone(compilers, bytes);
                return;
        }
        sl_compile_kill(compilation);
        order->compilation = compilation;
        order->bytes = bytes;
        order->ends = order->cancelled = true;
        queue_order(compilers, order);
}

uint32_t sl_compilers_ending(const struct sl_compilers *compilers)
{
        return compilers->ending;
}

uint32_t sl_compilers_hear(struct sl_compilers *compilers, uint64_t *ret_bytes)
{
        uint32_t n;

        *ret_bytes = 0;
        if (!compilers->ending)
                return 0;
        pthread_mutex_lock(&compilers->lock);
        n = compilers->gone.n;
        *ret_bytes = compilers->gone.bytes;
        compilers->gone = (typeof(compilers->gone)){0};
        pthread_mutex_unlock(&compilers->lock);
        compilers->ending -= n;
        return n;
}
