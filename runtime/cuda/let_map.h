/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which atoms of a GPU, groups of multiprocessors that a green context can have, belong to which let. A let gets whole atoms, next
 * to each other where there are such; what no atom has (4 of an H100's 132 multiprocessors) is the whole device's alone. Pure; one
 * thread.
 *
 * Sources: gpulets (S. Choi et al., 2022), whose lets are such parts in per cent.
 */
#pragma once

#include <stdint.h>

struct sl_error;

#define SL_LET_ATOMS_MAX 64

struct sl_let_map {
        uint32_t n_processors, atom; /* of the device; of an atom */
        uint32_t n_atoms;
        uint64_t taken; /* atoms, by bits */
};

/* Return: 0; -EINVAL no atom fits, or there are too many. */
int sl_let_map_init(struct sl_let_map *map, uint32_t n_processors, uint32_t atom);

/* Atoms of so many per cent of the device's multiprocessors: the nearest number, at least one. */
uint32_t sl_let_map_atoms(const struct sl_let_map *map, uint32_t percent);

/*
 * Takes so many per cent. @own: atoms of a let that this one replaces, which may be taken again; else 0. Return: 0, with the atoms;
 * -EBUSY fewer are left; the text says how many of how many.
 */
int sl_let_map_take(struct sl_let_map *map, uint32_t percent, uint64_t own, uint64_t *ret_atoms, struct sl_error *error);

void sl_let_map_give_back(struct sl_let_map *map, uint64_t atoms);
