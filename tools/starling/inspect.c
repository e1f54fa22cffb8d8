/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "command.h"
#include "command_options.h"
#include "confined.h"
#include "data_folders.h"
#include "figures.h"
#include "graph.h"
#include "import.h"
#include "inspect_plan.h"
#include "lower.h"
#include "lower_options.h"
#include "model_argument.h"
#include "variant_note.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

SL_DEFINE_CLEANUP(struct sl_graph *, sl_graph_free)

enum { OPTIONS = OPTIONS_BEGIN, INSPECT_OPTIONS(OPTION_ID) };

static const struct option options[] = {INSPECT_OPTIONS(OPTION_GETOPT){0}};

struct wish {
        const char *path;
        struct model_argument model;
        struct sl_lower_options lowering;
        struct data_folders folders;
        struct sl_data_folders given; /* them; of this struct, which is not copied */
        bool json, print;
};

/* Three options are ways to give a lowering option its value. */
static int set(struct wish *wish, enum sl_lower_option option, const char *text, struct sl_error *error)
{
        char assignment[SL_LOWER_OPTION_TEXT_BYTES];

        if (option < SL_LOWER_OPTION_COUNT)
                snprintf(assignment, sizeof(assignment), "%s=%s", sl_lower_option_name(option), text);
        else
                snprintf(assignment, sizeof(assignment), "%s", text);
        wish->lowering.shapes_known = true;
        return sl_lower_options_parse(&wish->lowering, assignment, error);
}

/* -EINVAL without a text: wrong usage. */
static int parse(int argc, char **argv, struct wish *wish, struct sl_error *error)
{
        int r = 0;

        wish->folders.n = 0;
        for (int option; (option = next_option(argc, argv, options)) != -1;) {
                if (option == OPTION_JSON)
                        wish->json = true;
                else if (option == OPTION_PRINT)
                        wish->print = true;
                else if (option == OPTION_BACKEND)
                        r = set(wish, SL_LOWER_OPTION_backend, optarg, error);
                else if (option == OPTION_BATCH_MAX)
                        r = set(wish, SL_LOWER_OPTION_batch_max, optarg, error);
                else if (option == OPTION_DATA_FOLDER)
                        r = data_folders_add(&wish->folders, optarg, error);
                else if (option == 'O')
                        r = set(wish, SL_LOWER_OPTION_COUNT, optarg, error);
                else
                        return -EINVAL;
                if (r < 0)
                        return r;
        }
        if (argc - optind != 1)
                return -EINVAL;
        wish->path = argv[optind];
        wish->given = data_folders_given(&wish->folders);
        return 0;
}

static int print(const struct wish *wish, const struct sl_graph *raw, const struct sl_graph *optimised, struct sl_error *error)
{
        struct sl_compile_figures figures;
        int result = sl_compile_figures(optimised, &wish->lowering, &figures, error);

        if (result < 0)
                return result;
        struct sl_inspect_plan plan = {.backend = figures.backend,
                .weights_bytes = figures.weights_bytes,
                .memory = figures.memory,
                .n_memory = figures.n_batches,
                .nodes = figures.nodes,
                .n_nodes = figures.n_nodes};
        result = sl_inspect(raw, optimised, &plan, wish->json, stdout, error);
        sl_compile_figures_free(&figures);
        if (result == 0 && wish->print)
                sl_graph_print(optimised, stdout);
        return result;
}

/* Something of it is bytes that are multiplied, or bfloat16. */
static bool is_variant(const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i].dead &&
                        (graph->nodes[i].op == SL_OP_QUANTIZED_CONV || graph->nodes[i].op == SL_OP_QUANTIZED_MATMUL))
                        return true;
        for (uint32_t i = 0; i < graph->n_values; i++)
                if (!graph->values[i].dead && graph->values[i].tensor.dtype == SL_DTYPE_BF16)
                        return true;
        return false;
}

/* In a process of its own. @ret_answer: whether it is a variant. */
static int inspect_here(void *context, void *ret_answer, struct sl_error *error)
{
        const struct wish *wish = context;
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *raw = NULL;
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *optimised = NULL;
        struct sl_graph_limits limits = sl_lower_graph_limits(&wish->lowering);
        int result;

        limits.data_folders = &wish->given;
        /* Passes change a graph in place, so it is read twice. */
        result = sl_import_onnx_bound(wish->path, &limits, &wish->lowering.shapes, &raw, error);
        if (result == 0)
                result = sl_import_onnx_bound(wish->path, &limits, &wish->lowering.shapes, &optimised, error);
        if (result == 0)
                result = sl_lower_rewrite(optimised, &wish->lowering, error);
        result = result == 0 ? print(wish, raw, optimised, error) : result;
        if (result == 0)
                *(bool *)ret_answer = is_variant(optimised);
        return result;
}

static int inspect(struct wish *wish, struct sl_error *error)
{
        const struct confined confined = {.path = wish->path,
                .data_folders = &wish->given,
                .seconds = wish->lowering.plan_seconds,
                .run = inspect_here,
                .context = wish,
                .answer_bytes = sizeof(bool)};
        unsigned char variant = 0; /* no bool: it may be any byte */
        int result = sl_lower_open(&wish->lowering, error);

        if (result == 0)
                result = confined_run(&confined, &variant, error);
        if (result == 0 && variant)
                note_if_model_is_slower("inspect", wish->path, &wish->given, &wish->lowering);
        return result;
}

/* What the command line says goes before the model's configuration. */
static int find_model(int argc, char **argv, struct wish *wish, struct sl_error *error)
{
        int r = model_argument_find(wish->path, &wish->lowering, &wish->model, error);

        optind = 0;
        if (r == 0 && wish->model.configured)
                r = parse(argc, argv, wish, error);
        if (r < 0)
                return r;
        wish->path = wish->model.path;
        return model_argument_settle("inspect", &wish->model, &wish->given, 1, &wish->lowering, error);
}

int command_inspect(int argc, char **argv)
{
        struct wish wish = {0};
        struct sl_error error = {""};

        sl_lower_options_init(&wish.lowering);
        if (parse(argc, argv, &wish, &error) < 0)
                return error.text[0] ? complain(STATUS_USAGE, "inspect", "%s", error.text) : complain_usage("inspect");
        bool is_plan = is_plan_file(wish.path);
        int result = is_plan ? inspect_plan(wish.path, wish.json, &error) : find_model(argc, argv, &wish, &error);
        if (result == 0 && !is_plan)
                result = inspect(&wish, &error);
        if (result == 0)
                return STATUS_OK;
        return complain_of("inspect", wish.path, error.text[0] ? error.text : strerrordesc_np(-result));
}
