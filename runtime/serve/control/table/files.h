/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which names are of one model file: an index, by their paths, of what is wanted of each name and of what serves under it. Control
 * thread only.
 */
#pragma once

#include <stdint.h>

struct sl_model_spec;
struct sl_own_spec;
struct sl_registry;
struct sl_served;

/* What is wanted of the name is @want from now on, and what serves is @spec: the index has both instead of those before. Called
 * before the name's own pointers change; NULL: nothing is. */
void sl_files_note(
        struct sl_registry *registry, struct sl_served *served, const struct sl_own_spec *want, const struct sl_own_spec *spec);

/* The number that the file and stamp of @spec have with some name; 0: they are new. */
uint64_t sl_files_find(struct sl_registry *registry, const struct sl_model_spec *spec);

/* Of the names of which @spec's file is wanted the one behind @name; @name NULL: the first. NULL: there is none any more. */
struct sl_served *sl_files_next(struct sl_registry *registry, const struct sl_own_spec *spec, const struct sl_served *name);
