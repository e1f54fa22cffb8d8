/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which profiles of a store are asked for. Of models that the command line names: what the same words would find stored, measured
 * on this host, of these files, precisions and options, and not stale. Of --devices and --batches, where they are given: no others.
 */
#pragma once

#include <stdbool.h>

struct sl_error;
struct sl_profile_list;
struct wish;

/* Adds those of @all, as they stand there. @ret_plain: models are named, each in one precision. Return: 0; -ENOENT models are named
 * and none of theirs is there; -errno with text. */
int choose_profiles(const struct wish *wish, const struct sl_profile_list *all, struct sl_profile_list *chosen, bool *ret_plain,
        struct sl_error *error);
