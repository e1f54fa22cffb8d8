/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling bench load`: any load on any models of a runtime that runs already, or of one of its own. The parts: load_options.c
 * reads the command line, load_session.c puts the load on, load_point.c repeats it, load_search.c looks for a rate, scenario.c
 * judges by MLPerf's rules, load_result.c says it.
 */
#include "base/clock.h"
#include "bench.h"
#include "load_options.h"
#include "load_search.h"
#include "machine.h"
#include "mix.h"
#include "server.h"
#include "starling.h"

#include <errno.h>
#include <jansson.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARENA_BYTES    (1ull << 30) /* the default */
#define LOADING_NS     (120 * SL_NS_PER_SECOND)
#define OFFLINE_MARGIN 1.1

struct bench {
        struct sl_load_command command;
        struct sl_load_result result;
        struct sl_load_scenario scenario;
        struct sl_server server;
        struct sl_load_session *session;
        struct starling_error error;
        char folder[4096];
};

/* ---- a runtime of its own ---- */

/* All that this process may use, but those that the client threads have for themselves, unless nothing would be left. */
static int server_cpus(const struct sl_load_options *load, cpu_set_t *ret_cpus)
{
        cpu_set_t others;

        if (sched_getaffinity(0, sizeof(*ret_cpus), ret_cpus) < 0)
                return -errno;
        others = *ret_cpus;
        for (uint32_t i = 0; i < load->n_cpus; i++)
                CPU_CLR(load->cpus[i], &others);
        if (CPU_COUNT(&others))
                *ret_cpus = others;
        return 0;
}

static int start_server(struct bench *bench)
{
        struct sl_server_options options = {.dispatcher_cpu = -1, .worker_cpu = -1, .cached = true, .arena_bytes = ARENA_BYTES};

        if (!bench->command.serve)
                return 0;
        if (!realpath(bench->command.serve, bench->folder)) {
                snprintf(bench->error.text, sizeof(bench->error.text), "%.400s: %s", bench->command.serve, strerror(errno));
                return -EINVAL;
        }
        options.models = bench->folder;
        int r = server_cpus(&bench->command.options, &options.cpus);
        if (r == 0)
                r = sl_server_start(&bench->server, &options);
        if (r == 0)
                bench->command.options.client.runtime = bench->server.socket;
        bench->result.own_runtime = r == 0;
        return r;
}

/* Models of a runtime that has just been started may still be loading. */
static int open_session(struct bench *bench)
{
        uint64_t until_ns = sl_clock_ns() + LOADING_NS;
        int r;

        while ((r = sl_load_session_new(&bench->command.options, &bench->session, &bench->error)) == -EAGAIN &&
                bench->command.serve && sl_clock_ns() < until_ns && !sl_bench_interrupted())
                usleep(20000);
        return r;
}

/* ---- the load ---- */

/* So many that they take the time that was asked for, as a short closed loop says. */
static int size_offline(struct bench *bench, struct sl_load_level *level)
{
        struct sl_load_options *options = &bench->command.options;
        struct sl_load_repeat repeat;
        int r = sl_load_session_run(bench->session, level, 0, &repeat, &bench->error);

        if (r < 0)
                return r;
        double per_second = (double)repeat.tally.answered_in_time * 1e9 / (double)repeat.measured_ns;
        double wanted = per_second * (double)options->duration_ns / 1e9 * OFFLINE_MARGIN;

        sl_tally_deinit(&repeat.tally);
        *level = (struct sl_load_level){
                .arrivals = {.kind = SL_ARRIVALS_CONSTANT, .rate = 1e9},
                .requests = wanted > 1 ? (uint64_t)wanted : 1,
        };
        return 0;
}

static int run_level(struct bench *bench, const struct sl_load_level *level)
{
        struct sl_load_result *result = &bench->result;
        struct sl_load_point *point = &result->points[result->n_points];
        int r = sl_load_point_init(point, &bench->command.options, level);

        result->n_points++;
        return r < 0 ? r : sl_load_point_run(point, bench->session, bench->command.repeats, &bench->error);
}

static int run_levels(struct bench *bench)
{
        struct sl_load_command *command = &bench->command;
        int r = 0;

        if (command->search)
                return sl_load_search(bench->session, &command->levels[0], command->repeats, &bench->result, &bench->error);
        if (command->has_scenario && command->scenario == SL_SCENARIO_OFFLINE)
                r = size_offline(bench, &command->levels[0]);
        for (uint32_t i = 0; i < command->n_levels && r == 0; i++)
                r = run_level(bench, &command->levels[i]);
        return r;
}

static int run_session(struct bench *bench)
{
        int r = open_session(bench);

        if (r == 0)
                r = run_levels(bench);
        bench->session = sl_load_session_free(bench->session);
        if (r == 0 && bench->command.has_scenario && bench->result.n_points) {
                sl_scenario_judge(bench->command.scenario, &bench->result.points[0], &bench->scenario);
                bench->result.scenario = &bench->scenario;
        }
        return r;
}

static int run_bench(struct bench *bench)
{
        bench->result.machine = sl_machine_json();
        sl_noise_before(&bench->result.noise);
        int r = start_server(bench);
        if (r == 0)
                r = run_session(bench);
        if (r < 0 && r != -EINTR && bench->server.pid > 0)
                sl_server_show_log(&bench->server);
        if (sl_server_stop(&bench->server) < 0 && r == 0) {
                snprintf(bench->error.text, sizeof(bench->error.text), "the runtime did not end in order");
                r = -EIO;
        }
        if (r == 0)
                sl_noise_after(&bench->result.noise);
        return r;
}

/* ---- what comes out ---- */

static bool is_standard_output(const char *path)
{
        return path && strcmp(path, "-") == 0;
}

static int write_json(const char *path, const struct json_t *root)
{
        FILE *file = is_standard_output(path) ? stdout : fopen(path, "we");
        int r = file ? json_dumpf(root, file, JSON_COMPACT | JSON_REAL_PRECISION(9)) : -1;

        if (file && fputc('\n', file) == EOF)
                r = -1;
        if (file && (file == stdout ? fflush(file) : fclose(file)) != 0)
                r = -1;
        if (r < 0)
                fprintf(stderr, "starling bench load: %s: %s\n", file == stdout ? "standard output" : path, strerror(errno));
        return r;
}

static int hand_over(struct bench *bench)
{
        json_t *root = sl_load_result_json(&bench->result);
        int r = root ? 0 : -ENOMEM;

        if (r == 0 && bench->command.output)
                r = write_json(bench->command.output, root);
        if (r == 0 && is_standard_output(bench->command.output))
                sl_load_result_print(&bench->result, stderr);
        else if (r == 0 && bench->command.json)
                r = json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) < 0 || putchar('\n') == EOF ? -EIO : 0;
        else if (r == 0)
                sl_load_result_print(&bench->result, stdout);
        json_decref(root);
        if (r == 0 && bench->error.text[0])
                fprintf(stderr, "starling bench load: a request failed: %s\n", bench->error.text);
        if (r == 0 && !sl_load_result_is_valid(&bench->result)) {
                fprintf(stderr, "starling bench load: the run is not valid: %s\n",
                        bench->result.n_points ? bench->result.points[bench->result.n_points - 1].verdict.reasons[0]
                                               : "no rate keeps the objective");
                return -EIO;
        }
        return r;
}

static int save_schedule(struct sl_load_command *command, struct sl_mix *mix, FILE *file)
{
        struct sl_schedule_options options = {
                .arrivals = command->levels[0].arrivals,
                .mix = mix,
                .samples = command->samples,
                .trace = command->options.trace,
                .speed = command->options.speed,
                .seed = command->options.seed,
        };
        uint64_t until_ns = command->options.warm_up_ns + command->options.duration_ns;
        struct sl_load_request request;
        struct sl_trace trace = {0};
        struct sl_schedule schedule;
        int r = 0;

        options.arrivals.seed = command->options.seed;
        sl_schedule_init(&schedule, &options);
        for (uint32_t i = 0; i < command->options.client.n_models && r == 0; i++)
                r = sl_trace_model(&trace, command->names[i], &request.model);
        for (sl_schedule_next(&schedule, &request); r == 0 && request.due_ns < until_ns; sl_schedule_next(&schedule, &request))
                r = sl_trace_add(&trace, &request);
        if (r == 0)
                r = sl_trace_write(&trace, file);
        sl_trace_deinit(&trace);
        return r;
}

static int save_trace(struct sl_load_command *command)
{
        FILE *file = fopen(command->save_trace, "we");
        struct sl_mix *mix = NULL;
        int r = file ? sl_mix_new(command->options.weights, command->options.client.n_models, &mix) : -errno;

        if (r == 0)
                r = save_schedule(command, mix, file);
        sl_mix_free(mix);
        if (file && fclose(file) != 0 && r == 0)
                r = -errno;
        if (r < 0)
                fprintf(stderr, "starling bench load: --save-trace %s: %s\n", command->save_trace, strerror(-r));
        return r < 0;
}

static int run_command(struct bench *bench)
{
        int r = run_bench(bench);

        if (r == 0)
                r = hand_over(bench);
        else if (r != -EINTR)
                fprintf(stderr, "starling bench load: %s\n", bench->error.text[0] ? bench->error.text : starling_strerror(r));
        sl_load_result_deinit(&bench->result);
        return r < 0;
}

int sl_bench_load(int argc, char **argv)
{
        struct bench *bench = calloc(1, sizeof(*bench));

        if (!bench)
                return 1;
        bench->server.pid = -1;
        bench->result.argc = argc;
        bench->result.argv = argv;
        bench->result.options = &bench->command.options;
        int code = sl_load_command_parse(argc, argv, &bench->command);
        if (code == 0 && !bench->command.serve && !bench->command.save_trace)
                code = sl_bench_reach("load", bench->command.options.client.runtime);
        if (code == 0)
                code = bench->command.save_trace ? save_trace(&bench->command) : run_command(bench);
        sl_load_command_deinit(&bench->command);
        free(bench);
        return code;
}
