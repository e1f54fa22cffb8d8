/* SPDX-License-Identifier: Apache-2.0 */
#include "boxes.h"

#include "tensor.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* A box that counts; of a fusion, a cluster of them. */
struct box {
        double corners[4]; /* the lower ones first */
        double score;
        double label;
        double sums[4]; /* of a cluster: corners by their scores */
        double score_sum;
        uint32_t members; /* of a cluster: boxes */
        uint32_t order;   /* member, then place */
};

uint64_t sl_box_scratch_bytes(uint64_t boxes)
{
        return boxes * sizeof(struct box);
}

static double number_at(const void *values, uint32_t dtype, uint32_t i)
{
        switch (dtype) {
        case SL_DTYPE_I64:
                return (double)((const int64_t *)values)[i];
        case SL_DTYPE_I32:
                return ((const int32_t *)values)[i];
        default:
                return (double)((const float *)values)[i];
        }
}

static void put_number(void *values, uint32_t dtype, uint32_t i, double value)
{
        switch (dtype) {
        case SL_DTYPE_I64:
                ((int64_t *)values)[i] = (int64_t)value;
                break;
        case SL_DTYPE_I32:
                ((int32_t *)values)[i] = (int32_t)value;
                break;
        default:
                ((float *)values)[i] = (float)value;
        }
}

static uint32_t count_of(const struct sl_box_fusion *f, const struct sl_box_list *list)
{
        double count = list->count ? number_at(list->count, f->count_dtype, 0) : list->places;

        return count > 0 ? (uint32_t)fmin(count, list->places) : 0; /* NaN: none */
}

/* True: it counts. */
static bool read_box(const struct sl_box_fusion *f, const struct sl_box_list *list, uint32_t place, struct box *ret_box)
{
        const float *corners = list->boxes + 4ul * place;
        float score = list->scores[place];
        double label = list->labels ? number_at(list->labels, f->label_dtype, place) : 0;

        if (!(score > 0 && score >= f->score_min) || !isfinite(score) || !isfinite(label))
                return false;
        *ret_box = (struct box){.score = (double)score * (double)list->weight, .label = label};
        for (uint32_t k = 0; k < 4; k++)
                ret_box->corners[k] = (double)corners[k];
        return ret_box->score > 0 && isfinite(corners[0] + corners[1] + corners[2] + corners[3]) && corners[2] > corners[0] &&
               corners[3] > corners[1];
}

static uint32_t read_boxes(const struct sl_box_fusion *f, struct box *boxes)
{
        uint32_t n = 0, order = 0;

        for (uint32_t m = 0; m < f->n_lists; m++) {
                uint32_t count = count_of(f, &f->lists[m]);

                for (uint32_t i = 0; i < f->lists[m].places; i++, order++)
                        if (i < count && read_box(f, &f->lists[m], i, &boxes[n]))
                                boxes[n++].order = order;
        }
        return n;
}

static bool goes_before(const struct box *a, const struct box *b)
{
        return a->score > b->score || (a->score == b->score && a->order < b->order);
}

static void sift(struct box *heap, uint32_t at, uint32_t n)
{
        for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
                if (child + 1 < n && goes_before(&heap[child], &heap[child + 1]))
                        child++;
                if (goes_before(&heap[child], &heap[at]))
                        return;
                const struct box moved = heap[at];
                heap[at] = heap[child];
                heap[child] = moved;
        }
}

/* A heap sort, which takes no memory: the order is total, so that any sort gives the same. */
static void rank(struct box *boxes, uint32_t n)
{
        for (uint32_t i = n / 2; i-- > 0;)
                sift(boxes, i, n);
        for (uint32_t last = n; last-- > 1;) {
                const struct box moved = boxes[0];

                boxes[0] = boxes[last];
                boxes[last] = moved;
                sift(boxes, 0, last);
        }
}

static double overlap_of(const struct box *a, const struct box *b)
{
        double width = fmin(a->corners[2], b->corners[2]) - fmax(a->corners[0], b->corners[0]);
        double height = fmin(a->corners[3], b->corners[3]) - fmax(a->corners[1], b->corners[1]);
        double both = width > 0 && height > 0 ? width * height : 0;
        double areas = (a->corners[2] - a->corners[0]) * (a->corners[3] - a->corners[1]) +
                       (b->corners[2] - b->corners[0]) * (b->corners[3] - b->corners[1]);

        return both / (areas - both);
}

/* The cluster that the box overlaps most, by more than the limit; @n: there is none. */
static uint32_t find_cluster(const struct sl_box_fusion *f, const struct box *clusters, uint32_t n, const struct box *box)
{
        double most = (double)f->overlap;
        uint32_t best = n;

        for (uint32_t i = 0; i < n; i++) {
                double overlap = clusters[i].label == box->label ? overlap_of(&clusters[i], box) : 0;

                if (overlap > most) {
                        most = overlap;
                        best = i;
                }
        }
        return best;
}

static void add_to_cluster(struct box *cluster, const struct box *box)
{
        cluster->members++;
        cluster->score_sum += box->score;
        for (uint32_t k = 0; k < 4; k++) {
                cluster->sums[k] += box->score * box->corners[k];
                cluster->corners[k] = cluster->sums[k] / cluster->score_sum;
        }
}

/* Clusters grow where the boxes are that went into them: there are never more. */
static uint32_t fuse(const struct sl_box_fusion *f, struct box *boxes, uint32_t n)
{
        uint32_t clusters = 0;

        for (uint32_t i = 0; i < n; i++) {
                const struct box box = boxes[i];
                uint32_t at = find_cluster(f, boxes, clusters, &box);

                if (at == clusters)
                        boxes[clusters++] = (struct box){.label = box.label, .order = box.order};
                add_to_cluster(&boxes[at], &box);
        }
        for (uint32_t i = 0; i < clusters; i++) {
                uint32_t agreeing = boxes[i].members < f->n_lists ? boxes[i].members : f->n_lists;

                boxes[i].score = boxes[i].score_sum / boxes[i].members * agreeing / f->n_lists;
        }
        return clusters;
}

/* @boxes are ranked. */
static uint32_t suppress(const struct sl_box_fusion *f, struct box *boxes, uint32_t n)
{
        uint32_t kept = 0;

        for (uint32_t i = 0; i < n; i++) {
                bool is_same = false;

                for (uint32_t k = 0; k < kept && !is_same; k++)
                        is_same = boxes[k].label == boxes[i].label && overlap_of(&boxes[k], &boxes[i]) > (double)f->overlap;
                if (!is_same)
                        boxes[kept++] = boxes[i];
        }
        return kept;
}

static uint32_t find_first(const struct box *boxes, uint32_t from, uint32_t n)
{
        uint32_t first = from;

        for (uint32_t i = from + 1; i < n; i++)
                if (goes_before(&boxes[i], &boxes[first]))
                        first = i;
        return first;
}

/* A box that is not the best one loses by exp(-overlap^2 / sigma), in turn to each that is better. */
static uint32_t suppress_softly(const struct sl_box_fusion *f, struct box *boxes, uint32_t n)
{
        uint32_t kept = 0;

        while (kept < n && kept < f->places) {
                uint32_t first = find_first(boxes, kept, n);
                const struct box best = boxes[first];

                if (best.score < (double)f->score_min)
                        break;
                boxes[first] = boxes[kept];
                boxes[kept++] = best;
                for (uint32_t i = kept; i < n; i++) {
                        double overlap = boxes[i].label == best.label ? overlap_of(&best, &boxes[i]) : 0;

                        boxes[i].score *= exp(-overlap * overlap / (double)f->sigma);
                }
        }
        return kept;
}

static void store(const struct sl_box_fusion *f, const struct box *boxes, uint32_t n)
{
        static const struct box none;

        for (uint32_t i = 0; i < f->places; i++) {
                const struct box *box = i < n ? &boxes[i] : &none;

                for (uint32_t k = 0; k < 4 && f->boxes; k++)
                        f->boxes[4ul * i + k] = (float)box->corners[k];
                if (f->scores)
                        f->scores[i] = (float)box->score;
                if (f->labels)
                        put_number(f->labels, f->label_dtype, i, box->label);
        }
        if (f->count)
                put_number(f->count, f->count_dtype, 0, n < f->places ? n : f->places);
}

void sl_fuse_boxes(const struct sl_box_fusion *f)
{
        struct box *boxes = f->scratch;
        uint32_t n = read_boxes(f, boxes);

        rank(boxes, n);
        switch (f->rule) {
        case SL_RULE_WEIGHTED_BOXES:
                n = fuse(f, boxes, n);
                rank(boxes, n);
                break;
        case SL_RULE_NMS:
                n = suppress(f, boxes, n);
                break;
        default:
                n = suppress_softly(f, boxes, n);
        }
        store(f, boxes, n);
}
