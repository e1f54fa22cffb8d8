/* SPDX-License-Identifier: Apache-2.0 */
#include "lower.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "bodies.h"
#include "branches.h"
#include "cpu/base/threads.h"
#include "graph.h"
#include "half_weights.h"
#include "ladder.h"
#include "merge/architecture.h"
#include "narrow.h"
#include "pack.h"
#include "pass.h"
#include "placement.h"
#include "program_work.h"
#include "schedule.h"
#include "tune.h"
#include "tune_layout.h"
#include "tune_splits.h"
#include "widen.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

SL_DEFINE_CLEANUP(struct sl_lowered *, sl_lowered_free)

static void free_program(struct sl_program *program)
{
        sl_bodies_free(program);
        free(program->part_times);
        sl_schedule_free(program->schedule);
        sl_placement_free(program->placement);
        sl_graph_free(program->graph);
        *program = (struct sl_program){0};
}

/* In place of what there was. */
static int place_program(const struct sl_lowered *lowered, const struct sl_graph *graph, const struct sl_placement_wish *wishes,
        struct sl_program *program, struct sl_error *error)
{
        const struct sl_target target = sl_lower_options_target(&lowered->options);
        const struct sl_plan_info *info = &lowered->info;
        int r;

        sl_bodies_free(program);
        program->schedule = sl_schedule_free(program->schedule);
        program->placement = sl_placement_free(program->placement);
        r = sl_placement_new_as(program->graph, info->backend, &target, wishes, &program->placement, error);
        if (r < 0)
                return r;
        r = sl_schedule_new(program->placement, false, &program->schedule);
        if (r < 0)
                return sl_error_set(error, -r, "batch %u: no memory for its schedule", program->batch);
        return sl_bodies_new(graph, info, program, error);
}

static int build_program(const struct sl_lowered *lowered, const struct sl_graph *graph, uint32_t batch, struct sl_program *program,
        struct sl_error *error)
{
        int r = program->graph ? 0 : sl_graph_specialise(graph, batch, &program->graph, error);

        program->batch = batch;
        if (r == 0)
                r = sl_ladder_confirm(program->graph, batch, &lowered->info, error);
        return r < 0 ? r : place_program(lowered, graph, NULL, program, error);
}

/* The ladder ends below size @first. */
static void cut_ladder(struct sl_lowered *lowered, uint32_t first)
{
        for (uint32_t i = first; i < lowered->info.n_batches; i++)
                lowered->info.batches[i] = 0;
        lowered->info.n_batches = first;
        free_program(&lowered->programs[first]);
}

/* Larger batches are more work: those that are too much are left out, unless it is the smallest. */
static int build_programs(struct sl_lowered *lowered, const struct sl_graph *graph, struct sl_error *error)
{
        for (uint32_t i = 0; i < lowered->info.n_batches; i++) {
                struct sl_program *program = &lowered->programs[i];
                int r = build_program(lowered, graph, lowered->info.batches[i], program, error);

                if (r < 0)
                        return r;
                r = sl_program_work_check(program, &lowered->options, i ? NULL : error);
                if (r == -E2BIG && i)
                        cut_ladder(lowered, i);
                else if (r < 0)
                        return r;
        }
        return 0;
}

/* A form that is given up stays given up, so the walks come to an end. */
static int pack_constants(struct sl_lowered *lowered, struct sl_error *error)
{
        bool again = true;

        while (again) {
                again = false;
                for (uint32_t i = lowered->info.n_batches; i-- > 0;) {
                        struct sl_program *program = &lowered->programs[i];
                        int r = sl_packing_walk(lowered->packing, program, &again, error);

                        if (r == 0)
                                r = sl_bodies_pack(lowered->packing, program, &again, error);
                        if (r < 0)
                                return sl_error_prefix(error, r, "batch %u", program->batch);
                }
        }
        return 0;
}

static int place_blocks(struct sl_lowered *lowered, struct sl_error *error)
{
        const struct sl_target target = sl_lower_options_target(&lowered->options);

        for (uint32_t i = 0; i < lowered->info.n_batches; i++) {
                struct sl_schedule *schedule = lowered->programs[i].schedule;
                int r = sl_bodies_place(&lowered->programs[i]);

                if (r == 0)
                        r = sl_branches_arrange(schedule, lowered->programs[i].placement->graph, &target.core,
                                sl_lower_options_team(&lowered->options));
                if (r == 0)
                        r = sl_schedule_place(schedule);
                if (r < 0)
                        return sl_error_set(error, -r, "batch %u: no memory plan for %u blocks", lowered->programs[i].batch,
                                schedule->n_blocks);
                if (schedule->workspace_bytes > lowered->options.workspace_bytes_max)
                        return sl_error_set(error, E2BIG, "batch %u: a workspace of %llu bytes, workspace_bytes_max is %llu",
                                lowered->programs[i].batch, (unsigned long long)schedule->workspace_bytes,
                                (unsigned long long)lowered->options.workspace_bytes_max);
                lowered->info.workspace_bytes[i] = schedule->workspace_bytes;
        }
        return 0;
}

/* Of one sample: those of the smallest batch, which is 1 whenever there are samples. Each body counts once. */
static void count_multiply_adds(const struct sl_graph *graph, struct sl_node_desc *desc, uint64_t *sum)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                const struct sl_node *node = &graph->nodes[i];

                if (!node->dead && sl_graph_describe(graph, i, desc) == 0)
                        *sum += sl_op_multiply_adds(desc);
                for (uint32_t b = 0; b < node->n_bodies && !node->dead; b++)
                        count_multiply_adds(node->bodies[b], desc, sum);
        }
}

/* Some node draws, in bodies too. */
static bool graph_draws(const struct sl_graph *graph)
{
        bool draws = sl_graph_draws(graph);

        for (uint32_t i = 0; i < graph->n_nodes && !draws; i++)
                for (uint32_t b = 0; b < graph->nodes[i].n_bodies && !graph->nodes[i].dead && !draws; b++)
                        draws = graph_draws(graph->nodes[i].bodies[b]);
        return draws;
}

/* Elements of the constants that live nodes read, each once. */
static int count_parameters(const struct sl_graph *graph, uint64_t *sum)
{
        SL_CLEANUP(sl_cleanup_free) bool *counted = calloc(graph->n_values + 1u, sizeof(*counted));
        int r = counted ? 0 : -ENOMEM;

        for (uint32_t i = 0; i < graph->n_nodes && r == 0; i++) {
                const struct sl_node *node = &graph->nodes[i];

                for (uint32_t k = 0; k < node->n_inputs && !node->dead; k++) {
                        uint32_t value = node->inputs[k];

                        if (value == SL_VALUE_NONE || graph->values[value].kind != SL_VALUE_CONSTANT || counted[value])
                                continue;
                        counted[value] = true;
                        *sum += sl_shape_elements(&graph->values[value].tensor.shape);
                }
                for (uint32_t b = 0; b < node->n_bodies && !node->dead && r == 0; b++)
                        r = count_parameters(node->bodies[b], sum);
        }
        return r;
}

static int count(struct sl_lowered *lowered)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_node_desc *desc = calloc(1, sizeof(*desc));

        if (!desc)
                return -ENOMEM;
        count_multiply_adds(lowered->programs[0].graph, desc, &lowered->info.multiply_adds);
        lowered->info.draws = graph_draws(lowered->programs[0].graph);
        return count_parameters(lowered->programs[0].graph, &lowered->info.parameters);
}

/* Models that are alike are so behind the passes too, as long as options and processor are the same. */
static int note_architecture(struct sl_lowered *lowered, const struct sl_graph *graph)
{
        struct sl_architecture architecture;
        int r = sl_architecture_of(graph, &architecture);

        if (r < 0)
                return r;
        memcpy(lowered->info.architecture, architecture.digest, sizeof(lowered->info.architecture));
        memcpy(lowered->info.family, architecture.family, sizeof(lowered->info.family));
        return 0;
}

/* Layouts first: which algorithms there are depends on them. A plan of other sizes has those of its base. */
static int tune_layouts(
        struct sl_lowered *lowered, const struct sl_graph *graph, const struct sl_tuning *tuning, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_placement_wish *wishes = NULL;
        int r = 0;

        if (lowered->options.tune != SL_TUNE_FULL || tuning->base)
                return 0;
        if (sl_tune_layouts(lowered->programs, lowered->info.n_batches, tuning, &wishes) < 0)
                return sl_error_set(error, ENOMEM, "no memory to time layouts");
        for (uint32_t i = 0; i < lowered->info.n_batches && wishes && r == 0; i++)
                r = place_program(lowered, graph, wishes, &lowered->programs[i], error);
        return r;
}

static int tune(struct sl_lowered *lowered, const struct sl_graph *graph, struct sl_error *error)
{
        const struct sl_tuning tuning = {.options = &lowered->options,
                .base = lowered->base,
                .clock = sl_clock_ns,
                .until_ns = sl_clock_ns() + lowered->options.tune_seconds * SL_NS_PER_SECOND};
        int r = tune_layouts(lowered, graph, &tuning, error);

        if (r == 0)
                r = sl_tune(lowered->programs, lowered->info.n_batches, &tuning, lowered->choices, graph->n_nodes, error);
        if (r == 0 && sl_tune_splits(lowered->programs, lowered->info.n_batches, &tuning) < 0)
                r = sl_error_set(error, ENOMEM, "no memory to time parts of nodes");
        return r < 0 ? r : sl_bodies_tune(lowered->programs, lowered->info.n_batches, &tuning, lowered->choices, error);
}

static int lower(struct sl_lowered *lowered, const struct sl_graph *graph, int fd, struct sl_error *error)
{
        int r = build_programs(lowered, graph, error);

        if (r < 0)
                return r;
        lowered->n_choices = sl_bodies_count_nodes(graph);
        lowered->choices = calloc(lowered->n_choices + 1u, sizeof(*lowered->choices));
        if (!lowered->choices)
                return sl_error_set(error, ENOMEM, "no memory for the algorithms of %u nodes", lowered->n_choices);
        r = tune(lowered, graph, error);
        if (r < 0)
                return r;
        r = sl_packing_new(&(struct sl_packing_options){.n_nodes = lowered->n_choices,
                                   .fd = fd,
                                   .target = sl_lower_options_target(&lowered->options),
                                   .base = lowered->base,
                                   .uncut = !lowered->options.teams},
                &lowered->packing);
        if (r < 0)
                return sl_error_set(error, -r, "no memory for the constants of %u nodes", lowered->n_choices);
        r = pack_constants(lowered, error);
        if (r == 0)
                r = place_blocks(lowered, error);
        if (r < 0)
                return r;
        if (count(lowered) < 0 || note_architecture(lowered, graph) < 0)
                return sl_error_set(error, ENOMEM, "no memory to count over %u nodes", graph->n_nodes);
        return 0;
}

int sl_lowered_new_in(const struct sl_graph *graph, const struct sl_lower_options *options, const struct sl_base_plan *base, int fd,
        struct sl_lowered **ret_lowered, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_lowered_free) struct sl_lowered *lowered = calloc(1, sizeof(*lowered));
        const char *backend = sl_lower_options_backend(options);
        int r;

        if (!lowered)
                return sl_error_set(error, ENOMEM, "no memory for %zu bytes", sizeof(*lowered));
        /* oneDNN packs weights for as many threads as the calling thread may use: workers use one. */
        sl_cpu_use_one_thread();
        lowered->options = *options;
        lowered->base = base;
        r = sl_ladder_choose(graph, sl_lower_ladder_max(options), &lowered->info, &lowered->programs[0].graph, error);
        if (r < 0)
                return r;
        memcpy(lowered->info.backend, backend, strlen(backend));
        r = lower(lowered, graph, fd, error);
        if (r < 0)
                return r;
        *ret_lowered = sl_take(lowered);
        return 0;
}

int sl_lowered_new(const struct sl_graph *graph, const struct sl_lower_options *options, struct sl_lowered **ret_lowered,
        struct sl_error *error)
{
        return sl_lowered_new_in(graph, options, NULL, -1, ret_lowered, error);
}

/* A sample that is always computed alone, by the same kernels, has the same bits whoever asks beside it. */
uint32_t sl_lower_ladder_max(const struct sl_lower_options *options)
{
        return options->batch_invariant ? 1 : options->batch_max;
}

static bool can_be_given(const struct sl_lower_options *options)
{
        const struct sl_backend *backend = sl_backend_find(sl_lower_options_backend(options));

        return backend && !(backend->planner->traits & SL_PLANNER_ALONE);
}

struct sl_graph_limits sl_lower_graph_limits(const struct sl_lower_options *options)
{
        struct sl_graph_limits limits = sl_graph_limits_default;

        limits.nodes = options->nodes_max;
        limits.values = 2 * options->nodes_max;
        limits.constant_bytes = options->model_bytes_max;
        limits.tensor_bytes = options->tensor_bytes_max;
        limits.sizes_known = options->shapes_known;
        limits.any_size = options->any_size == SL_ANY_SIZE_ONLY;
        limits.optional_inputs = options->optional_inputs == SL_OPTIONALS_GIVEN;
        limits.names_optionals = options->optional_inputs == SL_OPTIONALS_AUTO && can_be_given(options);
        if (limits.file_bytes > options->model_bytes_max)
                limits.file_bytes = options->model_bytes_max;
        return limits;
}

struct sl_lowered *sl_lowered_free(struct sl_lowered *lowered)
{
        if (!lowered)
                return NULL;
        for (uint32_t i = 0; i < SL_PLAN_BATCHES_MAX; i++)
                free_program(&lowered->programs[i]);
        sl_packing_free(lowered->packing);
        free(lowered->choices);
        sl_plan_info_deinit(&lowered->info);
        free(lowered);
        return NULL;
}

static bool is_quantized(const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++) {
                uint32_t op = graph->nodes[i].op;

                if (!graph->nodes[i].dead && (op == SL_OP_QUANTIZED_CONV || op == SL_OP_QUANTIZED_MATMUL))
                        return true;
        }
        return false;
}

static const struct sl_backend *backend_of(const struct sl_lower_options *options)
{
        return sl_backend_find(sl_lower_options_backend(options));
}

bool sl_lower_narrows(const struct sl_lower_options *options)
{
        const struct sl_tensor matrix = {.dtype = SL_DTYPE_BF16, .shape = {.rank = 2, .dims = {16, 16}}};
        const struct sl_node_desc product = {
                .op = SL_OP_MATMUL, .n_inputs = 2, .n_outputs = 1, .inputs = {matrix, matrix}, .outputs = {matrix}};
        const struct sl_target target = sl_lower_options_target(options);

        return backend_of(options)->planner->supports(&target, &product);
}

/* A file may say itself that it is the variant in bfloat16. */
static bool asks_for_narrow(const struct sl_graph *graph, const struct sl_lower_options *options)
{
        for (uint32_t i = 0; i < graph->n_properties; i++)
                if (!strcmp(graph->properties[i].key, "starling.precision") && !strcmp(graph->properties[i].value, "bf16"))
                        return true;
        return options->precision == SL_PRECISION_BF16;
}

/* So may one that it is to have its weights in halves. */
static uint32_t weights_of(const struct sl_graph *graph, const struct sl_lower_options *options)
{
        uint32_t weights = options->weights;

        for (uint32_t i = 0; i < graph->n_properties && weights == SL_WEIGHTS_FP32; i++)
                if (!strcmp(graph->properties[i].key, "starling.weights"))
                        weights = !strcmp(graph->properties[i].value, "f16")    ? SL_WEIGHTS_F16
                                  : !strcmp(graph->properties[i].value, "bf16") ? SL_WEIGHTS_BF16
                                                                                : SL_WEIGHTS_FP32;
        return weights;
}

static bool wants_narrow(const struct sl_graph *graph, const struct sl_lower_options *options)
{
        return asks_for_narrow(graph, options) && sl_lower_narrows(options);
}

/* A node that is joined for the sake of a kernel has none in bfloat16. */
static uint32_t unwanted_passes(const struct sl_graph *graph, const struct sl_lower_options *options)
{
        return options->without_passes | (wants_narrow(graph, options) ? 1u << SL_PASS_JOIN_MBCONV : 0);
}

bool sl_lower_asks_for_halves(const struct sl_graph *graph, const struct sl_lower_options *options)
{
        return wants_narrow(graph, options) || weights_of(graph, options) != SL_WEIGHTS_FP32;
}

static int run_phase(
        struct sl_graph *graph, enum sl_pass_phase phase, const struct sl_lower_options *options, struct sl_error *error)
{
        const struct sl_target target = sl_lower_options_target(options);

        return sl_passes_run_phase(graph, phase,
                &(struct sl_pass_options){
                        .backend = backend_of(options), .target = &target, .without = unwanted_passes(graph, options)},
                error);
}

int sl_lower_open(const struct sl_lower_options *options, struct sl_error *error)
{
        const struct sl_backend *backend = backend_of(options);
        const struct sl_target target = sl_lower_options_target(options);
        int r = backend && backend->planner->prepare ? backend->planner->prepare(&target, error) : 0;

        return r < 0 ? sl_error_prefix(error, r, "backend \"%s\"", backend->name) : 0;
}

/* Nodes that draw and have no seed in the file. */
static int set_seeds(struct sl_graph *graph, uint32_t seed)
{
        int r = 0;

        for (uint32_t i = 0; i < graph->n_nodes && r == 0; i++) {
                struct sl_node *node = &graph->nodes[i];

                if (sl_op_traits(node->op) & SL_OP_DRAWS)
                        r = sl_attrs_set_int(&node->attrs, SL_ATTR_RANDOM_SEED, seed);
                for (uint32_t b = 0; b < node->n_bodies && r == 0; b++)
                        r = set_seeds(node->bodies[b], seed);
        }
        return r;
}

int sl_lower_prepare(struct sl_graph *graph, const struct sl_lower_options *options, struct sl_error *error)
{
        const struct sl_backend *backend = backend_of(options);
        int r;

        if (!backend)
                return sl_error_set(error, ENOTSUP, "this program has no backend \"%s\"", sl_lower_options_backend(options));
        if (options->optional_inputs == SL_OPTIONALS_GIVEN && (backend->planner->traits & SL_PLANNER_ALONE))
                return sl_error_set(
                        error, ENOTSUP, "option optional_inputs is not for backend \"%s\"", sl_lower_options_backend(options));
        r = options->random_seed ? set_seeds(graph, options->random_seed) : 0;
        if (r < 0)
                return sl_error_set(error, -r, "option random_seed: a node has no room for it");
        r = backend->planner->traits & SL_PLANNER_HALVES ? 0 : sl_graph_widen(graph, error);
        return r < 0 ? r : run_phase(graph, SL_PASS_PORTABLE, options, error);
}

int sl_lower_rewrite(struct sl_graph *graph, const struct sl_lower_options *options, struct sl_error *error)
{
        int r = sl_lower_prepare(graph, options, error);

        return r < 0 ? r : sl_lower_finish(graph, options, error);
}

int sl_lower_finish(struct sl_graph *graph, const struct sl_lower_options *options, struct sl_error *error)
{
        int r = run_phase(graph, SL_PASS_BACKEND, options, error);

        if (r < 0)
                return r;
        if (options->precision == SL_PRECISION_INT8 && !is_quantized(graph))
                return sl_error_set(error, ENOTSUP,
                        "precision is int8, but no product of the file is quantized: `starling quantize` writes such files");
        if (wants_narrow(graph, options))
                r = sl_graph_narrow(graph, backend_of(options)->planner->traits & SL_PLANNER_NARROW, error);
        return r < 0 ? r : sl_half_weights_mark(graph, weights_of(graph, options), error);
}
