/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX file -> graph, opsets 1 to 28, in canonical form (kernels/op.h). Hostile input is expected: every length is checked
 * against the file and the limits before memory is taken. Runs in the compiler's child process and in tools.
 */
#pragma once

#include <stddef.h>

struct sl_dim_sizes;
struct sl_error;
struct sl_graph;
struct sl_graph_limits;
struct sl_model_file;

/*
 * @path: the file; external data is looked for in its folder only (no absolute path, no "..", no link that leads outside).
 * @sizes: sizes for open dimensions of the inputs, by name; NULL: none. A leading dimension without a size becomes SL_DIM_BATCH
 * when the same parameter (or none) leads all such inputs; any other open dimension without a size is refused. Sizes for names
 * that the file does not have are ignored, unless the limits say otherwise.
 *
 * Return: 0, or with a text that names the node or tensor, the value and the limit:
 *   -EBADMSG  not an ONNX file, truncated, or a field contradicts another (wrong sizes, cycles, missing values); with unknown sizes
 *             (struct sl_graph_limits) what holds for all of them, and nothing else
 *   -ENOTSUP  an operator, type, domain or opset that Starling lacks: names operator, domain, opset and node; or an open dimension
 *             without a size, of what it lacks or of an input
 *   -ERANGE   the sizes of @sizes do not suit the file, or the limits: others may
 *   -EDOM     the file is something else for some batch sizes: its leading dimensions want sizes as well
 *   -E2BIG    a limit is exceeded
 *   -EINVAL   a size has a name that no input has, where the limits ask for that: names it and the inputs
 *   -EACCES   external data that leads outside the model's folder
 *   -ENOENT, -EIO, -ENOMEM
 */
int sl_import_onnx(const char *path, const struct sl_graph_limits *limits, struct sl_graph **ret_graph, struct sl_error *error);
int sl_import_onnx_bound(const char *path, const struct sl_graph_limits *limits, const struct sl_dim_sizes *sizes,
        struct sl_graph **ret_graph, struct sl_error *error);

/* The same for a file that is open already, whose external data somebody else may open (model_file.h). */
int sl_import_onnx_file(const struct sl_model_file *file, const struct sl_graph_limits *limits, const struct sl_dim_sizes *sizes,
        struct sl_graph **ret_graph, struct sl_error *error);

/* The same from memory, without external data (-EACCES if the file wants some): for fuzzing. */
int sl_import_onnx_bytes(const void *bytes, size_t n_bytes, const struct sl_graph_limits *limits, struct sl_graph **ret_graph,
        struct sl_error *error);
int sl_import_onnx_bytes_bound(const void *bytes, size_t n_bytes, const struct sl_graph_limits *limits,
        const struct sl_dim_sizes *sizes, struct sl_graph **ret_graph, struct sl_error *error);
