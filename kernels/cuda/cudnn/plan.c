/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cudnn/plan.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define NOTES_MAX 16

/* Of what a heuristic lists, so many are looked at. */
#define LOOKED_AT_MAX 24

/* Plans are for a GPU of given figures, or for that of a handle. */
struct sl_cudnn_planner {
        const struct sl_cudnn *library;
        cudnnBackendDescriptor_t device; /* NULL: */
        cudnnHandle_t handle;
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

int sl_cudnn_planner_new_on(
        const struct sl_cudnn *library, cudnnHandle_t handle, struct sl_cudnn_planner **ret_planner, struct sl_error *error)
{
        struct sl_cudnn_planner *planner = calloc(1, sizeof(*planner));

        if (!planner)
                return sl_error_set(error, ENOMEM, "no memory for a planner of cuDNN");
        *planner = (struct sl_cudnn_planner){.library = library, .handle = handle};
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

static bool is_wanted(const struct engine *engine, cudnnDataType_t type, const struct sl_cudnn_wish *wish)
{
        return engine->number >= 0 && !engine->approximate && engine->compiles == wish->compiles &&
               !(type == CUDNN_DATA_FLOAT && engine->tensor_cores && !wish->tf32);
}

/* ---- one plan ---- */

int sl_cudnn_plan_describe(const struct sl_cudnn *library, cudnnBackendDescriptor_t made, struct sl_cudnn_plan *plan)
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

/* For whom a descriptor is made. */
static void set_ground(struct sl_cudnn_graph *graph, const struct sl_cudnn_planner *planner, cudnnBackendDescriptor_t descriptor,
        cudnnBackendAttributeName_t device)
{
        if (planner->device)
                sl_cudnn_set_descriptor(graph, descriptor, device, planner->device);
        else if (device == CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP)
                sl_cudnn_set(graph, descriptor, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &planner->handle);
}

/* What is asked of a heuristic, and what came of it. */
struct search {
        struct sl_cudnn_planner *planner;
        struct sl_cudnn_convolution convolution;
        const struct sl_cudnn_wish *wish;
        bool whole;
        struct sl_cudnn_plan *plans;
        uint32_t n, n_max; /* plans, of all searches for the node */
};

static int try_choice(const struct search *search, cudnnBackendDescriptor_t choice, struct sl_cudnn_plan *plan)
{
        const struct sl_cudnn *library = search->planner->library;
        struct sl_cudnn_graph graph;
        cudnnBackendDescriptor_t made;
        struct engine engine;
        int r = -ENOTSUP;

        sl_cudnn_graph_init(&graph, library);
        engine = read_engine(&graph, choice);
        if (is_wanted(&engine, search->convolution.type, search->wish)) {
                made = sl_cudnn_make(&graph, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
                sl_cudnn_set_descriptor(&graph, made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, choice);
                set_ground(&graph, search->planner, made, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
                sl_cudnn_finalize(&graph, made);
                r = graph.status == CUDNN_STATUS_SUCCESS ? sl_cudnn_plan_describe(library, made, plan) : -ENOTSUP;
        }
        plan->engine = engine.number;
        plan->tensor_cores = engine.tensor_cores;
        plan->compiles = engine.compiles;
        plan->whole = search->whole;
        sl_cudnn_graph_deinit(&graph);
        return r;
}

/* The first is taken whatever it wants; those after it are no two alike. */
static bool is_new(const struct search *search, const struct sl_cudnn_plan *plan)
{
        if (search->n && plan->workspace_bytes > search->wish->workspace_bytes_max &&
                plan->workspace_bytes > search->plans[0].workspace_bytes)
                return false;
        for (uint32_t i = 0; i < search->n; i++)
                if (search->plans[i].whole == plan->whole && !strcmp(search->plans[i].text, plan->text))
                        return false;
        return true;
}

static int add_choice(struct search *search, cudnnBackendDescriptor_t choice)
{
        struct sl_cudnn_plan plan = {.text = NULL};
        int r = try_choice(search, choice, &plan);

        if (r == 0 && is_new(search, &plan))
                search->plans[search->n++] = plan;
        else
                sl_cudnn_plan_deinit(&plan);
        return r == -ENOMEM ? r : 0;
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

static int try_heuristic(struct search *search, cudnnBackendHeurMode_t mode)
{
        const struct sl_cudnn *library = search->planner->library;
        struct choices choices = {.made = NULL};
        struct sl_cudnn_graph graph;
        cudnnBackendDescriptor_t operations, heuristic;
        int r = 0;

        sl_cudnn_graph_init(&graph, library);
        graph.handle = search->planner->handle;
        operations = sl_cudnn_make_convolution(&graph, &search->convolution);
        heuristic = sl_cudnn_make(&graph, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        sl_cudnn_set_descriptor(&graph, heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
        sl_cudnn_set(&graph, heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
        set_ground(&graph, search->planner, heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
        sl_cudnn_finalize(&graph, heuristic);
        if (graph.status == CUDNN_STATUS_SUCCESS && list_choices(library, heuristic, &choices) == 0)
                for (int64_t i = 0;
                        i < choices.n_filled && i < choices.n_made && i < LOOKED_AT_MAX && r == 0 && search->n < search->n_max; i++)
                        r = add_choice(search, choices.made[i]);
        choices_deinit(library, &choices);
        sl_cudnn_graph_deinit(&graph);
        return r;
}

/* Up to @n more. The last heuristic lists what runs anywhere, slowly: it is asked where the others had nothing. */
static int try_heuristics(struct search *search, bool whole, uint32_t n)
{
        const struct sl_cudnn_convolution convolution = search->convolution;
        const uint32_t before = search->n;
        int r = 0;

        search->whole = whole;
        search->n_max = search->n + n < SL_CUDNN_PLANS_MAX ? search->n + n : SL_CUDNN_PLANS_MAX;
        if (!whole)
                search->convolution = sl_cudnn_bare(&convolution);
        for (size_t i = 0; i < sizeof(heuristics) / sizeof(heuristics[0]) && r == 0 && search->n < search->n_max; i++)
                if (heuristics[i] != CUDNN_HEUR_MODE_FALLBACK || search->n == before)
                        r = try_heuristic(search, heuristics[i]);
        search->convolution = convolution;
        return r;
}

static int refuse_convolution(const struct sl_cudnn_convolution *c, struct sl_error *error)
{
        return sl_error_set(error, ENOTSUP,
                "cuDNN has no exact engine for a convolution of %lldx%lldx%lldx%lld with %lld filters of %lldx%lld "
                "in %lld groups",
                (long long)c->batch, (long long)c->channels, (long long)c->height, (long long)c->width, (long long)c->filters,
                (long long)c->kernel[0], (long long)c->kernel[1], (long long)c->groups);
}

int sl_cudnn_plans_make(struct sl_cudnn_planner *planner, const struct sl_cudnn_convolution *convolution,
        const struct sl_cudnn_wish *wish, struct sl_cudnn_plan ret_plans[SL_CUDNN_PLANS_MAX], uint32_t *ret_n,
        struct sl_error *error)
{
        struct search search = {.planner = planner, .convolution = *convolution, .wish = wish, .plans = ret_plans};
        bool is_bare = sl_cudnn_is_bare(convolution);
        int r = try_heuristics(&search, true, wish->n_whole);

        if (r == 0 && !is_bare && (wish->n_bare || !search.n))
                r = try_heuristics(&search, false, wish->n_bare ? wish->n_bare : 1);
        *ret_n = search.n;
        if (r == 0 && search.n)
                return 0;
        sl_cudnn_plans_deinit(ret_plans, search.n);
        return r == -ENOMEM ? sl_error_set(error, ENOMEM, "no memory for a plan of cuDNN") : refuse_convolution(convolution, error);
}

int sl_cudnn_plan_make(struct sl_cudnn_planner *planner, const struct sl_cudnn_convolution *convolution, bool tf32,
        struct sl_cudnn_plan *ret_plan, struct sl_error *error)
{
        struct sl_cudnn_plan plans[SL_CUDNN_PLANS_MAX];
        uint32_t n;
        int r = sl_cudnn_plans_make(planner, convolution, &(struct sl_cudnn_wish){.tf32 = tf32, .n_whole = 1}, plans, &n, error);

        if (r == 0)
                *ret_plan = plans[0];
        return r;
}

void sl_cudnn_plans_deinit(struct sl_cudnn_plan *plans, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                sl_cudnn_plan_deinit(&plans[i]);
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
        set_ground(&graph, planner, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
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
