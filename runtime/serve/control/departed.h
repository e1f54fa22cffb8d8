/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas whose clients have left. A client may hand its regions back to this runtime, so their contents are kept as long as it
 * lives; but whoever keeps a region open keeps its pages, of which some are charged to the runtime. So they stay mapped and in the
 * ledger, apart from what is in use, and their pages are taken out of them
 *
 *     at once                        when the client said BYE, has ended, or cannot be watched
 *     when its process has ended     which is looked at about every second
 *     oldest first                   when the ledger has no room for something else, or there are DEPARTED_MAX of them
 *
 * A region that another session has as well is that one's. Control thread only.
 */
#pragma once

#include <stdint.h>

struct sl_session;
struct sl_sessions;

/* @session ends, nobody uses its channel: its regions come here, and the channel has none any more. */
void sl_departed_keep(struct sl_sessions *sessions, struct sl_session *session);

/* A region that somebody hands back is that one's, with its contents. @identity: of struct sl_region. */
void sl_departed_return(struct sl_sessions *sessions, uint64_t identity);

/* Drops those whose processes have ended. */
void sl_departed_look(struct sl_sessions *sessions);

/* For the ledger: drops the oldest until @bytes are given back, or none is left. @context: the sessions. */
void sl_departed_reclaim(void *context, uint64_t bytes);

/* The runtime ends: unmaps them all, with their contents, which clients hand to the next one. */
void sl_departed_free(struct sl_sessions *sessions);
