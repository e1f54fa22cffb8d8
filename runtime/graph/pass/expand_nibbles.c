/* SPDX-License-Identifier: Apache-2.0 */
/* Products by matrices of 4 bits an element, where the backend has no kernel for them, are products by floats. */
#include "pass.h"

#include "nibbles.h"

int sl_pass_expand_nibbles(struct sl_graph *graph, const struct sl_pass_options *options, struct sl_error *error)
{
        return sl_graph_expand_nibbles(graph, options->backend, options->target, error);
}
