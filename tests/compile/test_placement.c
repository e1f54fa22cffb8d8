/* SPDX-License-Identifier: Apache-2.0 */
/* In which layouts nodes run. */
#include "base/error.h"
#include "graph.h"
#include "lower.h"
#include "lower_options.h"
#include "network.h"
#include "pack.h"
#include "placement.h"

#include <criterion/criterion.h>

static const struct sl_node_desc *find_convolution(const struct sl_program *program, struct sl_node_desc *room)
{
        const struct sl_graph *graph = program->placement->graph;

        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i].dead && graph->nodes[i].op == SL_OP_CONV && sl_graph_describe(graph, i, room) == 0)
                        return room;
        cr_assert_fail("no convolution");
        return NULL;
}

/* Few filters of one pixel: whether its image is turned first is a close call, which the bytes of the filters would decide. */
Test(placement, a_convolution_reads_and_writes_the_same_layout_at_every_size_and_its_filters_are_packed)
{
        struct network net;
        struct sl_lower_options options;
        struct sl_lowered *lowered;
        struct sl_error error = {""};
        struct sl_node_desc first, other;
        struct sl_packed_constant filters;

        network_init(&net);
        network_output(&net, network_conv(&net, network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 52, 8, 8)), 52, 24, 1, 1, 1));
        network_finish(&net);
        sl_lower_options_init(&options);
        options.batch_max = 8;
        cr_assert_eq(sl_lowered_new(net.graph, &options, &lowered, &error), 0, "%s", error.text);
        find_convolution(&lowered->programs[0], &first);
        for (uint32_t i = 1; i < lowered->info.n_batches; i++) {
                find_convolution(&lowered->programs[i], &other);
                cr_expect_eq(other.inputs[0].layout, first.inputs[0].layout, "batch %u", lowered->programs[i].batch);
                cr_expect_eq(other.outputs[0].layout, first.outputs[0].layout, "batch %u", lowered->programs[i].batch);
        }
        cr_expect(sl_packing_find(lowered->packing, 0, 1, &filters));
        sl_lowered_free(lowered);
        network_deinit(&net);
}
