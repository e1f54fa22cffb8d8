/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-fidelity: what became of each request of a trace, asked of a runtime or of the simulator: a line each, and the same columns
 * for both, so that fidelity.py can compare them.
 *
 *     bench-fidelity --trace FILE --runtime NAME
 *     bench-fidelity --trace FILE --costs FILE --device NAME [--units N] --worker MODEL=BATCH... [--ensemble NAME=MODEL,...] [--own
 * ...]
 */
#include "base/error.h"
#include "replay.h"
#include "serving.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option options[] = {{"trace", required_argument, NULL, 't'}, {"runtime", required_argument, NULL, 'r'},
        {"costs", required_argument, NULL, 'c'}, {"device", required_argument, NULL, 'd'}, {"units", required_argument, NULL, 'u'},
        {"worker", required_argument, NULL, 'w'}, {"ensemble", required_argument, NULL, 'e'}, {"own", required_argument, NULL, 'o'},
        {NULL, 0, NULL, 0}};

struct command {
        const char *trace, *runtime, *costs, *device;
        uint32_t units;
};

/* What is about the serving is read in a second round, when the costs are known. */
static int read_command(int argc, char **argv, struct command *ret_command)
{
        *ret_command = (struct command){.units = 1};
        for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
                switch (option) {
                case 't':
                        ret_command->trace = optarg;
                        break;
                case 'r':
                        ret_command->runtime = optarg;
                        break;
                case 'c':
                        ret_command->costs = optarg;
                        break;
                case 'd':
                        ret_command->device = optarg;
                        break;
                case 'u':
                        ret_command->units = (uint32_t)strtoul(optarg, NULL, 10);
                        break;
                case '?':
                        return -EINVAL;
                default:
                        break;
                }
        }
        return ret_command->trace && (ret_command->runtime || (ret_command->costs && ret_command->device)) ? 0 : -EINVAL;
}

static int read_serving(int argc, char **argv, struct serving *serving, struct sl_error *error)
{
        int r = 0;

        optind = 1;
        for (int option; r == 0 && (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
                if (option == 'w')
                        r = serving_add_worker(serving, optarg, error);
                else if (option == 'e')
                        r = serving_add_ensemble(serving, optarg, error);
                else if (option == 'o')
                        r = serving_set_own(serving, optarg, error);
        }
        return r;
}

static int simulate(int argc, char **argv, const struct command *command, const struct sl_trace *trace,
        struct replay_answer *ret_answers, struct sl_error *error)
{
        struct serving serving;
        int r = serving_init(&serving, command->costs, command->device, command->units, error);

        if (r < 0)
                return r;
        r = read_serving(argc, argv, &serving, error);
        if (r == 0)
                r = replay_simulated(trace, &serving, ret_answers, error);
        serving_deinit(&serving);
        return r;
}

static void print(const struct sl_trace *trace, const struct replay_answer *answers)
{
        printf("due_ns model samples latency_ns queued_ns batched_ns computing_ns combining_ns status\n");
        for (size_t i = 0; i < trace->n_requests; i++)
                printf("%llu %s %u %llu %llu %llu %llu %llu %d\n", (unsigned long long)trace->requests[i].due_ns,
                        trace->models[trace->requests[i].model], trace->requests[i].samples,
                        (unsigned long long)answers[i].latency_ns, (unsigned long long)answers[i].queued_ns,
                        (unsigned long long)answers[i].batched_ns, (unsigned long long)answers[i].computing_ns,
                        (unsigned long long)answers[i].combining_ns, answers[i].status);
}

static int run(int argc, char **argv, const struct command *command, struct sl_error *error)
{
        struct sl_trace trace = {.n_models = 0};
        struct replay_answer *answers;
        int r = sl_trace_read(command->trace, &trace, error);

        if (r < 0)
                return r;
        answers = calloc(trace.n_requests + 1, sizeof(*answers));
        if (!answers || !trace.n_requests)
                r = sl_error_set(error, answers ? EINVAL : ENOMEM, "%s: %zu requests", command->trace, trace.n_requests);
        else if (command->runtime)
                r = replay_live(&trace, command->runtime, answers, error);
        else
                r = simulate(argc, argv, command, &trace, answers, error);
        if (r == 0)
                print(&trace, answers);
        free(answers);
        sl_trace_deinit(&trace);
        return r;
}

int main(int argc, char **argv)
{
        struct sl_error error = {""};
        struct command command;

        if (read_command(argc, argv, &command) < 0) {
                fprintf(stderr, "bench-fidelity: --trace and --runtime, or --trace, --costs, --device and --worker\n");
                return 2;
        }
        if (run(argc, argv, &command, &error) == 0)
                return 0;
        fprintf(stderr, "bench-fidelity: %s\n", error.text);
        return 1;
}
