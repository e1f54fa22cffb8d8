/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that a model defines itself. Before anything is looked at, each call of one is replaced by a copy of its nodes, in the
 * graph and in the bodies of its nodes, so that the rest of the import knows operators alone. The importer's thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "onnx/onnx.pb-c.h"

struct sl_importer;

/* The opset of domain ai.onnx that a function imports, for each node that comes from one. */
struct sl_function_opset {
        const Onnx__NodeProto *node;
        int64_t opset;
};

struct sl_function_opsets {
        size_t n, room;
        struct sl_function_opset *items; /* sorted by address */
};

/*
 * Replaces the calls in im->model. Copies are at most as many as a file may have nodes, and of 64 MiB. -EBADMSG: a call does not
 * fit its function; a function calls itself; two have one name. -E2BIG. -ENOTSUP: its opset is none of those that are read.
 * -ENOMEM.
 */
int sl_import_functions(struct sl_importer *im);

/* That of a node which comes from a function, or @fallback. */
int64_t sl_function_opset_of(const struct sl_function_opsets *opsets, const Onnx__NodeProto *node, int64_t fallback);
void sl_function_opsets_deinit(struct sl_function_opsets *opsets);
