#include "inspect.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "command.h"
#include "figures.h"
#include "graph.h"
#include "import.h"
#include "pass.h"

#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

SL_DEFINE_CLEANUP(struct sl_graph *, sl_graph_free)

enum { OPTION_JSON = 256, OPTION_BACKEND, OPTION_BATCH_MAX, OPTION_PRINT };

static const struct option options[] = {
        {"json", no_argument, NULL, OPTION_JSON},
        {"backend", required_argument, NULL, OPTION_BACKEND},
        {"batch-max", required_argument, NULL, OPTION_BATCH_MAX},
        {"print", no_argument, NULL, OPTION_PRINT},
        {0},
};

struct wish {
        const char *path, *backend;
        uint32_t batch_max;
        bool json, print;
};

static int parse(int argc, char **argv, struct wish *wish)
{
        for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
                if (option == OPTION_JSON)
                        wish->json = true;
                else if (option == OPTION_PRINT)
                        wish->print = true;
                else if (option == OPTION_BACKEND)
                        wish->backend = optarg;
                else if (option == OPTION_BATCH_MAX)
                        wish->batch_max = (uint32_t)strtoul(optarg, NULL, 10);
                else
                        return -EINVAL;
        }
        if (argc - optind != 1 || wish->batch_max < 1 || wish->batch_max > 1024)
                return -EINVAL;
        wish->path = argv[optind];
        return 0;
}

static int print(const struct wish *wish, const struct sl_graph *raw, const struct sl_graph *optimised, struct sl_error *error)
{
        struct sl_compile_figures figures;
        int result = sl_compile_figures(optimised, wish->backend, wish->batch_max, &figures, error);

        if (result < 0)
                return result;
        struct sl_inspect_plan plan = {.backend = figures.backend,
                .weights_bytes = figures.weights_bytes,
                .memory = figures.memory,
                .n_memory = figures.n_batches};
        result = sl_inspect(raw, optimised, &plan, wish->json, stdout, error);
        if (result == 0 && wish->print)
                sl_graph_print(optimised, stdout);
        return result;
}

static int inspect(const struct wish *wish, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *raw = NULL;
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *optimised = NULL;
        int result = sl_import_onnx(wish->path, &sl_graph_limits_default, &raw, error);

        /* Passes change a graph in place, so it is read twice. */
        if (result == 0)
                result = sl_import_onnx(wish->path, &sl_graph_limits_default, &optimised, error);
        if (result == 0)
                result = sl_passes_run(optimised, 0, error);
        return result == 0 ? print(wish, raw, optimised, error) : result;
}

int command_inspect(int argc, char **argv)
{
        struct wish wish = {.backend = "cpu", .batch_max = 32};
        struct sl_error error = {""};

        if (parse(argc, argv, &wish) < 0)
                return complain_usage("inspect");
        int result = inspect(&wish, &error);
        if (result == 0)
                return STATUS_OK;
        return complain(STATUS_FAILED, "inspect", "%s: %s", wish.path, error.text[0] ? error.text : strerrordesc_np(-result));
}
