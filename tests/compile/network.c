/* SPDX-License-Identifier: Apache-2.0 */
#include "network.h"

#include "base/error.h"
#include "lower.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>

void network_init(struct network *network)
{
        memset(network, 0, sizeof(*network));
        network->state = 12345;
        cr_assert_eq(sl_graph_new(&network->graph), 0);
}

void network_deinit(struct network *network)
{
        network->graph = sl_graph_free(network->graph);
}

float network_random(struct network *network)
{
        network->state = network->state * 6364136223846793005u + 1442695040888963407u;
        return (float)(int32_t)(uint32_t)(network->state >> 32) / 2147483648.0f;
}

static struct sl_tensor tensor_of(uint32_t dtype, uint32_t rank, const int64_t *dims)
{
        struct sl_tensor tensor = {.dtype = dtype, .shape.rank = rank};

        memcpy(tensor.shape.dims, dims, rank * sizeof(*dims));
        return tensor;
}

uint32_t network_input(struct network *network, uint32_t dtype, uint32_t rank, const int64_t *dims)
{
        struct sl_tensor tensor = tensor_of(dtype, rank, dims);
        uint32_t value;

        cr_assert_eq(sl_graph_add_value(network->graph, "in", SL_VALUE_INPUT, &tensor, &value), 0);
        network->inputs[network->n_inputs++] = value;
        return value;
}

static uint32_t add_constant(struct network *network, uint32_t rank, const int64_t *dims, float middle, float reach)
{
        struct sl_tensor tensor = tensor_of(SL_DTYPE_F32, rank, dims);
        uint64_t n = sl_shape_elements(&tensor.shape);
        float *data = sl_graph_alloc(network->graph, n * sizeof(*data));
        uint32_t value;

        cr_assert_not_null(data);
        for (uint64_t i = 0; i < n; i++)
                data[i] = middle + reach * network_random(network);
        cr_assert_eq(sl_graph_add_constant(network->graph, "weights", &tensor, data, &value), 0);
        return value;
}

uint32_t network_weights(struct network *network, uint32_t rank, const int64_t *dims)
{
        return add_constant(network, rank, dims, 0, 0.3f);
}

uint32_t network_scales(struct network *network, uint32_t rank, const int64_t *dims)
{
        return add_constant(network, rank, dims, 1, 0.5f);
}

static void set_attribute(struct sl_node *node, const struct attribute *attribute)
{
        if (attribute->n)
                cr_assert_eq(sl_attrs_set_ints(&node->attrs, attribute->id, attribute->ints, attribute->n), 0);
        else
                cr_assert_eq(sl_attrs_set_int(&node->attrs, attribute->id, attribute->ints[0]), 0);
}

uint32_t network_node(struct network *network, uint32_t op, uint32_t n_inputs, const uint32_t *inputs, uint32_t n_attributes,
        const struct attribute *attributes)
{
        struct sl_tensor unknown = {.dtype = SL_DTYPE_F32};
        struct sl_error error = {0};
        uint32_t output, node;

        cr_assert_eq(sl_graph_add_value(network->graph, sl_op_name(op), SL_VALUE_COMPUTED, &unknown, &output), 0);
        cr_assert_eq(sl_graph_add_node(network->graph, op, sl_op_name(op), inputs, n_inputs, &output, 1, &node), 0);
        for (uint32_t i = 0; i < n_attributes; i++)
                set_attribute(&network->graph->nodes[node], &attributes[i]);
        cr_assert_eq(sl_graph_infer_node(network->graph, node, &error), 0, "%s", error.text);
        return output;
}

uint32_t network_apply(struct network *network, uint32_t op, uint32_t input)
{
        return network_node(network, op, 1, &input, 0, NULL);
}

uint32_t network_conv(
        struct network *network, uint32_t input, int64_t from, int64_t to, int64_t kernel, int64_t stride, int64_t group)
{
        uint32_t weights = network_weights(network, DIMS(to, from / group, kernel, kernel));
        uint32_t bias = network_weights(network, DIMS(to));
        int64_t pad = kernel / 2;

        return network_node(network, SL_OP_CONV, VALUES(input, weights, bias),
                ATTRS({SL_ATTR_KERNEL_SHAPE, 2, {kernel, kernel}}, {SL_ATTR_STRIDES, 2, {stride, stride}},
                        {SL_ATTR_PADS, 4, {pad, pad, pad, pad}}, {SL_ATTR_DILATIONS, 2, {1, 1}}, {SL_ATTR_GROUP, 0, {group}}));
}

uint32_t network_batch_norm(struct network *network, uint32_t input, int64_t channels)
{
        uint32_t scale = network_scales(network, DIMS(channels)), shift = network_weights(network, DIMS(channels));
        uint32_t mean = network_weights(network, DIMS(channels)), variance = network_scales(network, DIMS(channels));

        return network_node(network, SL_OP_BATCH_NORM, VALUES(input, scale, shift, mean, variance), 0, NULL);
}

void network_output(struct network *network, uint32_t value)
{
        network->outputs[network->n_outputs++] = value;
}

void network_finish(struct network *network)
{
        cr_assert_eq(
                sl_graph_set_ports(network->graph, network->inputs, network->n_inputs, network->outputs, network->n_outputs), 0);
}

int network_plan_fd(struct network *network, const char *backend, uint32_t batch_max)
{
        struct sl_lower_options options;
        struct sl_lowered *lowered;
        struct sl_error error = {0};
        int fd = memfd_create("plan", MFD_CLOEXEC);

        cr_assert_geq(fd, 0);
        sl_lower_options_init(&options);
        options.batch_max = batch_max;
        options.backend = !strcmp(backend, "ref") ? 1 : !strcmp(backend, "cuda") ? 2 : 0;
        options.teams = !network->uncut;
        options.team_size = network->team_size;
        options.core.barrier = network->barrier > 0 ? network->barrier : 1e-15;
        cr_assert_eq(sl_lowered_new_in(network->graph, &options, NULL, fd, &lowered, &error), 0, "%s", error.text);
        cr_assert_eq(sl_lowered_write(lowered, fd, &error), 0, "%s", error.text);
        sl_lowered_free(lowered);
        return fd;
}
