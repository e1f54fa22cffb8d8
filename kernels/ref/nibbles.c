/* SPDX-License-Identifier: Apache-2.0 */
/* Products by matrices of 4 bits an element (shape/nibbles.h): a block at a time, in double. */
#include "shape/nibbles.h"

#include "element.h"
#include "kernels.h"

struct product {
        struct sl_nibbles n;
        const struct sl_binding *binding;
        uint32_t dtype;
};

/* Of a column, q - zero. */
static double element(const struct product *p, int64_t column, int64_t k)
{
        int64_t block = column * p->n.blocks + k / p->n.block;
        const uint8_t *bytes = (const uint8_t *)p->binding->inputs[1] + block * (p->n.block / 2);
        int64_t place = k % p->n.block;
        int q = place % 2 ? bytes[place / 2] >> 4 : bytes[place / 2] & 15;

        return q - (p->n.has_zeros ? ((const uint8_t *)p->binding->inputs[3])[block] : 8);
}

static double load(const struct product *p, int64_t row, int64_t k)
{
        return sl_ref_load(p->binding->inputs[0], row * p->n.depth + k, p->dtype);
}

static double sum_floats(const struct product *p, int64_t row, int64_t column, int64_t first, int64_t end)
{
        double sum = 0;

        for (int64_t k = first; k < end; k++)
                sum += load(p, row, k) * element(p, column, k);
        return sum;
}

static double sum_bytes(const struct product *p, int64_t row, int64_t column, int64_t first, int64_t end)
{
        float most = 0, scale, factor;
        double sum = 0;

        for (int64_t k = first; k < end; k++) {
                float a = fabsf((float)load(p, row, k));

                most = a > most || isnan(a) ? a : most;
                if (isnan(most))
                        return (double)NAN;
        }
        sl_nibble_scale(most, &scale, &factor);
        for (int64_t k = first; k < end && factor > 0; k++)
                sum += (double)rintf((float)load(p, row, k) * factor) * element(p, column, k);
        return sum * (double)scale;
}

static double result(const struct product *p, int64_t row, int64_t column)
{
        double sum = 0;

        for (int64_t b = 0; b < p->n.blocks; b++) {
                int64_t first = b * p->n.block, end = first + p->n.block < p->n.depth ? first + p->n.block : p->n.depth;
                double of_block = p->n.mode == SL_NIBBLE_BYTES ? sum_bytes(p, row, column, first, end)
                                                               : sum_floats(p, row, column, first, end);

                if (!sl_pace_on(p->binding->pace, (uint64_t)(end - first)))
                        return 0;
                sum += of_block * sl_ref_load(p->binding->inputs[2], column * p->n.blocks + b, p->dtype);
        }
        return sum;
}

int sl_ref_nibble_matmul(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct product p = {.binding = binding, .dtype = node->inputs[0].dtype};
        int64_t elements = (int64_t)sl_shape_elements(&node->outputs[0].shape);

        sl_nibbles_read(node, &p.n, NULL);
        for (int64_t i = 0; i < elements && sl_pace_on(binding->pace, 1); i++)
                sl_ref_store(binding->outputs[0], i, p.dtype, result(&p, i / p.n.columns, i % p.n.columns));
        return 0;
}
