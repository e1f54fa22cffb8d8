/* SPDX-License-Identifier: Apache-2.0 */
/* starling.RowAttention of halves in one kernel: heads of up to 128 elements, in eights, so that 16 bytes are read at a time. */
#include "shape/attention.h"
#include "cuda/own/builder.h"

#include <errno.h>

#define THREADS  (SL_OWN_ATTENTION_WARPS * 32)
#define ROWS     (SL_OWN_ATTENTION_WARPS * SL_OWN_QUERIES) /* of a block */
#define EIGHT    8
#define HEAD_MAX 128 /* of the largest kernel */
#define GRID     65535

/* Elements that a kernel has room for in a head, and where it stands behind the first of its type. */
static uint32_t kernel_of(uint32_t dtype, int64_t head)
{
        uint32_t first = dtype == SL_DTYPE_F16 ? SL_OWN_KERNEL_attention_f16_32 : SL_OWN_KERNEL_attention_bf16_32;

        return first + (head > 32) + (head > 64);
}

static bool reads_in_eights(const struct sl_node_desc *node, const struct sl_attention *s)
{
        bool all = s->depth % EIGHT == 0 && s->width % EIGHT == 0;

        for (uint32_t i = 0; i < 3; i++)
                all = all && node->inputs[i].shape.dims[2] % EIGHT == 0 && s->first[i] % EIGHT == 0;
        return all;
}

static bool fits(const struct sl_node_desc *node, struct sl_attention *s)
{
        uint32_t dtype = node->inputs[0].dtype;

        if ((dtype != SL_DTYPE_F16 && dtype != SL_DTYPE_BF16) || sl_attention_read(node, s, NULL) || s->batch < 1 || s->rows < 1 ||
                s->keys < 1 || s->depth > HEAD_MAX || s->width > HEAD_MAX)
                return false;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].layout != SL_LAYOUT_PLAIN)
                        return false;
        return reads_in_eights(node, s);
}

/* To [batch, heads, rows, keys]. */
static void set_mask(const struct sl_node_desc *node, const struct sl_attention *s, struct sl_own_attention *a)
{
        const struct sl_shape scores = {4, {s->batch, s->heads, s->rows, s->keys}};
        int64_t strides[SL_RANK_MAX];

        sl_own_broadcast(&node->inputs[SL_ATTENTION_MASK], &scores, strides);
        for (uint32_t i = 0; i < 4; i++)
                a->mask_strides[i] = (uint32_t)strides[i];
        a->mask_dtype = node->inputs[SL_ATTENTION_MASK].dtype;
}

int sl_own_plan_row_attention(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        static const size_t inputs[] = {offsetof(struct sl_own_attention, q), offsetof(struct sl_own_attention, k),
                offsetof(struct sl_own_attention, v), offsetof(struct sl_own_attention, mask)};
        bool masked = sl_own_is_there(node, SL_ATTENTION_MASK);
        struct sl_own_launch *launch;
        struct sl_own_attention a;
        struct sl_attention s;
        uint64_t tiles, tasks;

        if (!fits(node, &s))
                return -ENOTSUP;
        tiles = ((uint64_t)s.rows + ROWS - 1) / ROWS;
        tasks = tiles * (uint64_t)s.heads * (uint64_t)s.batch;
        if (tasks > INT32_MAX)
                return -ENOTSUP;
        a = (struct sl_own_attention){.tasks = (uint32_t)tasks,
                .rows = (uint32_t)s.rows,
                .keys = (uint32_t)s.keys,
                .depth = (uint32_t)s.depth,
                .width = (uint32_t)s.width,
                .out_row = (uint32_t)(s.heads * s.width),
                .guard = s.guard,
                .scale = (float)s.scale,
                .tiles = sl_own_divide_by(tiles),
                .heads = sl_own_divide_by((uint64_t)s.heads)};
        for (uint32_t i = 0; i < 3; i++) {
                a.row[i] = (uint32_t)node->inputs[i].shape.dims[2];
                a.first[i] = (uint32_t)s.first[i];
        }
        if (masked)
                set_mask(node, &s, &a);
        launch = sl_own_add(builder, kernel_of(node->inputs[0].dtype, s.depth > s.width ? s.depth : s.width), &a, sizeof(a), 1);
        launch->grid[0] = (uint32_t)(tasks < GRID ? tasks : GRID);
        launch->block[0] = THREADS;
        sl_own_slot(launch, offsetof(struct sl_own_attention, out), SL_OWN_OUTPUT, 0, 0);
        for (uint32_t i = 0; i < (masked ? 4u : 3u); i++)
                sl_own_slot(launch, inputs[i], SL_OWN_INPUT, i, 0);
        return 0;
}
