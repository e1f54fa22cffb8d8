/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph of one model: values and nodes in topological order. Built by import, rewritten by passes, read by the compiler.
 * One owner thread; lives in the compiler's child process and in tools, never in the serving process.
 *
 * Invariants, walked by sl_graph_check(): every node's inputs are values made earlier (constants, graph inputs, outputs of
 * earlier nodes) or SL_VALUE_NONE; every value has at most one producer; shapes and types agree with sl_op_infer().
 */
#pragma once

#include "op.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct sl_data_folders;
struct sl_error;

#define SL_VALUE_NONE UINT32_MAX

enum sl_value_kind { SL_VALUE_COMPUTED, SL_VALUE_INPUT, SL_VALUE_CONSTANT };

struct sl_value {
        const char *name; /* as in the file, never NULL, the arena's; unique names are not needed */
        uint32_t kind;    /* enum sl_value_kind */
        uint32_t dead;    /* removed by a pass: no node uses it any more */
        struct sl_tensor tensor;
        struct sl_shape learned; /* of the same rank: what stands where the shape rules find SL_DIM_UNKNOWN while the batch is open;
                                    rank 0: nothing */
        const char *const *symbols; /* [rank], of an input of a graph of any size: under which name a request says a dimension; NULL
                                       where that is known. The arena's. NULL: all are */
        const void *data; /* of a constant, or of an input that a request may leave out: PLAIN layout, little-endian; in the graph's
                             arena, or in a mapped file, at any address there: who reads elements asks sl_graph_constant() */
        uint64_t data_bytes;
};

struct sl_node {
        const char *name;
        uint32_t op; /* enum sl_op */
        uint32_t dead;
        uint32_t n_inputs, n_outputs;
        struct sl_attrs attrs;
        struct sl_epilogue epilogue;
        uint32_t *inputs; /* value indices; owned by the graph's arena */
        uint32_t *outputs;
        struct sl_graph **bodies; /* of If, Loop and Scan, owned by the node: see control.h */
        uint32_t n_bodies;
};

struct sl_graph_property {
        const char *key, *value;
};

/* A constant that a request could give instead. */
struct sl_graph_optional {
        const char *name;
        struct sl_tensor tensor;
};

/* What the numbers of an output stand for: words of its elements where they are integers, else of its last dimension. */
struct sl_graph_labels {
        const char *port, *text; /* its name; the labels as one text (base/labels.h) */
        const struct sl_graph_labels *next;
};

struct sl_graph {
        const char *name; /* never NULL, the arena's */
        int64_t opset, ir_version;
        uint32_t n_values, n_nodes, n_inputs, n_outputs;
        struct sl_value *values;
        struct sl_node *nodes;
        uint32_t *inputs; /* values that a request brings (initializers with a graph input are constants, or come last) */
        uint32_t *outputs;
        uint32_t n_properties;
        uint32_t n_optionals;
        struct sl_graph_optional *optionals;  /* constants that the file lists as inputs, where limits ask for their names */
        struct sl_graph_property *properties; /* what the file says of itself under keys that begin with "starling." */
        const struct sl_graph_labels *labels; /* of inputs and outputs that have some */
        struct sl_graph_arena *arena;         /* everything above, and constants; freed at once */
        struct sl_graph_index *index;         /* makers and users; NULL: none */
};

/* Limits for hostile files. */
struct sl_graph_limits {
        uint64_t file_bytes;     /* of model.onnx; default 2 GiB */
        uint64_t constant_bytes; /* of all constants, external ones included; default 8 GiB */
        uint32_t nodes;          /* default 100,000 */
        uint32_t values;         /* default 200,000 */
        uint64_t tensor_bytes;   /* of any one tensor; default 4 GiB */
        bool sizes_known;        /* a size of a name that no input has is an error; default false: it is another model's */
        bool sizes_unknown;   /* an open dimension without a size, the first ones too, has any; default false: batch, or refused */
        bool any_size;        /* those as well, and a node that is read by sizes which are not known is refused; default false */
        bool optional_inputs; /* an initializer that is an input too is one, which has data; default false: it is a constant */
        bool names_optionals; /* such constants are in `optionals`, if a model may have so many ports; default false */
        const struct sl_data_folders *data_folders; /* of external data of a file that is named by its path; default NULL */
};
extern const struct sl_graph_limits sl_graph_limits_default;

/* An empty graph. Return: 0, -ENOMEM. */
int sl_graph_new(struct sl_graph **ret_graph);
struct sl_graph *sl_graph_free(struct sl_graph *graph);

/* Add; the returned index stays valid. Names and the node's index arrays are copied. -ENOMEM, -E2BIG. */
int sl_graph_add_value(
        struct sl_graph *graph, const char *name, enum sl_value_kind kind, const struct sl_tensor *tensor, uint32_t *ret_value);
int sl_graph_add_constant(
        struct sl_graph *graph, const char *name, const struct sl_tensor *tensor, const void *data, uint32_t *ret_value);
int sl_graph_add_node(struct sl_graph *graph, uint32_t op, const char *name, const uint32_t *inputs, uint32_t n_inputs,
        const uint32_t *outputs, uint32_t n_outputs, uint32_t *ret_node);

/* Another name, which is copied. -ENOMEM. */
int sl_graph_rename(struct sl_graph *graph, const char *name);
int sl_graph_rename_value(struct sl_graph *graph, uint32_t value, const char *name);

/* Gives the node another body, which it owns from then on. -ENOMEM: the caller still owns it. */
int sl_graph_add_body(struct sl_graph *graph, uint32_t node, struct sl_graph *body);

/*
 * Names the inputs and outputs of the graph; replaces the inputs of a node. The arrays are copied. -ENOMEM, -E2BIG.
 * Inputs change here alone (but for becoming SL_VALUE_NONE): the index of users hears of it.
 */
int sl_graph_set_ports(
        struct sl_graph *graph, const uint32_t *inputs, uint32_t n_inputs, const uint32_t *outputs, uint32_t n_outputs);
int sl_graph_set_inputs(struct sl_graph *graph, uint32_t node, const uint32_t *inputs, uint32_t n_inputs);
void sl_graph_set_input(struct sl_graph *graph, uint32_t node, uint32_t input, uint32_t value);

/* Output @output of the node is @value from now on: the one way that costs no walk when its producer is asked for. */
void sl_graph_set_output(struct sl_graph *graph, uint32_t node, uint32_t output, uint32_t value);

/* Nodes stand elsewhere in the array now: who makes and who uses a value is to be found anew. */
void sl_graph_moved_nodes(struct sl_graph *graph);

/*
 * Takes all nodes out, for a rewrite that puts them back one by one with others between them. The array is the caller's to free;
 * what its nodes point to stays the graph's.
 */
struct sl_node *sl_graph_take_nodes(struct sl_graph *graph, uint32_t *ret_n_nodes);

/* Some live node is an If, a Loop or a Scan. Whoever takes the nodes cannot move their bodies. */
bool sl_graph_has_bodies(const struct sl_graph *graph);

/* The labels of an input or output, "" of one that has none. */
const char *sl_graph_labels_of(const struct sl_graph *graph, const char *port);

/* The same graph with the same indices; constants and names are shared with @graph, which must outlive the copy. -ENOMEM. */
int sl_graph_copy(const struct sl_graph *graph, struct sl_graph **ret_graph);

/* Zeroed memory, 64-byte aligned, that lives as long as the graph; NULL when there is none left. */
void *sl_graph_alloc(struct sl_graph *graph, uint64_t bytes);

/* The node with the tensors of its values, as kernels and shape rules want it. -E2BIG: more inputs than a node may have. */
int sl_graph_describe(const struct sl_graph *graph, uint32_t node, struct sl_node_desc *ret_desc);

/* Replaces every use of @from (graph outputs included) by @to. */
void sl_graph_replace_uses(struct sl_graph *graph, uint32_t from, uint32_t to);

/* The same for the inputs of nodes alone: what is a graph output stays one. */
void sl_graph_replace_inputs(struct sl_graph *graph, uint32_t from, uint32_t to);

bool sl_graph_is_output(const struct sl_graph *graph, uint32_t value);
bool sl_node_uses(const struct sl_node *node, uint32_t value);

bool sl_graph_is_constant(const struct sl_graph *graph, uint32_t value);

/*
 * The data of a constant, aligned for their type; NULL for other values and for SL_VALUE_NONE. They hold as long as the value's do,
 * but of large ones that lie in a file the graph may have to make a copy, which holds until sl_graph_drop_copies(). Without memory
 * for one they come as they lie.
 */
const void *sl_graph_constant(const struct sl_graph *graph, uint32_t value);

/* Gives those copies up. Called between nodes by who reads many, and behind each pass. */
void sl_graph_drop_copies(const struct sl_graph *graph);

/* The one live node that uses @value and is its only use (not a graph output); SL_VALUE_NONE if not exactly one. */
uint32_t sl_graph_only_user(const struct sl_graph *graph, uint32_t value);

/* The live nodes that use @value, each once, in no order, as far as @ret_users has room; returns how many there are. */
uint32_t sl_graph_users(const struct sl_graph *graph, uint32_t value, uint32_t *ret_users, uint32_t room);

/* The live node that makes @value, or SL_VALUE_NONE. */
uint32_t sl_graph_producer(const struct sl_graph *graph, uint32_t value);

/*
 * Infers the outputs of one node from its inputs. While a shape parameter is an input that is not constant yet, the rank alone
 * is known and the dimensions that depend on it are SL_DIM_UNKNOWN, but for those that were learned when the graph was imported.
 * Return: as sl_graph_infer().
 */
int sl_graph_infer_node(struct sl_graph *graph, uint32_t node, struct sl_error *error);

/* Infers all shapes again, in order. The text names the node. Return: 0, -EINVAL, -EOVERFLOW, -ENOTSUP (shape depends on data). */
int sl_graph_infer(struct sl_graph *graph, struct sl_error *error);

/* Walks the invariants. Return: 0, -EINVAL with a text that names the node and the value. */
int sl_graph_check(const struct sl_graph *graph, struct sl_error *error);

/* One line per node: "conv1 = Conv(data [N,3,8,8], w [16,3,3,3]) {strides=[1,1]} -> [N,16,8,8]". */
void sl_graph_print(const struct sl_graph *graph, FILE *stream);

/*
 * The bytes that the tensor takes at least: open dimensions count as 1, and so do empty ones, for strides are products of the
 * others. UINT64_MAX when that is more than INT64_MAX: no tensor of a graph may be so.
 */
uint64_t sl_graph_least_bytes(const struct sl_tensor *tensor);

/* Some live node draws random numbers (kernels/draw.h); those of bodies are not asked. */
bool sl_graph_draws(const struct sl_graph *graph);

/* Some input has SL_DIM_BATCH. */
bool sl_graph_has_batch(const struct sl_graph *graph);

/*
 * A copy in which every SL_DIM_BATCH is @batch and all shapes are inferred, shape arithmetic folded away. What is data-dependent
 * of a request stays SL_DIM_UNKNOWN, or a parameter that is an input: sl_graph_is_static() says whether anything does.
 * Constants are shared with @graph, which must outlive the copy. Nodes and values keep their indices, whatever the batch: a node
 * that was folded away is dead, and its values are constants. New constants stand behind the values of @graph.
 * Return: 0; -ENOTSUP; -EINVAL, -EOVERFLOW, -ERANGE, -ENOMEM.
 */
int sl_graph_specialise(const struct sl_graph *graph, int64_t batch, struct sl_graph **ret_graph, struct sl_error *error);

/* No shape and no path of a live node is data-dependent: all is known, and no node has a body. */
bool sl_graph_is_static(const struct sl_graph *graph);
bool sl_node_is_static(const struct sl_graph *graph, const struct sl_node *node);
