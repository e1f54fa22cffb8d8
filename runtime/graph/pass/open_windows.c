/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/open_windows.h"

#include "graph.h"
#include "op.h"
#include "shape/rules.h"
#include "shape/window.h"

/* ceil(size / stride) places, whatever the window: as one of one element has without padding. */
static int64_t offset_of(const struct sl_node *node, const struct sl_window *window, uint32_t at)
{
        if (sl_attrs_int(&node->attrs, SL_ATTR_SAME, SL_WINDOW_NOT_SAME) != SL_WINDOW_NOT_SAME)
                return -1;
        return window->pad_begin[at] + window->pad_end[at] - (window->kernel[at] - 1) * window->dilation[at] - 1;
}

static bool read_window(const struct sl_graph *graph, const struct sl_node *node, struct sl_window *ret_window)
{
        uint32_t weights = sl_window_weights(node->op);
        struct sl_node_desc desc = {.op = node->op, .n_inputs = weights + 1, .attrs = node->attrs};

        desc.inputs[0] = graph->values[node->inputs[0]].tensor;
        desc.inputs[weights] = graph->values[node->inputs[weights]].tensor;
        return sl_window_read(&desc, ret_window, NULL) == 0 && !ret_window->ceil;
}

uint32_t sl_open_windows_class(struct sl_open_windows *windows, const struct sl_graph *graph, const struct sl_node *node,
        uint32_t i, uint32_t size, uint32_t next)
{
        struct sl_open_window item = {.size = size, .places = next};
        struct sl_window window;
        uint32_t at = i - 2;

        if (!size || i < 2 || !read_window(graph, node, &window) || !sl_dim_known(window.kernel[at]))
                return 0;
        item.offset = offset_of(node, &window, at);
        item.stride = window.stride[at];
        if (item.offset == -1 && item.stride == 1)
                return size;
        for (uint32_t k = 0; k < windows->n; k++) {
                const struct sl_open_window *known = &windows->items[k];

                if (known->size == size && known->offset == item.offset && known->stride == item.stride)
                        return known->places;
        }
        if (windows->n == SL_OPEN_WINDOWS_MAX)
                return 0;
        windows->items[windows->n++] = item;
        return next;
}
