/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments.h"

#include "base/error.h"
#include "option_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODEL = 256, PLAN, KEEP_PLAN, COPIES, BATCH, CPUS, INPUT, HELP };

#define OPTIONS(X)                                                                                                                 \
        X(MODEL, "model", "FILE", "compile the ONNX file FILE (required without --plan)")                                          \
        X(PLAN, "plan", "FILE", "map the plan file FILE that was kept (required without --model)")                                 \
        X(KEEP_PLAN, "keep-plan", "FILE", "copy the plan file to FILE after the load (default: none)")                             \
        X(COPIES, "copies", NULL, "give each worker a plan of its own")                                                            \
        X(BATCH, "batch", "N", "run batches of N samples (default: 1)")                                                            \
        X(CPUS, "cpus", "A,B,...", "run on the CPUs A, B, ..., a lane on each (default: 0)")                                       \
        X(INPUT, "input", "NAME=FILE", "give the input NAME the bytes of FILE; repeatable (default: none)")                        \
        X('O', "option", "KEY=VALUE", "set the compiler's KEY; repeatable (default: as in starling-config(5))")                    \
        X(HELP, "help", NULL, "print this")

static const struct option options[] = {OPTIONS(SL_OPTION_GETOPT){0}};

static int add_input(struct sl_engine_arguments *arguments, char *text, struct sl_error *error)
{
        char *equals = strchr(text, '=');

        if (!equals || arguments->n_inputs == SL_PLAN_PORTS_MAX)
                return sl_error_set(
                        error, EINVAL, "--input wants NAME=FILE, at most %d times, got \"%s\"", SL_PLAN_PORTS_MAX, text);
        *equals = 0;
        arguments->inputs[arguments->n_inputs++] = (struct sl_engine_input){.name = text, .path = equals + 1};
        return 0;
}

static int add_cpus(struct sl_engine_arguments *arguments, const char *text, struct sl_error *error)
{
        const char *at = text;
        char *end;

        do {
                long cpu = strtol(at, &end, 10);

                if (end == at || cpu < 0 || cpu > INT32_MAX || (*end && *end != ',') || arguments->n_cpus == SL_LANES_MAX)
                        return sl_error_set(
                                error, EINVAL, "--cpus wants at most %d numbers, as in 0,1, got \"%s\"", SL_LANES_MAX, text);
                arguments->cpus[arguments->n_cpus++] = (int)cpu;
                at = end + 1;
        } while (*end);
        return 0;
}

static int set_batch(struct sl_engine_arguments *arguments, const char *text, struct sl_error *error)
{
        char assignment[SL_LOWER_OPTION_TEXT_BYTES];

        snprintf(assignment, sizeof(assignment), "batch_max=%s", text);
        int r = sl_lower_options_parse(&arguments->lowering, assignment, error);
        arguments->batch = arguments->lowering.batch_max;
        return r;
}

static int take(struct sl_engine_arguments *arguments, int option, struct sl_error *error)
{
        switch (option) {
        case MODEL:
                arguments->model = optarg;
                return 0;
        case PLAN:
                arguments->plan = optarg;
                return 0;
        case KEEP_PLAN:
                arguments->keep_plan = optarg;
                return 0;
        case COPIES:
                arguments->copies = true;
                return 0;
        case BATCH:
                return set_batch(arguments, optarg, error);
        case CPUS:
                return add_cpus(arguments, optarg, error);
        case INPUT:
                return add_input(arguments, optarg, error);
        case 'O':
                return sl_lower_options_parse(&arguments->lowering, optarg, error);
        case HELP:
                puts("usage: starling-engine [OPTIONS]; orders are lines of standard input\n");
                OPTIONS(SL_OPTION_PRINT)
                exit(0);
        default:
                return sl_error_set(error, EINVAL, "an option is not known, or lacks what follows it; see --help");
        }
}

int sl_engine_arguments_parse(int argc, char **argv, struct sl_engine_arguments *ret_arguments, struct sl_error *error)
{
        struct sl_engine_arguments arguments = {.batch = 1};
        int r = 0;

        sl_lower_options_init(&arguments.lowering);
        arguments.lowering.batch_max = 1;
        opterr = 0;
        for (int option; r == 0 && (option = getopt_long(argc, argv, "O:", options, NULL)) != -1;)
                r = take(&arguments, option, error);
        if (r == 0 && (!arguments.model == !arguments.plan || optind != argc))
                r = sl_error_set(error, EINVAL, "one of --model FILE and --plan FILE is wanted, and nothing beside options");
        if (r == 0 && arguments.n_cpus == 0)
                r = add_cpus(&arguments, "0", error);
        if (r == 0)
                *ret_arguments = arguments;
        return r;
}
