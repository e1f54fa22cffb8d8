/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sessions' own state, shared by session (from accept to the end), hello (from HELLO to WELCOME), region (arena memory)
 * and departed (arena memory that is left behind). Control thread only.
 */
#pragma once

#include "account.h"
#include "channel.h"
#include "session.h"

#include <stdatomic.h>

enum session_state { SESSION_FREE, SESSION_NEW, SESSION_CLIENT, SESSION_READER, SESSION_ADMIN, SESSION_LEAVING };

struct sl_session {
        enum session_state state;
        uint32_t number;
        uint64_t id; /* as in the log; never used twice */
        int socket, pidfd;
        char label[32]; /* what its HELLO says of itself, printable */
        struct sl_peer peer;
        struct sl_account *account;
        struct sl_channel *channel;
        uint32_t refusals;
        uint32_t regions_due; /* announced by its HELLO and not handed back yet: so many messages may bring an fd */
        int region_fd;        /* handed back, while a session that leaves uses it still: nothing more is read; -1: none */
        uint32_t releasing; /* index + 1 of the region that the dispatcher has been asked to release: nothing more is read; 0: none
                             */
        bool is_passing;    /* fds may lie unread in its socket */
        bool unread;        /* it had more messages than its turn allowed */
        struct sl_draft *draft; /* of an administrator: what it has allotted */
        bool bye;               /* it will not hand its arena back */
};

struct sl_departed;

struct sl_sessions {
        struct sl_sessions_options options;
        bool *slots;   /* [clients_max]: taken */
        bool *numbers; /* [clients_max]: of accounts; taken */
        uint64_t next_id;
        struct sl_departed *departed; /* oldest first */
        uint32_t n_departed;
        bool ending; /* the runtime is */
        uint32_t n_sessions;
        uint32_t n_connected, n_clients, n_readers;
        struct sl_session sessions[];
};

/* True when one of the regions of the session is this file. @identity: its inode. */
static inline bool sl_session_has_region(const struct sl_session *session, uint64_t identity)
{
        const struct sl_channel *channel = session->channel;
        uint32_t n = channel ? atomic_load_explicit(&channel->n_regions, memory_order_relaxed) : 0;

        for (uint32_t i = 0; i < n; i++)
                if (channel->regions[i].base && channel->regions[i].identity == identity)
                        return true;
        return false;
}
