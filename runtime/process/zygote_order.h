/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a zygote and who owns it say to each other on a socket of packets, their only one. The zygote's first packet, without
 * contents but an answer of zeros, says that it is ready. Then each order has one answer, in turn. An order is a head, with the
 * descriptors that the child gets beside it, and its arguments, each with a terminator. Private to runtime/process.
 */
#pragma once

#include <sched.h>
#include <stdint.h>

#define SL_ZYGOTE_FD            3 /* the zygote's end, as sl_spawn() gives it */
#define SL_ZYGOTE_FDS_MAX       8
#define SL_ZYGOTE_ARGS_MAX      256
#define SL_ZYGOTE_ARG_BYTES_MAX (48u << 10) /* of all, so that a packet is below what a socket takes by default */

struct sl_zygote_order {
        uint32_t n_args, n_fds;
        cpu_set_t cpus; /* that the child may run on */
};

struct sl_zygote_answer {
        int32_t code; /* 0, or the errno of clone() */
        int32_t pid;
};
