/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters that import made attributes, as initializers of the types that ONNX wants. */
#include "export/exporter.h"
#include "ref/element.h"

#include <stdio.h>

/* Inputs among which an operator has its parameters. */
#define INPUTS_MAX 8

int sl_export_parameter_input(const struct sl_node *from, uint32_t attr)
{
        for (int i = 0; i < INPUTS_MAX; i++)
                if (sl_op_parameter(from->op, (uint32_t)i) == (int)attr)
                        return i;
        return -1;
}

/* The integer beside which a parameter stands has its type: what is left of a Slice or an STFT, the rate of mel weights. */
static bool is_of_one_type(const struct sl_node *from, uint32_t input)
{
        if (from->op == SL_OP_MEL_WEIGHTS)
                return input == 0;
        return (from->op == SL_OP_SLICE || from->op == SL_OP_STFT) && sl_op_parameter(from->op, input) >= 0;
}

static uint32_t type_of_integers(const struct sl_exporter *e, const struct sl_node *from)
{
        for (uint32_t i = 0; i < from->n_inputs; i++)
                if (from->inputs[i] != SL_VALUE_NONE && is_of_one_type(from, i))
                        return e->graph->values[from->inputs[i]].tensor.dtype;
        return SL_DTYPE_I64;
}

/* ONNX takes any type of number; ONNX Runtime has kernels for these, next to those types of the indices and the values. */
static uint32_t type_of_depth(uint32_t indices, uint32_t values)
{
        if (values == SL_DTYPE_I32)
                return SL_DTYPE_F32;
        return values != SL_DTYPE_I64 && (indices == SL_DTYPE_I32 || indices == SL_DTYPE_F32) ? indices : SL_DTYPE_I64;
}

/* A limit or a filler has the type of the data. */
static uint32_t type_of_number(const struct sl_exporter *e, const struct sl_node *from)
{
        uint32_t data = e->graph->values[from->inputs[0]].tensor.dtype;

        return from->op == SL_OP_ONE_HOT ? type_of_depth(data, e->graph->values[from->inputs[1]].tensor.dtype) : data;
}

static uint32_t type_of(const struct sl_exporter *e, const struct sl_node *from, const struct sl_attr *attr)
{
        switch (attr->type) {
        case SL_ATTR_TYPE_FLOATS:
                return SL_DTYPE_F32;
        case SL_ATTR_TYPE_FLOAT:
                return type_of_number(e, from);
        default:
                return type_of_integers(e, from);
        }
}

static void store(void *data, int64_t at, uint32_t dtype, const struct sl_attr *attr)
{
        bool list = attr->type == SL_ATTR_TYPE_INTS;

        if (attr->type == SL_ATTR_TYPE_FLOAT || attr->type == SL_ATTR_TYPE_FLOATS)
                sl_ref_store(data, at, dtype, attr->type == SL_ATTR_TYPE_FLOAT ? attr->f : attr->floats[at]);
        else if (dtype == SL_DTYPE_I64)
                ((int64_t *)data)[at] = list ? attr->ints[at] : attr->i;
        else
                sl_ref_store(data, at, dtype, (double)(list ? attr->ints[at] : attr->i));
}

/* Empty scales or sizes of a Resize mean what absent ones mean, and beside the others they may not stand. */
static bool is_absent(const struct sl_node *from, const struct sl_attr *attr)
{
        return from->op == SL_OP_RESIZE && !attr->count;
}

int sl_export_parameter(
        struct sl_exporter *e, const struct sl_node *from, const struct sl_attr *attr, uint32_t input, Onnx__NodeProto *node)
{
        bool list = attr->type == SL_ATTR_TYPE_INTS || attr->type == SL_ATTR_TYPE_FLOATS;
        uint32_t count = list ? attr->count : 1, dtype = type_of(e, from, attr);
        size_t bytes = count * sl_dtype_bytes(dtype);
        void *data = sl_export_alloc(e, bytes);
        char *name;

        if (is_absent(from, attr))
                return 0;
        name = sl_export_text(e, "parameter:%zu:%s", e->out.n_initializer, sl_attr_name(attr->id));
        if (!data || !name)
                return -ENOMEM;
        for (uint32_t i = 0; i < count; i++)
                store(data, i, dtype, attr);
        while (node->n_input <= input)
                node->input[node->n_input++] = (char *)"";
        node->input[input] = name;
        /* TopK alone wants a list of one. */
        return sl_export_initializer(e, name, dtype, list || from->op == SL_OP_TOP_K, (int64_t[]){count}, data, bytes);
}
