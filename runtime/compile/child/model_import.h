/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model file as a graph, as its options say. Compiler's process and tools; no state.
 */
#pragma once

struct sl_error;
struct sl_graph;
struct sl_lower_options;
struct sl_model_file;

/*
 * With an open leading dimension, or with the size 1 where the file has no form with an open one. Return: as sl_import_onnx_file():
 * -EDOM neither is to be had.
 */
int sl_model_import(const struct sl_model_file *model, const struct sl_lower_options *lowering, struct sl_graph **ret_graph,
        struct sl_error *error);
