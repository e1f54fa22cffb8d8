/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GroupQueryAttention, of decoders with a cache: heads of queries share keys and values. The new keys are written behind those that
 * a sample has, seqlens_k + 1 minus the new ones; so the cache that goes out is as long as the one that came in and the new ones
 * together. A query sees the keys up to its own place.
 */
#include "import/contrib.h"
#include "import/rotary.h"

#include <float.h>
#include <math.h>

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COSINES, SINES, PLACES, BIAS };

struct group {
        int64_t heads, key_heads, length; /* of a head */
        int64_t rows, past;               /* new ones, and those that the cache has room for */
        uint32_t queries, keys, values;   /* [batch, heads, rows, length] */
        uint32_t written;                 /* [batch]: where the new keys of a sample begin */
};

static uint32_t split_heads(struct sl_expansion *x, const struct group *g, uint32_t value, int64_t heads)
{
        return sl_expand_reshape(x, value, (int64_t[]){0, 0, heads, g->length}, 4);
}

/* As far as that is known. */
static bool is_wide(const struct sl_shape *shape, int64_t width)
{
        return shape->rank == 3 && (shape->dims[2] < 0 || shape->dims[2] == width);
}

/* Queries, keys and values side by side, or one by one; [batch, rows, heads, length]. */
static void read_rows(struct sl_expansion *x, struct group *g)
{
        uint32_t query = sl_expand_input(x, QUERY);
        const struct sl_shape shape = *sl_expand_shape(x, query);
        bool packed = sl_expand_input(x, KEY) == SL_VALUE_NONE;
        int64_t all = packed ? g->heads + 2 * g->key_heads : g->heads, width;

        if (shape.rank != 3)
                sl_expand_wrong(x, "its queries have another rank than 3");
        if (shape.dims[1] < 1 || shape.dims[2] < 0)
                sl_expand_refuse(x, "the number of its rows or columns is not known, or 0");
        if (x->result == 0 && (shape.dims[2] < 1 || shape.dims[2] % all))
                sl_expand_misfit(x, "num_heads does not divide its columns");
        if (x->result < 0)
                return;
        g->rows = shape.dims[1];
        g->length = shape.dims[2] / all;
        width = g->key_heads * g->length;
        g->queries = packed ? sl_expand_slice(x, query, 2, 0, g->heads * g->length) : query;
        g->keys =
                packed ? sl_expand_slice(x, query, 2, g->heads * g->length, g->heads * g->length + width) : sl_expand_input(x, KEY);
        g->values = packed ? sl_expand_slice(x, query, 2, g->heads * g->length + width, shape.dims[2]) : sl_expand_input(x, VALUE);
        if (x->result == 0 && (!is_wide(sl_expand_shape(x, g->keys), width) || !is_wide(sl_expand_shape(x, g->values), width)))
                sl_expand_misfit(x, "keys or values have other columns than kv_num_heads of a query's length");
        g->queries = split_heads(x, g, g->queries, g->heads);
        g->keys = split_heads(x, g, g->keys, g->key_heads);
        g->values = split_heads(x, g, g->values, g->key_heads);
}

static void read_past(struct sl_expansion *x, struct group *g)
{
        const struct sl_shape *past = sl_expand_shape(x, sl_expand_input(x, PAST_KEY));
        bool keys = sl_expand_input(x, PAST_KEY) != SL_VALUE_NONE, values = sl_expand_input(x, PAST_VALUE) != SL_VALUE_NONE;

        if (keys != values)
                sl_expand_wrong(x, "past keys and past values come together");
        if (keys && (past->rank != 4 || past->dims[2] < 0))
                sl_expand_refuse(x, "the length of its cache is not known");
        g->past = keys ? past->dims[2] : 0;
}

/* max(seqlens_k + 1 - rows, 0): a prompt that is padded begins at 0. */
static void find_written(struct sl_expansion *x, struct group *g)
{
        uint32_t lengths = sl_expand_cast(x, sl_expand_input(x, LENGTHS), SL_DTYPE_I64), more = SL_VALUE_NONE, zero = SL_VALUE_NONE;
        const int64_t numbers[] = {1 - g->rows, 0};

        if (x->result == 0)
                x->result = sl_import_ints(x->im, x->node->name, &numbers[0], 1, true, &more);
        if (x->result == 0)
                x->result = sl_import_ints(x->im, x->node->name, &numbers[1], 1, true, &zero);
        if (sl_expand_shape(x, lengths)->rank != 1)
                lengths = sl_expand_reshape(x, lengths, (int64_t[]){-1}, 1);
        g->written = sl_expand_binary(x, SL_OP_MAX, sl_expand_plus(x, lengths, more), zero);
}

/* [batch, rows]: the places of the new rows. */
static uint32_t places_of(struct sl_expansion *x, const struct group *g)
{
        return sl_expand_plus(x, sl_expand_unsqueeze(x, g->written, (int64_t[]){1}, 1), sl_rotary_places(x, 0, g->rows));
}

static void turn(struct sl_expansion *x, struct group *g)
{
        uint32_t places = sl_expand_input(x, PLACES);
        struct sl_rotary rotary = {.interleaved = sl_expand_int(x, "rotary_interleaved", 0)};

        if (!sl_expand_int(x, "do_rotary", 0))
                return;
        if (sl_expand_input(x, COSINES) == SL_VALUE_NONE || sl_expand_input(x, SINES) == SL_VALUE_NONE)
                sl_expand_wrong(x, "do_rotary without caches of cosines and sines");
        sl_rotary_take(x, sl_expand_input(x, COSINES), sl_expand_input(x, SINES),
                places == SL_VALUE_NONE ? places_of(x, g) : places, 2, &rotary);
        g->queries = sl_rotary_turn(x, &rotary, g->queries);
        g->keys = sl_rotary_turn(x, &rotary, g->keys);
}

/* The cache with room behind it, and the new rows where they belong. */
static uint32_t write_cache(struct sl_expansion *x, const struct group *g, uint32_t past, uint32_t rows)
{
        const int64_t pads[] = {0, 0, 0, 0, 0, 0, g->rows, 0};
        struct sl_draft pad = {.op = SL_OP_PAD, .n_inputs = 1, .inputs = {past}};
        struct sl_draft scatter = {.op = SL_OP_TENSOR_SCATTER, .n_inputs = 3};

        if (!g->past)
                return rows;
        if (x->result == 0)
                x->result = sl_attrs_set_ints(&pad.attrs, SL_ATTR_PADS, pads, 8);
        if (x->result == 0)
                x->result = sl_attrs_set_int(&scatter.attrs, SL_ATTR_AXIS, 2);
        scatter.inputs[0] = sl_expand(x, &pad);
        scatter.inputs[1] = rows;
        scatter.inputs[2] = g->written;
        return sl_expand(x, &scatter);
}

/* [batch, 1, rows, keys]: 0 where a query sees the key, and the least number elsewhere. */
static uint32_t mask_of(struct sl_expansion *x, const struct group *g, uint32_t dtype)
{
        int64_t window = sl_expand_int(x, "local_window_size", -1);
        uint32_t last = sl_expand_unsqueeze(x, places_of(x, g), (int64_t[]){1, 3}, 2),
                 keys = sl_rotary_places(x, 0, g->past + g->rows);
        uint32_t seen = sl_expand_binary(x, SL_OP_GREATER_OR_EQUAL, last, keys), size = SL_VALUE_NONE;
        struct sl_draft where = {.op = SL_OP_WHERE, .n_inputs = 3};

        if (window > 0) {
                if (x->result == 0)
                        x->result = sl_import_ints(x->im, x->node->name, &window, 1, true, &size);
                seen = sl_expand_binary(
                        x, SL_OP_AND, seen, sl_expand_binary(x, SL_OP_GREATER, sl_expand_plus(x, keys, size), last));
        }
        where.inputs[0] = seen;
        where.inputs[1] = sl_expand_number(x, 0, dtype);
        where.inputs[2] = sl_expand_number(x, dtype == SL_DTYPE_F16 ? -65504.0 : -(double)FLT_MAX, dtype);
        return sl_expand(x, &where);
}

static uint32_t cap(struct sl_expansion *x, uint32_t scores, double softcap)
{
        return softcap > 0 ? sl_expand_times(x, sl_expand_unary(x, SL_OP_TANH, sl_expand_times(x, scores, 1 / softcap)), softcap)
                           : scores;
}

/* [batch, heads, rows, n] with the rows of all heads that share keys below each other, and back. */
static uint32_t join_heads(struct sl_expansion *x, const struct group *g, uint32_t value, int64_t n)
{
        return g->heads == g->key_heads
                       ? value
                       : sl_expand_reshape(x, value, (int64_t[]){0, g->key_heads, g->heads / g->key_heads * g->rows, n}, 4);
}

static uint32_t part_heads(struct sl_expansion *x, const struct group *g, uint32_t value, int64_t n)
{
        return g->heads == g->key_heads ? value : sl_expand_reshape(x, value, (int64_t[]){0, g->heads, g->rows, n}, 4);
}

static uint32_t attend(struct sl_expansion *x, const struct group *g)
{
        double scale = sl_expand_float(x, "scale", 0), softcap = sl_expand_float(x, "softcap", 0);
        int64_t n_keys = g->past + g->rows;
        uint32_t scores = sl_expand_transpose(x, g->keys, (int64_t[]){0, 1, 3, 2}, 4);

        scores = sl_expand_binary(x, SL_OP_MATMUL, join_heads(x, g, g->queries, g->length), scores);
        scores = sl_expand_times(x, part_heads(x, g, scores, n_keys), scale != 0 ? scale : 1 / sqrt((double)g->length));
        scores = sl_expand_plus(x, cap(x, scores, softcap), sl_expand_input(x, BIAS));
        scores = sl_expand_plus(x, scores, mask_of(x, g, sl_expand_dtype(x, g->queries)));
        scores = join_heads(x, g, sl_expand_softmax(x, scores, -1), n_keys);
        scores = part_heads(x, g, sl_expand_binary(x, SL_OP_MATMUL, scores, g->values), g->length);
        scores = sl_expand_transpose(x, scores, (int64_t[]){0, 2, 1, 3}, 4);
        return sl_expand_reshape(x, scores, (int64_t[]){0, 0, g->heads * g->length}, 3);
}

SL_CONTRIB(group_query_attention)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        struct group g = {.heads = sl_expand_int(&x, "num_heads", 0), .key_heads = sl_expand_int(&x, "kv_num_heads", 0)};

        (void)draft;
        if (g.heads < 1 || g.key_heads < 1 || g.heads > INT32_MAX || g.key_heads > g.heads || g.heads % g.key_heads)
                sl_expand_wrong(&x, "num_heads or kv_num_heads is missing, or they do not divide each other");
        if (sl_expand_int(&x, "smooth_softmax", 0) > 0 || sl_expand_int(&x, "qk_output", 0) || node->n_inputs > BIAS + 1)
                sl_expand_refuse(&x, "smooth_softmax, qk_output, a sink, or scales of a quantized cache");
        if (sl_expand_input(&x, LENGTHS) == SL_VALUE_NONE)
                sl_expand_wrong(&x, "it lacks seqlens_k");
        if (x.result == 0)
                read_rows(&x, &g);
        if (x.result == 0)
                read_past(&x, &g);
        if (x.result < 0)
                return sl_expansion_end(&x);
        find_written(&x, &g);
        turn(&x, &g);
        g.queries = sl_expand_transpose(&x, g.queries, (int64_t[]){0, 2, 1, 3}, 4);
        g.keys = write_cache(&x, &g, sl_expand_input(&x, PAST_KEY), sl_expand_transpose(&x, g.keys, (int64_t[]){0, 2, 1, 3}, 4));
        g.values =
                write_cache(&x, &g, sl_expand_input(&x, PAST_VALUE), sl_expand_transpose(&x, g.values, (int64_t[]){0, 2, 1, 3}, 4));
        sl_expand_output(&x, 0, attend(&x, &g));
        sl_expand_output(&x, 1, g.keys);
        sl_expand_output(&x, 2, g.values);
        return sl_expansion_end(&x);
}
