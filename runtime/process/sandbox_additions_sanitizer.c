/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leak check at the end stops all threads from a process that it clones, and finds them in /proc; reports go to stderr; shadow
 * memory is given back with madvise().
 */
#include "sandbox_additions.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

static const struct sl_call_rule rules[] = {
        {.call = SCMP_SYS(clone), .n_args = 1, .args = {SL_ARG_HAS(0, CLONE_VM)}},
        {.call = SCMP_SYS(getdents)},
        {.call = SCMP_SYS(getdents64)},
        {.call = SCMP_SYS(getppid)},
        {.call = SCMP_SYS(madvise)},
        {.call = SCMP_SYS(open)},
        {.call = SCMP_SYS(openat)},
        {.call = SCMP_SYS(prctl), .n_args = 1, .args = {SL_ARG_IS(0, PR_GET_DUMPABLE)}},
        {.call = SCMP_SYS(prctl), .n_args = 1, .args = {SL_ARG_IS(0, PR_SET_PTRACER)}},
        {.call = SCMP_SYS(prctl), .n_args = 2, .args = {SL_ARG_IS(0, PR_SET_PDEATHSIG), SL_ARG_IS(1, SIGKILL)}},
        {.call = SCMP_SYS(ptrace)},
        {.call = SCMP_SYS(read)},
        {.call = SCMP_SYS(readlink)},
        {.call = SCMP_SYS(sched_yield)},
        {.call = SCMP_SYS(sigaltstack)},
        {.call = SCMP_SYS(wait4)},
        {.call = SCMP_SYS(write), .n_args = 1, .args = {SL_ARG_IS(0, STDERR_FILENO)}},
};

const struct sl_sandbox_additions sl_sandbox_additions = {
        .rules = rules, .n_rules = sizeof(rules) / sizeof(rules[0]), .readable_folder = "/proc"};
