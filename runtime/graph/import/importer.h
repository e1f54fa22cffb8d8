/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of one import, private to this folder. The file is parsed, its names are collected and ordered, then each node is
 * brought into canonical form and emitted into the graph, whose shapes are known up to there. One owner thread.
 */
#pragma once

#include "base/dim_sizes.h"
#include "fold.h"
#include "graph.h"
#include "import/external.h"
#include "import/functions.h"
#include "import/sequence.h"
#include "import/symbols.h"
#include "import/vocabulary.h"
#include "import/wire.h"

#include "base/error.h"

#define SL_IMPORT_OPSET_MIN 1
#define SL_IMPORT_OPSET_MAX 28

/* Values of the graph around a body that it reads, and the inputs of the body that they become. */
struct sl_capture {
        uint32_t outer, value;
};

struct sl_captures {
        uint32_t n;
        struct sl_capture items[SL_NODE_INPUTS_MAX];
};

/* The bytes of the file that is imported. */
struct sl_import_file {
        const void *bytes;
        size_t n_bytes;
        bool stays; /* as long as the graph, which may have constants in it */
};

struct sl_importer {
        struct sl_graph *graph;
        struct sl_import_file file;
        const struct sl_graph_limits *limits;
        const struct sl_dim_sizes *sizes; /* NULL: none */
        bool size_refused;                /* one of them: -EINVAL is the caller's doing, and not the file's */
        bool sized;                       /* some open dimension got one of them */
        bool contradicts;                 /* the last node was refused for what no sizes of the unknown ones would change */
        Onnx__ModelProto *model;
        struct sl_function_opsets function_opsets; /* of nodes that come from functions */
        const Onnx__GraphProto *proto;             /* what is being imported: the model's graph, or a body of it */
        struct sl_external_files *external;        /* NULL: no external data; those of bodies are the same */
        struct sl_symbols symbols;
        struct sl_sequences *sequences; /* of all graphs of the model */
        struct sl_vocabularies *vocabularies;
        uint64_t constant_bytes;
        struct sl_fold_budget budget; /* for shape arithmetic that is constant from the start */
        uint32_t sample_keys;         /* 1 and the value that has them (draw.h); 0: no node has drawn yet */
        struct sl_error *error;

        /* Of a body: */
        struct sl_importer *outer;       /* NULL for the model's graph */
        struct sl_captures *captures;    /* unused where a branch is imported into the outer graph itself */
        const struct sl_tensor *formals; /* what its node gives its inputs */
        uint32_t *formal_values, n_formals;
        uint32_t depth;
        uint64_t n_imports;   /* of nodes, in all bodies so far */
        uint32_t n_decisions; /* on Ifs whose conditions are no constants */
};

/* A node of the file with its inputs looked up. */
struct sl_onnx_node {
        const Onnx__NodeProto *proto;
        const char *name; /* its own, or that of its first output */
        uint32_t inputs[SL_NODE_INPUTS_MAX];
        uint32_t n_inputs;
};

/* A node of the graph while it is being made. */
struct sl_draft {
        uint32_t op;
        uint32_t n_inputs, n_outputs;
        uint32_t inputs[SL_NODE_INPUTS_MAX];
        struct sl_attrs attrs;
        uint32_t n_given; /* inputs in the file, of a node with bodies: what follows is captured */
        uint32_t n_bodies;
        struct sl_graph *bodies[2]; /* the node takes them over */
};

/*
 * order.c: the order in which the nodes of the file can be imported; in the file's own order where that is valid.
 * -EBADMSG: a cycle, or an input that nothing makes.
 */
int sl_import_order(struct sl_importer *im, uint32_t *ret_order);

/* initializer.c: a constant of the graph from a tensor of the file. -EBADMSG, -ENOTSUP, -E2BIG, -EACCES. */
int sl_import_tensor(struct sl_importer *im, const Onnx__TensorProto *tensor, const char *name, uint32_t *ret_value);

/* The data of a tensor, which live as long as the graph, at any address; that the limits have room for a constant. As above. */
int sl_import_load(struct sl_importer *im, const Onnx__TensorProto *proto, const char *name, struct sl_tensor *ret_tensor,
        const void **ret_data);
int sl_import_check_size(struct sl_importer *im, const char *name, const struct sl_tensor *tensor);

/* sparse.c: a dense constant from a sparse tensor of the file. As above. */
int sl_import_sparse(struct sl_importer *im, const Onnx__SparseTensorProto *proto, const char *name, uint32_t *ret_value);

/* The same from values in memory: @count of them, shape [count], or a scalar for @scalar. */
int sl_import_ints(struct sl_importer *im, const char *name, const int64_t *ints, uint32_t count, bool scalar, uint32_t *ret_value);

/* A constant for the caller to fill, of @tensor's type and shape and within the limits. */
int sl_import_room(struct sl_importer *im, const char *name, const struct sl_tensor *tensor, void **ret_data, uint32_t *ret_value);

/* ports.c: the type of a tensor, or of an optional that may hold one; NULL: it is something else. */
const Onnx__TypeProto__Tensor *sl_onnx_tensor_of(const Onnx__ValueInfoProto *info);

/* ports.c: a dimension that has no size, and the name of its parameter ("" for none, or for one that names nothing). */
bool sl_onnx_dim_is_open(const Onnx__TensorShapeProto__Dimension *dim);
const char *sl_onnx_dim_parameter(const Onnx__TensorShapeProto__Dimension *dim);

/*
 * ports.c: that the name of an "input" or "output" can be shown, UTF-8 without control characters, and that it and those of its
 * dimensions have at most SL_NAME_MAX bytes. Return: 0, -EBADMSG, -E2BIG.
 */
int sl_import_check_port(struct sl_importer *im, const char *kind, size_t index, const Onnx__ValueInfoProto *info);

/* ports.c: that a model may have so many: SL_SIGNATURE_PORTS_MAX. -E2BIG. */
int sl_import_check_ports(struct sl_importer *im, size_t n_inputs, size_t n_outputs);

/* ports.c: inputs with an initializer are constants that a request may give, by name: of a list that a model may have. */
bool sl_import_names_optionals(const struct sl_importer *im, const Onnx__GraphProto *proto);

/* ports.c: some input of the model leads with an open batch. */
bool sl_import_has_batch(const struct sl_importer *im);

/* ports.c: the inputs of the graph, before the nodes; its outputs, after them. -EBADMSG, -ENOTSUP, -E2BIG or -ERANGE, -EINVAL with
 * size_refused. */
int sl_import_inputs(struct sl_importer *im);
int sl_import_outputs(struct sl_importer *im);

/* ports.c: an initializer that is an input of the model too may be given by a request. */
bool sl_import_has_optionals(const struct sl_importer *im);

/* signature.c: the ports as the file declares them. -ENOTSUP, -E2BIG, -EBADMSG. */
struct sl_signature;
int sl_import_ports_signature(struct sl_importer *im, struct sl_signature *signature);

/* body.c: the value of that name, of this graph or captured from those around it; SL_VALUE_NONE when there is none. */
uint32_t sl_import_find(struct sl_importer *im, const char *name);

/* body.c: a value of the graph around a body as one that the body has. SL_VALUE_NONE: it takes no more. */
uint32_t sl_import_capture(struct sl_importer *im, uint32_t outer_value);

/* Something in this graph, or in those around it, has that name. */
bool sl_import_knows(const struct sl_importer *im, const char *name);

/* body.c: the inputs of a body, before its nodes; a node with bodies; a count of nodes that ends rounds without end. */
int sl_import_formals(struct sl_importer *im);
bool sl_import_has_bodies(const Onnx__NodeProto *proto);
int sl_import_control(struct sl_importer *im, const struct sl_onnx_node *node);

/* body.c: the body in that attribute becomes nodes of the graph that @node is in: its inputs are these values. -EBADMSG, -ENOTSUP.
 */
int sl_import_inline(struct sl_importer *im, const struct sl_onnx_node *node, const char *attribute, const uint32_t *inputs,
        uint32_t n_inputs, uint32_t *ret_outputs, uint32_t n_outputs);
int sl_import_count(struct sl_importer *im);

/*
 * decide.c: which branch an If with that condition takes: 1 then, 0 else, or SL_IMPORT_UNDECIDED when it is data-dependent. -EDOM:
 * the batch decides; -ENOMEM.
 */
#define SL_IMPORT_UNDECIDED 2
int sl_import_decide(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t condition);

/*
 * impossible.c: a branch that makes what @other makes, and always fails. It reads one of the values that @other captures, which is
 * told first; @capture is that, and gets the value in the new graph. -ENOMEM, -E2BIG.
 */
bool sl_import_can_fail_like(const struct sl_graph *other, const struct sl_captures *captures, uint32_t *ret_capture);
int sl_import_fail_like(const struct sl_graph *other, const char *name, struct sl_capture *capture, struct sl_graph **ret_graph,
        struct sl_error *error);

/* import.c: names, initializers, inputs, nodes, and the outputs of what is a graph of its own. */
int sl_import_contents(struct sl_importer *im);

/* canonical.c: one node. -ENOTSUP: names operator, domain, opset and node. */
int sl_import_node(struct sl_importer *im, const Onnx__NodeProto *proto);

/* The operators of the model, whatever their inputs are, but for those that a branch of an If alone has. -ENOTSUP, -EBADMSG. */
int sl_import_check_operators(struct sl_importer *im);

/* emit.c: a node into the graph: parameters absorbed, shapes inferred, folded if it is small and constant. */
int sl_import_emit(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft, const uint32_t *outputs);

/* Emits the draft with the outputs of the file's node. */
int sl_import_emit_last(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft);

/* Emits the draft with new values as its outputs, for the drafts that follow. */
int sl_import_emit_step(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft, uint32_t *ret_values);

/* Emits the draft, which has one output, as output @output of the file's node. */
int sl_import_emit_output(struct sl_importer *im, const struct sl_onnx_node *node, struct sl_draft *draft, uint32_t output);

/* Binds the first output of the file's node to a value that exists. */
int sl_import_bind(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t value);

/* wide.c: a node with more inputs or outputs than one of the graph has room for becomes several. */
bool sl_import_is_wide(uint32_t op, const Onnx__NodeProto *proto);
int sl_import_wide(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t op);

/* onnx_attr.c: attributes by name. Absent: *value stays as it is. -EBADMSG when of another type. */
const Onnx__AttributeProto *sl_onnx_attr(const struct sl_onnx_node *node, const char *name);
int sl_onnx_int(struct sl_importer *im, const struct sl_onnx_node *node, const char *name, int64_t *value);
int sl_onnx_float(struct sl_importer *im, const struct sl_onnx_node *node, const char *name, double *value);
int sl_onnx_is(const struct sl_onnx_node *node, const char *name, const char *text, bool *ret_is);
int sl_onnx_copy_attr(
        struct sl_importer *im, const struct sl_onnx_node *node, const char *name, uint32_t id, struct sl_attrs *attrs);

/* A string that is one of @words ("nearest linear cubic") becomes its place among them. -ENOTSUP: it is none of them. */
int sl_onnx_word(struct sl_importer *im, const struct sl_onnx_node *node, const char *name, const char *words, uint32_t id,
        struct sl_attrs *attrs);

/*
 * given.c: " (2 inputs: float32 [1,3,?], int64 [2] of [2,2]; axis = 1)": types and shapes of a node's inputs, and its attributes,
 * as much as fits. Returns @ret_text.
 */
const char *sl_import_given(const struct sl_importer *im, const struct sl_onnx_node *node, char *ret_text, size_t bytes);

/* -ENOTSUP with what is refused, the operator, its domain, the opset and the node, and what that was given. */
int sl_import_refuse(struct sl_importer *im, const struct sl_onnx_node *node, const char *what);
/* -EDOM in the same form: the node is something else for some batch sizes, and no graph with an open batch can say so. */
int sl_import_wants_batch(struct sl_importer *im, const struct sl_onnx_node *node, const char *what);
/* -EBADMSG in the same form: whatever the sizes of open dimensions are. */
int sl_import_wrong(struct sl_importer *im, const struct sl_onnx_node *node, const char *what);
/* The same of what dimensions decide that are known: sl_import_misfit_status(). */
int sl_import_misfit(struct sl_importer *im, const struct sl_onnx_node *node, const char *what);
/* Of what they decide where one is not known, which proves nothing: -ENOTSUP, or -ERANGE as above. */
int sl_import_unsettled(struct sl_importer *im, const struct sl_onnx_node *node, const char *what);

/* ports.c: -ERANGE where open dimensions have been given sizes, which may be what does not fit; else @otherwise. */
int sl_import_misfit_status(const struct sl_importer *im, int otherwise);

/* resolve.c: shape arithmetic that depends on the batch alone becomes attributes that hold for any batch. */
int sl_import_resolve(struct sl_importer *im);
