/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One compiled plan under the orders of a driver: the program that engine.py starts for Starling, as it starts peer.py for the
 * other engines. Orders are lines on stdin, each is answered by one line of JSON on stdout:
 *
 *     load            compiles (or maps) the plan, makes the instances, computes the first answer: seconds and what the plan is
 *     run K           computes the batch K times: nanoseconds of each
 *     outputs DIR     writes the outputs of the last run to files
 *     workers A,B,..  makes one worker for each batch size and runs each once: bytes resident before and after
 *     machine         what it runs on
 *
 * An order that fails is answered {"error": TEXT}. The program ends with its stdin. Threads: see lanes.h.
 */
#include "arguments.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "compile.h"
#include "crew.h"
#include "lanes.h"
#include "machine.h"
#include "plan.h"
#include "plan_sum.h"
#include "ports.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define RUNS_MAX 100000

struct engine {
        const struct sl_engine_arguments *arguments;
        int plan_fd;
        struct sl_plan *plan;
        struct sl_ports ports;
        struct sl_lanes *lanes;
        uint64_t *times_ns; /* RUNS_MAX */
};

static int open_plan(struct engine *engine, struct sl_error *error)
{
        const struct sl_engine_arguments *arguments = engine->arguments;

        if (!arguments->plan) {
                struct sl_compile_options options = {.model_path = arguments->model, .lowering = &arguments->lowering};

                return sl_compile(&options, &engine->plan_fd, error);
        }
        engine->plan_fd = open(arguments->plan, O_RDONLY | O_CLOEXEC);
        return engine->plan_fd < 0 ? sl_error_set(error, errno, "\"%s\": %s", arguments->plan, strerror(errno)) : 0;
}

static int read_inputs(struct engine *engine, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < engine->arguments->n_inputs; i++) {
                const struct sl_engine_input *input = &engine->arguments->inputs[i];

                r = sl_ports_read(&engine->ports, input->name, input->path, error);
        }
        return r;
}

static int run(struct engine *engine, uint32_t times, struct sl_error *error)
{
        int r = sl_lanes_run(engine->lanes, times, engine->times_ns);

        return r == 0 ? 0 : sl_error_set(error, -r, "a run: %s", strerror(-r));
}

/* From the file to the first answer. */
static int load_all(struct engine *engine, struct sl_error *error)
{
        const struct sl_engine_arguments *arguments = engine->arguments;
        int r = open_plan(engine, error);

        if (r == 0)
                r = sl_plan_open(engine->plan_fd, &engine->plan, error);
        if (r == 0)
                r = sl_ports_init(&engine->ports, sl_plan_info(engine->plan), arguments->batch, error);
        if (r == 0)
                r = read_inputs(engine, error);
        if (r == 0)
                r = sl_lanes_new(engine->plan, &engine->ports, arguments->cpus, arguments->n_cpus, &engine->lanes, error);
        return r == 0 ? run(engine, 1, error) : r;
}

/* Copies the plan file to where a second start finds it. */
static int keep_plan(const struct engine *engine, struct sl_error *error)
{
        const char *path = engine->arguments->keep_plan;
        SL_CLEANUP(sl_cleanup_fd) int to = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        int r = to < 0 ? -errno : sl_plan_sum_copy(engine->plan_fd, to);

        return r < 0 ? sl_error_set(error, -r, "\"%s\": %s", path, strerror(-r)) : 0;
}

static json_t *load(struct engine *engine, struct sl_error *error)
{
        uint64_t start_ns = sl_clock_ns();
        struct rusage children;

        if (engine->plan || load_all(engine, error) < 0)
                return NULL;
        double seconds = (double)(sl_clock_ns() - start_ns) / 1e9;
        if (engine->arguments->keep_plan && keep_plan(engine, error) < 0)
                return NULL;
        getrusage(RUSAGE_CHILDREN, &children);
        const struct sl_plan_info *info = sl_plan_info(engine->plan);

        return json_pack("{s:f, s:I, s:I, s:I, s:I, s:b, s:i}", "seconds", seconds, "compiler_peak_bytes",
                (json_int_t)children.ru_maxrss * 1024, "multiply_adds", (json_int_t)info->multiply_adds, "weights_bytes",
                (json_int_t)info->weights_bytes, "workspace_bytes", (json_int_t)info->workspace_bytes[info->n_batches - 1],
                "batchable", info->batchable != 0, "lanes", (int)sl_lanes_count(engine->lanes));
}

static json_t *run_times(struct engine *engine, const char *count, struct sl_error *error)
{
        long times = strtol(count, NULL, 10);

        if (!engine->lanes || times < 1 || times > RUNS_MAX) {
                sl_error_set(error, EINVAL, "run: load first, then 1 to %d times, not \"%s\"", RUNS_MAX, count);
                return NULL;
        }
        if (run(engine, (uint32_t)times, error) < 0)
                return NULL;
        json_t *list = json_array();
        for (long i = 0; i < times; i++)
                json_array_append_new(list, json_integer((json_int_t)engine->times_ns[i]));
        return json_pack("{s:o}", "ns", list);
}

static json_t *outputs(const struct engine *engine, const char *folder, struct sl_error *error)
{
        json_t *list = NULL;

        if (!engine->lanes)
                sl_error_set(error, EINVAL, "outputs: load first");
        else if (sl_ports_write(&engine->ports, folder, &list, error) == 0)
                return json_pack("{s:o}", "outputs", list);
        return NULL;
}

static json_t *workers(struct engine *engine, const char *sizes, struct sl_error *error)
{
        struct sl_crew_memory memory;
        int r = engine->plan ? sl_error_set(error, EINVAL, "workers: the model is loaded already") : open_plan(engine, error);

        if (r == 0)
                r = sl_crew_measure(engine->plan_fd, sizes, engine->arguments->copies, &memory, error);
        if (r < 0)
                return NULL;
        return json_pack("{s:i, s:I, s:I, s:I}", "workers", (int)memory.workers, "before_bytes", (json_int_t)memory.before_bytes,
                "after_bytes", (json_int_t)memory.after_bytes, "weights_bytes", (json_int_t)memory.weights_bytes);
}

static json_t *obey(struct engine *engine, const char *order, const char *argument, struct sl_error *error)
{
        if (!strcmp(order, "load"))
                return load(engine, error);
        if (!strcmp(order, "run"))
                return run_times(engine, argument, error);
        if (!strcmp(order, "outputs"))
                return outputs(engine, argument, error);
        if (!strcmp(order, "workers"))
                return workers(engine, argument, error);
        if (!strcmp(order, "machine"))
                return sl_machine_json();
        sl_error_set(error, EINVAL, "there is no order \"%s\"", order);
        return NULL;
}

static void answer(struct engine *engine, char *line)
{
        struct sl_error error = {"it was loaded before"};
        char *argument = line + strcspn(line, " ");

        if (*argument)
                *argument++ = 0;
        json_t *reply = obey(engine, line, argument, &error);
        if (!reply)
                reply = json_pack("{s:s}", "error", error.text);
        json_dumpf(reply, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
        json_decref(reply);
}

static void end(struct engine *engine)
{
        sl_lanes_free(engine->lanes);
        sl_ports_deinit(&engine->ports);
        sl_plan_free(engine->plan);
        if (engine->plan_fd >= 0)
                close(engine->plan_fd);
        free(engine->times_ns);
}

static int serve_lines(const struct sl_engine_arguments *arguments)
{
        struct engine engine = {.arguments = arguments, .plan_fd = -1};
        char line[4200];

        engine.times_ns = calloc(RUNS_MAX, sizeof(*engine.times_ns));
        if (!engine.times_ns)
                return 1;
        while (fgets(line, sizeof(line), stdin)) {
                line[strcspn(line, "\n")] = 0;
                answer(&engine, line);
        }
        end(&engine);
        return 0;
}

int main(int argc, char **argv)
{
        struct sl_engine_arguments arguments;
        struct sl_error error = {""};

        if (argc > 1 && !strcmp(argv[1], "compiler"))
                return sl_compile_child_main(argc - 1, argv + 1);
        if (sl_engine_arguments_parse(argc, argv, &arguments, &error) < 0) {
                fprintf(stderr, "starling-engine: %s\n", error.text);
                return 2;
        }
        return serve_lines(&arguments);
}
