/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Einsum in general: for each element of the output, the sum over all labels that it does not have of the product of one element of
 * each operand. An operand steps along a label by the sum of its strides in the dimensions with that label.
 */
#include "shape/einsum.h"

#include "element.h"
#include "kernels.h"

#include <string.h>

#define OPERANDS_MAX SL_ATTR_INTS_MAX

struct sum {
        const struct sl_binding *binding;
        struct sl_einsum e;
        uint32_t n_operands, dtype;
        int64_t strides[OPERANDS_MAX][SL_EINSUM_LABELS_MAX], at[OPERANDS_MAX];
};

static void read_strides(struct sum *s, const struct sl_node_desc *node)
{
        for (uint32_t k = 0; k < s->n_operands; k++) {
                int64_t strides[SL_RANK_MAX];

                sl_tensor_strides(&node->inputs[k], strides);
                for (uint32_t i = 0; i < node->inputs[k].shape.rank; i++)
                        for (uint32_t l = 0; l < s->e.n_labels; l++)
                                if (s->e.labels[l] == sl_einsum_label(node, k, i) && node->inputs[k].shape.dims[i] != 1)
                                        s->strides[k][l] += strides[i];
        }
}

static void step(struct sum *s, uint32_t label, int64_t count)
{
        for (uint32_t k = 0; k < s->n_operands; k++)
                s->at[k] += count * s->strides[k][label];
}

static void add_up(struct sum *s, uint32_t label, double *sum, uint64_t *bits)
{
        if (label == s->e.n_labels) {
                double product = 1;
                uint64_t factor = 1;

                for (uint32_t k = 0; k < s->n_operands; k++) {
                        if (sl_dtype_is_float(s->dtype))
                                product *= sl_ref_load(s->binding->inputs[k], s->at[k], s->dtype);
                        else
                                factor *= sl_ref_load_bits(s->binding->inputs[k], s->at[k], s->dtype);
                }
                *sum += product;
                *bits += factor;
                return;
        }
        for (int64_t i = 0; i < s->e.sizes[label]; i++, step(s, label, 1)) {
                if (!sl_pace_on(s->binding->pace, 1 + s->n_operands))
                        return;
                add_up(s, label + 1, sum, bits);
        }
        step(s, label, -s->e.sizes[label]);
}

int sl_ref_einsum(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t n = (int64_t)sl_shape_elements(&node->outputs[0].shape), index[SL_RANK_MAX] = {0};
        struct sum s = {.binding = binding, .n_operands = node->n_inputs, .dtype = node->inputs[0].dtype};

        sl_einsum_read(node, &s.e, NULL);
        read_strides(&s, node);
        for (int64_t i = 0; i < n && sl_pace_on(binding->pace, 1); i++) {
                double sum = 0;
                uint64_t bits = 0;

                add_up(&s, s.e.n_out, &sum, &bits);
                if (sl_dtype_is_float(s.dtype))
                        sl_ref_store(binding->outputs[0], i, s.dtype, sum);
                else
                        sl_ref_store_bits(binding->outputs[0], i, s.dtype, bits);
                for (uint32_t d = s.e.n_out; d-- > 0;) {
                        step(&s, d, 1);
                        if (++index[d] < s.e.sizes[d])
                                break;
                        step(&s, d, -s.e.sizes[d]);
                        index[d] = 0;
                }
        }
        return 0;
}
