/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TopK of floats: a heap of the best so far, the worst on top, so that nearly every element costs one comparison. Among equals the
 * lower index is the better one; a NaN is larger than every number.
 */
#include "cpu/reduce/loops.h"
#include "shape/rules.h"

#include <math.h>

struct top_k {
        int64_t outer, inner, size, k;
        bool largest, indices;
};

struct item {
        float value;
        int64_t index;
};

static bool top_k_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0];
        struct top_k *s = state;
        uint32_t axis;

        if (node->n_inputs != 1 || !sl_cpu_is_f32(x) || x->layout != SL_LAYOUT_PLAIN || node->outputs[0].layout != SL_LAYOUT_PLAIN)
                return false;
        if (sl_axis_resolve(sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1), x->shape.rank, &axis, NULL))
                return false;
        s->outer = s->inner = 1;
        for (uint32_t i = 0; i < x->shape.rank; i++) {
                s->outer *= i < axis ? x->shape.dims[i] : 1;
                s->inner *= i > axis ? x->shape.dims[i] : 1;
        }
        s->size = x->shape.dims[axis];
        s->k = sl_attrs_int(&node->attrs, SL_ATTR_K, 0);
        s->largest = sl_attrs_int(&node->attrs, SL_ATTR_LARGEST, 1);
        s->indices = node->n_outputs > 1;
        sizes->scratch_bytes = (size_t)s->k * sizeof(struct item);
        return s->k > 0 && s->k <= s->size;
}

/*
 * Whether @a is the better of the two; the smallest are found as the largest of what is negated, but a NaN is the last of them,
 * behind infinity.
 */
static bool better(bool largest, struct item a, struct item b)
{
        if (a.value != b.value && !(isnan(a.value) && isnan(b.value)))
                return isnan(a.value) ? largest : isnan(b.value) ? !largest : a.value > b.value;
        return a.index < b.index;
}

static void sink(bool largest, struct item *heap, int64_t n, int64_t at)
{
        struct item item = heap[at];

        for (int64_t child; (child = 2 * at + 1) < n; at = child) {
                if (child + 1 < n && better(largest, heap[child], heap[child + 1]))
                        child++;
                if (!better(largest, item, heap[child]))
                        break;
                heap[at] = heap[child];
        }
        heap[at] = item;
}

static float key_of(const struct top_k *s, float x)
{
        return s->largest ? x : -x;
}

static void choose(const struct top_k *s, const float *x, struct item *heap)
{
        for (int64_t i = 0; i < s->k; i++)
                heap[i] = (struct item){key_of(s, x[i * s->inner]), i};
        for (int64_t i = s->k / 2; i-- > 0;)
                sink(s->largest, heap, s->k, i);
        for (int64_t i = s->k; i < s->size; i++) {
                struct item item = {key_of(s, x[i * s->inner]), i};

                if (item.value <= heap[0].value || !better(s->largest, item, heap[0]))
                        continue;
                heap[0] = item;
                sink(s->largest, heap, s->k, 0);
        }
        for (int64_t i = s->k - 1; i > 0; i--) {
                struct item worst = heap[0];

                heap[0] = heap[i];
                heap[i] = worst;
                sink(s->largest, heap, i, 0);
        }
}

static int top_k_run(const void *state, const struct sl_binding *binding)
{
        const struct top_k *s = state;
        struct item *heap = binding->scratch;
        const float *x = binding->inputs[0];
        float *values = binding->outputs[0];
        int64_t *indices = s->indices ? binding->outputs[1] : NULL;

        for (int64_t i = 0; i < s->outer * s->inner; i++) {
                const float *column = x + i / s->inner * s->size * s->inner + i % s->inner;
                int64_t to = i / s->inner * s->k * s->inner + i % s->inner;

                choose(s, column, heap);
                for (int64_t j = 0; j < s->k; j++, to += s->inner) {
                        values[to] = column[heap[j].index * s->inner];
                        if (indices)
                                indices[to] = heap[j].index;
                }
        }
        return 0;
}

const struct sl_cpu_loop sl_cpu_top_k = {.state_bytes = sizeof(struct top_k), .plan = top_k_plan, .run = top_k_run};
