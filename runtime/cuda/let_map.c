/* SPDX-License-Identifier: Apache-2.0 */
#include "let_map.h"

#include "base/assert.h"
#include "base/error.h"

#include <errno.h>

int sl_let_map_init(struct sl_let_map *map, uint32_t n_processors, uint32_t atom)
{
        uint32_t n = atom ? n_processors / atom : 0;

        *map = (struct sl_let_map){.n_processors = n_processors, .atom = atom, .n_atoms = n};
        return n && n <= SL_LET_ATOMS_MAX ? 0 : -EINVAL;
}

uint32_t sl_let_map_atoms(const struct sl_let_map *map, uint32_t percent)
{
        uint32_t least = map->n_atoms * percent / 100, most = (map->n_atoms * percent + 99) / 100;
        uint32_t together = (map->n_atoms * (map->percent + percent) + 50) / 100,
                 taken = (uint32_t)__builtin_popcountll(map->taken);
        uint32_t n = together > taken ? together - taken : 0;

        n = n < least ? least : n > most ? most : n;
        return n < 1 ? 1 : n > map->n_atoms ? map->n_atoms : n;
}

static uint64_t run_of(uint32_t first, uint32_t n)
{
        return (n == 64 ? UINT64_MAX : (1ull << n) - 1) << first;
}

/* The first run of so many free ones; else the lowest ones. */
static uint64_t choose(const struct sl_let_map *map, uint64_t free_atoms, uint32_t wanted)
{
        uint64_t chosen = 0;

        for (uint32_t i = 0; i + wanted <= map->n_atoms; i++)
                if ((free_atoms & run_of(i, wanted)) == run_of(i, wanted))
                        return run_of(i, wanted);
        for (; wanted; wanted--) {
                chosen |= free_atoms & -free_atoms;
                free_atoms &= free_atoms - 1;
        }
        return chosen;
}

int sl_let_map_take(struct sl_let_map *map, uint32_t percent, struct sl_let_atoms *ret_atoms, struct sl_error *error)
{
        uint64_t free_atoms;
        uint32_t wanted, n_free;

        if (!map->n_atoms)
                return sl_error_set(
                        error, ENOTSUP, "the device, of %u multiprocessors, cannot be cut into lets", map->n_processors);
        free_atoms = run_of(0, map->n_atoms) & ~map->taken;
        wanted = sl_let_map_atoms(map, percent);
        n_free = (uint32_t)__builtin_popcountll(free_atoms);
        if (n_free < wanted)
                return sl_error_set(error, EBUSY,
                        "%u%% of the device are %u multiprocessors, and its other lets leave %u of %u that lets can have", percent,
                        wanted * map->atom, n_free * map->atom, map->n_atoms * map->atom);
        *ret_atoms = (struct sl_let_atoms){.atoms = choose(map, free_atoms, wanted), .percent = percent};
        map->taken |= ret_atoms->atoms;
        map->percent += percent;
        return 0;
}

void sl_let_map_give_back(struct sl_let_map *map, struct sl_let_atoms atoms)
{
        SL_ASSERT((map->taken & atoms.atoms) == atoms.atoms && map->percent >= atoms.percent);
        map->taken &= ~atoms.atoms;
        map->percent -= atoms.percent;
}

struct sl_let_atoms sl_let_map_take_again(struct sl_let_map *map, struct sl_let_atoms atoms)
{
        atoms.atoms &= ~map->taken;
        map->taken |= atoms.atoms;
        map->percent += atoms.percent;
        return atoms;
}
