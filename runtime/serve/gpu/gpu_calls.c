/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_calls.h"

#include "call_filter.h"

#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/sockios.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

int sl_gpu_calls_refuse(void)
{
        /*
         * These go by the numbers of threads. Which ones are its own no filter knows, and a driver may place its threads: that is
         * advice, and without effect.
         */
        const struct sl_call_rule of_others[] = {
                SL_CALL_WITH(sched_setaffinity, SL_ARG_IS_NOT(0, 0)),
                SL_CALL_WITH(sched_setscheduler, SL_ARG_IS_NOT(0, 0)),
                SL_CALL_WITH(sched_setparam, SL_ARG_IS_NOT(0, 0)),
                SL_CALL_WITH(sched_setattr, SL_ARG_IS_NOT(0, 0)),
        };
        const struct sl_call_rule rules[] = {
                /* other programs */
                SL_CALL(execve),
                SL_CALL(execveat),
                /* other processes */
                SL_CALL(ptrace),
                SL_CALL(process_vm_readv),
                SL_CALL(process_vm_writev),
                SL_CALL(kcmp),
                SL_CALL(pidfd_getfd),
                SL_CALL(pidfd_send_signal),
                SL_CALL(process_madvise),
                /* by number; 0 is the caller, or its group or user */
                SL_CALL_WITH(prlimit64, SL_ARG_IS_NOT(0, 0)),
                SL_CALL_WITH(migrate_pages, SL_ARG_IS_NOT(0, 0)),
                SL_CALL_WITH(move_pages, SL_ARG_IS_NOT(0, 0)),
                SL_CALL_WITH(setpriority, SL_ARG_IS_NOT(1, 0)),
                SL_CALL_WITH(setpriority, SL_ARG_IS_NOT(0, PRIO_PROCESS)),
                SL_CALL_WITH(ioprio_set, SL_ARG_IS_NOT(1, 0)),
                SL_CALL_WITH(ioprio_set, SL_ARG_IS_NOT(0, IOPRIO_WHO_PROCESS)),
                /* what is mounted */
                SL_CALL(mount),
                SL_CALL(umount2),
                SL_CALL(pivot_root),
                SL_CALL(chroot),
                SL_CALL(move_mount),
                SL_CALL(open_tree),
                SL_CALL(fsopen),
                SL_CALL(fsmount),
                SL_CALL(fsconfig),
                SL_CALL(fspick),
                /* the kernel itself */
                SL_CALL(init_module),
                SL_CALL(finit_module),
                SL_CALL(delete_module),
                SL_CALL(kexec_load),
                SL_CALL(kexec_file_load),
                SL_CALL(bpf),
                SL_CALL(perf_event_open),
                SL_CALL(userfaultfd),
                /* calls that no filter sees */
                SL_CALL(io_uring_setup),
                SL_CALL(io_uring_enter),
                SL_CALL(io_uring_register),
                /* the machine */
                SL_CALL(reboot),
                SL_CALL(swapon),
                SL_CALL(swapoff),
                SL_CALL(sethostname),
                SL_CALL(setdomainname),
                SL_CALL(settimeofday),
                SL_CALL(clock_settime),
                SL_CALL(adjtimex),
                SL_CALL(clock_adjtime),
                SL_CALL(syslog),
                SL_CALL(acct),
                SL_CALL(quotactl),
                /* other users */
                SL_CALL(setuid),
                SL_CALL(setgid),
                SL_CALL(setreuid),
                SL_CALL(setregid),
                SL_CALL(setresuid),
                SL_CALL(setresgid),
                SL_CALL(setgroups),
                SL_CALL(setfsuid),
                SL_CALL(setfsgid),
                SL_CALL(capset),
                /* keys */
                SL_CALL(keyctl),
                SL_CALL(add_key),
                SL_CALL(request_key),
                /* other namespaces */
                SL_CALL(unshare),
                SL_CALL(setns),
                /* signals to others; sockets beyond this host */
                SL_CALL_WITH(kill, SL_ARG_IS_NOT(0, getpid())),
                SL_CALL_WITH(tgkill, SL_ARG_IS_NOT(0, getpid())),
                SL_CALL_WITH(rt_sigqueueinfo, SL_ARG_IS_NOT(0, getpid())),
                SL_CALL_WITH(rt_tgsigqueueinfo, SL_ARG_IS_NOT(0, getpid())),
                SL_CALL(tkill),
                /* and those that a descriptor sends to its owner, which Landlock sees only since Linux 6.12 */
                SL_CALL_WITH_BOTH(fcntl, SL_ARG_LOW_IS(1, F_SETOWN), SL_ARG_IS_NOT(2, getpid())),
                SL_CALL_WITH(fcntl, SL_ARG_LOW_IS(1, F_SETOWN_EX)),
                SL_CALL_WITH(ioctl, SL_ARG_LOW_IS(1, FIOSETOWN)),
                SL_CALL_WITH(ioctl, SL_ARG_LOW_IS(1, SIOCSPGRP)),
                SL_CALL_WITH(socket, SL_ARG_IS_NOT(0, AF_UNIX)),
        };

        return sl_call_filter_refuse(rules, sizeof(rules) / sizeof(rules[0]), of_others, sizeof(of_others) / sizeof(of_others[0]));
}
