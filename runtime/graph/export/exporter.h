/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one export, private to this folder and export.c. Everything under construction lies in the graph's arena, but the
 * array of initializers, which grows. One owner thread, the graph's.
 */
#pragma once

#include "graph.h"
#include "onnx/onnx.pb-c.h"

#include <errno.h>
#include <stddef.h>

struct sl_error;

/* Unless an operator wants a later one: what is written is to be read by many. */
#define SL_EXPORT_OPSET 20

struct sl_exporter {
        struct sl_graph *graph;
        struct sl_error *error;
        Onnx__GraphProto out;
        char **names;     /* of each value */
        uint8_t *written; /* constants that are initializers already */
        size_t initializers_room;
        int64_t opset;          /* the least that has all operators so far */
        const char *bound_node; /* of the last node that says something else in opset 21 and later; NULL: none */
};

/* Zeroed memory that lives as long as the graph, and a text there, printed; NULL when there is none left. */
void *sl_export_alloc(struct sl_exporter *e, size_t bytes);
char *sl_export_text(struct sl_exporter *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The data stay the caller's, and must last until the file is packed. -ENOMEM. */
int sl_export_initializer(
        struct sl_exporter *e, char *name, uint32_t dtype, uint32_t rank, const int64_t *dims, const void *data, size_t bytes);

/* The name of a value as an input, "" for SL_VALUE_NONE; a constant is written when it is first asked for. -ENOMEM. */
int sl_export_value(struct sl_exporter *e, uint32_t value, char **ret_name);

/* node.c: one node. -ENOTSUP with a text; -ENOMEM without one. */
int sl_export_node(struct sl_exporter *e, const struct sl_node *from);

/* -ENOTSUP: names the node, its operator and @what of it has no way back. */
int sl_export_refuse(struct sl_exporter *e, const struct sl_node *from, const char *what);

/* opset.c: the file gets an opset that has the node as it is. -ENOTSUP: no opset has it beside the nodes before it. */
int sl_export_want_opset(struct sl_exporter *e, const struct sl_node *from);
int64_t sl_export_ir_version(int64_t opset);

/* attribute.c: each attribute under ONNX's name and in ONNX's type. -ENOTSUP, -ENOMEM. */
int sl_export_attributes(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node);

/* attribute.c: one attribute more; the data are copied. -ENOMEM. */
int sl_export_int(struct sl_exporter *e, Onnx__NodeProto *node, const char *name, int64_t value);
int sl_export_ints(struct sl_exporter *e, Onnx__NodeProto *node, const char *name, const int64_t *values, size_t n);
int sl_export_floats(struct sl_exporter *e, Onnx__NodeProto *node, const char *name, const float *values, size_t n);
int sl_export_string(struct sl_exporter *e, Onnx__NodeProto *node, const char *name, const char *text, size_t length);
Onnx__AttributeProto *sl_export_attribute(struct sl_exporter *e, Onnx__NodeProto *node, const char *name, int type);

/* parameter.c: the input that the attribute was, or -1; the attribute as an initializer there. -ENOMEM. */
int sl_export_parameter_input(const struct sl_node *from, uint32_t attr);
int sl_export_parameter(
        struct sl_exporter *e, const struct sl_node *from, const struct sl_attr *attr, uint32_t input, Onnx__NodeProto *node);

/* Forms of one operator's own, for node.c: functions of gates by name, an equation of letters, lists that are attributes. */
int sl_export_gates(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node);    /* gates.c */
int sl_export_equation(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node); /* equation.c */
int sl_export_ngram(struct sl_exporter *e, const struct sl_node *from, Onnx__NodeProto *node);    /* ngram.c */
