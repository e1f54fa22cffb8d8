/* SPDX-License-Identifier: Apache-2.0 */
#include "pair.h"

#include "base/clock.h"
#include "cores.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_LIMIT_NS (60 * SL_NS_PER_SECOND)

static void run_there(const struct sl_pair *pair, int cpu, pid_t parent, sl_pair_fn there, void *argument)
{
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || sl_cores_pin(cpu) < 0)
                _exit(1);
        _exit(there(pair->memory, argument));
}

int sl_pair_start(struct sl_pair *pair, const int cpus[2], size_t bytes, sl_pair_fn there, void *argument)
{
        pid_t parent = getpid();
        int r = sl_cores_pin(cpus[1]); /* tried here, where it can be reported */

        if (r == 0)
                r = sl_cores_pin(cpus[0]);
        *pair = (struct sl_pair){.bytes = bytes, .child = -1};
        if (r < 0)
                return r;
        pair->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (pair->memory == MAP_FAILED) {
                pair->memory = NULL;
                return -errno;
        }
        memset(pair->memory, 0, bytes);
        pair->child = fork();
        if (pair->child < 0) {
                r = -errno;
                munmap(pair->memory, bytes);
                *pair = (struct sl_pair){.child = -1};
                return r;
        }
        if (pair->child == 0)
                run_there(pair, cpus[1], parent, there, argument);
        return 0;
}

static void unmap(struct sl_pair *pair)
{
        if (pair->memory)
                munmap(pair->memory, pair->bytes);
        *pair = (struct sl_pair){.child = -1};
}

int sl_pair_ended(struct sl_pair *pair)
{
        siginfo_t info = {0};

        if (pair->child <= 0)
                return 1;
        return waitid(P_PID, (id_t)pair->child, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == pair->child;
}

int sl_pair_end(struct sl_pair *pair)
{
        uint64_t until_ns = sl_clock_ns() + END_LIMIT_NS;
        int status = 0;

        if (pair->child > 0) {
                while (!sl_pair_ended(pair) && sl_clock_ns() < until_ns)
                        usleep(200);
                kill(pair->child, SIGKILL);
                while (waitpid(pair->child, &status, 0) < 0 && errno == EINTR)
                        ;
        }
        unmap(pair);
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

void sl_pair_abort(struct sl_pair *pair)
{
        if (pair->child > 0) {
                kill(pair->child, SIGKILL);
                while (waitpid(pair->child, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        unmap(pair);
}
