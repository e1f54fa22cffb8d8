/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NonMaxSuppression. The boxes of an image are turned into corners and areas once for all classes. Scores above the threshold are
 * keys in a heap, which is emptied only as far as boxes are wanted: the best goes first, of equals the one that lies first. Each is
 * held against all boxes that are kept, a vector of them at a time, in the arithmetic of `ref`: the answer is the same to the bit.
 * How long it takes is for the data to say, so a run may be ended between two boxes.
 */
#include "cpu/reduce/loops.h"
#include "pace.h"

#include <math.h>
#include <string.h>

#define BLOCK 64 /* kept boxes between two looks */

struct suppression {
        int64_t images, classes, boxes, most, room;
        bool centred;
        uint32_t threshold_inputs[2]; /* of overlap and score; 0: there is none */
};

/* Of each box, or of each that is kept. */
enum { LOW_Y, LOW_X, HIGH_Y, HIGH_X, AREA, SIDES };

struct scratch {
        float *boxes[SIDES], *kept[SIDES];
        uint64_t *heap;
};

static int64_t padded(int64_t n)
{
        return (n + BLOCK - 1) / BLOCK * BLOCK;
}

static bool suppression_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_shape *scores = &node->inputs[1].shape;
        struct suppression *s = state;

        if (sl_cpu_input(node, 2) || !sl_cpu_is_f32(&node->inputs[0]) || !sl_cpu_is_f32(&node->inputs[1]) ||
                node->inputs[0].layout != SL_LAYOUT_PLAIN || node->inputs[1].layout != SL_LAYOUT_PLAIN ||
                sl_cpu_is_empty(&node->inputs[1]))
                return false;
        for (uint32_t i = 0; i < 2; i++) {
                s->threshold_inputs[i] = sl_cpu_input(node, 3 + i) ? 3 + i : 0;
                if (s->threshold_inputs[i] && !sl_cpu_is_f32(&node->inputs[3 + i]))
                        return false;
        }
        s->images = scores->dims[0];
        s->classes = scores->dims[1];
        s->boxes = scores->dims[2];
        s->room = node->outputs[0].shape.dims[0];
        s->most = sl_attrs_int(&node->attrs, SL_ATTR_MAX_BOXES, 0);
        s->most = s->most < s->boxes ? s->most : s->boxes;
        s->centred = sl_attrs_int(&node->attrs, SL_ATTR_CENTER_POINT_BOX, 0);
        sizes->scratch_bytes = (size_t)s->boxes * sizeof(uint64_t) + SIDES * sizeof(float) * (size_t)(s->boxes + padded(s->most));
        return s->boxes < UINT32_MAX && s->most >= 0;
}

static struct scratch divide_scratch(const struct suppression *s, void *memory)
{
        struct scratch scratch = {.heap = memory};
        float *floats = (float *)(scratch.heap + s->boxes);

        for (int i = 0; i < SIDES; i++) {
                scratch.boxes[i] = floats + i * s->boxes;
                scratch.kept[i] = floats + SIDES * s->boxes + i * padded(s->most);
        }
        return scratch;
}

static void read_boxes(const struct suppression *s, const float *boxes, float *const sides[SIDES])
{
        for (int64_t i = 0; i < s->boxes; i++, boxes += 4) {
                for (int k = 0; k < 2; k++) {
                        float one = s->centred ? boxes[k] - boxes[k + 2] / 2 : boxes[k];
                        float other = s->centred ? boxes[k] + boxes[k + 2] / 2 : boxes[k + 2];

                        sides[LOW_Y + k][i] = one < other ? one : other;
                        sides[HIGH_Y + k][i] = one < other ? other : one;
                }
                sides[AREA][i] = (sides[HIGH_Y][i] - sides[LOW_Y][i]) * (sides[HIGH_X][i] - sides[LOW_X][i]);
        }
}

/* Keys have the order of scores, and of equals the first box is the larger. -0 is 0. */
static uint64_t key_of(float score, int64_t box)
{
        uint32_t bits;

        score += 0.0f;
        memcpy(&bits, &score, sizeof(bits));
        bits = bits >> 31 ? ~bits : bits | 0x80000000u;
        return (uint64_t)bits << 32 | (uint32_t) ~(uint32_t)box;
}

static void sink(uint64_t *heap, int64_t n, int64_t at)
{
        uint64_t key = heap[at];

        for (int64_t child; (child = 2 * at + 1) < n; at = child) {
                child += child + 1 < n && heap[child + 1] > heap[child];
                if (heap[child] <= key)
                        break;
                heap[at] = heap[child];
        }
        heap[at] = key;
}

#define SCAN 16

/* The keys of boxes from @first to @end go behind the @n that there are; how many there are then. */
static inline int64_t add_keys(const float *scores, int64_t first, int64_t end, float least, uint64_t *heap, int64_t n)
{
        for (int64_t i = first; i < end; i++)
                if (scores[i] > least)
                        heap[n++] = key_of(scores[i], i);
        return n;
}

/* Nearly all scores are small: sixteen at a time are looked at first. */
SL_CPU_CLONES static int64_t list_keys(const float *scores, int64_t boxes, float least, uint64_t *heap)
{
        int64_t n = 0, i = 0;

        for (; i + SCAN <= boxes; i += SCAN) {
                int32_t any = 0;

                for (int j = 0; j < SCAN; j++)
                        any |= scores[i + j] > least ? -1 : 0;
                if (any)
                        n = add_keys(scores, i, i + SCAN, least, heap, n);
        }
        n = add_keys(scores, i, boxes, least, heap, n);
        for (int64_t at = n / 2; at-- > 0;)
                sink(heap, n, at);
        return n;
}

/* What is behind the last that is kept overlaps nothing. */
SL_CPU_CLONES static bool overlaps(const struct scratch *scratch, int64_t kept, int64_t box, float threshold)
{
        const float *low_y = scratch->kept[LOW_Y], *low_x = scratch->kept[LOW_X], *high_y = scratch->kept[HIGH_Y];
        const float *high_x = scratch->kept[HIGH_X], *area = scratch->kept[AREA];
        float own[SIDES];

        for (int i = 0; i < SIDES; i++)
                own[i] = scratch->boxes[i][box];
        for (int64_t k = 0; k < kept; k += BLOCK) {
                int32_t any = 0;

                for (int64_t j = k; j < k + BLOCK; j++) {
                        float y0 = own[LOW_Y] > low_y[j] ? own[LOW_Y] : low_y[j],
                              x0 = own[LOW_X] > low_x[j] ? own[LOW_X] : low_x[j];
                        float y1 = own[HIGH_Y] < high_y[j] ? own[HIGH_Y] : high_y[j];
                        float x1 = own[HIGH_X] < high_x[j] ? own[HIGH_X] : high_x[j];
                        float shared = (y1 - y0) * (x1 - x0), share = shared / (own[AREA] + area[j] - shared);

                        any |= (y1 > y0 ? -1 : 0) & (x1 > x0 ? -1 : 0) & (share > threshold ? -1 : 0);
                }
                if (any)
                        return true;
        }
        return false;
}

static void keep(const struct scratch *scratch, int64_t kept, int64_t box)
{
        for (int i = 0; i < SIDES; i++) {
                if (kept % BLOCK == 0)
                        for (int j = 0; j < BLOCK; j++)
                                scratch->kept[i][kept + j] = 0;
                scratch->kept[i][kept] = scratch->boxes[i][box];
        }
}

/* Writes rows of @image, @class and box from row @made on; how many there are then. */
static int64_t suppress(const struct suppression *s, const struct scratch *scratch, const float *scores, const float thresholds[2],
        const int64_t place[2], int64_t made, int64_t *out, struct sl_pace *pace)
{
        int64_t n = s->most ? list_keys(scores, s->boxes, thresholds[1], scratch->heap) : 0, kept = 0;

        while (n > 0 && kept < s->most && sl_pace_on(pace, 8 + (uint64_t)kept / 4)) {
                int64_t box = (uint32_t) ~(uint32_t)scratch->heap[0];

                scratch->heap[0] = scratch->heap[--n];
                sink(scratch->heap, n, 0);
                if (overlaps(scratch, kept, box, thresholds[0]))
                        continue;
                keep(scratch, kept++, box);
                if (made < s->room) {
                        out[3 * made] = place[0];
                        out[3 * made + 1] = place[1];
                        out[3 * made++ + 2] = box;
                }
        }
        return made;
}

static int suppression_run(const void *state, const struct sl_binding *binding)
{
        const struct suppression *s = state;
        struct scratch scratch = divide_scratch(s, binding->scratch);
        float thresholds[2] = {0, -INFINITY};
        int64_t *out = binding->outputs[0], made = 0;

        for (int i = 0; i < 2; i++)
                if (s->threshold_inputs[i])
                        thresholds[i] = *(const float *)binding->inputs[s->threshold_inputs[i]];
        for (int64_t i = 0; i < s->images; i++) {
                read_boxes(s, (const float *)binding->inputs[0] + i * s->boxes * 4, scratch.boxes);
                for (int64_t c = 0; c < s->classes && sl_pace_on(binding->pace, (uint64_t)s->boxes); c++) {
                        const float *scores = (const float *)binding->inputs[1] + (i * s->classes + c) * s->boxes;

                        made = suppress(s, &scratch, scores, thresholds, (int64_t[]){i, c}, made, out, binding->pace);
                }
        }
        if (binding->made)
                *binding->made = made;
        memset(out + 3 * made, 0, (size_t)(s->room - made) * 3 * sizeof(*out));
        return 0;
}

const struct sl_cpu_loop sl_cpu_non_max_suppression = {
        .state_bytes = sizeof(struct suppression), .plan = suppression_plan, .run = suppression_run};
