/* SPDX-License-Identifier: Apache-2.0 */
#include "crowd.h"

#include "base/clock.h"
#include "bench.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_LIMIT_NS (60 * SL_NS_PER_SECOND)
#define DRAIN_LIMIT_NS (60 * SL_NS_PER_SECOND)
#define LEAD_NS        (100 * SL_NS_PER_MS) /* from the word to the start, so that all members start together */
#define LOOK_US        2000u

static void run_member(const struct sl_crowd *crowd, uint32_t number, pid_t parent)
{
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || sched_setaffinity(0, sizeof(crowd->options.cpus), &crowd->options.cpus) < 0)
                _exit(1);
        _exit(sl_crowd_member_run(&crowd->options, crowd->board, number));
}

/* Waits until all have done load @number. */
static int await(const struct sl_crowd *crowd, uint32_t number, uint64_t until_ns)
{
        for (uint32_t i = 0; i < crowd->options.members; i++) {
                _Atomic uint32_t *done = &crowd->board->members[i].done;

                while (atomic_load_explicit(done, memory_order_acquire) != number) {
                        if (atomic_load_explicit(done, memory_order_acquire) == UINT32_MAX)
                                return -EIO;
                        if (sl_bench_interrupted())
                                return -EINTR;
                        if (sl_clock_ns() > until_ns)
                                return -ETIMEDOUT;
                        usleep(LOOK_US);
                }
        }
        return 0;
}

int sl_crowd_start(struct sl_crowd *crowd, const struct sl_crowd_options *options)
{
        pid_t parent = getpid();

        *crowd = (struct sl_crowd){.options = *options};
        void *board = mmap(NULL, sizeof(*crowd->board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (board == MAP_FAILED)
                return -errno;
        crowd->board = board;
        for (uint32_t i = 0; i < options->members; i++) {
                crowd->members[i] = fork();
                if (crowd->members[i] == 0)
                        run_member(crowd, i, parent);
                if (crowd->members[i] < 0)
                        return -errno;
        }
        atomic_store_explicit(&crowd->board->load_number, 1, memory_order_release); /* a load of nothing: until_ns is 0 */
        return await(crowd, 1, sl_clock_ns() + START_LIMIT_NS);
}

int sl_crowd_run(struct sl_crowd *crowd, const struct sl_crowd_load *load, uint64_t warm_up_ns, uint64_t duration_ns,
        struct sl_crowd_counts *ret_counts)
{
        struct sl_crowd_board *board = crowd->board;
        uint32_t number = atomic_load_explicit(&board->load_number, memory_order_relaxed) + 1;

        board->load = *load;
        board->load.start_ns = sl_clock_ns() + LEAD_NS;
        board->load.measured_from_ns = board->load.start_ns + warm_up_ns;
        board->load.until_ns = board->load.measured_from_ns + duration_ns;
        atomic_store_explicit(&board->load_number, number, memory_order_release);

        int r = await(crowd, number, board->load.until_ns + DRAIN_LIMIT_NS);
        for (uint32_t i = 0; i < crowd->options.members && r == 0; i++)
                ret_counts[i] = board->members[i].counts;
        return r;
}

void sl_crowd_stop(struct sl_crowd *crowd)
{
        if (!crowd->board)
                return;
        atomic_store_explicit(&crowd->board->load_number, UINT32_MAX, memory_order_release);
        for (uint32_t i = 0; i < crowd->options.members; i++) {
                if (crowd->members[i] <= 0)
                        continue;
                kill(crowd->members[i], SIGKILL);
                while (waitpid(crowd->members[i], NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        munmap(crowd->board, sizeof(*crowd->board));
        *crowd = (struct sl_crowd){0};
}
