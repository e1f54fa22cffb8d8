/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection on the attach socket, from accept to end of file: HELLO, then what the role allows. Control thread only.
 *
 *     NEW --HELLO admitted--> CLIENT | READER | ADMIN --end of file, death, or broken--> LEAVING --CHANNEL_GONE--> (freed)
 *      |                                                (READER, ADMIN: freed at once)
 *      +--refused, end of file--> (freed)
 */
#pragma once

#include "channel.h"
#include "dispatcher.h"
#include "peer.h"

struct sl_accounts;
struct sl_memory;
struct sl_session;
struct sl_sessions;
struct sl_reaper;
struct sl_registry;
struct sl_stats;

struct sl_sessions_options {
        const struct sl_runtime_options *runtime;
        struct sl_dispatcher *dispatcher;
        struct sl_registry *registry;
        struct sl_accounts *accounts;
        struct sl_stats *stats;
        struct sl_memory *memory;
        struct sl_wait *wait;
        struct sl_reaper *reaper;
        struct sl_regions *regions;
        int catalogue_fd;
        uint64_t catalogue_bytes;
};

/* How many connections there can be at a time. */
uint32_t sl_sessions_max(const struct sl_runtime_options *runtime);

/* Return: 0, -ENOMEM. */
int sl_sessions_new(const struct sl_sessions_options *options, struct sl_sessions **ret_sessions);

/* The dispatcher has stopped: closes everything. NULL is fine. Returns NULL. */
struct sl_sessions *sl_sessions_free(struct sl_sessions *sessions);

/* A connection was accepted; the fd is the sessions' from here on. */
void sl_sessions_accept(struct sl_sessions *sessions, int fd);

/* Answers a connection that cannot be taken with @status (-errno) and the cause, and closes it. */
void sl_sessions_turn_away(struct sl_sessions *sessions, int fd, int status, const char *text);

/* Something happened on a watched fd: @token is one of ours when sl_sessions_owns() says so. */
bool sl_sessions_owns(const struct sl_sessions *sessions, uint64_t token);
void sl_sessions_happened(struct sl_sessions *sessions, uint64_t token, uint32_t what);

/* An event of the dispatcher: CHANNEL_GONE, CHANNEL_BROKEN, REGION_RELEASED. */
void sl_sessions_event(struct sl_sessions *sessions, const struct sl_event *event);

/* The answer to an administrator's message; nothing if that one has left. A refusal is also logged. */
void sl_sessions_answer(struct sl_sessions *sessions, uint64_t asker, int status, const char *text);
void sl_sessions_refuse(struct sl_sessions *sessions, uint64_t asker, int status, const char *text);

/* Those who have sent more than their turn allowed go on, each with one more turn, so that nobody waits long for them. Return: true
 * when there may be more to do. */
bool sl_sessions_continue(struct sl_sessions *sessions);
