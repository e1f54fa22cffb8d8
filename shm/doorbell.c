/* SPDX-License-Identifier: Apache-2.0 */
#include "doorbell.h"

#include "base/clock.h"
#include "ring.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

/* No wake-up can be lost; should one be lost nevertheless, the sleeper looks again after this time. */
#define INSURANCE_NS (250 * SL_NS_PER_MS)

/*
 * The full barrier between an own store and the load that follows it. ThreadSanitizer does not model fences and warns; here it
 * need not: the fence orders two flags, while the data is handed over by the acquire and release of the rings.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif
static inline void full_fence(void)
{
        atomic_thread_fence(memory_order_seq_cst);
}

bool sl_dispatcher_sleeps(const struct sl_dispatcher_line *line)
{
        full_fence();                             /* K1 */
        return atomic_load(&line->sleeping) != 0; /* K2 */
}

static uint32_t relaxed(const _Atomic uint32_t *word)
{
        return atomic_load_explicit(word, memory_order_relaxed);
}

bool sl_cores_crowded(const struct sl_dispatcher_line *line)
{
        uint32_t cores = relaxed(&line->cores); /* P2 */

        return cores && relaxed(&line->wanted) > cores;
}

bool sl_spin_harms(const struct sl_dispatcher_line *line)
{
        uint32_t cores = relaxed(&line->cores); /* P2 */

        return cores && relaxed(&line->wanted) > 2 * cores;
}

bool sl_workers_compute(const struct sl_dispatcher_line *line)
{
        return relaxed(&line->computing) > 0; /* P2 */
}

bool sl_yield_helps(const struct sl_dispatcher_line *line)
{
        return sl_cores_crowded(line) && !sl_workers_compute(line);
}

bool sl_spin_helps(const struct sl_dispatcher_line *line, uint32_t spin_ns)
{
        return !sl_cores_crowded(line) && relaxed(&line->late_ns) <= spin_ns;
}

bool sl_is_dispatcher_core(const struct sl_dispatcher_line *line, int core)
{
        return core >= 0 && relaxed(&line->core) == (uint32_t)core + 1;
}

void sl_dispatcher_bound(struct sl_dispatcher_line *line, int core)
{
        atomic_store_explicit(&line->core, (uint32_t)core + 1, memory_order_relaxed); /* P1 */
}

/* A store takes the line out of every client's cache. */
static void store_changed(_Atomic uint32_t *word, uint32_t value)
{
        if (relaxed(word) != value)
                atomic_store_explicit(word, value, memory_order_relaxed); /* P1 */
}

void sl_spin_advise(struct sl_dispatcher_line *line, uint32_t cores, uint32_t wanted, uint32_t late_ns, uint32_t computing)
{
        store_changed(&line->cores, cores);
        store_changed(&line->wanted, wanted);
        store_changed(&line->late_ns, late_ns);
        store_changed(&line->computing, computing);
}

int sl_doorbell_ring(int fd)
{
        const uint64_t one = 1;
        ssize_t n;

        do
                n = write(fd, &one, sizeof(one));
        while (n < 0 && errno == EINTR);
        return n < 0 && errno != EAGAIN ? -errno : 0;
}

void sl_doorbell_clear(int fd)
{
        uint64_t rings[64];
        struct iovec part = {.iov_base = rings, .iov_len = sizeof(rings)};
        ssize_t n;

        do
                n = preadv2(fd, &part, 1, -1, RWF_NOWAIT);
        while (n < 0 && errno == EINTR);
        if (n < 0 && errno == EOPNOTSUPP)
                n = read(fd, rings, sizeof(rings));
        (void)n; /* nothing to read is what is wanted */
}

void sl_dispatcher_sleep(struct sl_dispatcher_line *line)
{
        atomic_store(&line->sleeping, 1); /* W1 */
        full_fence();                     /* so that W2 may be any load */
}

void sl_dispatcher_wake(struct sl_dispatcher_line *line)
{
        atomic_store_explicit(&line->sleeping, 0, memory_order_relaxed);
}

/* Not FUTEX_PRIVATE: the waker is another process. A read-only mapping is good enough to wait on. */
static long futex_wait(const _Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
        struct timespec limit = {
                .tv_sec = (time_t)(timeout_ns / SL_NS_PER_SECOND), .tv_nsec = (long)(timeout_ns % SL_NS_PER_SECOND)};

        return syscall(SYS_futex, word, FUTEX_WAIT, expected, &limit, NULL, 0);
}

static int wait_for_tail(const _Atomic uint32_t *tail, uint32_t seen, uint64_t timeout_ns)
{
        uint64_t start_ns = sl_clock_ns();
        uint32_t now;

        while (!sl_tail_is_beyond(now = atomic_load(tail), seen)) { /* W2, E2 */
                uint64_t waited_ns = sl_clock_ns() - start_ns;

                if (waited_ns >= timeout_ns)
                        return -ETIMEDOUT;
                uint64_t left_ns = timeout_ns - waited_ns;
                if (futex_wait(tail, now, left_ns < INSURANCE_NS ? left_ns : INSURANCE_NS) < 0 && errno == EINTR) /* W3 */
                        return sl_tail_is_beyond(atomic_load(tail), seen) ? 0 : -EINTR;
        }
        return 0;
}

int sl_client_sleep(const struct sl_queue_map *queue, uint32_t seen, uint64_t timeout_ns)
{
        atomic_store(&queue->request->sleep, SL_ASLEEP_FUTEX); /* W1 */
        full_fence();

        int r = wait_for_tail(&queue->response->tail, seen, timeout_ns);

        if (r == 0)
                sl_client_awake(queue);
        else
                atomic_store_explicit(&queue->request->sleep, SL_AWAKE, memory_order_relaxed);
        return r;
}

void sl_client_awake(const struct sl_queue_map *queue)
{
        atomic_store_explicit(&queue->request->awake_ns, sl_clock_ns(), memory_order_relaxed); /* V1 of dispatch/waking.h */
        atomic_store_explicit(&queue->request->sleep, SL_AWAKE, memory_order_relaxed);
}

int sl_completion_bell_new(void)
{
        int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

        return fd < 0 ? -errno : fd;
}

static void ring_completion_bell(int fd)
{
        const struct itimerspec passed = {.it_value.tv_nsec = 1};

        timerfd_settime(fd, TFD_TIMER_ABSTIME, &passed, NULL);
}

uint32_t sl_client_sleeps(const struct sl_queue_map *queue)
{
        full_fence(); /* K1 */

        uint32_t sleep = atomic_load(&queue->request->sleep); /* K2 */

        return sleep == SL_ASLEEP_FUTEX || sleep == SL_ASLEEP_FD ? sleep : SL_AWAKE;
}

void sl_client_ring(const struct sl_queue_map *queue, int completion_fd, uint32_t sleep)
{
        if (sleep == SL_ASLEEP_FUTEX)
                syscall(SYS_futex, &queue->response->tail, FUTEX_WAKE, 1, NULL, NULL, 0);
        else if (sleep == SL_ASLEEP_FD && completion_fd >= 0)
                ring_completion_bell(completion_fd);
}
