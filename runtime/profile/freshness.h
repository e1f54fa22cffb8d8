/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a profile still says what a worker costs: the model's file, those of the models beside it, the processor and the versions
 * must be what they were. Only whoever is on the host of a measurement can tell; what was measured elsewhere, or never, is taken as
 * it is.
 *
 * Threads: one at a time. Files are read once.
 */
#pragma once

#include "worker_profile.h"

#include <stdbool.h>

struct sl_freshness;

#define SL_STALE_TEXT_BYTES 400
#define SL_HASH_BYTES       33

/* @known: a list in which the files of models beside others are found by their names; it must live as long, and may grow. */
int sl_freshness_new(const struct sl_profile_list *known, struct sl_freshness **ret_freshness, struct sl_error *error);
/* NULL is fine. Returns NULL. */
struct sl_freshness *sl_freshness_free(struct sl_freshness *freshness);

/* Fills what is the same for all profiles that are measured here and now: host, processor, versions, date, origin. */
void sl_freshness_stamp(const struct sl_freshness *freshness, struct sl_worker_profile *profile);

/* The hash of a model file's content, and of what lies beside it where it may have external data. Return: 0; -errno with text. */
int sl_freshness_hash(struct sl_freshness *freshness, const char *path, char ret_hash[SL_HASH_BYTES], struct sl_error *error);

/* Whether the profile is stale, and the first reason why. */
bool sl_freshness_is_stale(
        struct sl_freshness *freshness, const struct sl_worker_profile *profile, char ret_why[SL_STALE_TEXT_BYTES]);
