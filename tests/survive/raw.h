/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client without the library: the wire, byte by byte, for those who do not keep to it. Errors are results; one thread.
 */
#pragma once

#include "attach.h"
#include "segment.h"

#include <stdbool.h>

struct raw {
        int socket;
        int fds[SL_MESSAGE_FDS_MAX]; /* of the welcome; the caller may take them */
        uint32_t n_fds;
        struct sl_message welcome;
        struct sl_mapping request, response, arena, catalogue;
        struct sl_channel_offsets offsets;
};

/* A connection that has said nothing yet, or -errno. */
int raw_dial(const char *socket_path);

/* A HELLO of this role and shape; everything in it may be changed before it is sent. */
struct sl_message raw_hello(enum sl_role role, const struct sl_channel_shape *shape, uint64_t arena_bytes);

/* Sends and receives one message each. Return: 0; -errno, also that of a refusal, whose text is in @ret_answer. */
int raw_ask(int socket, const struct sl_message *question, const int *fds, uint32_t n_fds, struct sl_message *ret_answer,
        int *ret_fds, uint32_t *ret_n_fds);

/* Attaches as a client and maps all it gets. Return: 0, -errno; @raw is to be detached either way. */
int raw_attach(struct raw *raw, const char *socket_path, const struct sl_channel_shape *shape, uint64_t arena_bytes);
void raw_detach(struct raw *raw);

/* Leaves without a word, and keeps what it has mapped; to be detached all the same. */
void raw_leave(struct raw *raw);

void raw_queue(const struct raw *raw, uint32_t queue, struct sl_queue_map *ret_map);

/*
 * One request of this entry and these descriptors on queue pair 0, which nobody else uses: sequence number and tag are filled in.
 * Return: the status of its completion; -ETIMEDOUT when none came within 60 s.
 */
int raw_request(const struct raw *raw, const struct sl_entry *entry, const struct sl_descriptor *descriptors);

/* Has the runtime ended the connection? */
bool raw_ended(const struct raw *raw);
