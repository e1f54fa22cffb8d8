/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of things: channels, ensembles, workers, the whole. Dispatcher only.
 */
#pragma once

struct sl_bundle;
struct sl_dispatcher;
struct sl_ensemble;

/*
 * Reports what has come to its end. Called at the end of a pass and nowhere else, as what it reports may be freed by control at
 * once.
 */
void sl_settle(struct sl_dispatcher *dispatcher);

/* A request of the ensemble has ended, or left for another one: what waited for that is looked at. */
void sl_settle_after(struct sl_dispatcher *dispatcher, const struct sl_ensemble *ensemble);

/* Blocks of its carriers that are no longer used. */
void sl_settle_blocks(struct sl_dispatcher *dispatcher, const struct sl_bundle *bundle);
