/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server in virtual time: one at a time, first come first served, each sample in the same time. Its clock moves only when
 * somebody waits for it, or as a slow generator would. One thread.
 */
#pragma once

#include "generator.h"

struct simulated {
        uint64_t now_ns;
        uint64_t service_ns;                    /* of a sample */
        uint64_t stall_from_ns, stall_until_ns; /* it does nothing from here to there */
        uint64_t submit_ns;                     /* what the generator takes to send one */
        uint64_t fail_every;                    /* every so manieth answer is `status`; 0: none */
        int status;
        uint64_t free_ns; /* when it has done all that it has */
        uint64_t n_submitted, n_reaped, most_in_flight;
        struct {
                uint32_t place;
                uint64_t begins_ns, done_ns, came_ns;
        } queue[1u << 16];
};

struct sl_load_target simulated_target(struct simulated *server);
