/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user (uid) as the dispatcher knows it: what it holds of queues and sizes. One record for all clients of the user. The control
 * thread, whose account of the user (account.h) this is a part of, writes the first two before the user's first channel is
 * handed over; the rest is the dispatcher's from then until the last channel is gone.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define SL_USER_NONE UINT32_MAX

struct sl_user {
        uid_t uid;
        uint32_t number; /* while it has clients: below clients_max, no other user's */

        /* dispatcher */
        uint32_t in_flight;      /* requests */
        uint32_t channels;       /* that it knows */
        uint32_t shapes_loading; /* sizes of open models */
};
