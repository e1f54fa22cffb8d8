/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the n-grams of a row that are in a pool. The pool holds all unigrams, then all bigrams, and so on; input 2 says where each
 * length starts. What the lists say is checked at use: they come from the model.
 */
#include "element.h"
#include "kernels.h"

#include <errno.h>
#include <string.h>

enum { MODE_COUNT, MODE_WEIGHT, MODE_WEIGHTED_COUNT };

struct pool {
        const int64_t *items, *starts, *features;
        const float *weights; /* NULL: all 1 */
        struct sl_pace *pace;
        int64_t n_items, n_starts, n_features, n_weights;
        int64_t length, mode;
};

/* The n-grams of one length. */
struct section {
        const int64_t *items;
        int64_t n_grams, first_gram, length;
};

static bool find_section(const struct pool *pool, int64_t length, struct section *ret_section)
{
        struct section section = {.length = 1};
        int64_t first = 0, end = 0;

        for (; section.length <= length; section.length++) {
                section.first_gram += section.n_grams;
                first = pool->starts[section.length - 1];
                end = section.length < pool->n_starts ? pool->starts[section.length] : pool->n_items;
                if (first < 0 || end < first || end > pool->n_items)
                        return false;
                section.n_grams = (end - first) / section.length;
        }
        section.length = length;
        section.items = pool->items + first;
        *ret_section = section;
        return true;
}

static int note(const struct pool *pool, int64_t gram, float *out)
{
        int64_t feature = gram < pool->n_features ? pool->features[gram] : -1;
        float weight = 1;

        if (feature < 0 || feature >= pool->length || (pool->weights && gram >= pool->n_weights))
                return -ERANGE;
        if (pool->weights && pool->mode != MODE_COUNT)
                weight = pool->weights[gram];
        out[feature] = pool->mode == MODE_WEIGHT ? weight : out[feature] + weight;
        return 0;
}

struct row {
        const void *data;
        int64_t first, length;
        uint32_t dtype;
};

static bool matches(const struct row *row, int64_t at, int64_t step, const int64_t *gram, int64_t length)
{
        for (int64_t i = 0; i < length; i++)
                if ((int64_t)sl_ref_load_bits(row->data, row->first + at + i * step, row->dtype) != gram[i])
                        return false;
        return true;
}

/* All n-grams of one length whose items lie @step apart. */
static int count_section(const struct pool *pool, const struct section *section, const struct row *row, int64_t step, float *out)
{
        int r = 0;

        for (int64_t at = 0; at + (section->length - 1) * step < row->length && !r && sl_pace_on(pool->pace, 1); at++)
                for (int64_t g = 0; g < section->n_grams && !r && sl_pace_on(pool->pace, (uint64_t)section->length); g++)
                        if (matches(row, at, step, section->items + g * section->length, section->length))
                                r = note(pool, section->first_gram + g, out);
        return r;
}

/* A single item has nothing to skip, so it is counted once. */
static int count_row(const struct sl_node_desc *node, const struct pool *pool, const struct row *row, float *out)
{
        int64_t least = sl_attrs_int(&node->attrs, SL_ATTR_MIN_GRAM, 1), most = sl_attrs_int(&node->attrs, SL_ATTR_MAX_GRAM, 1);
        int64_t skips = sl_attrs_int(&node->attrs, SL_ATTR_MAX_SKIP, 0);
        int r = 0;

        for (int64_t length = least; length <= most && !r && sl_pace_on(pool->pace, (uint64_t)length); length++) {
                int64_t steps = length == 1 ? 1 : skips + 1;
                struct section section;

                if (!find_section(pool, length, &section))
                        return -ERANGE;
                for (int64_t step = 1; step <= steps && step < row->length + 1 && !r && sl_pace_on(pool->pace, 1); step++)
                        r = count_section(pool, &section, row, step, out);
        }
        return r;
}

int sl_ref_ngram(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *in = &node->inputs[0].shape;
        bool weighted = node->n_inputs > 4 && node->inputs[4].dtype != SL_DTYPE_NONE;
        const struct pool pool = {
                .items = binding->inputs[1],
                .starts = binding->inputs[2],
                .features = binding->inputs[3],
                .pace = binding->pace,
                .weights = weighted ? binding->inputs[4] : NULL,
                .n_items = node->inputs[1].shape.dims[0],
                .n_starts = node->inputs[2].shape.dims[0],
                .n_features = node->inputs[3].shape.dims[0],
                .n_weights = weighted ? node->inputs[4].shape.dims[0] : 0,
                .length = sl_attrs_int(&node->attrs, SL_ATTR_LENGTH, 0),
                .mode = sl_attrs_int(&node->attrs, SL_ATTR_MODE, 0),
        };
        struct row row = {.data = binding->inputs[0], .length = in->dims[in->rank - 1], .dtype = node->inputs[0].dtype};
        int64_t n_rows = in->rank == 2 ? in->dims[0] : 1;
        float *out = binding->outputs[0];
        int r = 0;

        memset(out, 0, sl_tensor_bytes(&node->outputs[0]));
        for (int64_t i = 0; i < n_rows && !r && sl_pace_on(binding->pace, 1); i++, row.first += row.length, out += pool.length)
                r = count_row(node, &pool, &row, out);
        return r;
}
