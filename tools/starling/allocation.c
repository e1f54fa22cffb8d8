/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling allocation show|check`: an allocation matrix as a table, and what is wrong with it. Reads files only.
 */
#include "allocation_bench.h"
#include "allocation_file.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/value.h"
#include "command.h"
#include "command_options.h"
#include "costs_file.h"
#include "problem.h"
#include "simulated_bench.h"

#include <stdio.h>
#include <string.h>

enum { OPTIONS = OPTIONS_BEGIN, ALLOCATION_OPTIONS(OPTION_ID) };

SL_DEFINE_CLEANUP(struct sl_costs *, sl_costs_free)
SL_DEFINE_CLEANUP(struct sl_matrix *, sl_matrix_free)
SL_DEFINE_CLEANUP(struct sl_allocation *, sl_allocation_free)
SL_DEFINE_CLEANUP(struct sl_bench *, sl_bench_free)

struct wish {
        const char *action, *file, *costs;
        double headroom;
};

static int parse(int argc, char **argv, struct wish *ret_wish, struct sl_error *error)
{
        static const struct option options[] = {ALLOCATION_OPTIONS(OPTION_GETOPT){0}};
        char wish[SL_WISH_BYTES];

        for (int option; (option = next_option(argc, argv, options)) != -1;) {
                if (option == OPTION_COSTS)
                        ret_wish->costs = optarg;
                else if (option != OPTION_HEADROOM)
                        return -EINVAL;
                else if (sl_value_real(optarg, 0, SL_HEADROOM_MAX, &ret_wish->headroom, wish) < 0)
                        return sl_error_set(error, EINVAL, "--headroom: \"%s\" is %s", optarg, wish);
        }
        if (argc - optind != 2)
                return -EINVAL;
        ret_wish->action = argv[optind];
        ret_wish->file = argv[optind + 1];
        bool check = strcmp(ret_wish->action, "check") == 0;
        if (!check && strcmp(ret_wish->action, "show") != 0)
                return sl_error_set(error, EINVAL, "\"%s\" is not show or check", ret_wish->action);
        return check && !ret_wish->costs ? sl_error_set(error, EINVAL, "check needs --costs FILE") : 0;
}

static void memory_print(const struct sl_problem *problem, const struct sl_matrix *matrix)
{
        const struct sl_costs *costs = problem->costs;

        for (uint32_t d = 0; d < costs->n_devices; d++)
                if (costs->devices[d].memory_of == d)
                        printf("%-16s  %10.1f of %10.1f MiB\n", costs->devices[d].name,
                                (double)sl_matrix_memory(problem, matrix, d) / 0x1p20,
                                (double)sl_problem_room(problem, d) / 0x1p20);
}

static int throughput_print(const struct sl_problem *problem, const struct sl_matrix *matrix, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_bench_free) struct sl_bench *bench = NULL;
        const struct sl_calibration calibration = {.load = 0};
        struct sl_bench_result result;
        int r = sl_simulated_bench_new(problem, &bench, error);

        r = r < 0 ? r : sl_bench_run(bench, matrix, &calibration, &result, error);
        if (r == 0)
                printf("%-16s  %10.1f samples a second, computed from the costs\n", "throughput", result.throughput);
        return r;
}

/* Against costs; @show: with the figures, also those of an allocation that is wrong. */
static int allocation_judge(const struct wish *wish, const struct sl_allocation *allocation, bool show, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_costs_free) struct sl_costs *costs = NULL;
        SL_CLEANUP(sl_cleanup_sl_costs_free) struct sl_costs *rows = NULL;
        SL_CLEANUP(sl_cleanup_sl_matrix_free) struct sl_matrix *matrix = NULL;
        int r = sl_costs_file_read(wish->costs, &costs, error);

        r = r < 0 ? r : sl_allocation_bind(allocation, costs, &rows, &matrix, error);
        if (r < 0)
                return r;
        const struct sl_problem problem = {.costs = rows, .headroom = wish->headroom};
        r = sl_problem_check(&problem, error);
        if (r < 0)
                return r;
        if (show)
                memory_print(&problem, matrix);
        r = sl_matrix_check(&problem, matrix, error);
        if (r < 0 || !show)
                return r;
        if (sl_allocation_depth(allocation) == 1)
                return throughput_print(&problem, matrix, error);
        printf("%-16s  %s\n", "throughput", "not computed where a cell has several workers");
        return 0;
}

static int allocation_run(const struct wish *wish, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_allocation_free) struct sl_allocation *allocation = NULL;
        bool show = strcmp(wish->action, "show") == 0;
        int r = sl_allocation_read(wish->file, &allocation, error);

        if (r < 0)
                return r;
        if (show)
                sl_allocation_print(stdout, allocation);
        return wish->costs ? allocation_judge(wish, allocation, show, error) : 0;
}

int command_allocation(int argc, char **argv)
{
        struct wish wish = {.headroom = 0};
        struct sl_error error = {""};

        if (parse(argc, argv, &wish, &error) < 0)
                return error.text[0] ? complain(STATUS_USAGE, "allocation", "%s", error.text) : complain_usage("allocation");
        if (allocation_run(&wish, &error) == 0)
                return STATUS_OK;
        return complain(STATUS_FAILED, "allocation", "%s", error.text);
}
