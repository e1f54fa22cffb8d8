/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small ONNX models for tests, built in C and packed with protobuf-c. Everything lives until builder_free(). One thread.
 */
#pragma once

#include "graph.h"
#include "onnx/onnx.pb-c.h"

#include <stddef.h>
#include <stdint.h>

struct builder {
        Onnx__ModelProto model;
        Onnx__GraphProto graph;
        struct piece *pieces;
};

struct builder *builder_new(int64_t opset);
/* Has the input "x" of floats. */
struct builder *builder_new_of_x(int64_t opset, uint32_t rank, const int64_t *dims);
struct builder *builder_free(struct builder *b);

/* Zeroed, freed with the builder. */
void *builder_alloc(struct builder *b, size_t bytes);

/* A dimension of -1 is the parameter "N", -2 the parameter "M", -3 the parameter "?", -4 the parameter "K". */
void builder_input(struct builder *b, const char *name, int32_t dtype, uint32_t rank, const int64_t *dims);
void builder_output(struct builder *b, const char *name);
void builder_declare_output(struct builder *b, const char *name, int32_t dtype, uint32_t rank, const int64_t *dims);

/* Initializers with raw data. */
Onnx__TensorProto *builder_floats(struct builder *b, const char *name, uint32_t rank, const int64_t *dims, const float *data);
Onnx__TensorProto *builder_ints(struct builder *b, const char *name, uint32_t rank, const int64_t *dims, const int64_t *data);
Onnx__TensorProto *builder_raw(
        struct builder *b, const char *name, int32_t dtype, uint32_t rank, const int64_t *dims, const void *data);
/* Random floats in [-1, 1), the same for the same name. */
Onnx__TensorProto *builder_random(struct builder *b, const char *name, uint32_t rank, const int64_t *dims);

/* @inputs and @outputs: names with commas between, "" between two commas for an absent one. The node has the name of @outputs. */
Onnx__NodeProto *builder_node(struct builder *b, const char *type, const char *inputs, const char *outputs);
void builder_transpose(struct builder *b, const char *input, const char *output, size_t n, const int64_t *perm);
void builder_attr_int(struct builder *b, Onnx__NodeProto *node, const char *name, int64_t value);
void builder_attr_float(struct builder *b, Onnx__NodeProto *node, const char *name, float value);
void builder_attr_ints(struct builder *b, Onnx__NodeProto *node, const char *name, size_t n, const int64_t *values);
void builder_attr_string(struct builder *b, Onnx__NodeProto *node, const char *name, const char *value);
void builder_attr_tensor(struct builder *b, Onnx__NodeProto *node, const char *name, Onnx__TensorProto *tensor);

/* A body, built as a model of its own that must outlive @b. */
void builder_attr_graph(struct builder *b, Onnx__NodeProto *node, const char *name, struct builder *body);

/* The packed file; freed with the builder. */
uint8_t *builder_pack(struct builder *b, size_t *ret_bytes);

/* Packs and imports; the test fails when the import does. */
struct sl_graph *builder_import(struct builder *b);

/* Imports and returns the result, which must be an error with a text that contains @text. */
void builder_expect(struct builder *b, int result, const char *text);

#define DIMS(...)                                                                                                                  \
        (sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                                                          \
        {                                                                                                                          \
                __VA_ARGS__                                                                                                        \
        }

/* Random floats in [-1, 1). */
void fill_random(float *data, size_t n, uint32_t seed);

/* Specialises for @batch and evaluates a graph of one float input and one float output. @ret_output has room for @n floats. */
void evaluate_floats(const struct sl_graph *graph, int64_t batch, const float *input, float *ret_output, size_t n);

/* sl_graph_print() into a string that the caller frees. */
char *print_graph(const struct sl_graph *graph);
uint32_t count_ops(const struct sl_graph *graph, uint32_t op);
uint32_t count_live(const struct sl_graph *graph);
