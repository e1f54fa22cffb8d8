/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/onednn/evened.h"

#include "cpu/base/operator.h"

#include <stdlib.h>
#include <string.h>

bool sl_evening_plan(const struct sl_node_desc *node, struct sl_evening *ret_evening)
{
        const struct sl_tensor *x = &node->inputs[0];
        int64_t groups = sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1), depth = node->inputs[1].shape.dims[1], pixels = 1;
        bool from_planes = x->layout != SL_LAYOUT_CHANNELS_LAST;

        if (x->dtype != SL_DTYPE_BF16 || depth % 2 == 0 || node->outputs[0].layout != SL_LAYOUT_CHANNELS_LAST)
                return false;
        if (groups > 1 && (depth == 1 || from_planes))
                return false;
        for (uint32_t i = 2; i < x->shape.rank; i++)
                pixels *= x->shape.dims[i];
        *ret_evening = (struct sl_evening){
                .images = x->shape.dims[0], .pixels = pixels * groups, .depth = depth, .from_planes = from_planes};
        return true;
}

/* The first channel is the low half. */
SL_CPU_CLONES static void even_one(int64_t n, const uint16_t *restrict from, uint32_t *restrict to)
{
        for (int64_t i = 0; i < n; i++)
                to[i] = from[i];
}

SL_CPU_CLONES static void even_three_planes(int64_t n, const uint16_t *restrict from, uint64_t *restrict to)
{
        for (int64_t i = 0; i < n; i++)
                to[i] = from[i] | (uint64_t)from[n + i] << 16 | (uint64_t)from[2 * n + i] << 32;
}

/* Each but the last has something behind it to read. */
static void even_three(int64_t n, const uint16_t *from, uint64_t *to)
{
        for (int64_t i = 0; i + 1 < n; i++) {
                memcpy(&to[i], from + 3 * i, sizeof(*to));
                to[i] &= 0xffffffffffff;
        }
        to[n - 1] = 0;
        memcpy(&to[n - 1], from + 3 * (n - 1), 3 * sizeof(*from));
}

static void even_pixels(int64_t n, int64_t depth, const uint16_t *from, uint16_t *to)
{
        for (int64_t i = 0; i < n; i++, from += depth, to += depth + 1) {
                memcpy(to, from, (size_t)depth * sizeof(*to));
                to[depth] = 0;
        }
}

#define TILE 64 /* pixels of one plane, whose places among all channels stay in the L1 cache */

static void even_planes(int64_t n, int64_t depth, const uint16_t *from, uint16_t *to)
{
        for (int64_t first = 0; first < n; first += TILE) {
                int64_t end = first + TILE < n ? first + TILE : n;

                for (int64_t c = 0; c < depth; c++)
                        for (int64_t i = first; i < end; i++)
                                to[i * (depth + 1) + c] = from[c * n + i];
                for (int64_t i = first; i < end; i++)
                        to[i * (depth + 1) + depth] = 0;
        }
}

void sl_evening_run(const struct sl_evening *e, const void *source, void *result)
{
        const uint16_t *from = source;
        uint16_t *to = result;

        for (int64_t i = 0; i < e->images; i++, from += e->pixels * e->depth, to += e->pixels * (e->depth + 1)) {
                if (e->depth == 1)
                        even_one(e->pixels, from, (uint32_t *)to);
                else if (e->depth == 3 && e->from_planes)
                        even_three_planes(e->pixels, from, (uint64_t *)to);
                else if (e->depth == 3)
                        even_three(e->pixels, from, (uint64_t *)to);
                else
                        (e->from_planes ? even_planes : even_pixels)(e->pixels, e->depth, from, to);
        }
}

void *sl_evened_weights(const struct sl_tensor *weights, const void *plain)
{
        size_t filters = (size_t)weights->shape.dims[0], bytes = sl_tensor_bytes(weights) / filters;
        size_t whole = bytes + bytes / (size_t)weights->shape.dims[1];
        char *evened = calloc(filters, whole);

        for (size_t i = 0; i < filters && evened; i++)
                memcpy(evened + i * whole, (const char *)plain + i * bytes, bytes);
        return evened;
}
