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
 * Control thread only.
 */
#pragma once

#include "bundle.h"
#include "worker_set.h"

struct sl_bundle_home;
struct sl_crew;
struct sl_error;
struct sl_let;
struct sl_plan_info;

struct sl_bundles {
        struct sl_bundle_home *first;
};

/* A model that is being loaded comes to others of the same @circle (sl_model_spec.fuse_circle), or is the first. Return: 0,
 * -ENOMEM. */
int sl_bundles_join(struct sl_bundles *bundles, const struct sl_plan_info *info, uint64_t circle, struct sl_bundle **ret_bundle);

/* It is freed, and its workers are. */
void sl_bundle_leave(struct sl_bundle *bundle);

/* Models that are in it, those that come or go among them. */
uint32_t sl_bundle_size(const struct sl_bundle *bundle);

/* A carrier for a worker of @crew that is wanted so, of which that has no lane yet; NULL: there is none. */
struct sl_carrier *sl_bundle_find_carrier(
        const struct sl_bundle *bundle, const struct sl_crew *crew, const struct sl_worker_wish *wish);

/* A new one on @let, which is the bundle's from here on, with memory for its room. Return: 0; -ENOMEM, -EAGAIN, -EMFILE, -EBUSY
 * with text: the let is the caller's still. */
int sl_bundle_add_carrier(struct sl_bundle *bundle, const struct sl_crew *crew, const struct sl_worker_wish *wish,
        struct sl_let *let, struct sl_carrier **ret_carrier, struct sl_error *error);

/* Lanes have left: carriers without any end. */
void sl_bundle_trim(struct sl_bundle *bundle);

/* The carrier of those that the dispatcher computes itself. NULL: there is no memory for it. */
struct sl_carrier *sl_bundle_inliner(struct sl_bundle *bundle);
