/* SPDX-License-Identifier: Apache-2.0 */
/* starling.RowAttention, a query at a time. Its scores lie in scratch, as doubles. */
#include "shape/attention.h"
#include "element.h"
#include "kernels.h"

#include <string.h>

struct head {
        const struct sl_node_desc *node;
        const struct sl_binding *binding;
        struct sl_attention a;
        int64_t mask_strides[4];
        int64_t batch, head, row;
};

static double load(const struct head *h, uint32_t input, int64_t row, int64_t column)
{
        const struct sl_shape *shape = &h->node->inputs[input].shape;
        int64_t at = (h->batch * shape->dims[1] + row) * shape->dims[2] + h->a.first[input] + column;

        return sl_ref_load(h->binding->inputs[input], at, h->node->inputs[input].dtype);
}

static double score(const struct head *h, int64_t key)
{
        const void *mask = h->node->n_inputs > SL_ATTENTION_MASK ? h->binding->inputs[SL_ATTENTION_MASK] : NULL;
        const int64_t *strides = h->mask_strides;
        double sum = 0;

        for (int64_t d = 0; d < h->a.depth && sl_pace_on(h->binding->pace, 1); d++)
                sum += load(h, SL_ATTENTION_QUERIES, h->row, h->head * h->a.depth + d) *
                       load(h, SL_ATTENTION_KEYS, key, h->head * h->a.depth + d);
        sum *= h->a.scale;
        if (mask)
                sum += sl_ref_load(mask, h->batch * strides[0] + h->head * strides[1] + h->row * strides[2] + key * strides[3],
                        h->node->inputs[SL_ATTENTION_MASK].dtype);
        return sum;
}

static void attend(const struct head *h)
{
        const struct sl_attention *a = &h->a;
        double largest = -(double)INFINITY, total = 0, *scores = h->binding->scratch;
        int64_t at = ((h->batch * a->rows + h->row) * a->heads + h->head) * a->width;

        for (int64_t key = 0; key < a->keys && sl_pace_on(h->binding->pace, 1); key++) {
                scores[key] = score(h, key);
                largest = fmax(largest, scores[key]);
        }
        for (int64_t key = 0; key < a->keys; key++) {
                scores[key] = exp(scores[key] - largest);
                total += scores[key];
        }
        if (a->guard && isnan(total)) {
                memset(scores, 0, (size_t)a->keys * sizeof(*scores));
                total = 1;
        }
        for (int64_t v = 0; v < a->width; v++) {
                double sum = 0;

                for (int64_t key = 0; key < a->keys && sl_pace_on(h->binding->pace, 1); key++)
                        sum += scores[key] / total * load(h, SL_ATTENTION_VALUES, key, h->head * a->width + v);
                sl_ref_store(h->binding->outputs[0], at + v, h->node->outputs[0].dtype, sum);
        }
}

/* Strides of the mask seen as [batch, heads, rows, keys]; 0 where it repeats. */
static void read_mask(struct head *h)
{
        const struct sl_shape *shape = &h->node->inputs[SL_ATTENTION_MASK].shape;
        int64_t stride = 1;

        for (uint32_t i = shape->rank; i-- > 0;) {
                h->mask_strides[4 - shape->rank + i] = shape->dims[i] == 1 ? 0 : stride;
                stride *= shape->dims[i];
        }
}

size_t sl_ref_scratch_row_attention(const struct sl_node_desc *node)
{
        struct sl_attention a = {.keys = 0};

        sl_attention_read(node, &a, NULL);
        return (size_t)a.keys * sizeof(double);
}

int sl_ref_row_attention(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct head h = {.node = node, .binding = binding};
        int result = sl_attention_read(node, &h.a, NULL);

        if (result)
                return result;
        if (node->n_inputs > SL_ATTENTION_MASK)
                read_mask(&h);
        for (h.batch = 0; h.batch < h.a.batch; h.batch++)
                for (h.head = 0; h.head < h.a.heads; h.head++)
                        for (h.row = 0; h.row < h.a.rows && sl_pace_on(binding->pace, 1); h.row++)
                                attend(&h);
        return 0;
}
