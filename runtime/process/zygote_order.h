/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a zygote, its children and who owns them say to each other on one socket of packets, the zygote's end of which its children
 * have as well, until they have their orders:
 *
 *     zygote to owner   a child has been made, and waits: its pid. Or the errno of clone(), and the zygote ends
 *     owner to child    the order: a head, with the descriptors that the child gets beside it, and its arguments, each with a
 *                       terminator. One child waits at a time, so that one reads it
 *     child to owner    the answer, its pid
 *     child to zygote   a byte on a pipe of theirs, when it has answered: the next child is wanted. A pipe that ends without it:
 *                       the child has died, or the owner is gone, and the zygote ends
 *
 * Private to runtime/process.
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
        int32_t pid;  /* of the child that waits; of that which has its order */
};
