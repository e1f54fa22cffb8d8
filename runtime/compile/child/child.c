/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiler's process: opens the model, gives up what it does not need, then reads it. It says one line when it fails, one when
 * it could not give up all, and nothing else.
 */
#include "compile.h"

#include "any_size.h"
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
#include "merge_child.h"
#include "model_file.h"
#include "model_import.h"
#include "sandbox.h"
#include "signature_plan.h"
#include "tried_sizes.h"
#include "warm_heap.h"
#include "warm_up.h"
#include "zygote_child.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

SL_DEFINE_CLEANUP(struct sl_base_plan *, sl_base_plan_free)
SL_DEFINE_CLEANUP(struct sl_graph *, sl_graph_free)
SL_DEFINE_CLEANUP(struct sl_lowered *, sl_lowered_free)

static const struct option options[] = {
#define X(id, name) {name, required_argument, NULL, SL_CHILD_ARG_##id},
        SL_CHILD_ARGS(X)
#undef X
                {SL_CHILD_OPTION, required_argument, NULL, SL_CHILD_ARG_COUNT},
        {SL_CHILD_MEMBER, required_argument, NULL, SL_CHILD_ARG_COUNT + 1},
        {SL_CHILD_TRIED, required_argument, NULL, SL_CHILD_ARG_COUNT + 2},
        {0},
};

struct arguments {
        struct sl_lower_options lowering;
        const char *texts[SL_CHILD_ARG_COUNT];
        uint64_t numbers[SL_CHILD_ARG_COUNT];
        const char *models[1 + SL_COMPILE_MEMBERS_MAX]; /* one; or several, which are merged */
        uint32_t n_models;
        struct sl_tried_sizes tried;
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

static int add_member(struct arguments *arguments, const char *path, struct sl_error *error)
{
        if (arguments->n_models == 1 + SL_COMPILE_MEMBERS_MAX)
                return sl_error_set(error, EINVAL, "more than %d models are to be merged", 1 + SL_COMPILE_MEMBERS_MAX);
        arguments->models[arguments->n_models++] = path;
        return 0;
}

static int add_tried(struct arguments *arguments, const char *text, struct sl_error *error)
{
        struct sl_tried_sizes *tried = &arguments->tried;

        if (tried->n == SL_TRIED_SIZES_MAX)
                return sl_error_set(error, EINVAL, "more than %d combinations of sizes are to be tried", SL_TRIED_SIZES_MAX);
        return sl_dim_sizes_parse(text, &tried->items[tried->n++], error);
}

static int read_arguments(int argc, char **argv, struct arguments *arguments, struct sl_error *error)
{
        int arg;

        sl_lower_options_init(&arguments->lowering);
        opterr = 0;
        optind = 1;
        arguments->n_models = 1;
        while ((arg = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (arg == SL_CHILD_ARG_COUNT && sl_lower_options_parse(&arguments->lowering, optarg, error) < 0)
                        return -EINVAL;
                if (arg == SL_CHILD_ARG_COUNT + 1 && add_member(arguments, optarg, error) < 0)
                        return -EINVAL;
                if (arg == SL_CHILD_ARG_COUNT + 2 && add_tried(arguments, optarg, error) < 0)
                        return -EINVAL;
                if (arg < 0 || arg > SL_CHILD_ARG_COUNT + 2)
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
        arguments->models[0] = arguments->texts[SL_CHILD_ARG_MODEL];
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

/* Address space that is no private memory: code and libraries, which are in memory once for all processes of the program. */
static uint64_t program_bytes(void)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        unsigned long long pages = 0, private = 0;
        char text[128];
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

        text[n > 0 ? n : 0] = 0;
        if (sscanf(text, "%llu %*u %*u %*u %*u %llu", &pages, &private) != 2 || private > pages)
                return 0;
        return (pages - private) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int enter_sandbox(const struct arguments *arguments, struct sl_error *error)
{
        uint64_t memory = arguments->numbers[SL_CHILD_ARG_MEMORY_BYTES];
        int plan_fd = (int)arguments->numbers[SL_CHILD_ARG_PLAN_FD], report_fd = (int)arguments->numbers[SL_CHILD_ARG_REPORT_FD];
        struct sl_call_list calls;
        struct sl_sandbox_limits limits = {
                .address_bytes = memory + program_bytes(),
                .data_bytes = memory,
                .file_bytes = memory / SL_COMPILE_PLAN_PART,
                .seconds = arguments->numbers[SL_CHILD_ARG_SECONDS],
                .files = arguments->n_models - 1,
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

/* Requests say the sizes, unless the model cannot be served whatever they are. @failure: what compiling it says without them. */
static int leave_open(const struct sl_model_file *model, const struct sl_lower_options *lowering, const struct sl_open_wish *wish,
        int fd, int failure, struct sl_error *error)
{
        struct sl_error why = {.text = ""};
        int r = sl_signature_write(model, lowering, wish, fd, &why);

        if (r == 0 || !why.text[0])
                return r == 0 ? 0 : failure;
        return sl_error_set(error, -r, "%s", why.text);
}

/* The kernel takes the memory of a process back faster than it is freed piece by piece. A sanitizer looks for what was not freed.
 */
static void end_if_done(int r, bool ends)
{
        if (r == 0 && ends && !SL_SANITIZED)
                _exit(EXIT_SUCCESS);
}

/* What there is beside the model. The base plan: its file, -1: there is none; its checksum, 0: not known. */
struct beside {
        int fd;
        uint64_t sum;
        const struct sl_tried_sizes *tried; /* NULL: none */
};

static int open_base(const struct beside *base, struct sl_base_plan **ret_base, struct sl_error *error)
{
        int r = sl_base_plan_open(base->fd, ret_base, error);

        if (r == 0)
                sl_base_plan_know_sum(*ret_base, base->sum);
        return r;
}

/* One plan for whatever sizes requests bring. */
static int compile_any_size(const struct sl_model_file *model, const struct sl_lower_options *lowering, const struct beside *beside,
        int fd, bool ends, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_base_plan_free) struct sl_base_plan *base = NULL;
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *graph = NULL;
        SL_CLEANUP(sl_cleanup_sl_lowered_free) struct sl_lowered *lowered = NULL;
        struct sl_graph_limits limits = sl_lower_graph_limits(lowering);
        int r = sl_import_onnx_file(model, &limits, &lowering->shapes, &graph, error);

        if (r == 0)
                r = sl_lower_rewrite(graph, lowering, error);
        if (r == 0)
                r = sl_any_size_suits(graph, lowering, error);
        if (r == 0 && beside->fd >= 0)
                r = open_base(beside, &base, error);
        if (r == 0)
                r = sl_lowered_new_in(graph, lowering, base, fd, &lowered, error);
        if (r == 0)
                r = sl_signature_name_open(model, lowering, &lowered->info, error);
        if (r == 0)
                r = (ends ? sl_lowered_write_unsummed : sl_lowered_write)(lowered, fd, error);
        end_if_done(r, ends);
        return r;
}

/* @ends: the process does so when the plan is written, and who has started it seals the file. */
static int compile(const struct sl_model_file *model, const struct sl_lower_options *lowering, const struct beside *beside, int fd,
        bool ends, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_base_plan_free) struct sl_base_plan *base = NULL;
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *graph = NULL;
        SL_CLEANUP(sl_cleanup_sl_lowered_free) struct sl_lowered *lowered = NULL;
        int r;

        if (lowering->any_size == SL_ANY_SIZE_ONLY)
                return compile_any_size(model, lowering, beside, fd, ends, error);
        r = sl_model_import(model, lowering, &graph, error);
        if (r == -ENOTSUP || r == -EDOM)
                return leave_open(model, lowering, &(struct sl_open_wish){r != -EDOM, beside->tried}, fd, r, error);
        if (r == 0)
                r = sl_lower_rewrite(graph, lowering, error);
        if (r == 0 && beside->fd >= 0)
                r = open_base(beside, &base, error);
        if (r == 0)
                r = sl_lowered_new_in(graph, lowering, base, fd, &lowered, error);
        if (r < 0 && graph && wants_other_sizes(graph))
                return leave_open(model, lowering, &(struct sl_open_wish){false, beside->tried}, fd, r, error);
        if (r == 0)
                r = sl_signature_complete(model, lowering, graph, &lowered->info);
        if (r == 0)
                r = (ends ? sl_lowered_write_unsummed : sl_lowered_write)(lowered, fd, error);
        end_if_done(r, ends);
        return r;
}

int sl_compile_here(const char *model_path, const struct sl_lower_options *lowering, int base_fd, int fd, struct sl_error *error)
{
        struct sl_model_file model;
        int r = sl_model_file_open(model_path, &model, error);

        if (r < 0)
                return r;
        sl_model_file_use_folder(&model, NULL);
        r = compile(&model, lowering, &(struct beside){.fd = base_fd}, fd, false, error);
        sl_model_file_close(&model);
        return r;
}

static void write_note(void *context, const char *text)
{
        report((int)((const struct arguments *)context)->numbers[SL_CHILD_ARG_REPORT_FD], SL_CHILD_NOTE, text);
}

static int compile_models(struct arguments *arguments, struct sl_model_file *models, struct sl_error *error)
{
        const struct beside beside = {.fd = arguments->numbers[SL_CHILD_ARG_BASE] ? SL_CHILD_BASE_FD : -1,
                .sum = arguments->numbers[SL_CHILD_ARG_BASE_SUM],
                .tried = &arguments->tried};
        int fd = (int)arguments->numbers[SL_CHILD_ARG_PLAN_FD];

        if (arguments->n_models == 1)
                return compile(models, &arguments->lowering, &beside, fd, true, error);
        return sl_merge_child(models, arguments->n_models, &arguments->lowering, fd,
                &(struct sl_merge_notes){.add = write_note, .context = arguments}, error);
}

static int compile_in_sandbox(struct arguments *arguments, struct sl_model_file *models, struct sl_error *error)
{
        uint8_t numbers[1 + SL_COMPILE_MEMBERS_MAX];
        int r;

        (void)prctl(PR_SET_NAME, SL_CHILD_NAME);
        offer_to_the_kernel();
        r = sl_lower_open(&arguments->lowering, error);
        if (r == 0)
                r = enter_sandbox(arguments, error);
        if (r < 0)
                return r;
        sl_cpu_use_one_thread();
        for (uint32_t i = 0; i < arguments->n_models && arguments->numbers[SL_CHILD_ARG_EXTERNAL]; i++) {
                numbers[i] = (uint8_t)i;
                models[i].open_external = sl_external_request;
                models[i].context = &numbers[i];
        }
        return compile_models(arguments, models, error);
}

static bool names_a_model(const struct arguments *arguments, const char *text)
{
        bool named = false;

        for (uint32_t i = 0; i < arguments->n_models; i++)
                named = named || strstr(text, arguments->models[i]);
        return named;
}

static int open_models(const struct arguments *arguments, struct sl_model_file *models, uint32_t *n_open, struct sl_error *error)
{
        int r = 0;

        for (; *n_open < arguments->n_models && r == 0; *n_open += r == 0)
                r = sl_model_file_open(arguments->models[*n_open], &models[*n_open], error);
        return r;
}

static int compile_child_run(struct arguments *arguments, struct sl_error *error)
{
        struct sl_model_file models[1 + SL_COMPILE_MEMBERS_MAX];
        uint32_t n_open = 0;
        int r = check_arguments(arguments, error);

        if (r < 0)
                return r;
        r = open_models(arguments, models, &n_open, error);
        if (r == 0)
                r = compile_in_sandbox(arguments, models, error);
        while (n_open)
                sl_model_file_close(&models[--n_open]);
        if (r == 0 || names_a_model(arguments, error->text) || arguments->n_models > 1)
                return r;
        return sl_error_prefix(error, r, "model \"%s\"", arguments->models[0]);
}

bool sl_compile_zygote_is_meant(int argc, char **argv)
{
        return argc == 3 && strcmp(argv[1], SL_ZYGOTE_COMMAND) == 0;
}

/* What a child of the zygote does before its order comes. */
struct preparation {
        bool warm;
        struct sl_warm_heap heap;
};

/* The network that is built in once more: what is written to in pages that are shared with the zygote is copied then. */
static bool get_ready(void *context)
{
        struct preparation *preparation = context;

        if (preparation->warm)
                return sl_warm_heap_grow(&preparation->heap);
        sl_compile_warm_up();
        preparation->warm = true;
        return true;
}

static void be_ready(void *context)
{
        sl_warm_heap_open(&((struct preparation *)context)->heap);
}

int sl_compile_zygote_main(int argc, char **argv, int (*run)(int argc, char **argv))
{
        struct preparation preparation = {.warm = false};
        const struct sl_zygote_child child = {.get_ready = get_ready, .be_ready = be_ready, .context = &preparation, .run = run};

        (void)prctl(PR_SET_NAME, SL_ZYGOTE_NAME);
        sl_cpu_use_one_thread();
        sl_compile_warm_up();
        return sl_zygote_serve(atoi(argv[argc - 1]), &child);
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
