/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node of the file that becomes several of the graph, made one after the other. The first step that fails is what the expansion
 * gives back; the steps behind it do nothing and make SL_VALUE_NONE, so that only the end is looked at. Private to this folder.
 */
#pragma once

#include "import/importer.h"

struct sl_expansion {
        struct sl_importer *im;
        const struct sl_onnx_node *node;
        uint32_t first; /* what has this index or a later one was made here */
        int result;
};

struct sl_expansion sl_expansion_of(struct sl_importer *im, const struct sl_onnx_node *node);

/* What a canonical function returns of it: 1, or the error. */
int sl_expansion_end(const struct sl_expansion *x);

/* What is wrong with the node, or with its dimensions, or not supported, as the functions of importer.h with these names say it. */
void sl_expand_wrong(struct sl_expansion *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sl_expand_misfit(struct sl_expansion *x, const char *what);
void sl_expand_unsettled(struct sl_expansion *x, const char *what);
void sl_expand_refuse(struct sl_expansion *x, const char *what);

/* Input @index of the file's node; SL_VALUE_NONE when it is left out. */
uint32_t sl_expand_input(const struct sl_expansion *x, uint32_t index);
bool sl_expand_has_output(const struct sl_expansion *x, uint32_t index);

/* An attribute of the file's node, or @fallback. */
int64_t sl_expand_int(struct sl_expansion *x, const char *name, int64_t fallback);
double sl_expand_float(struct sl_expansion *x, const char *name, double fallback);

/* Of SL_VALUE_NONE: rank 0, no type. Valid until the next step. */
const struct sl_shape *sl_expand_shape(const struct sl_expansion *x, uint32_t value);
uint32_t sl_expand_dtype(const struct sl_expansion *x, uint32_t value);

/* The draft with one output, or with as many as it says; operators of one and of two inputs without attributes. */
uint32_t sl_expand(struct sl_expansion *x, struct sl_draft *draft);
void sl_expand_several(struct sl_expansion *x, struct sl_draft *draft, uint32_t *ret_values);
uint32_t sl_expand_unary(struct sl_expansion *x, uint32_t op, uint32_t a);
uint32_t sl_expand_binary(struct sl_expansion *x, uint32_t op, uint32_t a, uint32_t b);

/* The sum, or @a when @b is left out. */
uint32_t sl_expand_plus(struct sl_expansion *x, uint32_t a, uint32_t b);

/* A constant of one element and rank 0; @a times a number. */
uint32_t sl_expand_number(struct sl_expansion *x, double number, uint32_t dtype);
uint32_t sl_expand_times(struct sl_expansion *x, uint32_t a, double number);

/* Operators of one input with one attribute; @dims as Reshape has them: 0 for "as it is", one -1 for "what is left". */
uint32_t sl_expand_reshape(struct sl_expansion *x, uint32_t a, const int64_t *dims, uint32_t rank);
uint32_t sl_expand_transpose(struct sl_expansion *x, uint32_t a, const int64_t *perm, uint32_t rank);
uint32_t sl_expand_unsqueeze(struct sl_expansion *x, uint32_t a, const int64_t *axes, uint32_t n_axes);
uint32_t sl_expand_cast(struct sl_expansion *x, uint32_t a, uint32_t dtype);
uint32_t sl_expand_softmax(struct sl_expansion *x, uint32_t a, int64_t axis);

/* [@start, @end) along one axis. */
uint32_t sl_expand_slice(struct sl_expansion *x, uint32_t a, int64_t axis, int64_t start, int64_t end);
uint32_t sl_expand_concat(struct sl_expansion *x, uint32_t a, uint32_t b, int64_t axis);

/* Output @index of the file's node is @value; nothing when the file leaves that output out. */
void sl_expand_output(struct sl_expansion *x, uint32_t index, uint32_t value);
