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
        uint64_t taken;   /* atoms, by bits */
        uint32_t percent; /* of all lets together */
};

/* Return: 0; -EINVAL no atom fits, or there are too many. */
int sl_let_map_init(struct sl_let_map *map, uint32_t n_processors, uint32_t atom);

/* What a let has: all zeros, nothing. */
struct sl_let_atoms {
        uint64_t atoms; /* by bits */
        uint32_t percent;
};

/*
 * Atoms for so many per cent of all atoms: as many as bring all lets together nearest to what they are to have, but one of the two
 * numbers next to its own share, and at least one. So lets of 100 % together find room, however each of them is rounded.
 */
uint32_t sl_let_map_atoms(const struct sl_let_map *map, uint32_t percent);

/* Takes so many. Return: 0, with what it has; -EBUSY fewer are left; the text says how many of how many; -ENOTSUP. */
int sl_let_map_take(struct sl_let_map *map, uint32_t percent, struct sl_let_atoms *ret_atoms, struct sl_error *error);

void sl_let_map_give_back(struct sl_let_map *map, struct sl_let_atoms atoms);

/* What was given back is taken again. Return: it, without what others have taken meanwhile. */
struct sl_let_atoms sl_let_map_take_again(struct sl_let_map *map, struct sl_let_atoms atoms);
