/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse_measure.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "plan.h"
#include "sample_ports.h"
#include "stop.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT    64
#define TURNS_MIN    3 /* what was timed less often is not known */
#define TURNS_MAX    31
#define SEPARATE_OF  3 /* this part of the budget is for plans in workspaces of their own */
#define LEAST_NUMBER 1e-30
#define NEIGHBOURS_MAX (4ull << 20) /* bytes: more than the caches of one core hold */

/* Of one way at one batch and occupancy. */
struct turns {
        uint32_t n;
        double seconds[TURNS_MAX];
};

struct row_turns {
        struct turns separate[SL_FUSE_OCCUPANCIES_MAX], one_job[SL_FUSE_OCCUPANCIES_MAX], merged[SL_FUSE_OCCUPANCIES_MAX];
};

struct bench {
        const struct sl_fuse_measure *measure;
        const struct sl_plan_info *info; /* of the merged plan */
        struct sl_instance *merged, *singles[SL_FUSE_LANES_MAX];
        struct sl_sample_ports ports, single_ports; /* of which the single plans read the former and write the latter */
        uint32_t first_input[SL_FUSE_LANES_MAX], first_output[SL_FUSE_LANES_MAX];
        void *room; /* that single plans share */
        unsigned char *neighbours; /* what is read before each run that is timed */
        uint64_t neighbour_bytes;
        uint32_t n_batches, batches[SL_FUSE_ROWS_MAX];
        struct row_turns *rows;
        uint64_t until_ns; /* 0: there is no bound yet */
};

static void bench_free(struct bench *bench)
{
        if (!bench)
                return;
        sl_instance_free(bench->merged);
        for (uint32_t i = 0; i < SL_FUSE_LANES_MAX; i++)
                sl_instance_free(bench->singles[i]);
        sl_sample_ports_deinit(&bench->ports);
        sl_sample_ports_deinit(&bench->single_ports);
        free(bench->room);
        free(bench->neighbours);
        free(bench->rows);
        free(bench);
}

static void cleanup_bench(struct bench **bench)
{
        bench_free(*bench);
}

/* ---- do they go together ---- */

static bool ports_agree(const struct sl_port *merged, const struct sl_port *single, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                if (merged[i].dtype != single[i].dtype || merged[i].batch_axis != single[i].batch_axis ||
                        sl_port_is_open(&single[i]) || merged[i].shape.rank != single[i].shape.rank ||
                        memcmp(merged[i].shape.dims, single[i].shape.dims, single[i].shape.rank * sizeof(*single[i].shape.dims)))
                        return false;
        return true;
}

/* The plan comes from whoever has read hostile models: its ports are taken for nobody's word. */
static int assign_ports(struct bench *bench, struct sl_error *error)
{
        const struct sl_fuse_measure *measure = bench->measure;
        uint32_t n_inputs = 0, n_outputs = 0;

        for (uint32_t l = 0; l < measure->n_lanes; l++) {
                const struct sl_plan_info *single = sl_plan_info(measure->singles[l]);

                bench->first_input[l] = n_inputs;
                bench->first_output[l] = n_outputs;
                if (n_inputs + single->n_inputs > bench->info->n_inputs || n_outputs + single->n_outputs > bench->info->n_outputs ||
                        single->batchable != bench->info->batchable ||
                        !ports_agree(bench->info->inputs + n_inputs, single->inputs, single->n_inputs) ||
                        !ports_agree(bench->info->outputs + n_outputs, single->outputs, single->n_outputs))
                        return sl_error_set(
                                error, EINVAL, "merged plan: its ports for lane %u are not those of \"%s\"", l, single->name);
                n_inputs += single->n_inputs;
                n_outputs += single->n_outputs;
        }
        if (n_inputs == bench->info->n_inputs && n_outputs == bench->info->n_outputs && !sl_plan_is_dynamic(measure->merged))
                return 0;
        return sl_error_set(error, EINVAL, "merged plan: it has %u inputs and %u outputs, its %u lanes have %u and %u",
                bench->info->n_inputs, bench->info->n_outputs, measure->n_lanes, n_inputs, n_outputs);
}

static bool has_batch(const struct sl_plan *plan, uint32_t batch)
{
        const struct sl_plan_info *info = sl_plan_info(plan);

        for (uint32_t i = 0; i < info->n_batches; i++)
                if (info->batches[i] == batch)
                        return true;
        return false;
}

static bool all_have_batch(const struct sl_fuse_measure *measure, uint32_t batch)
{
        bool have = !measure->batch_max || batch <= measure->batch_max;

        for (uint32_t l = 0; l < measure->n_lanes; l++)
                have = have && has_batch(measure->singles[l], batch);
        return have;
}

/* The smallest and the largest that all plans have, and what lies evenly between. */
static uint32_t choose_batches(const struct sl_fuse_measure *measure, uint32_t *ret_batches)
{
        const struct sl_plan_info *info = sl_plan_info(measure->merged);
        uint32_t all[SL_PLAN_BATCHES_MAX], n_all = 0, n = 0;

        for (uint32_t i = 0; i < info->n_batches; i++)
                if (all_have_batch(measure, info->batches[i]))
                        all[n_all++] = info->batches[i];
        for (uint32_t i = 0; i < n_all; i++)
                if (n_all <= SL_FUSE_ROWS_MAX || n * (n_all - 1) / (SL_FUSE_ROWS_MAX - 1) == i)
                        ret_batches[n++] = all[i];
        return n;
}

/* ---- runs ---- */

static int run_instance(
        const struct bench *bench, struct sl_instance *instance, uint32_t batch, void *const *inputs, void *const *outputs)
{
        sl_instance_watch(instance, &(struct sl_stop){.verdict = bench->measure->verdict, .deadline_ns = bench->until_ns});
        return sl_instance_run(instance, batch, (const void *const *)inputs, outputs);
}

static int run_merged(const struct bench *bench, uint32_t batch)
{
        return run_instance(bench, bench->merged, batch, bench->ports.inputs, bench->ports.outputs);
}

static int run_singles(const struct bench *bench, uint32_t n, uint32_t batch)
{
        int r = 0;

        for (uint32_t l = 0; l < n && r == 0; l++)
                r = run_instance(bench, bench->singles[l], batch, (void *const *)bench->ports.inputs + bench->first_input[l],
                        (void *const *)bench->single_ports.outputs + bench->first_output[l]);
        return r;
}

/* ---- do they make the same ---- */

/* As a share of the largest value of @wanted. */
static double float_difference(const float *got, const float *wanted, uint64_t n)
{
        double worst = 0, largest = LEAST_NUMBER;

        for (uint64_t i = 0; i < n; i++) {
                if (isnan(wanted[i]) && isnan(got[i]))
                        continue;
                worst = fmax(worst, isnan(got[i]) || isnan(wanted[i]) ? INFINITY : fabs((double)got[i] - wanted[i]));
                largest = fmax(largest, fabs((double)wanted[i]));
        }
        return worst / largest;
}

/* Infinite where they differ and are no float32. */
static double difference(const struct sl_port *port, uint32_t batch, const void *got, const void *wanted)
{
        struct sl_tensor tensor = {.dtype = port->dtype, .shape = port->shape};

        if (port->batch_axis == 0)
                tensor.shape.dims[0] = batch;
        if (port->dtype == SL_DTYPE_F32)
                return float_difference(got, wanted, sl_shape_elements(&tensor.shape));
        return memcmp(got, wanted, sl_tensor_bytes(&tensor)) == 0 ? 0 : INFINITY;
}

static int compare(const struct bench *bench, uint32_t batch, struct sl_fuse_table *table, struct sl_error *error)
{
        for (uint32_t i = 0; i < bench->info->n_outputs; i++) {
                const struct sl_port *port = &bench->info->outputs[i];
                double off = difference(port, batch, bench->ports.outputs[i], bench->single_ports.outputs[i]);

                if (!(off <= SL_FUSE_DIFFERENCE_MAX))
                        return sl_error_set(error, EBADMSG,
                                "merged plan: its output \"%s\" is %.1e of its largest value off the single plan's at batch %u, "
                                "%.0e is allowed",
                                port->name, off, batch, SL_FUSE_DIFFERENCE_MAX);
                table->difference = fmax(table->difference, off);
        }
        return 0;
}

static int check_batch(const struct bench *bench, uint32_t batch, struct sl_fuse_table *table, struct sl_error *error)
{
        int r = run_merged(bench, batch);

        if (r < 0)
                return sl_error_set(error, -r, "merged plan: it does not run at batch %u: %s", batch, strerror(-r));
        r = run_singles(bench, bench->measure->n_lanes, batch);
        if (r < 0)
                return sl_error_set(
                        error, -r, "merged plan: a single plan beside it does not run at batch %u: %s", batch, strerror(-r));
        return compare(bench, batch, table, error);
}

/* ---- what they take ---- */

/* As if each of the others had just run: by itself a block of few lanes would find all its weights in the nearest cache. */
static uint64_t begin(const struct bench *bench)
{
        const volatile unsigned char *neighbours = bench->neighbours;

        for (uint64_t i = 0; i < bench->neighbour_bytes; i += SL_LINE_BYTES)
                (void)neighbours[i];
        return sl_clock_ns();
}

static void note(struct turns *turns, uint64_t from_ns)
{
        turns->seconds[turns->n++] = (double)(sl_clock_ns() - from_ns) / SL_NS_PER_SECOND;
}

/* The fullest first, so that where there are no others the fewer ones find what the many have left in the caches. */
static int time_singles(const struct bench *bench, const struct sl_fuse_table *table, uint32_t batch, struct turns *turns)
{
        for (uint32_t i = table->n_occupancies; i-- > 0;) {
                uint64_t from = begin(bench);
                int r = run_singles(bench, table->occupied[i], batch);

                if (r < 0)
                        return r;
                note(&turns[i], from);
        }
        return 0;
}

static uint64_t idle_lanes(const struct sl_fuse_table *table, uint32_t occupied)
{
        uint64_t all = table->n_lanes < 64 ? (UINT64_C(1) << table->n_lanes) - 1 : UINT64_MAX;

        return occupied < table->n_lanes ? all & ~((UINT64_C(1) << occupied) - 1) : 0;
}

/* Where no step leaves idle lanes out, all of them are one way. */
static int time_merged(const struct bench *bench, const struct sl_fuse_table *table, uint32_t batch, struct turns *turns)
{
        uint32_t all = table->n_occupancies - 1;

        for (uint32_t i = table->n_occupancies; i-- > 0;) {
                bool skips = sl_instance_idle(bench->merged, idle_lanes(table, table->occupied[i]));
                uint64_t from;
                int r;

                if (!skips && i != all) {
                        turns[i] = turns[all];
                        continue;
                }
                from = begin(bench);
                r = run_merged(bench, batch);
                if (r < 0)
                        return r;
                note(&turns[i], from);
        }
        return 0;
}

static int turn_separate(const struct bench *bench, const struct sl_fuse_table *table, uint32_t i)
{
        return time_singles(bench, table, bench->batches[i], bench->rows[i].separate);
}

static int turn_shared(const struct bench *bench, const struct sl_fuse_table *table, uint32_t i)
{
        int r = time_singles(bench, table, bench->batches[i], bench->rows[i].one_job);

        return r < 0 ? r : time_merged(bench, table, bench->batches[i], bench->rows[i].merged);
}

/*
 * Each batch has an equal part of what is left of the time, but three turns as long as there is any. Return: 0; what a run says.
 */
static int take_turns(struct bench *bench, const struct sl_fuse_table *table, uint64_t until_ns,
        int (*turn)(const struct bench *bench, const struct sl_fuse_table *table, uint32_t i))
{
        bench->until_ns = until_ns;
        for (uint32_t i = 0; i < bench->n_batches; i++) {
                uint64_t now = sl_clock_ns(), left = now < until_ns ? until_ns - now : 0;
                uint32_t n = 0;
                int r = 0;

                for (; r == 0 && n < TURNS_MAX && (n < TURNS_MIN || sl_clock_ns() < now + left / (bench->n_batches - i)); n++)
                        r = turn(bench, table, i);
                if (r < 0 && r != -ETIME)
                        return r;
        }
        return 0;
}

static int by_size(const void *a, const void *b)
{
        double left = *(const double *)a, right = *(const double *)b;

        return (left > right) - (left < right);
}

static double median(struct turns *turns)
{
        qsort(turns->seconds, turns->n, sizeof(*turns->seconds), by_size);
        return (turns->seconds[(turns->n - 1) / 2] + turns->seconds[turns->n / 2]) / 2;
}

/* What was measured at one batch; false: not all of it. */
static bool fill_row(const struct sl_fuse_table *table, struct row_turns *turns, struct sl_fuse_row *row)
{
        if (turns->merged[0].n < TURNS_MIN || turns->separate[0].n < TURNS_MIN)
                return false;
        for (uint32_t i = 0; i < table->n_occupancies; i++) {
                row->separate[i] = median(&turns->separate[i]);
                row->one_job[i] = median(&turns->one_job[i]);
                row->merged[i] = median(&turns->merged[i]);
        }
        row->n_turns = turns->merged[0].n;
        return true;
}

static int share_room(struct bench *bench)
{
        const struct sl_fuse_measure *measure = bench->measure;
        uint32_t batch_max = bench->batches[bench->n_batches - 1];
        uint64_t bytes = ALIGNMENT;

        for (uint32_t l = 0; l < measure->n_lanes; l++) {
                uint64_t own = sl_plan_workspace_bytes(measure->singles[l], batch_max);

                bytes = own > bytes ? own : bytes;
        }
        bench->room = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
        if (!bench->room)
                return -ENOMEM;
        memset(bench->room, 0, bytes);
        for (uint32_t l = 0; l < measure->n_lanes; l++)
                sl_instance_move(bench->singles[l], bench->room);
        return 0;
}

static int make_neighbours(struct bench *bench)
{
        uint64_t bytes = bench->measure->neighbour_bytes;

        bench->neighbour_bytes = bytes < NEIGHBOURS_MAX ? bytes : NEIGHBOURS_MAX;
        bench->neighbours = malloc(bench->neighbour_bytes + 1);
        if (!bench->neighbours)
                return -ENOMEM;
        memset(bench->neighbours, 1, bench->neighbour_bytes); /* pages of its own: all of zeros would be one */
        return 0;
}

static int time_all(struct bench *bench, struct sl_fuse_table *table, struct sl_error *error)
{
        uint64_t budget = bench->measure->budget_ns, begun = sl_clock_ns();
        int r = make_neighbours(bench);

        if (r == 0)
                r = take_turns(bench, table, begun + budget / SEPARATE_OF, turn_separate);
        if (r == 0)
                r = share_room(bench);
        if (r == 0)
                r = take_turns(bench, table, begun + budget, turn_shared);
        for (uint32_t i = 0; r == 0 && i < bench->n_batches; i++) {
                struct sl_fuse_row *row = &table->rows[table->n_rows];

                row->batch = bench->batches[i];
                if (!fill_row(table, &bench->rows[i], row))
                        break;
                table->n_rows++;
        }
        if (r == 0 && table->n_rows)
                return 0;
        if (r == 0)
                return sl_error_set(error, ETIME, "merged plan: %u lanes of it cannot be timed %d times in %llu ms",
                        bench->measure->n_lanes, TURNS_MIN, (unsigned long long)(budget / SL_NS_PER_MS));
        return sl_error_set(error, -r, "merged plan: while it is timed: %s", strerror(-r));
}

/* ---- all of it ---- */

static int make_instances(struct bench *bench, struct sl_error *error)
{
        const struct sl_fuse_measure *measure = bench->measure;
        uint32_t batch_max = bench->batches[bench->n_batches - 1];
        int r = sl_instance_new(measure->merged, batch_max, &bench->merged, error);

        for (uint32_t l = 0; l < measure->n_lanes && r == 0; l++)
                r = sl_instance_new(measure->singles[l], batch_max, &bench->singles[l], error);
        return r;
}

/* @n_batches: at most so many of the sizes that there are. */
static int bench_new(const struct sl_fuse_measure *measure, uint32_t n_batches, struct bench **ret_bench, struct sl_error *error)
{
        SL_CLEANUP(cleanup_bench) struct bench *bench = calloc(1, sizeof(*bench));
        int r;

        if (!bench)
                return sl_error_set(error, ENOMEM, "no memory for %zu bytes", sizeof(*bench));
        bench->measure = measure;
        bench->info = sl_plan_info(measure->merged);
        r = assign_ports(bench, error);
        if (r < 0)
                return r;
        bench->n_batches = choose_batches(measure, bench->batches);
        if (!bench->n_batches)
                return sl_error_set(error, EINVAL, "merged plan: it has no batch that all of its %u lanes have", measure->n_lanes);
        bench->n_batches = bench->n_batches < n_batches ? bench->n_batches : n_batches;
        bench->rows = calloc(bench->n_batches, sizeof(*bench->rows));
        if (!bench->rows || sl_sample_ports_init(&bench->ports, bench->info, bench->batches[bench->n_batches - 1]) < 0 ||
                sl_sample_ports_init(&bench->single_ports, bench->info, bench->batches[bench->n_batches - 1]) < 0)
                return sl_error_set(error, ENOMEM, "no memory for the ports of %u lanes", measure->n_lanes);
        r = make_instances(bench, error);
        if (r < 0)
                return r;
        *ret_bench = sl_take(bench);
        return 0;
}

int sl_fuse_check(const struct sl_fuse_measure *measure, struct sl_fuse_table *ret_table, struct sl_error *error)
{
        SL_CLEANUP(cleanup_bench) struct bench *bench = NULL;
        struct sl_fuse_table table;
        int r = bench_new(measure, 1, &bench, error);

        sl_fuse_table_init(&table, measure->n_lanes);
        if (r == 0)
                r = check_batch(bench, bench->batches[0], &table, error);
        if (r == 0)
                *ret_table = table;
        return r;
}

int sl_fuse_measure(const struct sl_fuse_measure *measure, struct sl_fuse_table *ret_table, struct sl_error *error)
{
        SL_CLEANUP(cleanup_bench) struct bench *bench = NULL;
        struct sl_fuse_table table;
        int r = bench_new(measure, SL_FUSE_ROWS_MAX, &bench, error);

        sl_fuse_table_init(&table, measure->n_lanes);
        for (uint32_t i = 0; r == 0 && i < bench->n_batches; i++)
                r = check_batch(bench, bench->batches[i], &table, error);
        if (r == 0)
                r = time_all(bench, &table, error);
        if (r == 0)
                *ret_table = table;
        return r;
}
