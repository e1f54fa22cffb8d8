/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiler's process: opens the model, gives up what it does not need, then reads it. It says one line when it fails, one when
 * it could not give up all, and nothing else.
 */
#include "compile.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base_plan.h"
#include "call_list.h"
#include "child_args.h"
#include "child_calls.h"
#include "cpu/base/threads.h"
#include "crash_report.h"
#include "external_request.h"
#include "graph.h"
#include "import.h"
#include "lower.h"
#include "lower_options.h"
#include "model_file.h"
#include "sandbox.h"
#include "signature_plan.h"
#include "warm_up.h"
#include "zygote_child.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

SL_DEFINE_CLEANUP(struct sl_base_plan *, sl_base_plan_free)
SL_DEFINE_CLEANUP(struct sl_graph *, sl_graph_free)
SL_DEFINE_CLEANUP(struct sl_lowered *, sl_lowered_free)

/* The plan file is at most so small a part of the memory. */
#define PLAN_PART 3

static const struct option options[] = {
#define X(id, name) {name, required_argument, NULL, SL_CHILD_ARG_##id},
        SL_CHILD_ARGS(X)
#undef X
                {SL_CHILD_OPTION, required_argument, NULL, SL_CHILD_ARG_COUNT},
        {0},
};

struct arguments {
        struct sl_lower_options lowering;
        const char *texts[SL_CHILD_ARG_COUNT];
        uint64_t numbers[SL_CHILD_ARG_COUNT];
};

static const char *argument_name(uint32_t arg)
{
        return options[arg].name;
}

static int parse_number(struct arguments *arguments, uint32_t arg, struct sl_error *error)
{
        const char *text = arguments->texts[arg];
        char *end;

        if (!text)
                return sl_error_set(error, EINVAL, "--%s is missing", argument_name(arg));
        errno = 0;
        arguments->numbers[arg] = strtoull(text, &end, 10);
        if (errno || end == text || *end)
                return sl_error_set(error, EINVAL, "--%s wants a number, got \"%s\"", argument_name(arg), text);
        return 0;
}

static int read_arguments(int argc, char **argv, struct arguments *arguments, struct sl_error *error)
{
        int arg;

        sl_lower_options_init(&arguments->lowering);
        opterr = 0;
        optind = 1;
        while ((arg = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (arg == SL_CHILD_ARG_COUNT && sl_lower_options_parse(&arguments->lowering, optarg, error) < 0)
                        return -EINVAL;
                if (arg < 0 || arg > SL_CHILD_ARG_COUNT)
                        return sl_error_set(error, EINVAL, "an argument that is not known");
                if (arg < SL_CHILD_ARG_COUNT)
                        arguments->texts[arg] = optarg;
        }
        return 0;
}

static int check_arguments(struct arguments *arguments, struct sl_error *error)
{
        if (!arguments->texts[SL_CHILD_ARG_MODEL])
                return sl_error_set(error, EINVAL, "--model is missing");
        for (uint32_t arg = SL_CHILD_ARG_MODEL + 1; arg < SL_CHILD_ARG_COUNT; arg++) {
                int r = parse_number(arguments, arg, error);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* One write, so that the line arrives whole or not at all. */
static void report(int fd, int code, const char *text)
{
        char line[SL_ERROR_TEXT_BYTES + 16];
        int n = snprintf(line, sizeof(line), "%d %s\n", code, text);

        (void)!write(fd, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

/* When memory runs out nevertheless, the kernel takes this process and not who serves. Nothing depends on it. */
static void offer_to_the_kernel(void)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        if (fd >= 0)
                (void)!write(fd, "1000", 4);
}

static int enter_sandbox(const struct arguments *arguments, struct sl_error *error)
{
        int plan_fd = (int)arguments->numbers[SL_CHILD_ARG_PLAN_FD], report_fd = (int)arguments->numbers[SL_CHILD_ARG_REPORT_FD];
        struct sl_call_list calls;
        struct sl_sandbox_limits limits = {
                .address_bytes = arguments->numbers[SL_CHILD_ARG_MEMORY_BYTES],
                .data_bytes = SL_SANDBOX_NO_LIMIT,
                .file_bytes = arguments->numbers[SL_CHILD_ARG_MEMORY_BYTES] / PLAN_PART,
                .seconds = arguments->numbers[SL_CHILD_ARG_SECONDS],
                .parent = (int)arguments->numbers[SL_CHILD_ARG_PARENT],
                .background = true,
                .calls = &calls,
        };
        const char *only = NULL;
        char text[SL_ERROR_TEXT_BYTES];
        int r;

        sl_child_calls(plan_fd, report_fd, &calls);
        /* A sanitizer has handlers of its own and no limit of memory; a report that goes elsewhere has a person who reads it. */
        if (!SL_SANITIZED && report_fd == SL_CHILD_REPORT_FD && sl_crash_report_prepare() < 0)
                return sl_error_set(error, ENOMEM, "no stack for the handler of its death");
        r = sl_sandbox_enter(&limits, &only, error);
        if (r < 0 || !only)
                return r;
        snprintf(text, sizeof(text), "the compiler's process has %s: this host lacks it or denies it", only);
        report(report_fd, 0, text);
        return 0;
}

/* Its leading dimension is open, and cannot be 1: there is nothing to run before a request says what it is. */
static bool wants_other_sizes(const struct sl_graph *graph)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *single = NULL;

        return sl_graph_has_batch(graph) && sl_graph_specialise(graph, 1, &single, NULL) < 0;
}

/* With an open leading dimension, or with the size 1 where the file has no form with an open one (-EDOM). */
static int import(const struct sl_model_file *model, const struct sl_lower_options *lowering, struct sl_graph **ret_graph,
        struct sl_error *error)
{
        struct sl_graph_limits limits = sl_lower_graph_limits(lowering);
        struct sl_lower_options single = *lowering;
        int r = sl_import_onnx_file(model, &limits, &lowering->shapes, ret_graph, error);

        if (r != -EDOM || sl_signature_bind(model, 1, &single) < 0)
                return r;
        return sl_import_onnx_file(model, &limits, &single.shapes, ret_graph, NULL) == 0 ? 0 : r;
}

static int compile(
        const struct sl_model_file *model, const struct sl_lower_options *lowering, int base_fd, int fd, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_base_plan_free) struct sl_base_plan *base = NULL;
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *graph = NULL;
        SL_CLEANUP(sl_cleanup_sl_lowered_free) struct sl_lowered *lowered = NULL;
        int r = import(model, lowering, &graph, error);

        if ((r == -ENOTSUP || r == -EDOM) && sl_signature_write(model, lowering, r != -EDOM, fd) == 0)
                return 0;
        if (r == 0)
                r = sl_lower_rewrite(graph, lowering, error);
        if (r == 0 && base_fd >= 0)
                r = sl_base_plan_open(base_fd, &base, error);
        if (r == 0)
                r = sl_lowered_new_in(graph, lowering, base, fd, &lowered, error);
        if (r < 0 && graph && wants_other_sizes(graph) && sl_signature_write(model, lowering, false, fd) == 0)
                return 0;
        if (r == 0)
                r = sl_signature_complete(model, lowering, graph, &lowered->info);
        return r < 0 ? r : sl_lowered_write(lowered, fd, error);
}

int sl_compile_here(const char *model_path, const struct sl_lower_options *lowering, int base_fd, int fd, struct sl_error *error)
{
        struct sl_model_file model;
        int r = sl_model_file_open(model_path, &model, error);

        if (r < 0)
                return r;
        sl_model_file_use_folder(&model);
        r = compile(&model, lowering, base_fd, fd, error);
        sl_model_file_close(&model);
        return r;
}

static int compile_in_sandbox(const struct arguments *arguments, struct sl_model_file *model, struct sl_error *error)
{
        int base_fd = arguments->numbers[SL_CHILD_ARG_BASE] ? SL_CHILD_BASE_FD : -1;
        int r;

        (void)prctl(PR_SET_NAME, SL_CHILD_NAME);
        offer_to_the_kernel();
        r = enter_sandbox(arguments, error);
        if (r < 0)
                return r;
        sl_cpu_use_one_thread();
        if (arguments->numbers[SL_CHILD_ARG_EXTERNAL])
                model->open_external = sl_external_request;
        return compile(model, &arguments->lowering, base_fd, (int)arguments->numbers[SL_CHILD_ARG_PLAN_FD], error);
}

static int compile_child_run(struct arguments *arguments, struct sl_error *error)
{
        struct sl_model_file model;
        int r = check_arguments(arguments, error);

        if (r < 0)
                return r;
        r = sl_model_file_open(arguments->texts[SL_CHILD_ARG_MODEL], &model, error);
        if (r == 0) {
                r = compile_in_sandbox(arguments, &model, error);
                sl_model_file_close(&model);
        }
        if (r == 0 || strstr(error->text, arguments->texts[SL_CHILD_ARG_MODEL]))
                return r;
        return sl_error_prefix(error, r, "model \"%s\"", arguments->texts[SL_CHILD_ARG_MODEL]);
}

bool sl_compile_zygote_is_meant(int argc, char **argv)
{
        return argc == 3 && strcmp(argv[1], SL_ZYGOTE_COMMAND) == 0;
}

int sl_compile_zygote_main(int argc, char **argv, int (*run)(int argc, char **argv))
{
        (void)prctl(PR_SET_NAME, SL_ZYGOTE_NAME);
        sl_cpu_use_one_thread();
        sl_compile_warm_up();
        return sl_zygote_serve(atoi(argv[argc - 1]), run);
}

int sl_compile_child_main(int argc, char **argv)
{
        struct arguments arguments = {0};
        struct sl_error error = {0};
        int r = read_arguments(argc, argv, &arguments, &error);

        if (r == 0)
                r = compile_child_run(&arguments, &error);
        if (r == 0)
                return 0;
        report(arguments.texts[SL_CHILD_ARG_REPORT_FD] ? atoi(arguments.texts[SL_CHILD_ARG_REPORT_FD]) : STDERR_FILENO, -r,
                error.text[0] ? error.text : strerror(-r));
        return 1;
}
