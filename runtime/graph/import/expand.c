/* SPDX-License-Identifier: Apache-2.0 */
#include "import/expand.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct sl_expansion sl_expansion_of(struct sl_importer *im, const struct sl_onnx_node *node)
{
        return (struct sl_expansion){.im = im, .node = node, .first = im->graph->n_values};
}

int sl_expansion_end(const struct sl_expansion *x)
{
        return x->result < 0 ? x->result : 1;
}

void sl_expand_wrong(struct sl_expansion *x, const char *format, ...)
{
        char what[192];
        va_list args;

        if (x->result < 0)
                return;
        va_start(args, format);
        vsnprintf(what, sizeof(what), format, args);
        va_end(args);
        x->result = sl_import_wrong(x->im, x->node, what);
}

void sl_expand_misfit(struct sl_expansion *x, const char *what)
{
        if (x->result == 0)
                x->result = sl_import_misfit(x->im, x->node, what);
}

void sl_expand_unsettled(struct sl_expansion *x, const char *what)
{
        if (x->result == 0)
                x->result = sl_import_unsettled(x->im, x->node, what);
}

void sl_expand_refuse(struct sl_expansion *x, const char *what)
{
        if (x->result == 0)
                x->result = sl_import_refuse(x->im, x->node, what);
}

uint32_t sl_expand_input(const struct sl_expansion *x, uint32_t index)
{
        return index < x->node->n_inputs ? x->node->inputs[index] : SL_VALUE_NONE;
}

bool sl_expand_has_output(const struct sl_expansion *x, uint32_t index)
{
        return index < x->node->proto->n_output && *x->node->proto->output[index];
}

int64_t sl_expand_int(struct sl_expansion *x, const char *name, int64_t fallback)
{
        if (x->result == 0)
                x->result = sl_onnx_int(x->im, x->node, name, &fallback);
        return fallback;
}

double sl_expand_float(struct sl_expansion *x, const char *name, double fallback)
{
        if (x->result == 0)
                x->result = sl_onnx_float(x->im, x->node, name, &fallback);
        return fallback;
}

const struct sl_shape *sl_expand_shape(const struct sl_expansion *x, uint32_t value)
{
        static const struct sl_shape none = {0};

        return value == SL_VALUE_NONE ? &none : &x->im->graph->values[value].tensor.shape;
}

uint32_t sl_expand_dtype(const struct sl_expansion *x, uint32_t value)
{
        return value == SL_VALUE_NONE ? SL_DTYPE_NONE : x->im->graph->values[value].tensor.dtype;
}

uint32_t sl_expand(struct sl_expansion *x, struct sl_draft *draft)
{
        uint32_t value = SL_VALUE_NONE;

        draft->n_outputs = 1;
        if (x->result == 0)
                x->result = sl_import_emit_step(x->im, x->node, draft, &value);
        return x->result == 0 ? value : SL_VALUE_NONE;
}

void sl_expand_several(struct sl_expansion *x, struct sl_draft *draft, uint32_t *ret_values)
{
        if (x->result == 0)
                x->result = sl_import_emit_step(x->im, x->node, draft, ret_values);
        for (uint32_t i = 0; i < draft->n_outputs && x->result < 0; i++)
                ret_values[i] = SL_VALUE_NONE;
}

uint32_t sl_expand_unary(struct sl_expansion *x, uint32_t op, uint32_t a)
{
        struct sl_draft draft = {.op = op, .n_inputs = 1, .inputs = {a}};

        return sl_expand(x, &draft);
}

uint32_t sl_expand_binary(struct sl_expansion *x, uint32_t op, uint32_t a, uint32_t b)
{
        struct sl_draft draft = {.op = op, .n_inputs = 2, .inputs = {a, b}};

        return sl_expand(x, &draft);
}

uint32_t sl_expand_plus(struct sl_expansion *x, uint32_t a, uint32_t b)
{
        return b == SL_VALUE_NONE ? a : sl_expand_binary(x, SL_OP_ADD, a, b);
}

/* Types without a C type are cast to, which fold-constants computes. */
uint32_t sl_expand_number(struct sl_expansion *x, double number, uint32_t dtype)
{
        const struct sl_tensor scalar = {.dtype = SL_DTYPE_F32};
        uint32_t value = SL_VALUE_NONE;
        float *data;

        if (x->result == 0 && x->im->graph->n_values >= x->im->limits->values)
                x->result = sl_error_set(x->im->error, E2BIG, "more than %u values", x->im->limits->values);
        if (x->result < 0)
                return SL_VALUE_NONE;
        data = sl_graph_alloc(x->im->graph, sizeof(*data));
        if (data)
                *data = (float)number;
        x->result = data ? sl_graph_add_constant(x->im->graph, x->node->name, &scalar, data, &value) : -ENOMEM;
        return x->result == 0 ? sl_expand_cast(x, value, dtype) : SL_VALUE_NONE;
}

uint32_t sl_expand_times(struct sl_expansion *x, uint32_t a, double number)
{
        return number == 1 ? a : sl_expand_binary(x, SL_OP_MUL, a, sl_expand_number(x, number, sl_expand_dtype(x, a)));
}

/* @op over @a with one attribute that is a list. */
static uint32_t with_ints(struct sl_expansion *x, uint32_t op, uint32_t a, enum sl_attr_id id, const int64_t *ints, uint32_t n_ints)
{
        struct sl_draft draft = {.op = op, .n_inputs = 1, .inputs = {a}};

        if (x->result == 0)
                x->result = sl_attrs_set_ints(&draft.attrs, id, ints, n_ints);
        return sl_expand(x, &draft);
}

static uint32_t with_int(struct sl_expansion *x, uint32_t op, uint32_t a, enum sl_attr_id id, int64_t number)
{
        struct sl_draft draft = {.op = op, .n_inputs = 1, .inputs = {a}};

        if (x->result == 0)
                x->result = sl_attrs_set_int(&draft.attrs, id, number);
        return sl_expand(x, &draft);
}

uint32_t sl_expand_reshape(struct sl_expansion *x, uint32_t a, const int64_t *dims, uint32_t rank)
{
        return with_ints(x, SL_OP_RESHAPE, a, SL_ATTR_SHAPE, dims, rank);
}

uint32_t sl_expand_transpose(struct sl_expansion *x, uint32_t a, const int64_t *perm, uint32_t rank)
{
        return with_ints(x, SL_OP_TRANSPOSE, a, SL_ATTR_PERM, perm, rank);
}

uint32_t sl_expand_unsqueeze(struct sl_expansion *x, uint32_t a, const int64_t *axes, uint32_t n_axes)
{
        return with_ints(x, SL_OP_UNSQUEEZE, a, SL_ATTR_AXES, axes, n_axes);
}

uint32_t sl_expand_cast(struct sl_expansion *x, uint32_t a, uint32_t dtype)
{
        return sl_expand_dtype(x, a) == dtype ? a : with_int(x, SL_OP_CAST, a, SL_ATTR_TO, dtype);
}

uint32_t sl_expand_softmax(struct sl_expansion *x, uint32_t a, int64_t axis)
{
        return with_int(x, SL_OP_SOFTMAX, a, SL_ATTR_AXIS, axis);
}

uint32_t sl_expand_slice(struct sl_expansion *x, uint32_t a, int64_t axis, int64_t start, int64_t end)
{
        struct sl_draft draft = {.op = SL_OP_SLICE, .n_inputs = 1, .inputs = {a}};

        if (x->result == 0)
                x->result = sl_attrs_set_ints(&draft.attrs, SL_ATTR_STARTS, &start, 1);
        if (x->result == 0)
                x->result = sl_attrs_set_ints(&draft.attrs, SL_ATTR_ENDS, &end, 1);
        if (x->result == 0)
                x->result = sl_attrs_set_ints(&draft.attrs, SL_ATTR_AXES, &axis, 1);
        return sl_expand(x, &draft);
}

uint32_t sl_expand_concat(struct sl_expansion *x, uint32_t a, uint32_t b, int64_t axis)
{
        struct sl_draft draft = {.op = SL_OP_CONCAT, .n_inputs = 2, .inputs = {a, b}};

        if (x->result == 0)
                x->result = sl_attrs_set_int(&draft.attrs, SL_ATTR_AXIS, axis);
        return sl_expand(x, &draft);
}

/* A value goes under one name: one that has its own already, or comes from elsewhere, is copied. */
static uint32_t named(struct sl_expansion *x, const char *name, uint32_t value)
{
        struct sl_value *made = &x->im->graph->values[value];

        if (made->kind != SL_VALUE_CONSTANT && (value < x->first || strcmp(made->name, x->node->name)))
                value = sl_expand_unary(x, SL_OP_IDENTITY, value);
        if (value == SL_VALUE_NONE)
                return value;
        x->result = sl_graph_rename_value(x->im->graph, value, name);
        return x->result < 0 ? SL_VALUE_NONE : value;
}

void sl_expand_output(struct sl_expansion *x, uint32_t index, uint32_t value)
{
        struct sl_symbol *symbol;

        if (x->result < 0 || !sl_expand_has_output(x, index))
                return;
        symbol = sl_symbols_find(&x->im->symbols, x->node->proto->output[index]);
        if (symbol)
                symbol->value = named(x, symbol->name, value);
}
