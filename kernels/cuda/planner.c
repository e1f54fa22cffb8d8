/* SPDX-License-Identifier: Apache-2.0 */
/* The half of the backend that plans, without a device: which library computes a node, and by which plan of cuDNN. */
#include "cuda/halves.h"

#include "base/error.h"
#include "cuda/forms.h"
#include "cuda/int8.h"
#include "cuda/planning.h"
#include "cuda/record.h"
#include "op.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(SL_CUDNN_PLANS_MAX <= SL_CUDA_CANDIDATES_MAX, "a record has them all");

static bool supports(const struct sl_target *target, const struct sl_node_desc *node)
{
        struct sl_cuda_recipe recipe;

        (void)target;
        if (!node->n_outputs || !sl_op_parameters_resolved(node) || sl_op_traits(node->op) & (SL_OP_CONTROL | SL_OP_COUNTS) ||
                sl_cuda_recipe_make(node, sl_cuda_way_of(node), 0, false, &recipe) < 0)
                return false;
        sl_cuda_recipe_deinit(&recipe);
        return true;
}

static uint32_t algorithms(const struct sl_target *target, const struct sl_node_desc *node,
        uint32_t ret_algorithms[SL_ALGORITHM_COUNT], double ret_seconds[SL_ALGORITHM_COUNT])
{
        (void)target;
        (void)node;
        (void)ret_algorithms;
        (void)ret_seconds;
        return 0;
}

static int pack(const struct sl_target *target, const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        (void)target;
        sl_cuda_form_of(node, sl_cuda_way_of(node), index, ret_packed);
        return 0;
}

static int repack(const struct sl_target *target, const struct sl_node_desc *node, uint32_t index, const struct sl_packed *packed,
        const void *plain, void *ret_data)
{
        (void)target;
        return sl_cuda_form_repack(&node->inputs[index], packed, plain, ret_data);
}

/* In the order of the heuristics; what own kernels cannot finish is no candidate. @first: the way that the node has first. */
static void fill_candidates(const struct sl_node_desc *node, uint32_t first, const struct sl_cudnn_plan *plans, uint32_t n,
        struct sl_cuda_record *record)
{
        struct sl_cuda_recipe recipe;

        record->n = 0;
        for (uint32_t i = 0; i < n; i++) {
                const struct sl_cudnn_plan *plan = &plans[i];
                uint32_t way = first == SL_CUDA_WAY_CONVOLUTION && !plan->whole ? SL_CUDA_WAY_BARE : first;

                if (sl_cuda_recipe_make(node, way, plan->workspace_bytes, false, &recipe) < 0)
                        continue;
                sl_cuda_recipe_deinit(&recipe);
                record->candidates[record->n++] = (struct sl_cuda_candidate){.way = way,
                        .notes = plan->tensor_cores ? SL_CUDA_TENSOR_CORES : 0,
                        .engine = plan->engine,
                        .workspace_bytes = plan->workspace_bytes,
                        .text = plan->text,
                        .text_bytes = plan->text_bytes};
        }
}

/* A candidate that is not cuDNN's, at place @at; behind the first only what does not want too much scratch. */
static void add_candidate(const struct sl_node_desc *node, uint32_t way, uint32_t at, struct sl_cuda_record *record)
{
        struct sl_cuda_recipe recipe;
        uint64_t bytes;

        if (record->n == SL_CUDA_CANDIDATES_MAX || sl_cuda_recipe_make(node, way, 0, false, &recipe) < 0)
                return;
        bytes = sl_cuda_recipe_scratch(&recipe);
        sl_cuda_recipe_deinit(&recipe);
        if (at && bytes > SL_CUDA_SCRATCH_MAX)
                return;
        memmove(&record->candidates[at + 1], &record->candidates[at], (record->n - at) * sizeof(record->candidates[0]));
        record->candidates[at] = (struct sl_cuda_candidate){.way = way};
        record->n++;
}

/*
 * A convolution of int8 as a product of rows: first where the rows are the pixels, else last. cuDNN names few engines for int8, of
 * which nothing says whether they use tensor cores; cuBLASLt is documented to.
 */
static void add_rows(const struct sl_node_desc *node, struct sl_cuda_record *record)
{
        add_candidate(node, SL_CUDA_WAY_INT8_ROWS, sl_cuda_int8_is_pointwise(node) ? 0 : record->n, record);
}

/* Of the way that the record has so far. Its texts are those that planning has. */
static int plan_convolution(const struct sl_kernel_source *source, struct sl_cuda_record *record, struct sl_error *error)
{
        struct sl_cuda_asked asked;
        const struct sl_cudnn_plan *plans = NULL;
        uint32_t n, way = record->candidates[0].way;
        int r;

        if (!sl_cuda_form_is(source->node, way, 1, source->packed ? &source->packed[1] : NULL) ||
                !sl_cuda_asked_read(source->node, way, source->target && source->target->tf32, &asked))
                return sl_error_set(error, ENOTSUP, "filters that are computed, or that lie as cuDNN does not want them");
        r = sl_cuda_planning_plans(source->target, &asked.convolution, asked.tf32, &plans, &n, error);
        if (r < 0 && (r != -ENOTSUP || way != SL_CUDA_WAY_INT8_CONVOLUTION))
                return r;
        fill_candidates(source->node, way, plans, r == 0 ? n : 0, record);
        if (way == SL_CUDA_WAY_INT8_CONVOLUTION)
                add_rows(source->node, record);
        return record->n ? 0 : -ENOTSUP;
}

/* Whichever of them it will be. */
static int count_scratch(const struct sl_node_desc *node, const struct sl_cuda_record *record, uint64_t *ret_bytes)
{
        int r = 0;

        *ret_bytes = 0;
        for (uint32_t i = 0; i < record->n && r == 0; i++) {
                struct sl_cuda_recipe recipe;
                uint64_t bytes;

                r = sl_cuda_recipe_make(node, record->candidates[i].way, record->candidates[i].workspace_bytes, false, &recipe);
                if (r < 0)
                        continue;
                bytes = sl_cuda_recipe_scratch(&recipe);
                *ret_bytes = bytes > *ret_bytes ? bytes : *ret_bytes;
                sl_cuda_recipe_deinit(&recipe);
        }
        return r;
}

static int provide_as(const struct sl_kernel_source *source, const struct sl_cuda_record *record,
        struct sl_provision *ret_provision, struct sl_error *error)
{
        struct sl_provision provision = {.scratch_bytes = 0};
        int r = record->n ? count_scratch(source->node, record, &provision.scratch_bytes) : -ENOTSUP;

        if (r < 0)
                return sl_error_set(error, -r, "own kernels do not compute what the libraries leave of it");
        if (record->candidates[0].way != SL_CUDA_WAY_OWN &&
                sl_cuda_record_write(record, &provision.blob, &provision.blob_bytes) < 0)
                return sl_error_set(error, ENOMEM, "no memory for its record");
        *ret_provision = provision;
        return 0;
}

/* A convolution that cuDNN does not plan is an own one, over filters as the file has them; the compiler then gives up the form. */
static int provide(const struct sl_kernel_source *source, struct sl_provision *ret_provision, struct sl_error *error)
{
        enum sl_cuda_way way = sl_cuda_way_of(source->node);
        struct sl_cuda_record record = {.n = 1, .candidates = {{.way = way}}};
        int r = sl_cuda_way_has_text(way) ? plan_convolution(source, &record, error) : 0;

        if (way == SL_CUDA_WAY_FUSED_ATTENTION)
                add_candidate(source->node, SL_CUDA_WAY_ATTENTION, 1, &record);
        if ((way == SL_CUDA_WAY_BYTES_PRODUCT || way == SL_CUDA_WAY_INT8_PRODUCT) &&
                !sl_cuda_form_is(source->node, way, 1, source->packed ? &source->packed[1] : NULL))
                return sl_error_set(error, ENOTSUP, "weights that are computed");
        if (r == -ENOTSUP && source->packed && !source->packed[1].data_bytes && sl_cuda_own_supports(source->node))
                r = 0, record.candidates[0].way = SL_CUDA_WAY_OWN;
        return r == 0 ? provide_as(source, &record, ret_provision, error) : r;
}

/*
 * cuDNN loads its parts when they are first asked, and these the NVIDIA driver where there is one, which must not be in the
 * sandbox: a product of each type makes them do so, and all candidates of a convolution over an image.
 */
static int prepare(const struct sl_target *target, struct sl_error *error)
{
        static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16, CUDNN_DATA_INT8};
        struct sl_cudnn_convolution convolution = sl_cudnn_product(CUDNN_DATA_FLOAT, 8, 64, 64);
        const struct sl_cudnn_plan *plans;
        struct sl_cudnn_planner *planner;
        struct sl_cudnn_plan plan;
        uint32_t n;
        int r = sl_cuda_planning_open(target, &planner, error);

        for (uint32_t i = 0; i < sizeof(types) / sizeof(types[0]) && r == 0; i++) {
                convolution.type = types[i];
                r = sl_cudnn_plan_make(planner, &convolution, false, &plan, error);
                if (r == 0)
                        sl_cudnn_plan_deinit(&plan);
        }
        convolution = sl_cudnn_product(CUDNN_DATA_FLOAT, 1, 32, 32);
        convolution.height = convolution.width = 28;
        return r < 0 ? r : sl_cuda_planning_plans(target, &convolution, false, &plans, &n, error);
}

/* Which of them it will be is known on the device. */
static const char *engine_of_several(uint32_t first)
{
        if (first == SL_CUDA_WAY_INT8_CONVOLUTION || first == SL_CUDA_WAY_INT8_ROWS)
                return "cuDNN or cuBLASLt, own kernels";
        return first == SL_CUDA_WAY_FUSED_ATTENTION ? "own kernels, perhaps cuBLASLt" : "cuDNN, perhaps own kernels behind it";
}

static const char *engine(const struct sl_blob *blob)
{
        static const char *const engines[SL_CUDA_WAY_COUNT] = {
                [SL_CUDA_WAY_OWN] = "own kernels",
                [SL_CUDA_WAY_CONVOLUTION] = "cuDNN",
                [SL_CUDA_WAY_BARE] = "cuDNN, own kernels",
                [SL_CUDA_WAY_PRODUCT] = "cuBLASLt",
                [SL_CUDA_WAY_ATTENTION] = "cuBLASLt, own kernels",
                [SL_CUDA_WAY_RECURRENT] = "cuBLASLt, own kernels",
                [SL_CUDA_WAY_BYTES_CONVOLUTION] = "cuDNN, own kernels",
                [SL_CUDA_WAY_BYTES_PRODUCT] = "cuBLASLt, own kernels",
                [SL_CUDA_WAY_INT8_CONVOLUTION] = "cuDNN, own kernels",
                [SL_CUDA_WAY_INT8_ROWS] = "cuBLASLt, own kernels",
                [SL_CUDA_WAY_INT8_PRODUCT] = "cuBLASLt, own kernels",
                [SL_CUDA_WAY_FUSED_ATTENTION] = "own kernels",
        };
        struct sl_cuda_record record;

        if (sl_cuda_record_read(blob, &record, NULL) < 0)
                return "";
        for (uint32_t i = 1; i < record.n; i++)
                if (record.candidates[i].way != record.candidates[0].way)
                        return engine_of_several(record.candidates[0].way);
        return engines[record.candidates[0].way];
}

const struct sl_planner sl_cuda_planner = {
        .traits = SL_PLANNER_HALVES | SL_PLANNER_ALONE | SL_PLANNER_NARROW,
        .prepare = prepare,
        .supports = supports,
        .algorithms = algorithms,
        .pack = pack,
        .repack = repack,
        .provide = provide,
        .engine = engine,
};
