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

#include "channel.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_departed;
struct sl_session;
struct sl_sessions;

/* @session ends, nobody uses its channel: its regions come here, and the channel has none any more. */
void sl_departed_keep(struct sl_sessions *sessions, struct sl_session *session);

/* @session has released it: it is unmapped, no longer in the ledger, and empty unless another session has it as well. */
void sl_departed_release(struct sl_sessions *sessions, const struct sl_session *session, const struct sl_region *region);

/*
 * A region that somebody hands back is that one's, with its contents: it is no longer here or in the ledger, which may have no room
 * for it twice. @identity: of struct sl_region. Return: false: it is not here; else settle is to follow.
 */
struct sl_departed_region {
        struct sl_departed *from; /* as it was then: it may be gone */
        struct sl_region region;
};
bool sl_departed_lend(struct sl_sessions *sessions, uint64_t identity, struct sl_departed_region *ret_lent);

/* @taken: it is that one's now. Else it is here again, or empty where there is no room for it any more. */
void sl_departed_settle(struct sl_sessions *sessions, const struct sl_departed_region *lent, bool taken);

/* Drops those whose processes have ended. */
void sl_departed_look(struct sl_sessions *sessions);

/* For the ledger: drops the oldest until @bytes are given back, or none is left. @context: the sessions. */
void sl_departed_reclaim(void *context, uint64_t bytes);

/* The runtime ends: unmaps them all, with their contents, which clients hand to the next one. */
void sl_departed_free(struct sl_sessions *sessions);
