/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler holds no state: the limit is the kernel's, the pipe has a fixed number. It calls only what a handler may call.
 */
#include "crash_report.h"

#include "child_args.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define STACK_BYTES (64u << 10)
#define PAGE_BYTES  4096ull
#define NEARLY      16 /* within a sixteenth of the limit */

/* The first number in statm: pages of address space. 0 when it cannot be read. What is open can be read when nothing can be opened.
 */
static uint64_t address_space_pages(void)
{
        char text[64];
        ssize_t n = pread(SL_CHILD_MEMORY_FD, text, sizeof(text), 0);
        uint64_t pages = 0;

        for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++)
                pages = pages * 10 + (uint64_t)(text[i] - '0');
        return pages;
}

static bool memory_is_nearly_used_up(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
                return false;
        return address_space_pages() * PAGE_BYTES > limit.rlim_cur - limit.rlim_cur / NEARLY;
}

static void die(int signal_number)
{
        static const char line[] = "12 it crashed when there was none left\n";

        _Static_assert(ENOMEM == 12, "the line begins with the number of ENOMEM");
        if (memory_is_nearly_used_up()) {
                (void)!write(SL_CHILD_REPORT_FD, line, sizeof(line) - 1);
                _exit(1);
        }
        signal(signal_number, SIG_DFL);
        raise(signal_number);
}

static int open_statm(void)
{
        int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

        if (fd < 0 || fd == SL_CHILD_MEMORY_FD)
                return fd < 0 ? -errno : 0;
        if (dup3(fd, SL_CHILD_MEMORY_FD, O_CLOEXEC) < 0)
                return -errno;
        close(fd);
        return 0;
}

int sl_crash_report_prepare(void)
{
        static const int deaths[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE};
        struct sigaction action = {.sa_handler = die, .sa_flags = SA_ONSTACK | SA_NODEFER};
        stack_t stack = {.ss_size = STACK_BYTES};

        stack.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL) < 0)
                return -errno;
        (void)open_statm(); /* without /proc nobody can tell whether memory was the cause */
        for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
                if (sigaction(deaths[i], &action, NULL) < 0)
                        return -errno;
        }
        return 0;
}
