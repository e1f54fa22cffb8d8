/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A crowd: many processes, each a client of one runtime with one queue pair, that put the same load on one model at the same time.
 *
 *     closed loop   `in_flight` requests are always in flight
 *     open loop     requests are due at Poisson times, whatever the runtime does. What is due when a member looks (each `tick_ns`)
 * is sent at once; what finds the queue pair full is refused by the library and gone
 *
 * A deadline counts from when a request was due, and an answer is in time when the member has it before the deadline: what the
 * member itself was late with counts against the answer.
 *
 * Threads: one here, one in each member. The members share one board with this process: a load is written before `load_number`
 * grows, its counts before the member's `done` says that number.
 */
#pragma once

#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#define SL_CROWD_MAX 64u

/* How a request ended. The first is the only good end; all but NO_ROOM and UNSENT are ends that the runtime told. */
#define SL_CROWD_ENDS(X)                                                                                                           \
        X(IN_TIME, "answered_in_time")                                                                                             \
        X(LATE, "answered_late")                                                                                                   \
        X(EXPIRED, "refused_deadline")                                                                                             \
        X(BUSY, "refused_busy")                                                                                                    \
        X(QUOTA, "refused_quota")                                                                                                  \
        X(OTHER, "failed_otherwise")                                                                                               \
        X(NO_ROOM, "refused_no_room")

enum sl_crowd_end {
#define X(id, name) SL_CROWD_##id,
        SL_CROWD_ENDS(X)
#undef X
                SL_CROWD_ENDS_N
};

struct sl_crowd_load {
        double rate;          /* requests due per second and member; 0: closed loop */
        uint32_t in_flight;   /* of a closed loop */
        uint64_t deadline_ns; /* after a request was due; 0: none */
        uint64_t tick_ns;
        uint32_t spinners; /* the first so many members never sleep, whatever the runtime advises */
        uint64_t start_ns, measured_from_ns, until_ns;
};

struct sl_crowd_counts {
        uint64_t due, ends[SL_CROWD_ENDS_N];
        uint64_t cpu_ns, sleeps; /* processor time and voluntary context switches of the measured time */
};

struct sl_crowd_options {
        const char *runtime, *model;
        uint32_t members, depth; /* depth: of a queue pair */
        cpu_set_t cpus;          /* that the members may use */
};

struct sl_crowd_member {
        alignas(128) _Atomic uint32_t done; /* number of the load that it has ended; UINT32_MAX: it failed */
        struct sl_crowd_counts counts;
};

struct sl_crowd_board {
        alignas(128) _Atomic uint32_t load_number; /* UINT32_MAX: end */
        struct sl_crowd_load load;
        struct sl_crowd_member members[SL_CROWD_MAX];
};

struct sl_crowd {
        struct sl_crowd_options options;
        struct sl_crowd_board *board;
        pid_t members[SL_CROWD_MAX];
};

/* Forks the members and waits until all have connected. Return: 0; -ENOMEM, -EAGAIN, -EIO a member cannot connect (it said why). */
int sl_crowd_start(struct sl_crowd *crowd, const struct sl_crowd_options *options);

/*
 * Puts the load on for @warm_up_ns and then @duration_ns, and waits until nothing is in flight. The times of @load are filled in
 * here;
 * @ret_counts has one place for each member. Return: 0; -EINTR; -EIO a member failed; -ETIMEDOUT.
 */
int sl_crowd_run(struct sl_crowd *crowd, const struct sl_crowd_load *load, uint64_t warm_up_ns, uint64_t duration_ns,
        struct sl_crowd_counts *ret_counts);

/* Ends all members and waits for them. One that was not started is fine. */
void sl_crowd_stop(struct sl_crowd *crowd);

/* crowd_member.c: what a member does, in its own process. Return: an exit code. */
int sl_crowd_member_run(const struct sl_crowd_options *options, struct sl_crowd_board *board, uint32_t number);
