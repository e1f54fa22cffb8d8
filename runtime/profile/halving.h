/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of several is best, by scores that are measured in turns: what changes on the machine meanwhile meets all alike. In a turn
 * each that is left is measured once, in every other turn from the last to the first.
 *
 *     turns 3, 6, 12, 24    the better half goes on, by the median of its scores, but never fewer than two; left out as well is
 *                           what the best one beats, and what is only as good (an interval from 0 on)
 *     end                   one is left and has at least SL_INTERVAL_MIN turns, or SL_HALVING_TURNS are over
 *
 * One beats another where the 95 % interval of the median of the differences of their scores, turn by turn, lies above 0. Three
 * looks, each one-sided at 1.1 to 1.9 %: of two that are alike one is taken for the better one in fewer than 5 of 100.
 *
 * The first candidate is what there is already. It stays until all that are left beat it, so that the answer is compared with it in
 * as many turns as that takes. Pure; one owner.
 *
 * Sources: Z. Karnin, T. Koren, O. Somekh, "Almost optimal exploration in multi-armed bandits", 2013 (sequential halving).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_HALVING_MAX   72u /* candidates */
#define SL_HALVING_FIRST 3u  /* turns before the first look */
#define SL_HALVING_TURNS 24u

struct sl_halving {
        uint32_t n, turn; /* candidates; turns that are over */
        bool is_out[SL_HALVING_MAX];
        uint32_t n_scores[SL_HALVING_MAX];
        double scores[SL_HALVING_MAX][SL_HALVING_TURNS];
};

/* @n: 1 to SL_HALVING_MAX. */
void sl_halving_init(struct sl_halving *halving, uint32_t n);

/* Which one to measure now; false: it has ended. */
bool sl_halving_next(const struct sl_halving *halving, uint32_t *ret_index);

/* Its score, of the one that sl_halving_next() named: larger is better. -INFINITY: it cannot be measured, and is left out. */
void sl_halving_take(struct sl_halving *halving, double score);

/* The best by the median among those that are left; @n where there is none. */
uint32_t sl_halving_best(const struct sl_halving *halving);

/* In the turns that both had. Both have had one. */
bool sl_halving_beats(const struct sl_halving *halving, uint32_t a, uint32_t b);

/* Measurements at most, of @n candidates of which the first one stays to the end. */
uint32_t sl_halving_most(uint32_t n);
