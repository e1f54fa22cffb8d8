/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `cpu` backend: which operator is written how, and the life of a kernel around that.
 *
 * Threads: supports(), pack() and repack() on any thread; a kernel belongs to one thread at a time. Ownership: a kernel owns its
 * primitive (and a smaller kernel that prepares its input) or its state. Invariant: exactly one of kernel->loop and
 * kernel->primitive is set.
 */
#include "backend.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cpu/algorithm.h"
#include "cpu/base/isa.h"
#include "cpu/conv/loops.h"
#include "cpu/elementwise/loops.h"
#include "cpu/gemm/loops.h"
#include "cpu/measure.h"
#include "cpu/ml/loops.h"
#include "cpu/movement/loops.h"
#include "cpu/onednn/describe.h"
#include "cpu/onednn/divided_call.h"
#include "cpu/onednn/primitive.h"
#include "cpu/reduce/loops.h"
#include "cpu/rnn/loops.h"
#include "cpu/split.h"
#include "cpu/split_trial.h"
#include "pace.h"
#include "shape/image_node.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sl_kernel {
        const struct sl_cpu_loop *loop;
        struct sl_primitive *primitive;
        struct sl_divided_call *divided; /* NULL: the primitive alone computes the node */
        struct sl_kernel *turn;          /* if not NULL: turns input 0 into the primitive's layout, at this offset of scratch */
        struct sl_evening evening;       /* if it has pixels: turns input 0 likewise, and makes its channels even */
        size_t turned_offset;
        int summand;
        size_t summand_bytes;
        int8_t input_of[SL_ARGUMENT_COUNT];
        size_t scratch_bytes;
        alignas(max_align_t) unsigned char state[];
};

static sl_cpu_describe *const calls[SL_OP_COUNT] = {
        [SL_OP_CONV] = sl_cpu_describe_convolution,
        [SL_OP_GEMM] = sl_cpu_describe_gemm,
        [SL_OP_MATMUL] = sl_cpu_describe_matmul,
        [SL_OP_MAX_POOL] = sl_cpu_describe_pool,
        [SL_OP_AVERAGE_POOL] = sl_cpu_describe_pool,
        [SL_OP_GLOBAL_AVERAGE_POOL] = sl_cpu_describe_pool,
        [SL_OP_GLOBAL_MAX_POOL] = sl_cpu_describe_pool,
        [SL_OP_LRN] = sl_cpu_describe_response,
        [SL_OP_ELU] = sl_cpu_describe_function,
        [SL_OP_SOFTPLUS] = sl_cpu_describe_function,
        [SL_OP_LOG] = sl_cpu_describe_function,
        [SL_OP_QUANTIZED_CONV] = sl_cpu_describe_quantized_convolution,
        [SL_OP_QUANTIZED_MATMUL] = sl_cpu_describe_quantized_matmul,
};

static const struct sl_cpu_loop *const loops[SL_OP_COUNT] = {
        [SL_OP_LSTM] = &sl_cpu_lstm,
        [SL_OP_ROW_ATTENTION] = &sl_cpu_attention,
        [SL_OP_BATCH_NORM] = &sl_cpu_scale,
        [SL_OP_NORMALIZED_CONCAT] = &sl_cpu_scale,
        [SL_OP_LAYER_NORM] = &sl_cpu_normalise,
        [SL_OP_INSTANCE_NORM] = &sl_cpu_normalise,
        [SL_OP_GROUP_NORM] = &sl_cpu_normalise,
        [SL_OP_RMS_NORM] = &sl_cpu_normalise,
        [SL_OP_SOFTMAX] = &sl_cpu_softmax,
        [SL_OP_LOG_SOFTMAX] = &sl_cpu_softmax,
        [SL_OP_RELU] = &sl_cpu_unary,
        [SL_OP_LEAKY_RELU] = &sl_cpu_unary,
        [SL_OP_HARD_SIGMOID] = &sl_cpu_unary,
        [SL_OP_HARD_SWISH] = &sl_cpu_unary,
        [SL_OP_SIGMOID] = &sl_cpu_unary,
        [SL_OP_TANH] = &sl_cpu_unary,
        [SL_OP_GELU] = &sl_cpu_unary,
        [SL_OP_ERF] = &sl_cpu_unary,
        [SL_OP_EXP] = &sl_cpu_unary,
        [SL_OP_SQRT] = &sl_cpu_unary,
        [SL_OP_RECIPROCAL] = &sl_cpu_unary,
        [SL_OP_NEG] = &sl_cpu_unary,
        [SL_OP_ABS] = &sl_cpu_unary,
        [SL_OP_FLOOR] = &sl_cpu_unary,
        [SL_OP_CEIL] = &sl_cpu_unary,
        [SL_OP_ROUND] = &sl_cpu_unary,
        [SL_OP_SIGN] = &sl_cpu_unary,
        [SL_OP_SIN] = &sl_cpu_unary,
        [SL_OP_COS] = &sl_cpu_unary,
        [SL_OP_LOG] = &sl_cpu_unary,
        [SL_OP_ELU] = &sl_cpu_unary,
        [SL_OP_SELU] = &sl_cpu_unary,
        [SL_OP_CELU] = &sl_cpu_unary,
        [SL_OP_MISH] = &sl_cpu_unary,
        [SL_OP_THRESHOLDED_RELU] = &sl_cpu_unary,
        [SL_OP_SOFTSIGN] = &sl_cpu_unary,
        [SL_OP_SHRINK] = &sl_cpu_unary,
        [SL_OP_NOT] = &sl_cpu_unary,
        [SL_OP_CLIP] = &sl_cpu_unary,
        [SL_OP_BITWISE_NOT] = &sl_cpu_unary,
        [SL_OP_TAN] = &sl_cpu_unary,
        [SL_OP_ASIN] = &sl_cpu_unary,
        [SL_OP_ACOS] = &sl_cpu_unary,
        [SL_OP_ATAN] = &sl_cpu_unary,
        [SL_OP_SINH] = &sl_cpu_unary,
        [SL_OP_COSH] = &sl_cpu_unary,
        [SL_OP_ASINH] = &sl_cpu_unary,
        [SL_OP_ACOSH] = &sl_cpu_unary,
        [SL_OP_ATANH] = &sl_cpu_unary,
        [SL_OP_CAST] = &sl_cpu_cast,
        [SL_OP_IS_NAN] = &sl_cpu_predicate,
        [SL_OP_IS_INF] = &sl_cpu_predicate,
        [SL_OP_ADD] = &sl_cpu_binary,
        [SL_OP_SUB] = &sl_cpu_binary,
        [SL_OP_MUL] = &sl_cpu_binary,
        [SL_OP_DIV] = &sl_cpu_binary,
        [SL_OP_POW] = &sl_cpu_binary,
        [SL_OP_PRELU] = &sl_cpu_binary,
        [SL_OP_EQUAL] = &sl_cpu_binary,
        [SL_OP_GREATER] = &sl_cpu_binary,
        [SL_OP_GREATER_OR_EQUAL] = &sl_cpu_binary,
        [SL_OP_LESS] = &sl_cpu_binary,
        [SL_OP_LESS_OR_EQUAL] = &sl_cpu_binary,
        [SL_OP_AND] = &sl_cpu_binary,
        [SL_OP_OR] = &sl_cpu_binary,
        [SL_OP_XOR] = &sl_cpu_binary,
        [SL_OP_MOD] = &sl_cpu_binary,
        [SL_OP_BITWISE_AND] = &sl_cpu_binary,
        [SL_OP_BITWISE_OR] = &sl_cpu_binary,
        [SL_OP_BITWISE_XOR] = &sl_cpu_binary,
        [SL_OP_MIN] = &sl_cpu_variadic,
        [SL_OP_MAX] = &sl_cpu_variadic,
        [SL_OP_SUM] = &sl_cpu_variadic,
        [SL_OP_MEAN] = &sl_cpu_variadic,
        [SL_OP_WHERE] = &sl_cpu_where,
        [SL_OP_IDENTITY] = &sl_cpu_copy,
        [SL_OP_RESHAPE] = &sl_cpu_copy,
        [SL_OP_FLATTEN] = &sl_cpu_copy,
        [SL_OP_SQUEEZE] = &sl_cpu_copy,
        [SL_OP_UNSQUEEZE] = &sl_cpu_copy,
        [SL_OP_CONCAT] = &sl_cpu_concat,
        [SL_OP_SLICE] = &sl_cpu_copy,
        [SL_OP_CHANNEL_SHUFFLE] = &sl_cpu_shuffle,
        [SL_OP_SPLIT] = &sl_cpu_copy,
        [SL_OP_TRANSPOSE] = &sl_cpu_copy,
        [SL_OP_PAD] = &sl_cpu_pad,
        [SL_OP_EXPAND] = &sl_cpu_copy,
        [SL_OP_TILE] = &sl_cpu_copy,
        [SL_OP_REORDER] = &sl_cpu_copy,
        [SL_OP_MAX_POOL] = &sl_cpu_max_pool,
        [SL_OP_GLOBAL_MAX_POOL] = &sl_cpu_global,
        [SL_OP_LRN] = &sl_cpu_response,
        [SL_OP_AVERAGE_POOL] = &sl_cpu_average,
        [SL_OP_GLOBAL_AVERAGE_POOL] = &sl_cpu_global,
        [SL_OP_REDUCE_MEAN] = &sl_cpu_reduce,
        [SL_OP_REDUCE_SUM] = &sl_cpu_reduce,
        [SL_OP_REDUCE_MAX] = &sl_cpu_reduce,
        [SL_OP_REDUCE_MIN] = &sl_cpu_reduce,
        [SL_OP_REDUCE_L1] = &sl_cpu_reduce,
        [SL_OP_REDUCE_L2] = &sl_cpu_reduce,
        [SL_OP_REDUCE_SUM_SQUARE] = &sl_cpu_reduce,
        [SL_OP_REDUCE_PROD] = &sl_cpu_fold,
        [SL_OP_REDUCE_LOG_SUM] = &sl_cpu_fold,
        [SL_OP_REDUCE_LOG_SUM_EXP] = &sl_cpu_fold,
        [SL_OP_ARG_MAX] = &sl_cpu_arg,
        [SL_OP_ARG_MIN] = &sl_cpu_arg,
        [SL_OP_CUM_SUM] = &sl_cpu_running,
        [SL_OP_CUM_PROD] = &sl_cpu_running,
        [SL_OP_COL2IM] = &sl_cpu_col2im,
        [SL_OP_GATHER] = &sl_cpu_gather,
        [SL_OP_GATHER_ELEMENTS] = &sl_cpu_gather_elements,
        [SL_OP_TENSOR_SCATTER] = &sl_cpu_tensor_scatter,
        [SL_OP_GATHER_ND] = &sl_cpu_gather_nd,
        [SL_OP_SCATTER_ELEMENTS] = &sl_cpu_scatter_elements,
        [SL_OP_SCATTER_ND] = &sl_cpu_scatter_nd,
        [SL_OP_ONE_HOT] = &sl_cpu_one_hot,
        [SL_OP_TRILU] = &sl_cpu_trilu,
        [SL_OP_GRID_SAMPLE] = &sl_cpu_grid_sample,
        [SL_OP_ROI_ALIGN] = &sl_cpu_roi_align,
        [SL_OP_DEFORM_CONV] = &sl_cpu_deform_conv,
        [SL_OP_GRU] = &sl_cpu_recurrent,
        [SL_OP_RNN] = &sl_cpu_recurrent,
        [SL_OP_RESIZE] = &sl_cpu_resize,
        [SL_OP_CONV_TRANSPOSE] = &sl_cpu_conv_transpose,
        [SL_OP_TOP_K] = &sl_cpu_top_k,
        [SL_OP_NON_MAX_SUPPRESSION] = &sl_cpu_non_max_suppression,
        [SL_OP_DEPTH_TO_SPACE] = &sl_cpu_copy,
        [SL_OP_SPACE_TO_DEPTH] = &sl_cpu_copy,
        [SL_OP_QUANTIZE_LINEAR] = &sl_cpu_quantize,
        [SL_OP_DEQUANTIZE_LINEAR] = &sl_cpu_dequantize,
        [SL_OP_DYNAMIC_QUANTIZE_LINEAR] = &sl_cpu_dynamic_quantize,
        [SL_OP_QUANTIZED_ADD] = &sl_cpu_quantized_add,
        [SL_OP_TREES] = &sl_cpu_trees,
        [SL_OP_CLASS_SCORES] = &sl_cpu_class_scores,
        [SL_OP_SQUARED_DISTANCE] = &sl_cpu_distance,
};

static struct sl_kernel *cpu_kernel_free(struct sl_kernel *kernel)
{
        if (!kernel)
                return NULL;
        cpu_kernel_free(kernel->turn);
        sl_divided_call_free(kernel->divided);
        sl_primitive_free(kernel->primitive);
        free(kernel);
        return NULL;
}

static bool is_final(const struct sl_tensor *tensor)
{
        return tensor->dtype == SL_DTYPE_NONE || (tensor->shape.rank <= SL_RANK_MAX && sl_tensor_bytes(tensor) != UINT64_MAX);
}

/* Kernels see final shapes only; a node that is not there yet is nobody's. */
static bool node_is_final(const struct sl_node_desc *node)
{
        if (node->op >= SL_OP_COUNT || node->n_inputs > SL_NODE_INPUTS_MAX || node->n_outputs > SL_NODE_OUTPUTS_MAX)
                return false;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (!is_final(&node->inputs[i]))
                        return false;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (!is_final(&node->outputs[i]))
                        return false;
        return node->n_inputs && node->n_outputs;
}

static bool describe_call(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        if (!node_is_final(node) || !calls[node->op])
                return false;
        memset(call, 0, sizeof(*call));
        memset(call->input_of, -1, sizeof(call->input_of));
        call->input_of[SL_ARGUMENT_SOURCE] = 0;
        return calls[node->op](node, call);
}

/*
 * The one place that decides: the algorithm that the node asks for, or the best one by algorithm.c; where that is not an own loop,
 * a call that oneDNN has (fast) code for, else the loop, else a call that it has any code for.
 */
enum way { WAY_NONE, WAY_CALL, WAY_LOOP };

/* The loop of an operator that has no algorithms. */
/* @target: for which it is planned, or NULL. */
static int plan_loop(const struct sl_cpu_loop *loop, const struct sl_node_desc *node, const struct sl_target *target,
        struct sl_kernel **ret_kernel)
{
        struct sl_cpu_sizes sizes = {.state_bytes = loop ? loop->state_bytes : 0, .core = target ? &target->core : NULL};
        struct sl_kernel *kernel, *smaller;

        if (!loop || (!loop->fuses_epilogue && (node->epilogue.activation || node->epilogue.has_residual)))
                return -ENOTSUP;
        kernel = calloc(1, sizeof(*kernel) + loop->state_bytes);
        if (!kernel)
                return -ENOMEM;
        kernel->loop = loop;
        if (!loop->plan(node, kernel->state, &sizes)) {
                free(kernel);
                return -ENOTSUP;
        }
        kernel->scratch_bytes = sizes.scratch_bytes;
        smaller = realloc(kernel, sizeof(*kernel) + sizes.state_bytes);
        *ret_kernel = smaller ? smaller : kernel;
        return 0;
}

static bool takes(const struct sl_cpu_loop *loop, const struct sl_node_desc *node)
{
        struct sl_kernel *kernel;

        if (plan_loop(loop, node, NULL, &kernel))
                return false;
        free(kernel);
        return true;
}

/* The operator's loop, or the one that stands in for it where it declines. */
static const struct sl_cpu_loop *only_loop(const struct sl_node_desc *node)
{
        const struct sl_cpu_loop *loop = node_is_final(node) ? loops[node->op] : NULL;

        return loop && loop->instead && !takes(loop, node) ? loop->instead : loop;
}

static bool loop_fits(const struct sl_node_desc *node)
{
        return takes(only_loop(node), node);
}

/* The same where its weights are packed. */
static bool describe_packed_call(const struct sl_node_desc *node, struct sl_cpu_call *call)
{
        bool described = describe_call(node, call);

        if (described)
                sl_describe_evened(node, call);
        return described;
}

/* Without own algorithms. @ret_packed, unless NULL: the form of the weights that WAY_CALL wants. */
static enum way find_onednn_way(const struct sl_node_desc *node, struct sl_cpu_call *call, struct sl_packed *ret_packed)
{
        bool slow = false, possible = false;

        if ((ret_packed ? describe_packed_call : describe_call)(node, call))
                possible = sl_primitive_possible(&call->spec, &slow, ret_packed) ||
                           (sl_describe_sum(node, call) && sl_primitive_possible(&call->spec, &slow, ret_packed));

        if (possible && !slow)
                return WAY_CALL;
        if (loop_fits(node))
                return WAY_LOOP;
        return possible ? WAY_CALL : WAY_NONE;
}

static bool is_f32_convolution(const struct sl_node_desc *node)
{
        return node->op == SL_OP_CONV && sl_cpu_is_f32(&node->inputs[0]) && sl_cpu_is_f32(&node->inputs[1]);
}

/* It has some code for every convolution of float32 that can be described, which need not be looked for. */
static bool onednn_can(const struct sl_node_desc *node)
{
        struct sl_cpu_call call;

        if (is_f32_convolution(node))
                return describe_call(node, &call);
        return find_onednn_way(node, &call, NULL) != WAY_NONE;
}

static void set_samples(struct sl_node_desc *node, int64_t samples)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (i == 0 || (node->epilogue.has_residual && i == node->n_inputs - 1))
                        node->inputs[i].shape.dims[0] = samples;
        node->outputs[0].shape.dims[0] = samples;
}

/* @ret_form: what it likes the weights to be. False when it has nothing but its plain reference code, a hundred times as slow. */
static bool onednn_is_fast(const struct sl_node_desc *node, struct sl_packed *ret_form)
{
        struct sl_cpu_call call;
        bool slow = true;

        return describe_call(node, &call) && sl_primitive_possible(&call.spec, &slow, ret_form) && !slow;
}

static bool same_form(const struct sl_packed *a, const struct sl_packed *b)
{
        return a->data_bytes == b->data_bytes && a->form_bytes == b->form_bytes && !memcmp(a->form, b->form, a->form_bytes);
}

/*
 * A model has one form of the weights for all batch sizes. Of some windows over channels that lie last, oneDNN wants another
 * one at another size, refuses this one there, and has only its reference code for plain weights.
 */
static bool onednn_is_fickle(const struct sl_node_desc *node)
{
        struct sl_node_desc fewer = *node;
        struct sl_packed form, other;

        if (!onednn_is_fast(node, &form))
                return true;
        for (int64_t samples = node->inputs[0].shape.dims[0] / 2; samples > 0; samples /= 2) {
                set_samples(&fewer, samples);
                if (!onednn_is_fast(&fewer, &other) || !same_form(&form, &other))
                        return true;
        }
        return false;
}

static bool is_first_of_exact(const struct sl_node_desc *node, const uint32_t *algorithms, uint32_t count)
{
        return count > 1 && algorithms[0] == SL_ALGORITHM_DIRECT && is_f32_convolution(node) && sl_algorithm_takes_exactly(node);
}

static uint32_t list_algorithms(const struct sl_target *target, const struct sl_node_desc *node,
        uint32_t ret_algorithms[SL_ALGORITHM_COUNT], double ret_seconds[SL_ALGORITHM_COUNT])
{
        const struct sl_core_figures *core = target ? &target->core : &sl_target_typical.core;
        uint32_t count;

        if (!node_is_final(node) || !sl_algorithm_is_chosen(node->op))
                return 0;
        count = sl_algorithm_list(node, core, !sl_algorithm_narrows(node) && onednn_can(node), ret_algorithms, ret_seconds);
        if (is_first_of_exact(node, ret_algorithms, count) && onednn_is_fickle(node))
                return sl_algorithm_list(node, core, false, ret_algorithms, ret_seconds);
        return count;
}

/* AUTO is the best guess that is not approximate. */
static uint32_t choose_algorithm(const struct sl_node_desc *node)
{
        uint32_t algorithms[SL_ALGORITHM_COUNT], asked;

        asked = (uint32_t)sl_attrs_int(&node->attrs, SL_ATTR_ALGORITHM, SL_ALGORITHM_AUTO);
        if (asked != SL_ALGORITHM_AUTO || !node_is_final(node))
                return asked;
        for (uint32_t i = 0, n = list_algorithms(NULL, node, algorithms, NULL); i < n; i++)
                if (!sl_algorithm_is_approximate(algorithms[i]))
                        return algorithms[i];
        return SL_ALGORITHM_DIRECT;
}

/* The own loop is NULL but for WAY_LOOP of an operator that has algorithms. */
static enum way find_way(const struct sl_node_desc *node, struct sl_cpu_call *call, const struct sl_cpu_loop **ret_own)
{
        uint32_t algorithm = choose_algorithm(node);

        *ret_own = NULL;
        if (algorithm == SL_ALGORITHM_DIRECT)
                return find_onednn_way(node, call, NULL);
        if (node_is_final(node))
                *ret_own = sl_algorithm_loop(node, algorithm);
        return *ret_own ? WAY_LOOP : WAY_NONE;
}

/* oneDNN is asked last: its answer takes longest. */
static bool supports(const struct sl_node_desc *node)
{
        uint32_t asked = (uint32_t)sl_attrs_int(&node->attrs, SL_ATTR_ALGORITHM, SL_ALGORITHM_AUTO);
        const struct sl_cpu_loop *own;
        struct sl_cpu_call call;

        if (sl_tensors_are_small(node->inputs, node->n_inputs) || sl_tensors_are_small(node->outputs, node->n_outputs))
                return false;
        if (asked == SL_ALGORITHM_AUTO && node_is_final(node))
                return sl_algorithm_takes_exactly(node) || find_onednn_way(node, &call, NULL) != WAY_NONE;
        if (asked == SL_ALGORITHM_DIRECT)
                return onednn_can(node);
        return find_way(node, &call, &own) != WAY_NONE;
}

static int pack_own(const struct sl_node_desc *node, uint32_t index, uint32_t algorithm, struct sl_packed *ret_packed)
{
        const struct sl_cpu_loop *own = node_is_final(node) ? sl_algorithm_loop(node, algorithm) : NULL;

        if (!own)
                return -ENOTSUP;
        if (!own->form || !own->form(node, index, ret_packed))
                *ret_packed = (struct sl_packed){0};
        return 0;
}

static int pack_input(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        uint32_t algorithm = choose_algorithm(node);
        struct sl_packed packed = {0};
        struct sl_cpu_call call;
        enum way way;

        if (index >= node->n_inputs)
                return -ENOTSUP;
        if (algorithm != SL_ALGORITHM_DIRECT)
                return pack_own(node, index, algorithm, ret_packed);
        way = find_onednn_way(node, &call, &packed);
        if (way == WAY_NONE)
                return -ENOTSUP;
        if (way == WAY_LOOP || call.input_of[SL_ARGUMENT_WEIGHTS] != (int)index)
                packed = (struct sl_packed){0};
        *ret_packed = packed;
        return 0;
}

static int repack_aligned(const struct sl_node_desc *node, uint32_t index, const struct sl_packed *packed,
        const struct sl_cpu_loop *own, const void *plain, void *ret_data)
{
        SL_CLEANUP(sl_cleanup_free) void *evened = NULL;
        struct sl_cpu_call call;

        if (own)
                return own->repack(node, index, plain, ret_data);
        if (!describe_packed_call(node, &call) || call.input_of[SL_ARGUMENT_WEIGHTS] != (int)index)
                return -ENOTSUP;
        if (!call.evening.pixels)
                return sl_primitive_pack(&call.spec, packed, plain, ret_data);
        evened = sl_evened_weights(&node->inputs[index], plain);
        return evened ? sl_primitive_pack(&call.spec, packed, evened, ret_data) : -ENOMEM;
}

static int repack_input(
        const struct sl_node_desc *node, uint32_t index, const struct sl_packed *packed, const void *plain, void *ret_data)
{
        const struct sl_cpu_loop *own = sl_cpu_form_is_own(packed) ? sl_algorithm_of_form(node, index, packed) : NULL;
        uint64_t bytes = sl_tensor_bytes(&node->inputs[index]);
        SL_CLEANUP(sl_cleanup_free) void *aligned = NULL;

        if ((own && own->reads_anywhere) || (uintptr_t)plain % sl_dtype_bytes(node->inputs[index].dtype) == 0)
                return repack_aligned(node, index, packed, own, plain, ret_data);
        aligned = aligned_alloc(SL_LINE_BYTES, sl_align_up(bytes, SL_LINE_BYTES));
        if (!aligned)
                return -ENOMEM;
        memcpy(aligned, plain, bytes);
        return repack_aligned(node, index, packed, own, aligned, ret_data);
}

static int compile_turn(const struct sl_cpu_call *call, const struct sl_node_desc *node, struct sl_kernel *kernel)
{
        struct sl_node_desc turn = {
                .op = SL_OP_REORDER, .n_inputs = 1, .n_outputs = 1, .inputs = {node->inputs[0]}, .outputs = {call->turned}};

        if (call->turned.dtype == SL_DTYPE_NONE)
                return 0;
        kernel->turned_offset = sl_align_up(kernel->scratch_bytes, SL_LINE_BYTES);
        kernel->scratch_bytes = kernel->turned_offset + sl_tensor_bytes(&call->turned);
        kernel->evening = call->evening;
        return call->evening.pixels ? 0 : plan_loop(only_loop(&turn), &turn, NULL, &kernel->turn);
}

/* Code is most of what a primitive takes: what nobody launches has none. */
static int compile_primitive(const struct sl_cpu_call *call, const struct sl_packed *packed, bool planned, struct sl_kernel *kernel,
        struct sl_error *error)
{
        int result;

        if (planned)
                return sl_primitive_plan(&call->spec, packed, &kernel->scratch_bytes, error);
        result = sl_primitive_new(&call->spec, packed, &kernel->primitive, error);
        if (!result)
                kernel->scratch_bytes = sl_primitive_scratch_bytes(kernel->primitive);
        return result;
}

static int compile_call(struct sl_cpu_call *call, const struct sl_node_desc *node, const struct sl_kernel_source *source,
        struct sl_kernel **ret_kernel, struct sl_error *error)
{
        int weights = call->input_of[SL_ARGUMENT_WEIGHTS];
        const struct sl_packed *packed = source->packed && weights >= 0 ? &source->packed[weights] : NULL;
        struct sl_kernel *kernel;
        int result;

        if (call->scales)
                call->spec.scales = source->constants[call->scales];
        if (call->scales && !call->spec.scales)
                return sl_error_set(error, ENOTSUP, "input %d, the scales, is no constant", call->scales);
        kernel = calloc(1, sizeof(*kernel));
        if (!kernel)
                return sl_error_set(error, ENOMEM, "no memory for a kernel");
        result = compile_primitive(call, packed, source->planned, kernel, error);
        if (!result) {
                memcpy(kernel->input_of, call->input_of, sizeof(kernel->input_of));
                kernel->summand = call->summand;
                kernel->summand_bytes = call->summand ? sl_tensor_bytes(&node->outputs[0]) : 0;
                result = compile_turn(call, node, kernel);
                if (!result && !kernel->turn && !kernel->summand && !source->planned)
                        kernel->divided = sl_divided_call_new(&call->spec, packed);
        }
        if (result) {
                cpu_kernel_free(kernel);
                return result;
        }
        *ret_kernel = kernel;
        return 0;
}

/*
 * Packed weights say how they are computed, whatever AUTO would choose at this batch size; plain ones are for oneDNN, and for
 * loops that pack nothing.
 */
static enum way find_way_of_form(const struct sl_node_desc *node, const struct sl_packed *packed, struct sl_cpu_call *call,
        const struct sl_cpu_loop **ret_own)
{
        uint32_t asked = (uint32_t)sl_attrs_int(&node->attrs, SL_ATTR_ALGORITHM, SL_ALGORITHM_AUTO);
        bool has_weights = packed && node->n_inputs > 1 && packed[1].data_bytes;
        enum way way;

        *ret_own = NULL;
        if (!node_is_final(node))
                return WAY_NONE;
        if (has_weights && sl_cpu_form_is_own(&packed[1])) {
                *ret_own = sl_algorithm_of_form(node, 1, &packed[1]);
                return *ret_own ? WAY_LOOP : WAY_NONE;
        }
        if (has_weights)
                return asked <= SL_ALGORITHM_DIRECT && describe_packed_call(node, call) ? WAY_CALL : WAY_NONE;
        way = find_way(node, call, ret_own);
        if (!*ret_own || !(*ret_own)->form || (*ret_own)->weights)
                return way;
        *ret_own = NULL;
        return find_onednn_way(node, call, NULL);
}

/*
 * What lies packed must be in the loop's own form, and what the loop packs must lie so: the plan file that says so is not trusted.
 */
static bool forms_fit(const struct sl_cpu_loop *loop, const struct sl_node_desc *node, const struct sl_packed *packed)
{
        struct sl_packed own;

        for (uint32_t i = 0; packed && i < node->n_inputs; i++) {
                if (packed[i].data_bytes && (!loop || !sl_algorithm_form_fits(loop, node, i, &packed[i])))
                        return false;
                if (!packed[i].data_bytes && loop && loop->form && !loop->weights && loop->form(node, i, &own))
                        return false;
        }
        return true;
}

static int compile_loop(const struct sl_cpu_loop *loop, const struct sl_node_desc *node, const struct sl_kernel_source *source,
        struct sl_kernel **ret_kernel)
{
        struct sl_kernel *kernel = NULL;
        int result = forms_fit(loop, node, source->packed) ? plan_loop(loop, node, source->target, &kernel) : -ENOTSUP;

        if (!result && loop->weights)
                loop->weights(kernel->state, source->packed);
        if (!result && loop->scratch)
                kernel->scratch_bytes = loop->scratch(kernel->state);
        if (!result && loop->check)
                result = source->constants ? loop->check(kernel->state, source->constants) : -ENOTSUP;
        if (result)
                cpu_kernel_free(kernel);
        else
                *ret_kernel = kernel;
        return result;
}

/* @node: that of the source, as kernels see it. */
static int compile_node(const struct sl_node_desc *node, const struct sl_kernel_source *source, struct sl_kernel **ret_kernel,
        struct sl_error *error)
{
        const struct sl_cpu_loop *own;
        struct sl_cpu_call call;
        int result = -ENOTSUP;

        switch (find_way_of_form(node, source->packed, &call, &own)) {
        case WAY_CALL:
                result = compile_call(&call, node, source, ret_kernel, error);
                /* Plain weights may lead to another of oneDNN's kernels than its own form does. */
                if (result == -ENOTSUP && sl_describe_sum(node, &call))
                        result = compile_call(&call, node, source, ret_kernel, error);
                return result ? sl_error_prefix(error, result, "%s", sl_op_name(node->op)) : 0;
        case WAY_LOOP:
                result = compile_loop(own ? own : only_loop(node), node, source, ret_kernel);
                break;
        case WAY_NONE:
                break;
        }
        if (result == -ERANGE)
                return sl_error_set(error, ERANGE, "%s: a table leads outside of what it leads to", sl_op_name(node->op));
        return result ? sl_error_set(error, -result, "backend \"cpu\" has no kernel for this %s", sl_op_name(node->op)) : 0;
}

/* Behind these doors a convolution over a line is one over an image. */
static bool cpu_supports(const struct sl_target *target, const struct sl_node_desc *node)
{
        struct sl_node_desc room;

        (void)target;
        return supports(sl_image_node(node, &room));
}

static uint32_t cpu_algorithms(const struct sl_target *target, const struct sl_node_desc *node,
        uint32_t ret_algorithms[SL_ALGORITHM_COUNT], double ret_seconds[SL_ALGORITHM_COUNT])
{
        struct sl_node_desc room;

        return list_algorithms(target, sl_image_node(node, &room), ret_algorithms, ret_seconds);
}

static int cpu_pack(const struct sl_target *target, const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        struct sl_node_desc room;

        (void)target;
        return pack_input(sl_image_node(node, &room), index, ret_packed);
}

static int cpu_repack(const struct sl_target *target, const struct sl_node_desc *node, uint32_t index,
        const struct sl_packed *packed, const void *plain, void *ret_data)
{
        struct sl_node_desc room;

        (void)target;
        return repack_input(sl_image_node(node, &room), index, packed, plain, ret_data);
}

static int cpu_compile(
        struct sl_session *session, const struct sl_kernel_source *source, struct sl_kernel **ret_kernel, struct sl_error *error)
{
        struct sl_node_desc room;

        (void)session;
        return compile_node(sl_image_node(source->node, &room), source, ret_kernel, error);
}

static size_t cpu_scratch_bytes(const struct sl_kernel *kernel)
{
        return kernel->scratch_bytes;
}

static uint64_t cpu_kernel_bytes(const struct sl_kernel *kernel)
{
        return sizeof(*kernel) + (kernel->loop ? kernel->loop->state_bytes : 0) + (kernel->primitive ? SL_PRIMITIVE_BYTES : 0) +
               (kernel->turn ? cpu_kernel_bytes(kernel->turn) : 0);
}

static int64_t cpu_units(const struct sl_kernel *kernel, uint32_t axis)
{
        if (kernel->divided)
                return axis == SL_AXIS_ROWS ? sl_divided_call_units(kernel->divided) : 0;
        return kernel->loop && kernel->loop->units ? kernel->loop->units(kernel->state, axis) : 0;
}

static bool cpu_reach(const struct sl_kernel *kernel, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        return kernel->loop && kernel->loop->reach && kernel->loop->reach(kernel->state, part, operand, ret_reach);
}

static int cpu_divide(struct sl_kernel *kernel, uint32_t axis, uint32_t count)
{
        /* What is turned lies behind what the primitive has. */
        size_t scratch_bytes = kernel->evening.pixels ? kernel->turned_offset : kernel->scratch_bytes;
        int r;

        if (!kernel->divided)
                return 0;
        r = axis == SL_AXIS_ROWS ? sl_divided_call_divide(kernel->divided, count, scratch_bytes) : -ENOTSUP;
        return r < 0 ? r : 1;
}

static int64_t cpu_stages(const struct sl_kernel *kernel)
{
        return kernel->loop && kernel->loop->stages ? kernel->loop->stages(kernel->state) : 1;
}

static int launch_call(struct sl_kernel *kernel, const struct sl_binding *binding)
{
        void *pointers[SL_ARGUMENT_COUNT] = {NULL};

        for (int i = 0; i < SL_ARGUMENT_COUNT; i++)
                if (kernel->input_of[i] >= 0)
                        pointers[i] = (void *)binding->inputs[kernel->input_of[i]];
        if (kernel->turn || kernel->evening.pixels) {
                void *turned = (char *)binding->scratch + kernel->turned_offset;
                struct sl_binding turn = {.inputs = binding->inputs, .outputs = &turned};

                if (kernel->turn)
                        kernel->turn->loop->run(kernel->turn->state, &turn);
                else
                        sl_evening_run(&kernel->evening, binding->inputs[0], turned);
                pointers[SL_ARGUMENT_SOURCE] = turned;
        }
        if (kernel->summand)
                memcpy(binding->outputs[0], binding->inputs[kernel->summand], kernel->summand_bytes);
        pointers[SL_ARGUMENT_RESULT] = binding->outputs[0];
        pointers[SL_ARGUMENT_SCRATCH] = binding->scratch;
        if (binding->part)
                return sl_divided_call_run(kernel->divided, binding->part, pointers);
        return sl_primitive_run(kernel->primitive, pointers);
}

static int cpu_launch(struct sl_kernel *kernel, const struct sl_binding *binding)
{
        int r = kernel->primitive ? launch_call(kernel, binding) : kernel->loop->run(kernel->state, binding);

        return sl_pace_status(binding->pace) ? sl_pace_status(binding->pace) : r;
}

/* What a kernel takes shows when it is made. */
static int cpu_provide(const struct sl_kernel_source *source, struct sl_provision *ret_provision, struct sl_error *error)
{
        struct sl_kernel_source own = *source;
        struct sl_kernel *kernel;
        int r;

        own.planned = source->uncut;
        r = cpu_compile(NULL, &own, &kernel, error);
        if (r < 0)
                return r;
        *ret_provision = (struct sl_provision){.scratch_bytes = cpu_scratch_bytes(kernel)};
        if (kernel->loop && !source->uncut)
                sl_cpu_choose_splits(kernel->loop, kernel->state, source, ret_provision);
        else if (!source->uncut && kernel->divided && sl_cpu_call_pays(source))
                sl_cpu_try_splits(sl_backend_cpu.runner, kernel, source, ret_provision->splits);
        cpu_kernel_free(kernel);
        return 0;
}

static bool cpu_gains(const struct sl_target *target, const struct sl_node_desc *node)
{
        (void)target;
        return node->op == SL_OP_MBCONV && sl_cpu_mbconv_gains(node);
}

/* Forms, and the scratch that follows from the blocks, are those of the library, the instructions and the caches. */
static int cpu_key(const struct sl_target *target, char ret_key[SL_BACKEND_KEY_BYTES])
{
        char library[64];

        (void)target;
        sl_primitive_version(library, sizeof(library));
        snprintf(ret_key, SL_BACKEND_KEY_BYTES, "%s, L1 cache %lld, L2 cache %lld", library, (long long)sl_cpu_l1_bytes(),
                (long long)sl_cpu_l2_bytes());
        return 0;
}

static const struct sl_planner cpu_planner = {
        .traits = SL_PLANNER_UNSIGNED_BYTES | SL_PLANNER_TIMES,
        .supports = cpu_supports,
        .gains = cpu_gains,
        .algorithms = cpu_algorithms,
        .measure = sl_cpu_measure,
        .pack = cpu_pack,
        .repack = cpu_repack,
        .provide = cpu_provide,
};

static const struct sl_runner cpu_runner = {
        .compile = cpu_compile,
        .scratch_bytes = cpu_scratch_bytes,
        .kernel_bytes = cpu_kernel_bytes,
        .units = cpu_units,
        .reach = cpu_reach,
        .stages = cpu_stages,
        .divide = cpu_divide,
        .launch = cpu_launch,
        .kernel_free = cpu_kernel_free,
};

const struct sl_backend sl_backend_cpu = {
        .name = "cpu", .step_weight = 1, .key = cpu_key, .planner = &cpu_planner, .runner = &cpu_runner};
