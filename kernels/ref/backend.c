/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: every operator of the table in plain C, one thread, no packing. A kernel is a copy of the node and
 * a function; immutable once compiled.
 */
#include "base/error.h"
#include "kernels.h"
#include "pace.h"

#include <assert.h>
#include <stdlib.h>

struct sl_kernel {
        struct sl_node_desc node;
        int (*launch)(const struct sl_node_desc *node, const struct sl_binding *binding);
};

static const struct {
        int (*launch)(const struct sl_node_desc *node, const struct sl_binding *binding);
        uint32_t types;
} kernels[SL_OP_COUNT] = {
#define X(id, function, set) [SL_OP_##id] = {.launch = sl_ref_##function, .types = set},
        SL_REF_KERNELS(X)
#undef X
};

/* What a launch needs besides its tensors. */
static size_t (*const scratches[SL_OP_COUNT])(const struct sl_node_desc *node) = {
#define X(id, function) [SL_OP_##id] = sl_ref_scratch_##function,
        SL_REF_SCRATCHES(X)
#undef X
};

enum {
#define X(id, function, types) ROW_##id,
        SL_REF_KERNELS(X)
#undef X
                ROW_COUNT,
};
static_assert((int)ROW_COUNT == (int)SL_OP_COUNT, "every operator has a row of its own");

static bool tensor_fits(const struct sl_node_desc *node, const struct sl_tensor *tensor)
{
        if (tensor->dtype == SL_DTYPE_NONE)
                return true;
        if (tensor->layout != SL_LAYOUT_PLAIN && node->op != SL_OP_REORDER)
                return false;
        return sl_tensor_bytes(tensor) <= INT64_MAX;
}

static bool is_quantized(uint32_t op)
{
        return op == SL_OP_QUANTIZED_CONV || op == SL_OP_QUANTIZED_MATMUL || op == SL_OP_QUANTIZED_ADD;
}

static bool supports(const struct sl_target *target, const struct sl_node_desc *node)
{
        bool fused = node->epilogue.has_residual || node->epilogue.activation != SL_ACT_NONE;
        uint32_t dtype = node->n_inputs ? node->inputs[0].dtype : node->outputs[0].dtype;

        (void)target;
        if (node->op >= SL_OP_COUNT || node->n_inputs > SL_NODE_INPUTS_MAX || node->n_outputs > SL_NODE_OUTPUTS_MAX)
                return false;
        if (dtype >= SL_DTYPE_LIMIT || !(kernels[node->op].types & 1u << dtype))
                return false;
        if (fused && ((!sl_dtype_is_float(dtype) && !is_quantized(node->op)) || node->epilogue.activation > SL_ACT_ELU))
                return false;
        if (!sl_op_parameters_resolved(node))
                return false;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (!tensor_fits(node, &node->inputs[i]))
                        return false;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (!tensor_fits(node, &node->outputs[i]))
                        return false;
        return true;
}

static int pack(const struct sl_target *target, const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        (void)target;
        (void)node;
        (void)index;
        *ret_packed = (struct sl_packed){.data_bytes = 0};
        return 0;
}

static int repack(const struct sl_target *target, const struct sl_node_desc *node, uint32_t index, const struct sl_packed *packed,
        const void *plain, void *ret_data)
{
        (void)target;
        (void)node;
        (void)index;
        (void)packed;
        (void)plain;
        (void)ret_data;
        return -ENOTSUP; /* pack() never asks for it. */
}

/* Operators that count leave a dimension to the caller. */
static bool dims_agree(uint32_t op, const struct sl_shape *shape, const struct sl_shape *rule)
{
        for (uint32_t i = 0; i < shape->rank; i++) {
                bool counted = rule->dims[i] == SL_DIM_UNKNOWN && (sl_op_traits(op) & SL_OP_COUNTS);

                if (!counted && shape->dims[i] != rule->dims[i])
                        return false;
        }
        return true;
}

/* The kernels trust shapes and attributes, so the shape rule must arrive at the same outputs. */
static int check_outputs(const struct sl_node_desc *node, struct sl_node_desc *inferred, struct sl_error *error)
{
        char text[SL_SHAPE_TEXT_BYTES], want[SL_SHAPE_TEXT_BYTES];
        int r;

        *inferred = *node;
        r = sl_op_infer(inferred, error);
        for (uint32_t i = 0; i < node->n_outputs && !r; i++) {
                const struct sl_tensor *out = &node->outputs[i], *rule = &inferred->outputs[i];
                bool same = out->dtype == rule->dtype && out->layout == rule->layout && out->shape.rank == rule->shape.rank;

                if (!same || !dims_agree(node->op, &out->shape, &rule->shape))
                        r = sl_error_set(error, EINVAL, "%s: output %u is %s %s, the shape rule says %s %s", sl_op_name(node->op),
                                i, sl_dtype_name(out->dtype), sl_shape_print(&out->shape, text), sl_dtype_name(rule->dtype),
                                sl_shape_print(&rule->shape, want));
        }
        return r;
}

static int compile(
        struct sl_session *session, const struct sl_kernel_source *source, struct sl_kernel **ret_kernel, struct sl_error *error)
{
        const struct sl_node_desc *node = source->node;
        struct sl_kernel *kernel;
        int r;

        (void)session;
        if (!supports(NULL, node))
                return sl_error_set(error, ENOTSUP, "%s: the ref backend lacks this type or layout", sl_op_name(node->op));
        kernel = malloc(sizeof(*kernel));
        if (!kernel)
                return sl_error_set(
                        error, ENOMEM, "%s: no memory for a kernel of %zu bytes", sl_op_name(node->op), sizeof(*kernel));
        r = check_outputs(node, &kernel->node, error);
        if (r) {
                free(kernel);
                return r;
        }
        kernel->node = *node;
        kernel->launch = kernels[node->op].launch;
        *ret_kernel = kernel;
        return 0;
}

size_t sl_ref_scratch_bytes(const struct sl_node_desc *node)
{
        return scratches[node->op] ? scratches[node->op](node) : 0;
}

int sl_ref_run(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int r = supports(NULL, node) ? kernels[node->op].launch(node, binding) : -ENOTSUP;

        return sl_pace_status(binding->pace) ? sl_pace_status(binding->pace) : r;
}

static size_t scratch_bytes(const struct sl_kernel *kernel)
{
        return sl_ref_scratch_bytes(&kernel->node);
}

static int launch(struct sl_kernel *kernel, const struct sl_binding *binding)
{
        int r = kernel->launch(&kernel->node, binding);

        return sl_pace_status(binding->pace) ? sl_pace_status(binding->pace) : r;
}

static struct sl_kernel *kernel_free(struct sl_kernel *kernel)
{
        free(kernel);
        return NULL;
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

static int provide(const struct sl_kernel_source *source, struct sl_provision *ret_provision, struct sl_error *error)
{
        struct sl_kernel *kernel;
        int r = compile(NULL, source, &kernel, error);

        if (r < 0)
                return r;
        *ret_provision = (struct sl_provision){.scratch_bytes = scratch_bytes(kernel)};
        kernel_free(kernel);
        return 0;
}

static const struct sl_planner planner = {
        .traits = SL_PLANNER_HALVES | SL_PLANNER_TIMES,
        .supports = supports,
        .algorithms = algorithms,
        .pack = pack,
        .repack = repack,
        .provide = provide,
};

static const struct sl_runner runner = {
        .compile = compile,
        .scratch_bytes = scratch_bytes,
        .launch = launch,
        .kernel_free = kernel_free,
};

const struct sl_backend sl_backend_ref = {.name = "ref", .step_weight = 32, .planner = &planner, .runner = &runner};
