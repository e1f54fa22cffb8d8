/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TopK and NonMaxSuppression. Both keep a heap of indices in scratch, the worst on top, so that a choice of k out of n costs
 * n log k; among equals the lower index is the better one.
 */
#include "element.h"
#include "kernels.h"

/* Elements of one column, or scores of one class: element i lies at first + i * step. */
struct column {
        const void *data;
        int64_t first, step;
        uint32_t dtype;
        bool largest;
        struct sl_pace *pace;
};

/* -1, 0, 1; a NaN is larger than every number. */
static int order(const struct column *c, int64_t a, int64_t b)
{
        if (sl_dtype_is_float(c->dtype)) {
                double x = sl_ref_load(c->data, c->first + a * c->step, c->dtype);
                double y = sl_ref_load(c->data, c->first + b * c->step, c->dtype);

                if (isnan(x) || isnan(y))
                        return isnan(x) - isnan(y);
                return (x > y) - (x < y);
        }
        uint64_t x = sl_ref_load_bits(c->data, c->first + a * c->step, c->dtype);
        uint64_t y = sl_ref_load_bits(c->data, c->first + b * c->step, c->dtype);
        if (sl_ref_is_unsigned(c->dtype))
                return (x > y) - (x < y);
        return ((int64_t)x > (int64_t)y) - ((int64_t)x < (int64_t)y);
}

static bool better(const struct column *c, int64_t a, int64_t b)
{
        int by_value = order(c, a, b);

        if (!by_value)
                return a < b;
        return c->largest ? by_value > 0 : by_value < 0;
}

/* The one at @at is too good for its place: the worse of its children goes up. */
static void sink(const struct column *c, int64_t *heap, int64_t n, int64_t at)
{
        int64_t item = heap[at];

        for (;;) {
                int64_t child = 2 * at + 1;

                if (child >= n)
                        break;
                if (child + 1 < n && better(c, heap[child], heap[child + 1]))
                        child++;
                if (!better(c, item, heap[child]))
                        break;
                heap[at] = heap[child];
                at = child;
        }
        heap[at] = item;
}

static void heapify(const struct column *c, int64_t *heap, int64_t n)
{
        for (int64_t i = n / 2; i-- > 0 && sl_pace_on(c->pace, 2);)
                sink(c, heap, n, i);
}

/* A heap becomes a list, the best first. */
static void unheap(const struct column *c, int64_t *heap, int64_t n)
{
        for (int64_t i = n - 1; i > 0 && sl_pace_on(c->pace, 8); i--) {
                int64_t worst = heap[0];

                heap[0] = heap[i];
                heap[i] = worst;
                sink(c, heap, i, 0);
        }
}

static void sort(const struct column *c, int64_t *items, int64_t n)
{
        heapify(c, items, n);
        unheap(c, items, n);
}

/* The best @k of @n, the best first. */
static void choose(const struct column *c, int64_t n, int64_t k, int64_t *heap)
{
        if (!k)
                return;
        for (int64_t i = 0; i < k; i++)
                heap[i] = i;
        heapify(c, heap, k);
        for (int64_t i = k; i < n && sl_pace_on(c->pace, 1); i++)
                if (better(c, i, heap[0])) {
                        heap[0] = i;
                        sink(c, heap, k, 0);
                }
        unheap(c, heap, k);
}

size_t sl_ref_scratch_top_k(const struct sl_node_desc *node)
{
        return (size_t)sl_attrs_int(&node->attrs, SL_ATTR_K, 0) * sizeof(int64_t);
}

int sl_ref_top_k(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -1), k = sl_attrs_int(&node->attrs, SL_ATTR_K, 0);
        int64_t outer = 1, inner = 1, n, *heap = binding->scratch;
        struct column c = {.data = binding->inputs[0],
                .dtype = node->inputs[0].dtype,
                .largest = sl_attrs_int(&node->attrs, SL_ATTR_LARGEST, 1),
                .pace = binding->pace};

        axis += axis < 0 ? in->rank : 0;
        n = in->dims[axis];
        for (uint32_t i = 0; i < in->rank; i++) {
                outer *= i < axis ? in->dims[i] : 1;
                inner *= i > axis ? in->dims[i] : 1;
        }
        c.step = inner;
        for (int64_t i = 0; i < outer * inner && sl_pace_on(binding->pace, 1); i++) {
                int64_t to = i / inner * k * inner + i % inner;

                c.first = i / inner * n * inner + i % inner;
                choose(&c, n, k, heap);
                for (int64_t j = 0; j < k; j++, to += inner) {
                        if (sl_dtype_is_float(c.dtype))
                                sl_ref_store(
                                        binding->outputs[0], to, c.dtype, sl_ref_load(c.data, c.first + heap[j] * inner, c.dtype));
                        else
                                sl_ref_store_bits(binding->outputs[0], to, c.dtype,
                                        sl_ref_load_bits(c.data, c.first + heap[j] * inner, c.dtype));
                        if (node->n_outputs > 1)
                                ((int64_t *)binding->outputs[1])[to] = heap[j];
                }
        }
        return 0;
}

struct box {
        float low[2], high[2];
};

static struct box box_at(const struct sl_node_desc *node, const float *boxes, int64_t i)
{
        const float *b = boxes + 4 * i;
        struct box box;

        for (int k = 0; k < 2; k++) {
                bool centred = sl_attrs_int(&node->attrs, SL_ATTR_CENTER_POINT_BOX, 0);
                float one = centred ? b[k] - b[k + 2] / 2 : b[k], other = centred ? b[k] + b[k + 2] / 2 : b[k + 2];

                box.low[k] = one < other ? one : other;
                box.high[k] = one < other ? other : one;
        }
        return box;
}

static float area(const struct box *box)
{
        return (box->high[0] - box->low[0]) * (box->high[1] - box->low[1]);
}

static bool overlap(const struct box *a, const struct box *b, float threshold)
{
        float shared = 1;

        for (int k = 0; k < 2; k++) {
                float low = a->low[k] > b->low[k] ? a->low[k] : b->low[k], high = a->high[k] < b->high[k] ? a->high[k] : b->high[k];

                if (!(high > low))
                        return false;
                shared *= high - low;
        }
        return shared / (area(a) + area(b) - shared) > threshold;
}

size_t sl_ref_scratch_non_max_suppression(const struct sl_node_desc *node)
{
        return (size_t)node->inputs[1].shape.dims[2] * sizeof(int64_t);
}

/* Of the boxes in @order, the best first, keeps at most @most that overlap none kept before, in the front of @order. */
static int64_t suppress(const struct sl_node_desc *node, const float *boxes, int64_t *candidates, int64_t n, int64_t most,
        float threshold, struct sl_pace *pace)
{
        int64_t kept = 0;

        for (int64_t i = 0; i < n && kept < most && sl_pace_on(pace, 1); i++) {
                struct box box = box_at(node, boxes, candidates[i]);
                bool free = true;

                for (int64_t k = 0; k < kept && free && sl_pace_on(pace, 1); k++) {
                        struct box other = box_at(node, boxes, candidates[k]);

                        free = !overlap(&box, &other, threshold);
                }
                if (free)
                        candidates[kept++] = candidates[i];
        }
        return kept;
}

static float threshold_of(const struct sl_node_desc *node, const struct sl_binding *binding, uint32_t input, float fallback)
{
        bool there = input < node->n_inputs && node->inputs[input].dtype != SL_DTYPE_NONE;

        return there ? *(const float *)binding->inputs[input] : fallback;
}

/* The boxes whose scores are above the threshold, the best first. */
static int64_t candidates_of(const float *scores, int64_t n, float threshold, struct sl_pace *pace, int64_t *candidates)
{
        struct column c = {.data = scores, .step = 1, .dtype = SL_DTYPE_F32, .largest = true, .pace = pace};
        int64_t count = 0;

        for (int64_t i = 0; i < n && sl_pace_on(pace, 1); i++)
                if (scores[i] > threshold)
                        candidates[count++] = i;
        sort(&c, candidates, count);
        return count;
}

int sl_ref_non_max_suppression(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const int64_t *dims = node->inputs[1].shape.dims;
        int64_t n = dims[2], most = sl_attrs_int(&node->attrs, SL_ATTR_MAX_BOXES, 0), made = 0,
                room = node->outputs[0].shape.dims[0];
        float iou = threshold_of(node, binding, 3, 0), least = threshold_of(node, binding, 4, -INFINITY);
        int64_t *candidates = binding->scratch, *out = binding->outputs[0];

        for (int64_t i = 0; i < dims[0] * dims[1] && sl_pace_on(binding->pace, 1); i++) {
                const float *scores = (const float *)binding->inputs[1] + i * n, *boxes = binding->inputs[0];
                int64_t kept = most ? candidates_of(scores, n, least, binding->pace, candidates) : 0;

                boxes += i / dims[1] * n * 4;
                kept = suppress(node, boxes, candidates, kept, most, iou, binding->pace);
                for (int64_t k = 0; k < kept && made < room; k++, made++) {
                        out[3 * made] = i / dims[1];
                        out[3 * made + 1] = i % dims[1];
                        out[3 * made + 2] = candidates[k];
                }
        }
        if (binding->made)
                *binding->made = made;
        for (int64_t i = 3 * made; i < 3 * room; i++)
                out[i] = 0;
        return 0;
}
