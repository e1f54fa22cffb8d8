/* SPDX-License-Identifier: Apache-2.0 */
#include "op.h"

#include "shape/rules.h"
#include "shape/work.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const struct op_row {
        const char *name;
        uint32_t least, most, outputs;
        int (*infer)(struct sl_node_desc *node, struct sl_error *error);
        uint64_t (*work)(const struct sl_node_desc *node);
        uint32_t traits;
} ops[SL_OP_COUNT] = {
#define X(id, label, few, many, out, rule, formula, bits)                                                                          \
        [SL_OP_##id] = {.name = label,                                                                                             \
                .least = few,                                                                                                      \
                .most = many,                                                                                                      \
                .outputs = out,                                                                                                    \
                .infer = sl_shape_##rule,                                                                                          \
                .work = sl_work_##formula,                                                                                         \
                .traits = bits},
        SL_OPS(X)
#undef X
};

const char *sl_op_name(uint32_t op)
{
        return op < SL_OP_COUNT ? ops[op].name : "unknown";
}

int sl_op_find(const char *name)
{
        /* Internal names have a dot, ONNX's have none. */
        if (strchr(name, '.'))
                return -ENOENT;
        for (int op = 0; op < SL_OP_COUNT; op++)
                if (ops[op].name[0] == name[0] && !strcmp(ops[op].name, name))
                        return op;
        return -ENOENT;
}

uint32_t sl_op_traits(uint32_t op)
{
        return op < SL_OP_COUNT ? ops[op].traits : 0;
}

uint32_t sl_op_outputs(uint32_t op)
{
        return op < SL_OP_COUNT ? ops[op].outputs : 0;
}

static int check_counts(const struct sl_node_desc *node, struct sl_error *error)
{
        const struct op_row *row = &ops[node->op];
        bool fused = node->epilogue.has_residual || node->epilogue.activation != SL_ACT_NONE;

        if (fused && !(row->traits & SL_OP_EPILOGUE))
                return sl_error_set(error, EINVAL, "an epilogue is attached, which this operator cannot carry");
        if (node->n_inputs < row->least + (node->epilogue.has_residual != 0) || node->n_inputs > row->most)
                return sl_error_set(error, EINVAL, "%u inputs, wants %u to %u", node->n_inputs, row->least, row->most);
        if (!node->n_outputs || node->n_outputs > row->outputs)
                return sl_error_set(error, EINVAL, "%u outputs, wants 1 to %u", node->n_outputs, row->outputs);
        return 0;
}

static int check_input(const struct sl_node_desc *node, uint32_t index, struct sl_error *error)
{
        const struct sl_tensor *in = &node->inputs[index];

        if (in->dtype == SL_DTYPE_NONE && index >= ops[node->op].least)
                return 0;
        if (in->dtype == SL_DTYPE_NONE)
                return sl_error_set(error, EINVAL, "input %u is missing", index);
        if (!sl_dtype_bytes(in->dtype))
                return sl_error_set(error, EINVAL, "input %u has element type %u, which is unknown", index, in->dtype);
        if (in->shape.rank > SL_RANK_MAX)
                return sl_error_set(error, EINVAL, "input %u has rank %u, the highest is %d", index, in->shape.rank, SL_RANK_MAX);
        for (uint32_t i = 0; i < in->shape.rank; i++)
                if (in->shape.dims[i] < SL_DIM_UNKNOWN)
                        return sl_error_set(error, EINVAL, "input %u has dimension %" PRId64, index, in->shape.dims[i]);
        return 0;
}

static int check_outputs(const struct sl_node_desc *node, struct sl_error *error)
{
        char text[SL_SHAPE_TEXT_BYTES];

        for (uint32_t i = 0; i < node->n_outputs; i++) {
                const struct sl_tensor *out = &node->outputs[i];

                if (sl_shape_is_static(&out->shape) && sl_tensor_bytes(out) > INT64_MAX)
                        return sl_error_set(error, EOVERFLOW, "output %u would be %s of %s, more than 64 bits count", i,
                                sl_shape_print(&out->shape, text), sl_dtype_name(out->dtype));
        }
        return 0;
}

static bool is_byte(uint32_t dtype)
{
        return dtype == SL_DTYPE_U8 || dtype == SL_DTYPE_I8;
}

/* A quantized operator says what a byte of its residual is worth; floats are added to a result that is not rounded. */
static bool residual_type_fits(const struct sl_node_desc *node, const struct sl_tensor *residual)
{
        if (node->op == SL_OP_QUANTIZED_CONV || node->op == SL_OP_QUANTIZED_MATMUL)
                return is_byte(residual->dtype) || (residual->dtype == SL_DTYPE_F32 && node->outputs[0].dtype == SL_DTYPE_F32);
        return residual->dtype == node->outputs[0].dtype;
}

static int check_residual(const struct sl_node_desc *node, const struct sl_tensor *residual, struct sl_error *error)
{
        const struct sl_tensor *out = &node->outputs[0];
        char text[SL_SHAPE_TEXT_BYTES], out_text[SL_SHAPE_TEXT_BYTES];
        bool same = residual_type_fits(node, residual) && residual->shape.rank == out->shape.rank;

        for (uint32_t i = 0; i < out->shape.rank && same; i++) {
                int64_t merged;

                same = !sl_dim_merge(residual->shape.dims[i], out->shape.dims[i], &merged);
        }
        if (same)
                return 0;
        return sl_error_set(error, EINVAL, "the residual is %s %s, output 0 is %s %s", sl_dtype_name(residual->dtype),
                sl_shape_print(&residual->shape, text), sl_dtype_name(out->dtype), sl_shape_print(&out->shape, out_text));
}

static int infer_outputs(struct sl_node_desc *node, struct sl_error *error)
{
        uint32_t n_inputs = node->n_inputs;
        int r = check_counts(node, error);

        for (uint32_t i = 0; i < n_inputs && !r; i++)
                r = check_input(node, i, error);
        if (r)
                return r;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                node->outputs[i] = (struct sl_tensor){.layout = SL_LAYOUT_PLAIN};
        /* A rule sees the operator as ONNX has it, without the residual at the end. */
        node->n_inputs -= node->epilogue.has_residual != 0;
        r = ops[node->op].infer(node, error);
        node->n_inputs = n_inputs;
        if (!r && node->epilogue.has_residual)
                r = check_residual(node, &node->inputs[n_inputs - 1], error);
        return r ? r : check_outputs(node, error);
}

int sl_op_infer(struct sl_node_desc *node, struct sl_error *error)
{
        int r;

        if (node->op >= SL_OP_COUNT)
                return sl_error_set(error, EINVAL, "operator number %u is unknown", node->op);
        r = infer_outputs(node, error);
        return r ? sl_error_prefix(error, r, "%s", sl_op_name(node->op)) : 0;
}

static bool has_static_shapes(const struct sl_tensor *tensors, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                if (tensors[i].dtype != SL_DTYPE_NONE && !sl_shape_is_static(&tensors[i].shape))
                        return false;
        return true;
}

uint64_t sl_op_work(const struct sl_node_desc *node)
{
        if (!has_static_shapes(node->inputs, node->n_inputs) || !has_static_shapes(node->outputs, node->n_outputs))
                return UINT64_MAX;
        return ops[node->op].work(node);
}

static int64_t range_of_floats(double start, double limit, double delta)
{
        double elements = ceil((limit - start) / delta);

        if (delta == 0 || isnan(elements))
                return -EINVAL;
        if (elements > 0x1p62)
                return -EOVERFLOW;
        return elements > 0 ? (int64_t)elements : 0;
}

static int64_t range_of_integers(int64_t start, int64_t limit, int64_t delta)
{
        uint64_t distance, step, elements;

        if (!delta)
                return -EINVAL;
        if (delta > 0 ? start >= limit : start <= limit)
                return 0;
        distance = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
        step = delta > 0 ? (uint64_t)delta : -(uint64_t)delta;
        elements = (distance - 1) / step + 1;
        return elements > INT64_MAX ? -EOVERFLOW : (int64_t)elements;
}

int64_t sl_op_range_elements(uint32_t dtype, const void *start, const void *limit, const void *delta)
{
        switch (dtype) {
        case SL_DTYPE_F32:
                return range_of_floats(*(const float *)start, *(const float *)limit, *(const float *)delta);
        case SL_DTYPE_F64:
                return range_of_floats(*(const double *)start, *(const double *)limit, *(const double *)delta);
        case SL_DTYPE_I16:
                return range_of_integers(*(const int16_t *)start, *(const int16_t *)limit, *(const int16_t *)delta);
        case SL_DTYPE_I32:
                return range_of_integers(*(const int32_t *)start, *(const int32_t *)limit, *(const int32_t *)delta);
        case SL_DTYPE_I64:
                return range_of_integers(*(const int64_t *)start, *(const int64_t *)limit, *(const int64_t *)delta);
        default:
                return -EINVAL;
        }
}
