/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file says of its inputs and outputs, without a look at its nodes: how a model presents itself before its open dimensions
 * have sizes. Plain values; any thread.
 */
#pragma once

#include "base/dim_sizes.h"
#include "tensor.h"

#include <stdbool.h>

struct sl_error;
struct sl_graph_arena;
struct sl_graph_limits;
struct sl_model_file;

#define SL_SIGNATURE_PORTS_MAX 1024 /* inputs and outputs together */
#define SL_SYMBOL_NONE         UINT8_MAX

struct sl_signature_port {
        const char *name;
        struct sl_tensor tensor;      /* SL_DIM_BATCH; SL_DIM_UNKNOWN at any other open dimension */
        bool optional;                /* an input that has an initializer; they are the last */
        bool described;               /* false: an output of which the file does not say type and rank */
        uint8_t symbols[SL_RANK_MAX]; /* of an input: which symbol an unknown dimension is, else SL_SYMBOL_NONE */
};

struct sl_signature {
        const char *name; /* of the graph */
        uint32_t n_symbols, n_inputs, n_outputs;
        uint32_t n_optionals; /* behind the inputs: that are constants, and named (names_optionals of the limits) */
        const char *symbols[SL_SYMBOLS_MAX];
        bool has_batch;    /* an open dimension that leads all inputs, and is none of the symbols */
        const char *batch; /* its name in the file; "": it has none */
        struct sl_signature_port *inputs, *outputs;
        struct sl_graph_arena *arena; /* ports and texts */
};

/*
 * Return: 0; -ENOTSUP an input that is no dense tensor of a known type and rank; -E2BIG more ports or symbols than there is room
 * for, or a name is too long; -ENOMEM; and what sl_import_onnx() says of a damaged file. The caller deinits it.
 */
int sl_import_signature(const struct sl_model_file *file, const struct sl_graph_limits *limits, struct sl_signature *ret_signature,
        struct sl_error *error);
int sl_import_signature_bytes(const void *bytes, size_t n_bytes, const struct sl_graph_limits *limits,
        struct sl_signature *ret_signature, struct sl_error *error);

/* Of zeros, too. */
void sl_signature_deinit(struct sl_signature *signature);

/* What leads the inputs is no batch: it becomes a symbol, or one for each input where it has no name. Return: 0; -E2BIG; -ENOMEM.
 */
int sl_signature_open_batch(struct sl_signature *signature, struct sl_error *error);
