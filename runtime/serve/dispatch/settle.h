/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of things: channels, ensembles, workers, the whole. Dispatcher only.
 */
#pragma once

struct sl_bundle;
struct sl_dispatcher;

/*
 * Reports what has come to its end. Called at the end of a pass and nowhere else, as what it reports may be freed by control at
 * once.
 */
void sl_settle(struct sl_dispatcher *dispatcher);

/* Blocks of its carriers that are no longer used. */
void sl_settle_blocks(struct sl_dispatcher *dispatcher, const struct sl_bundle *bundle);
