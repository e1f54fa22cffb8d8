/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which models share workers: those that say `fuse: auto`, have the same architecture but for sizes (plan_info.h, `family`), and
 * compute in threads of the runtime, each batch with one; those that name others do so with who names the same ones, itself among
 * them. They are found as they load, whatever name each has; a model whose reload
 * has another architecture finds others, or is alone in a bundle, and one line says that it has left.
 *
 * A bundle begins with its first model and ends with its last; a carrier begins with its first lane, and ends with its last. Where
 * there are as many models as a carrier has lanes, further ones begin another bundle.
 *
 * Carriers may have blocks (execute/block.h), which merger.h makes. They go with a lane of theirs, or with the carrier.
 *
 * Control thread only.
 */
#pragma once

#include "bundle.h"
#include "worker_set.h"

struct sl_block;
struct sl_bundle_home;
struct sl_crew;
struct sl_crew_options;
struct sl_dispatcher;
struct sl_error;
struct sl_let;
struct sl_plan_info;

struct sl_bundles {
        struct sl_bundle_home *first;
        uint64_t joins; /* so far */
};

/*
 * A model that is being loaded comes to others of the same @circle (sl_model_spec.fuse_circle), or is the first. @preferred: the
 * bundle of the model that it replaces, where it stays if there is a seat; NULL: it replaces none. Return: 0, -ENOMEM.
 */
int sl_bundles_join(struct sl_bundles *bundles, const struct sl_plan_info *info, uint64_t circle, struct sl_bundle *preferred,
        struct sl_bundle **ret_bundle);

/* It is freed, and its workers are. */
void sl_bundle_leave(struct sl_bundle *bundle);

/* Models that are in it, those that come or go among them. */
uint32_t sl_bundle_size(const struct sl_bundle *bundle);

/* A carrier for a worker of @crew that is wanted so, of which that has no lane yet; NULL: there is none. */
struct sl_carrier *sl_bundle_find_carrier(
        const struct sl_bundle *bundle, const struct sl_crew *crew, const struct sl_worker_wish *wish);

/* A new one on @let, which is the bundle's from here on, with memory for its room (sl_job_runner_room_bytes()). Return: 0; -ENOMEM,
 * -EAGAIN, -EMFILE, -EBUSY with text: the let is the caller's still. */
int sl_bundle_add_carrier(struct sl_bundle *bundle, const struct sl_crew *crew, const struct sl_worker_wish *wish,
        struct sl_let *let, uint64_t room_bytes, struct sl_carrier **ret_carrier, struct sl_error *error);

/* Lanes have left: carriers without any end. */
void sl_bundle_trim(struct sl_bundle *bundle);

/* The carrier of those that the dispatcher computes itself. NULL: there is no memory for it. */
struct sl_carrier *sl_bundle_inliner(struct sl_bundle *bundle);

/* ---- blocks ---- */

/* The first bundle (@before NULL), and the next; NULL: there is no other. */
struct sl_bundle *sl_bundles_next(const struct sl_bundles *bundles, const struct sl_bundle *before);

/* What tells the models that it has had, and those that it has, from others: it changes when one joins. */
uint64_t sl_bundle_joins(const struct sl_bundle *bundle);

/* The merger's: members that it has seen last, as it counts them, and memory that there was not for merging these; 0: that there
 * was. */
uint64_t *sl_bundle_seen(struct sl_bundle *bundle);
uint64_t *sl_bundle_lacks(struct sl_bundle *bundle);

/* The carrier that is @i-th, that of the dispatcher behind the others; NULL: there are no more. */
struct sl_carrier *sl_bundle_carrier(const struct sl_bundle *bundle, uint32_t i);
bool sl_bundle_is_inliner(const struct sl_bundle *bundle, const struct sl_carrier *carrier);

/* The carrier, which has none, gets these blocks, for which so many bytes have been promised. */
void sl_bundle_put_blocks(struct sl_bundle *bundle, struct sl_carrier *carrier, struct sl_block *blocks, uint64_t bytes,
        const struct sl_crew_options *options);

/* All that it has go; false: it has none. */
bool sl_bundle_put_blocks_away(struct sl_bundle *bundle, struct sl_dispatcher *dispatcher);

/* BLOCKS_GONE: frees them. */
void sl_bundles_blocks_gone(struct sl_bundles *bundles, const struct sl_block *blocks);
