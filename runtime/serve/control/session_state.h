/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sessions' own state, shared by session.c (from accept to the end), hello.c (from HELLO to WELCOME), region.c (arena
 * memory) and departed.c (arena memory that is left behind). Control thread only.
 */
#pragma once

#include "account.h"
#include "session.h"

enum session_state { SESSION_FREE, SESSION_NEW, SESSION_CLIENT, SESSION_READER, SESSION_ADMIN, SESSION_LEAVING };

struct sl_session {
        enum session_state state;
        uint32_t number;
        uint64_t id; /* as in the log; never used twice */
        int socket, pidfd;
        struct sl_peer peer;
        struct sl_account *account;
        struct sl_channel *channel;
        uint32_t refusals;
        uint32_t regions_due; /* announced by its HELLO and not handed back yet: so many messages may bring an fd */
        bool is_passing;      /* fds may lie unread in its socket */
        bool unread;          /* it had more messages than its turn allowed */
        bool bye;             /* it will not hand its arena back */
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

/*
 * hello.c: who is it, what may it, what does it get. On success the session has its role and has been answered. Return: 0, or
 * -errno with the text of the refusal; a channel that was made so far stays with the session, and goes with it.
 */
int sl_hello_admit(
        struct sl_sessions *sessions, struct sl_session *session, const struct sl_message *hello, struct sl_error *error);

/*
 * region.c: new memory for the arena, which the client touches: its pages are charged to whoever does so first. Return: its index
 * and a fd for the client; -EINVAL, -EDQUOT, -E2BIG, -ENOMEM (also beyond memory_max), -EMFILE.
 */
int sl_region_create(struct sl_sessions *sessions, struct sl_session *session, uint64_t bytes, int *ret_fd, struct sl_error *error);

/* region.c: memory that the client had under an earlier runtime; the fd stays the caller's. Return: its index; also -EBADMSG. */
int sl_region_adopt(struct sl_sessions *sessions, struct sl_session *session, int fd, struct sl_error *error);
