/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop that puts a load on somebody who answers. It knows neither clock nor runtime: both are the target's, so that the same
 * loop runs against libstarling and, in virtual time, against a simulated server.
 *
 *     open loop     requests are due when the schedule says. What is due and finds no place in flight waits for one, but stays due
 * when it was; so does what the loop itself is late with closed loop   a request is due as soon as another has been answered:
 * `in_flight` are always in flight. Of the schedule only models and samples count
 *
 * One thread for each loop; what is sent last is awaited before the loop ends.
 */
#pragma once

#include "schedule.h"
#include "tally.h"

struct sl_load_answer {
        uint32_t place;
        int status;
        uint64_t queued_ns, batched_ns, computing_ns, combining_ns;
};

/* Calls come from the loop's thread. */
struct sl_load_target {
        void *of;
        uint64_t (*now_ns)(void *of);

        /*
         * Sends a request, whose due_ns is on the target's clock; its answer names @place. Return: 0; -EAGAIN: not before something
         * has been answered; -errno of the request, which then counts as failed; -EPIPE ends the loop.
         */
        int (*submit)(void *of, const struct sl_load_request *request, uint32_t place);

        /* Waits until something is answered, but not longer than until @until_ns. Return: how many; 0: none; -errno ends the loop.
         */
        int (*reap)(void *of, struct sl_load_answer *ret_answers, uint32_t max, uint64_t until_ns);

        /* True when the loop shall end at once. */
        bool (*is_interrupted)(void *of);
};

struct sl_generator_options {
        struct sl_schedule_options schedule;
        bool closed;
        uint32_t in_flight;  /* at most; 1 to 65536 */
        uint64_t start_ns;   /* on the target's clock; the first request is due then or later */
        uint64_t until_ns;   /* nothing is due from here on */
        uint64_t give_up_ns; /* from here on what was due is not sent any more */
        uint64_t requests;   /* no more than so many; 0: any number */
};

/* @tally: made by the caller. Return: 0; -EINTR; -ETIMEDOUT: an answer did not come for 60 s; as the target; -ENOMEM. */
int sl_generator_run(const struct sl_generator_options *options, const struct sl_load_target *target, struct sl_tally *tally);
