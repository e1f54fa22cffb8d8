/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cudnn/plan.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define NOTES_MAX 16

struct sl_cudnn_planner {
        const struct sl_cudnn *library;
        cudnnBackendDescriptor_t device;
};

static const cudnnBackendHeurMode_t heuristics[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK};

/* cuDNN's own words, of which there may be many lines: the first. */
static int refuse(const struct sl_cudnn *library, struct sl_error *error, int code, const char *what)
{
        char words[256] = "";

        library->get_last_error_string(words, sizeof(words));
        words[strcspn(words, "\n")] = 0;
        return sl_error_set(error, code, "%s%s%s", what, *words ? ": " : "", words);
}

int sl_cudnn_planner_new(const struct sl_cudnn *library, const struct sl_cuda_figures *figures,
        struct sl_cudnn_planner **ret_planner, struct sl_error *error)
{
        char text[SL_CUDA_FIGURES_TEXT_BYTES];
        struct sl_cudnn_planner *planner;

        if (sl_cuda_figures_print(figures, text) < 0)
                return sl_error_set(error, EINVAL, "the name of a GPU has characters that it should not have");
        planner = calloc(1, sizeof(*planner));
        if (!planner)
                return sl_error_set(error, ENOMEM, "no memory for a planner of cuDNN");
        planner->library = library;
        if (library->create(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &planner->device) != CUDNN_STATUS_SUCCESS ||
                library->set(planner->device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(text) + 1,
                        text) != CUDNN_STATUS_SUCCESS ||
                library->finalize(planner->device) != CUDNN_STATUS_SUCCESS) {
                sl_cudnn_planner_free(planner);
                return refuse(library, error, EINVAL, "cuDNN does not take the figures of a GPU");
        }
        *ret_planner = planner;
        return 0;
}

struct sl_cudnn_planner *sl_cudnn_planner_free(struct sl_cudnn_planner *planner)
{
        if (planner && planner->device)
                planner->library->destroy(planner->device);
        free(planner);
        return NULL;
}

/* ---- which engines do ---- */

struct engine {
        int64_t number;
        bool tensor_cores, approximate, compiles;
};

static void read_notes(const struct sl_cudnn *library, cudnnBackendDescriptor_t descriptor, struct engine *ret_engine)
{
        cudnnBackendNumericalNote_t notes[NOTES_MAX];
        cudnnBackendBehaviorNote_t ways[NOTES_MAX];
        int64_t n_notes = 0, n_ways = 0;

        library->get(descriptor, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, NOTES_MAX, &n_notes, notes);
        library->get(descriptor, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, NOTES_MAX, &n_ways, ways);
        for (int64_t i = 0; i < n_notes && i < NOTES_MAX; i++) {
                ret_engine->tensor_cores |= notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
                ret_engine->approximate |=
                        notes[i] != CUDNN_NUMERICAL_NOTE_TENSOR_CORE && notes[i] != CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP;
        }
        for (int64_t i = 0; i < n_ways && i < NOTES_MAX; i++)
                ret_engine->compiles |= ways[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
}

static struct engine read_engine(struct sl_cudnn_graph *graph, cudnnBackendDescriptor_t choice)
{
        struct engine engine = {.number = -1};
        cudnnBackendDescriptor_t descriptor = sl_cudnn_make(graph, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        int64_t count = 0;

        if (!descriptor ||
                graph->library->get(choice, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &descriptor))
                return engine;
        graph->library->get(descriptor, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &engine.number);
        read_notes(graph->library, descriptor, &engine);
        return engine;
}

static bool is_exact(const struct engine *engine, cudnnDataType_t type, bool tf32)
{
        return engine->number >= 0 && !engine->approximate && !engine->compiles &&
               !(type == CUDNN_DATA_FLOAT && engine->tensor_cores && !tf32);
}

/* ---- one plan ---- */

/* The text of a finished plan, and what it needs. */
static int describe_plan(const struct sl_cudnn *library, cudnnBackendDescriptor_t made, struct sl_cudnn_plan *plan)
{
        int64_t count = 0, bytes = 0, workspace_bytes = 0;
        SL_CLEANUP(sl_cleanup_free) char *text = NULL;

        if (library->get(made, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &workspace_bytes) ||
                library->get(made, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &bytes, NULL) || bytes <= 0 ||
                workspace_bytes < 0)
                return -ENOTSUP;
        text = calloc(1, (size_t)bytes + 1);
        if (!text)
                return -ENOMEM;
        if (library->get(made, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, bytes, &bytes, text))
                return -ENOTSUP;
        plan->text_bytes = strlen(text) + 1;
        plan->workspace_bytes = (uint64_t)workspace_bytes;
        plan->text = sl_take(text);
        return 0;
}

static int try_choice(struct sl_cudnn_planner *planner, const struct sl_cudnn_convolution *convolution, bool tf32,
        cudnnBackendDescriptor_t choice, struct sl_cudnn_plan *plan)
{
        struct sl_cudnn_graph graph;
        cudnnBackendDescriptor_t made;
        struct engine engine;
        int r = -ENOTSUP;

        sl_cudnn_graph_init(&graph, planner->library);
        engine = read_engine(&graph, choice);
        if (is_exact(&engine, convolution->type, tf32)) {
                made = sl_cudnn_make(&graph, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
                sl_cudnn_set_descriptor(&graph, made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, choice);
                sl_cudnn_set_descriptor(&graph, made, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, planner->device);
                sl_cudnn_finalize(&graph, made);
                r = graph.status == CUDNN_STATUS_SUCCESS ? describe_plan(planner->library, made, plan) : -ENOTSUP;
        }
        plan->engine = engine.number;
        plan->tensor_cores = engine.tensor_cores;
        sl_cudnn_graph_deinit(&graph);
        return r;
}

/* What a heuristic lists, best first. */
struct choices {
        cudnnBackendDescriptor_t *made;
        int64_t n_made, n_filled;
};

static void choices_deinit(const struct sl_cudnn *library, struct choices *choices)
{
        for (int64_t i = 0; i < choices->n_made; i++)
                library->destroy(choices->made[i]);
        free(choices->made);
}

static int list_choices(const struct sl_cudnn *library, cudnnBackendDescriptor_t heuristic, struct choices *choices)
{
        int64_t count = 0;

        if (library->get(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, NULL) || count <= 0)
                return -ENOTSUP;
        choices->made = calloc((size_t)count, sizeof(*choices->made));
        if (!choices->made)
                return -ENOMEM;
        while (choices->n_made < count &&
                library->create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &choices->made[choices->n_made]) == CUDNN_STATUS_SUCCESS)
                choices->n_made++;
        return library->get(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, choices->n_made,
                       &choices->n_filled, choices->made)
                       ? -ENOTSUP
                       : 0;
}

static int try_heuristic(struct sl_cudnn_planner *planner, const struct sl_cudnn_convolution *convolution, bool tf32,
        cudnnBackendHeurMode_t mode, struct sl_cudnn_plan *plan)
{
        struct choices choices = {.made = NULL};
        struct sl_cudnn_graph graph;
        cudnnBackendDescriptor_t operations, heuristic;
        int r = -ENOTSUP;

        sl_cudnn_graph_init(&graph, planner->library);
        operations = sl_cudnn_make_convolution(&graph, convolution);
        heuristic = sl_cudnn_make(&graph, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        sl_cudnn_set_descriptor(&graph, heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
        sl_cudnn_set(&graph, heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
        sl_cudnn_set_descriptor(&graph, heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, planner->device);
        sl_cudnn_finalize(&graph, heuristic);
        if (graph.status == CUDNN_STATUS_SUCCESS && (r = list_choices(planner->library, heuristic, &choices)) == 0) {
                r = -ENOTSUP;
                for (int64_t i = 0; i < choices.n_filled && i < choices.n_made && r == -ENOTSUP; i++)
                        r = try_choice(planner, convolution, tf32, choices.made[i], plan);
        }
        choices_deinit(planner->library, &choices);
        sl_cudnn_graph_deinit(&graph);
        return r;
}

static int try_heuristics(
        struct sl_cudnn_planner *planner, const struct sl_cudnn_convolution *convolution, bool tf32, struct sl_cudnn_plan *plan)
{
        int r = -ENOTSUP;

        for (size_t i = 0; i < sizeof(heuristics) / sizeof(heuristics[0]) && r == -ENOTSUP; i++)
                r = try_heuristic(planner, convolution, tf32, heuristics[i], plan);
        return r;
}

int sl_cudnn_plan_make(struct sl_cudnn_planner *planner, const struct sl_cudnn_convolution *convolution, bool tf32,
        struct sl_cudnn_plan *ret_plan, struct sl_error *error)
{
        const struct sl_cudnn_convolution bare = sl_cudnn_bare(convolution), *c = convolution;
        struct sl_cudnn_plan plan = {.whole = true};
        int r = try_heuristics(planner, convolution, tf32, &plan);

        if (r == -ENOTSUP && !sl_cudnn_is_bare(convolution)) {
                plan.whole = false;
                r = try_heuristics(planner, &bare, tf32, &plan);
        }
        if (r == 0)
                *ret_plan = plan;
        if (r == -ENOMEM)
                return sl_error_set(error, ENOMEM, "no memory for a plan of cuDNN");
        return r == 0 ? 0
                      : sl_error_set(error, ENOTSUP,
                                "cuDNN has no exact engine for a convolution of %lldx%lldx%lldx%lld with %lld filters of %lldx%lld "
                                "in %lld groups",
                                (long long)c->batch, (long long)c->channels, (long long)c->height, (long long)c->width,
                                (long long)c->filters, (long long)c->kernel[0], (long long)c->kernel[1], (long long)c->groups);
}

void sl_cudnn_plan_deinit(struct sl_cudnn_plan *plan)
{
        free(plan->text);
        *plan = (struct sl_cudnn_plan){.text = NULL};
}

int sl_cudnn_plan_load(struct sl_cudnn_planner *planner, const char *text, uint64_t text_bytes, uint64_t *ret_workspace_bytes,
        struct sl_error *error)
{
        int64_t count = 0, workspace_bytes = -1;
        struct sl_cudnn_graph graph;
        cudnnBackendDescriptor_t plan;
        cudnnStatus_t status;

        if (!text_bytes || text[text_bytes - 1])
                return sl_error_set(error, EBADMSG, "a plan of cuDNN does not end");
        sl_cudnn_graph_init(&graph, planner->library);
        plan = sl_cudnn_make(&graph, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        sl_cudnn_set_descriptor(&graph, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, planner->device);
        sl_cudnn_set(&graph, plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)text_bytes, text);
        sl_cudnn_finalize(&graph, plan);
        status = graph.status;
        if (status == CUDNN_STATUS_SUCCESS)
                status = planner->library->get(
                        plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &workspace_bytes);
        sl_cudnn_graph_deinit(&graph);
        if (status != CUDNN_STATUS_SUCCESS || workspace_bytes < 0)
                return refuse(planner->library, error, EBADMSG, "cuDNN does not take a plan back");
        *ret_workspace_bytes = (uint64_t)workspace_bytes;
        return 0;
}
