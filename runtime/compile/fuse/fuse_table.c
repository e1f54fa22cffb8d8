/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse_table.h"

#include <math.h>
#include <string.h>

void sl_fuse_table_init(struct sl_fuse_table *table, uint32_t n_lanes)
{
        const uint32_t wanted[SL_FUSE_OCCUPANCIES_MAX] = {1, n_lanes / 4, n_lanes / 2, n_lanes};

        memset(table, 0, sizeof(*table));
        table->n_lanes = n_lanes;
        for (uint32_t i = 0; i < SL_FUSE_OCCUPANCIES_MAX; i++)
                if (!table->n_occupancies || wanted[i] > table->occupied[table->n_occupancies - 1])
                        table->occupied[table->n_occupancies++] = wanted[i];
}

static bool is_time(double seconds)
{
        return isfinite(seconds) && seconds > 0;
}

static bool row_is_sound(const struct sl_fuse_table *table, const struct sl_fuse_row *row)
{
        bool sound = row->batch && row->n_turns;

        for (uint32_t i = 0; i < table->n_occupancies; i++)
                sound = sound && is_time(row->separate[i]) && is_time(row->one_job[i]) && is_time(row->merged[i]);
        return sound;
}

static bool ascends(const uint32_t *numbers, uint32_t n, size_t stride)
{
        for (uint32_t i = 1; i < n; i++)
                if (numbers[i * stride] <= numbers[(i - 1) * stride])
                        return false;
        return true;
}

bool sl_fuse_table_is_sound(const struct sl_fuse_table *table)
{
        struct sl_fuse_table fresh;

        if (table->n_lanes < 2 || table->n_lanes > SL_FUSE_LANES_MAX || !table->n_rows || table->n_rows > SL_FUSE_ROWS_MAX)
                return false;
        sl_fuse_table_init(&fresh, table->n_lanes);
        if (table->n_occupancies != fresh.n_occupancies || memcmp(table->occupied, fresh.occupied, sizeof(fresh.occupied)) != 0)
                return false;
        for (uint32_t i = 0; i < table->n_rows; i++)
                if (!row_is_sound(table, &table->rows[i]))
                        return false;
        return ascends(&table->rows[0].batch, table->n_rows, sizeof(*table->rows) / sizeof(uint32_t)) &&
               isfinite(table->difference);
}

/* That of the smallest batch which is not below @samples: a tail runs in smaller pieces, which take no longer. NULL: there is none.
 */
static const struct sl_fuse_row *row_of(const struct sl_fuse_table *table, uint32_t samples)
{
        for (uint32_t i = 0; i < table->n_rows; i++)
                if (table->rows[i].batch >= samples)
                        return &table->rows[i];
        return NULL;
}

/* On the line between the measured occupancies around @lanes. */
static double between(const struct sl_fuse_table *table, const double *seconds, uint32_t lanes)
{
        const uint32_t *occupied = table->occupied;
        uint32_t above = 1;

        if (table->n_occupancies == 1 || lanes <= occupied[0])
                return seconds[0] * lanes / occupied[0];
        while (above + 1 < table->n_occupancies && occupied[above] < lanes)
                above++;
        return seconds[above - 1] + (seconds[above] - seconds[above - 1]) * ((double)lanes - occupied[above - 1]) /
                                            (occupied[above] - occupied[above - 1]);
}

double sl_fuse_one_job_seconds(const struct sl_fuse_table *table, uint32_t lanes, uint32_t samples)
{
        const struct sl_fuse_row *row = row_of(table, samples);

        return row ? between(table, row->one_job, lanes) : INFINITY;
}

double sl_fuse_separate_seconds(const struct sl_fuse_table *table, uint32_t lanes, uint32_t samples)
{
        const struct sl_fuse_row *row = row_of(table, samples);

        return row ? between(table, row->separate, lanes) : INFINITY;
}

/* However few are occupied, some of the plan runs. */
static double merged_between(const struct sl_fuse_table *table, const struct sl_fuse_row *row, uint32_t lanes)
{
        return lanes <= table->occupied[0] ? row->merged[0] : between(table, row->merged, lanes);
}

double sl_fuse_merged_seconds(const struct sl_fuse_table *table, uint32_t lanes, uint32_t samples)
{
        const struct sl_fuse_row *row = row_of(table, samples);

        return row ? merged_between(table, row, lanes) : INFINITY;
}

uint32_t sl_fuse_least_lanes(const struct sl_fuse_table *table, uint32_t samples)
{
        const struct sl_fuse_row *row = row_of(table, samples);
        uint32_t least = table->n_lanes + 1;

        while (row && least > 1 &&
                merged_between(table, row, least - 1) <= (1 - SL_FUSE_LEAST_GAIN) * between(table, row->one_job, least - 1))
                least--;
        return least > table->n_lanes ? SL_FUSE_NEVER : least;
}

double sl_fuse_gain(const struct sl_fuse_table *table)
{
        uint32_t all = table->n_occupancies - 1;

        return table->n_rows ? table->rows[0].one_job[all] / table->rows[0].merged[all] : 0;
}

static double log_choose(uint32_t n, uint32_t k)
{
        double sum = 0;

        for (uint32_t i = 1; i <= k; i++)
                sum += log((double)(n - k + i) / i);
        return sum;
}

/* That @lanes of the table's are occupied when @occupied of @n_models are (hypergeometric). */
static double chance(const struct sl_fuse_table *table, uint32_t n_models, uint32_t occupied, uint32_t lanes)
{
        uint32_t others = n_models - table->n_lanes;

        if (lanes > occupied || occupied - lanes > others)
                return 0;
        return exp(log_choose(table->n_lanes, lanes) + log_choose(others, occupied - lanes) - log_choose(n_models, occupied));
}

/* How it is used: from @least lanes on, of which no more than @most wait at a time. */
struct use {
        uint32_t least, most;
};

static double gain_at(const struct sl_fuse_table *table, uint32_t n_models, uint32_t occupied, struct use use)
{
        const struct sl_fuse_row *row = &table->rows[0];
        double one_job = 0, cheaper = 0;

        for (uint32_t lanes = 1; lanes <= table->n_lanes; lanes++) {
                uint32_t there = lanes < use.most ? lanes : use.most;
                double share = chance(table, n_models, occupied, lanes), apart = between(table, row->one_job, there);

                one_job += share * apart;
                cheaper += share * (there >= use.least ? merged_between(table, row, there) : apart);
        }
        return one_job / cheaper;
}

/* @fewest: with fewer lanes it is not taken, whatever it gains. */
static double gain_among(const struct sl_fuse_table *table, uint32_t n_models, uint32_t fewest)
{
        const uint32_t parts[] = {8, 4, 2, 1};
        double sum = 0;
        uint32_t n = 0, least;

        if (!table->n_rows)
                return 0;
        least = sl_fuse_least_lanes(table, table->rows[0].batch);
        for (uint32_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
                uint32_t occupied = n_models / parts[i];

                if (!occupied)
                        continue;
                sum += log(gain_at(table, n_models, occupied, (struct use){least > fewest ? least : fewest, (occupied + 1) / 2}));
                n++;
        }
        return exp(sum / n);
}

double sl_fuse_gain_among(const struct sl_fuse_table *table, uint32_t n_models)
{
        return gain_among(table, n_models, 1);
}

uint32_t sl_fuse_fewest_inline(uint32_t n_lanes)
{
        return n_lanes / 2 + 1;
}

double sl_fuse_worth(const struct sl_fuse_table *table, uint32_t n_models, uint64_t short_ns)
{
        double gain = sl_fuse_gain_among(table, n_models);

        if (!table->n_rows || !short_ns)
                return gain;
        if (1e9 * sl_fuse_merged_seconds(table, table->n_lanes, table->rows[0].batch) > (double)short_ns)
                return gain / SL_FUSE_LANES_MAX;
        return gain_among(table, n_models, sl_fuse_fewest_inline(table->n_lanes));
}
