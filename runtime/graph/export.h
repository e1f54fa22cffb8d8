/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph back into an ONNX file (domain ai.onnx), for tools that rewrite models. One owner thread, the graph's.
 *
 * Ports keep their names; nodes and all other values get a number in front of theirs, so that names are unique. What import brought
 * into another form (kernels/op.h) goes back into ONNX's: words, equations and names of functions, parameters as initializers of
 * the types that ONNX wants, inputs in its order. The opset is 20, or the first later one that has all operators. Internal
 * operators, epilogues and bodies have no way back; the text names the node.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_error;
struct sl_graph;

/* An entry of metadata_props. */
struct sl_export_property {
        const char *key, *value;
};

/*
 * *ret_file is malloc()ed, and has been imported: it gives a graph with the same ports. What is written on the way lies in the
 * graph's arena. Return: 0; -ENOTSUP, also for a file that cannot be read again; -ENOMEM; -EFBIG over 2 GiB, which is protobuf's
 * limit.
 */
int sl_export_onnx(struct sl_graph *graph, const struct sl_export_property *properties, size_t n_properties, uint8_t **ret_file,
        size_t *ret_bytes, struct sl_error *error);
