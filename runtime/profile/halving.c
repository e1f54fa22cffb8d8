/* SPDX-License-Identifier: Apache-2.0 */
#include "halving.h"

#include "quantile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sl_halving_init(struct sl_halving *halving, uint32_t n)
{
        *halving = (struct sl_halving){.n = n};
}

static uint32_t n_left(const struct sl_halving *halving)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < halving->n; i++)
                n += !halving->is_out[i];
        return n;
}

static bool has_ended(const struct sl_halving *halving)
{
        uint32_t n = n_left(halving);

        return n == 0 || halving->turn == SL_HALVING_TURNS || (n == 1 && halving->turn >= SL_INTERVAL_MIN);
}

/* The next one of this turn that is not measured; @n: none. */
static uint32_t next_of_turn(const struct sl_halving *halving)
{
        for (uint32_t k = 0; k < halving->n; k++) {
                uint32_t i = halving->turn % 2 ? halving->n - 1 - k : k;

                if (!halving->is_out[i] && halving->n_scores[i] == halving->turn)
                        return i;
        }
        return halving->n;
}

bool sl_halving_next(const struct sl_halving *halving, uint32_t *ret_index)
{
        *ret_index = next_of_turn(halving);
        return !has_ended(halving);
}

static double median_of(const struct sl_halving *halving, uint32_t index)
{
        double sorted[SL_HALVING_TURNS];
        uint32_t n = halving->n_scores[index];

        memcpy(sorted, halving->scores[index], n * sizeof(*sorted));
        sl_quantile_sort(sorted, n);
        return sl_quantile(sorted, n, 0.5);
}

/* The low end of the interval of a - b; -INFINITY of too few turns. */
static double advantage(const struct sl_halving *halving, uint32_t a, uint32_t b)
{
        uint32_t n = halving->n_scores[a] < halving->n_scores[b] ? halving->n_scores[a] : halving->n_scores[b];
        double differences[SL_HALVING_TURNS];

        if (n < SL_INTERVAL_MIN)
                return -INFINITY;
        for (uint32_t i = 0; i < n; i++)
                differences[i] = halving->scores[a][i] - halving->scores[b][i];
        sl_quantile_sort(differences, n);
        return sl_interval_of_median(differences, n).low;
}

bool sl_halving_beats(const struct sl_halving *halving, uint32_t a, uint32_t b)
{
        return advantage(halving, a, b) > 0;
}

uint32_t sl_halving_best(const struct sl_halving *halving)
{
        uint32_t best = halving->n;

        for (uint32_t i = 0; i < halving->n; i++)
                if (!halving->is_out[i] && halving->n_scores[i] &&
                        (best == halving->n || median_of(halving, i) > median_of(halving, best)))
                        best = i;
        return best;
}

/* How many of those that are left have a better median than @index, or the same and stand before it. */
static uint32_t rank_of(const struct sl_halving *halving, uint32_t index)
{
        double median = median_of(halving, index);
        uint32_t rank = 0;

        for (uint32_t i = 0; i < halving->n; i++)
                if (!halving->is_out[i] && i != index)
                        rank += median_of(halving, i) > median || (i < index && median_of(halving, i) == median);
        return rank;
}

/* The first one, when each of the others beats it. */
static bool first_is_beaten(const struct sl_halving *halving)
{
        for (uint32_t i = 1; i < halving->n; i++)
                if (!halving->is_out[i] && !sl_halving_beats(halving, i, 0))
                        return false;
        return n_left(halving) > 1;
}

static void leave_out(struct sl_halving *halving)
{
        uint32_t best = sl_halving_best(halving), left = n_left(halving), keep = left / 2 + left % 2;
        bool goes[SL_HALVING_MAX] = {false};

        keep = keep < 2 ? 2 : keep;
        for (uint32_t i = 1; i < halving->n; i++)
                goes[i] = !halving->is_out[i] && i != best && (rank_of(halving, i) >= keep || advantage(halving, best, i) >= 0);
        for (uint32_t i = 1; i < halving->n; i++)
                halving->is_out[i] = halving->is_out[i] || goes[i];
        halving->is_out[0] = halving->is_out[0] || first_is_beaten(halving);
}

static bool is_look(uint32_t turn)
{
        for (uint32_t look = SL_HALVING_FIRST; look <= SL_HALVING_TURNS; look *= 2)
                if (look == turn)
                        return true;
        return false;
}

void sl_halving_take(struct sl_halving *halving, double score)
{
        uint32_t index = next_of_turn(halving);

        if (score == -INFINITY)
                halving->is_out[index] = true;
        else
                halving->scores[index][halving->n_scores[index]++] = score;
        if (next_of_turn(halving) < halving->n)
                return;
        halving->turn++;
        if (is_look(halving->turn))
                leave_out(halving);
}

uint32_t sl_halving_most(uint32_t n)
{
        uint32_t most = 0, left = n;

        for (uint32_t turn = 1; turn <= SL_HALVING_TURNS; turn++) {
                most += left;
                if (!is_look(turn))
                        continue;
                uint32_t keep = left / 2 + left % 2;
                left = left <= 2 ? left : (keep < 2 ? 2 : keep) + (keep < left);
        }
        return most;
}
