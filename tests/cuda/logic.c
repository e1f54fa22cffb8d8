/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker of a GPU decides without one: lets, launches of a job, slots, memory. */
#include "base/error.h"
#include "base/split_mix.h"
#include "flight.h"
#include "gpu_memory.h"
#include "graph_ports.h"
#include "job_cuts.h"
#include "let_map.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

Test(let_map, gives_whole_atoms_as_near_as_they_come)
{
        static const struct {
                uint32_t n_processors, atom, percent, atoms;
        } rows[] = {{132, 8, 100, 16}, {132, 8, 50, 8}, {132, 8, 25, 4}, {132, 8, 20, 3}, {132, 8, 1, 1}, {108, 2, 50, 27},
                {108, 4, 33, 9}, {8, 8, 10, 1}};

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct sl_let_map map;

                cr_assert_eq(sl_let_map_init(&map, rows[i].n_processors, rows[i].atom), 0);
                cr_assert_eq(sl_let_map_atoms(&map, rows[i].percent), rows[i].atoms, "row %zu", i);
        }
}

/* However each of them is rounded. */
Test(let_map, has_room_for_lets_of_the_whole_device)
{
        for (uint32_t atom = 2; atom <= 8; atom += 2)
                for (uint32_t n = 2; n <= 16; n++)
                        for (uint64_t seed = 1; seed <= 200; seed++) {
                                uint64_t random = seed;
                                uint32_t left = 100;
                                struct sl_let_map map;

                                cr_assert_eq(sl_let_map_init(&map, 16 * atom, atom), 0);
                                for (uint32_t i = 0; i < n; i++) {
                                        uint32_t most = left - 7 * (n - 1 - i); /* 16 atoms: one is 6.25 % */
                                        uint32_t percent =
                                                i + 1 == n ? left : 7 + (uint32_t)sl_split_mix_next(&random) % (most - 6);
                                        struct sl_let_atoms atoms;
                                        struct sl_error error = {""};

                                        if (7 * n > 100)
                                                break;
                                        cr_assert_eq(sl_let_map_take(&map, percent, &atoms, &error), 0, "let %u of %u: %s", i, n,
                                                error.text);
                                        left -= percent;
                                }
                                if (7 * n <= 100)
                                        cr_assert_eq(__builtin_popcountll(map.taken), 16);
                        }
}

Test(let_map, refuses_a_device_that_it_cannot_cut)
{
        struct sl_let_map map;

        cr_assert_eq(sl_let_map_init(&map, 4, 8), -EINVAL);
        cr_assert_eq(sl_let_map_init(&map, 132, 0), -EINVAL);
        cr_assert_eq(sl_let_map_init(&map, 132, 2), -EINVAL);
}

Test(let_map, says_what_is_left_when_that_is_too_little)
{
        struct sl_let_map map;
        struct sl_error error = {""};
        struct sl_let_atoms a, b, again;

        cr_assert_eq(sl_let_map_init(&map, 132, 8), 0);
        cr_assert_eq(sl_let_map_take(&map, 60, &a, &error), 0);
        cr_assert_eq(sl_let_map_take(&map, 60, &b, &error), -EBUSY);
        cr_assert_str_eq(
                error.text, "60% of the device are 72 multiprocessors, and its other lets leave 48 of 128 that lets can have");
        sl_let_map_give_back(&map, a);
        cr_assert_eq(sl_let_map_take(&map, 80, &b, &error), 0, "a let that grows may have what it had");
        cr_assert_eq(__builtin_popcountll(b.atoms), 13);
        cr_assert_eq(map.taken, b.atoms);
        cr_assert_eq(map.percent, 80);
        again = sl_let_map_take_again(&map, a);
        cr_assert_eq(again.atoms, 0, "all of it is another's by now");
        cr_assert_eq(map.taken, b.atoms);
        sl_let_map_give_back(&map, again);
        sl_let_map_give_back(&map, b);
        again = sl_let_map_take_again(&map, a);
        cr_assert_eq(again.atoms, a.atoms);
        cr_assert_eq(map.taken, a.atoms);
        cr_assert_eq(map.percent, 60);
}

/* No atom is ever two lets', and what is given back can be taken. */
Test(let_map, never_gives_an_atom_twice)
{
        for (uint64_t seed = 1; seed <= 50; seed++) {
                struct sl_let_atoms lets[8] = {{0}};
                uint64_t random = seed;
                struct sl_let_map map;

                cr_assert_eq(sl_let_map_init(&map, 132, 8), 0);
                for (uint32_t round = 0; round < 200; round++) {
                        struct sl_let_atoms atoms = {0};
                        uint64_t chance = sl_split_mix_next(&random), others = 0;
                        uint32_t let = (uint32_t)chance % 8, percent = 1 + (uint32_t)(chance >> 8) % 60;

                        for (uint32_t i = 0; i < 8; i++)
                                others |= i == let ? 0 : lets[i].atoms;
                        sl_let_map_give_back(&map, lets[let]);
                        if (chance >> 63 && lets[let].atoms) {
                                lets[let] = (struct sl_let_atoms){0};
                        } else if (sl_let_map_take(&map, percent, &atoms, NULL) == 0) {
                                uint32_t n = (uint32_t)__builtin_popcountll(atoms.atoms);

                                cr_assert_eq(atoms.atoms & others, 0);
                                cr_assert(
                                        n && n >= 16 * percent / 100 && n <= (16 * percent + 99) / 100, "%u of %u %%", n, percent);
                                lets[let] = atoms;
                        } else {
                                cr_assert_lt(16 - (uint32_t)__builtin_popcountll(others), (16 * percent + 99) / 100);
                                cr_assert_eq(sl_let_map_take_again(&map, lets[let]).atoms, lets[let].atoms);
                        }
                        cr_assert_eq(map.taken, others | lets[let].atoms);
                }
        }
}

/* Every sample of a job is in one launch and in one place of it, in order. */
Test(job_cuts, tell_each_sample_once)
{
        static const uint32_t sizes[] = {1, 2, 4, 8};
        uint64_t random = 1;

        for (uint32_t round = 0; round < 2000; round++) {
                uint32_t samples[6], n = 1 + (uint32_t)sl_split_mix_next(&random) % 6, total = 0, done = 0, piece = 0, at = 0;
                struct sl_job_walk walk = {0};

                for (uint32_t i = 0; i < n; i++)
                        total += samples[i] = 1 + (uint32_t)sl_split_mix_next(&random) % 9;
                while (done < total) {
                        uint32_t launch = sl_job_cut(sizes, 4, total - done), in_launch = 0;
                        struct sl_job_fragment fragment = {0};

                        cr_assert(launch == 8 || 2 * launch > total - done);
                        while (sl_job_walk_next(&walk, samples, launch, &fragment)) {
                                if (at == samples[piece]) {
                                        piece++;
                                        at = 0;
                                }
                                cr_assert_eq(fragment.piece, piece);
                                cr_assert_eq(fragment.in_piece, at);
                                cr_assert_eq(fragment.in_launch, in_launch);
                                cr_assert_gt(fragment.samples, 0);
                                at += fragment.samples;
                                in_launch += fragment.samples;
                        }
                        cr_assert_eq(in_launch, launch);
                        done += launch;
                }
                cr_assert(piece == n - 1 && at == samples[piece]);
        }
}

Test(job_cuts, say_when_no_size_is_small_enough)
{
        static const uint32_t sizes[] = {4, 8};

        cr_assert_eq(sl_job_cut(sizes, 2, 3), 0);
        cr_assert_eq(sl_job_cut(sizes, 2, 100), 8);
}

Test(graph_ports, that_have_moved_are_named)
{
        struct sl_graph_ports ports = {.n = 3, .at = {10, 20, 30}};
        uint64_t wanted[] = {10, 21, 31, 99};

        cr_assert_eq(sl_graph_ports_differ(&ports, wanted), 6);
        wanted[1] = 20, wanted[2] = 30;
        cr_assert_eq(sl_graph_ports_differ(&ports, wanted), 0);
}

/* Slots end in any order; numbers of a slot grow; the walk goes in the order of the launches. */
Test(flight, ends_in_any_order)
{
        uint64_t random = 7, before[5] = {0};
        struct sl_flight flight;

        cr_assert_eq(sl_flight_init(&flight, 0), -EINVAL);
        cr_assert_eq(sl_flight_init(&flight, SL_FLIGHT_SLOTS_MAX + 1), -EINVAL);
        cr_assert_eq(sl_flight_init(&flight, 5), 0);
        for (uint32_t round = 0; round < 5000; round++) {
                uint32_t slot = (uint32_t)sl_split_mix_next(&random) % 5, n_busy = (uint32_t)__builtin_popcount(flight.busy), n = 0;
                uint64_t last = 0;

                if (flight.busy & 1u << slot && round % 2) {
                        sl_flight_end(&flight, slot);
                } else {
                        int begun = sl_flight_begin(&flight);

                        cr_assert_eq(begun < 0, n_busy == 5);
                        if (begun >= 0) {
                                cr_assert_gt(flight.numbers[begun], before[begun]);
                                before[begun] = flight.numbers[begun];
                        }
                }
                for (int s = sl_flight_next(&flight, -1); s >= 0; s = sl_flight_next(&flight, s), n++) {
                        cr_assert_gt(flight.numbers[s], last);
                        last = flight.numbers[s];
                }
                cr_assert_eq(n, (uint32_t)__builtin_popcount(flight.busy));
        }
}

Test(gpu_memory, refuses_by_one_line_and_goes_on)
{
        struct sl_gpu_memory memory = {.device = "gpu:0 (Fake 0)", .limit = 1000};
        struct sl_error error = {""};

        cr_assert_eq(sl_gpu_memory_take(&memory, SL_GPU_WEIGHTS, 600, UINT64_MAX, "a", &error), 0);
        cr_assert_eq(sl_gpu_memory_take(&memory, SL_GPU_WORKSPACES, 401, UINT64_MAX, "b", &error), -ENOMEM);
        cr_assert_str_eq(error.text, "model \"b\": 401 bytes for its workspaces are wanted on gpu:0 (Fake 0), 400 are free: 600 of "
                                     "its bound of 1000 are in "
                                     "use (weights 600, workspaces 0, ports 0, pools 0, accumulation 0)");
        cr_assert_eq(
                sl_gpu_memory_take(&memory, SL_GPU_POOLS, 300, 299, "b", &error), -ENOMEM, "the device has less than the bound");
        cr_assert_eq(sl_gpu_memory_take(&memory, SL_GPU_WORKSPACES, 400, 400, "b", &error), 0);
        sl_gpu_memory_give_back(&memory, SL_GPU_WEIGHTS, 600);
        cr_assert_eq(sl_gpu_memory_used(&memory), 400);
}
