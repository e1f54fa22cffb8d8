/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attachment to one runtime: the socket, and the memory that came over it. A reconnect makes a new one beside the old one and
 * then takes its place, so a failed attempt changes nothing.
 *
 * Threads: made and freed by one; in between immutable but for @gone, which any thread may set and read, and the socket, on which
 * sl_connection_ask() is called under the client's lock, with @owes.
 */
#pragma once

#include "attach.h"
#include "segment.h"

#include <stdbool.h>

struct sl_connection {
        int socket, doorbell, completion; /* fds; -1: none. @completion: the bell for event loops */
        _Atomic bool gone;                /* the runtime is not there any more, or not to be believed any more */
        bool owes;                        /* an answer that has not come in time, and comes before any other; under the lock */
        uint32_t role;                    /* enum sl_role */
        bool has_background;              /* the runtime takes what nobody waits for */
        bool has_tasks;                   /* the page of tasks lies behind the catalogue */
        struct sl_mapping catalogue, request, response;
        struct sl_channel_shape shape;
        struct sl_channel_offsets offsets;
        uint32_t dispatcher_of_queue[SL_QUEUES_MAX];
        uint64_t client_id, arena_limit_bytes;
};

/* What to ask for. */
struct sl_attachment {
        const char *runtime; /* name, or path with a slash */
        const char *label;
        uint32_t role; /* enum sl_role */
        struct sl_channel_shape shape;
        uint64_t arena_bytes; /* of the first region, if @n_kept is 0 */
        uint64_t timeout_ns;
        const int *kept_fds; /* memfds of regions that are handed back */
        const uint64_t *kept_bytes;
        uint32_t n_kept;
};

/* The first region that a new runtime made, or one that was asked for; fd -1 when it made none. */
struct sl_fresh_region {
        int fd;
        uint32_t index;
        uint64_t bytes;
};

/* Return: as starling_connect(). On failure @ret_connection is untouched. */
int sl_connection_open(const struct sl_attachment *want, struct sl_connection *ret_connection, struct sl_fresh_region *ret_fresh,
        struct sl_error *error);

/* Closes and unmaps; fine on an empty one (all zero but for fds of -1). Leaves it empty. */
void sl_connection_close(struct sl_connection *connection);

void sl_connection_empty(struct sl_connection *ret_connection);

/* Looks for the end of file; one system call while all is well. True from then on when there is one. */
bool sl_connection_check(struct sl_connection *connection);

/* Tells the runtime that this client will not come back for its arena, if it can be told without waiting. */
void sl_connection_bye(const struct sl_connection *connection);

/* Ends it from this side. The memory stays mapped. */
void sl_connection_break(struct sl_connection *connection);

/*
 * Sends @question (with @fd unless that is -1) and waits for the answer, of type @answer_type; a fd that comes with it is the
 * caller's (-1: none). Where an answer of that type is still owed it is taken for this one's: what it brings the caller reads in
 * the answer. Return: 0; the answer's own status, with its text; -ETIMEDOUT the runtime lives and has not answered: it owes the
 * answer; -EPIPE; -EPROTO and the connection is broken.
 */
int sl_connection_ask(struct sl_connection *connection, const struct sl_message *question, int fd, uint32_t answer_type,
        struct sl_message *ret_answer, int *ret_fd, struct sl_error *error);
