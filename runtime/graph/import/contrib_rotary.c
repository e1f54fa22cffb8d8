/* SPDX-License-Identifier: Apache-2.0 */
#include "import/contrib.h"
#include "import/rotary.h"

static uint32_t take_rows(struct sl_expansion *x, uint32_t cache, uint32_t places, int64_t axis)
{
        struct sl_draft gather = {.op = SL_OP_GATHER, .n_inputs = 2, .inputs = {cache, places}};

        if (x->result == 0)
                x->result = sl_attrs_set_int(&gather.attrs, SL_ATTR_AXIS, 0);
        return sl_expand_unsqueeze(x, sl_expand(x, &gather), &axis, 1);
}

void sl_rotary_take(
        struct sl_expansion *x, uint32_t cosines, uint32_t sines, uint32_t places, int64_t axis, struct sl_rotary *rotary)
{
        const struct sl_shape *shape = sl_expand_shape(x, cosines);

        if (shape->rank == 2 && shape->dims[1] < 0)
                sl_expand_refuse(x, "the number of columns of its caches is not known");
        else if (shape->rank != 2 || shape->dims[1] < 1 || sl_expand_shape(x, sines)->rank != 2 ||
                 sl_expand_shape(x, sines)->dims[1] != shape->dims[1])
                sl_expand_wrong(x, "its caches of cosines and sines are no two matrices of as many columns");
        rotary->cosines = take_rows(x, cosines, places, axis);
        rotary->sines = take_rows(x, sines, places, axis);
}

uint32_t sl_rotary_places(struct sl_expansion *x, int64_t first, int64_t n)
{
        uint32_t limits[3] = {SL_VALUE_NONE, SL_VALUE_NONE, SL_VALUE_NONE};
        const int64_t numbers[3] = {first, first + n, 1};
        struct sl_draft range = {.op = SL_OP_RANGE, .n_inputs = 3};

        for (int i = 0; i < 3 && x->result == 0; i++)
                x->result = sl_import_ints(x->im, x->node->name, &numbers[i], 1, true, &limits[i]);
        for (int i = 0; i < 3; i++)
                range.inputs[i] = limits[i];
        return sl_expand(x, &range);
}

static uint32_t times(struct sl_expansion *x, uint32_t a, uint32_t b)
{
        return sl_expand_binary(x, SL_OP_MUL, a, b);
}

/* Halves of the last dimension, or its even and odd elements: [start, start + size), or every second one. */
static uint32_t part(struct sl_expansion *x, const struct sl_rotary *rotary, uint32_t value, int64_t half, int64_t index)
{
        const int64_t start = rotary->interleaved ? index : index * half, axis = 3,
                      end = rotary->interleaved ? 2 * half : start + half;
        const int64_t step = rotary->interleaved ? 2 : 1;
        struct sl_draft slice = {.op = SL_OP_SLICE, .n_inputs = 1, .inputs = {value}};

        if (x->result == 0)
                x->result = sl_attrs_set_ints(&slice.attrs, SL_ATTR_STARTS, &start, 1);
        if (x->result == 0)
                x->result = sl_attrs_set_ints(&slice.attrs, SL_ATTR_ENDS, &end, 1);
        if (x->result == 0)
                x->result = sl_attrs_set_ints(&slice.attrs, SL_ATTR_AXES, &axis, 1);
        if (x->result == 0)
                x->result = sl_attrs_set_ints(&slice.attrs, SL_ATTR_STEPS, &step, 1);
        return sl_expand(x, &slice);
}

static uint32_t join_parts(
        struct sl_expansion *x, const struct sl_rotary *rotary, uint32_t a, uint32_t b, const struct sl_shape *shape, int64_t half)
{
        const int64_t dims[] = {0, shape->dims[1] < 0 ? 0 : shape->dims[1], shape->dims[2] < 0 ? 0 : shape->dims[2], 2 * half};

        if (!rotary->interleaved)
                return sl_expand_concat(x, a, b, 3);
        a = sl_expand_unsqueeze(x, a, (int64_t[]){4}, 1);
        b = sl_expand_unsqueeze(x, b, (int64_t[]){4}, 1);
        return sl_expand_reshape(x, sl_expand_concat(x, a, b, 4), dims, 4);
}

uint32_t sl_rotary_turn(struct sl_expansion *x, const struct sl_rotary *rotary, uint32_t value)
{
        const struct sl_shape shape = *sl_expand_shape(x, value), cosines = *sl_expand_shape(x, rotary->cosines);
        int64_t half = cosines.rank ? cosines.dims[cosines.rank - 1] : 0, length = shape.dims[3];
        uint32_t a, b, turned;

        if (length < 0)
                sl_expand_refuse(x, "the length of its heads is not known");
        if (x->result == 0 && (shape.rank != 4 || length < 2 * half))
                sl_expand_misfit(x, "its heads are shorter than two rows of the caches");
        if (x->result < 0)
                return SL_VALUE_NONE;
        a = part(x, rotary, value, half, 0);
        b = part(x, rotary, value, half, 1);
        turned = join_parts(x, rotary, sl_expand_binary(x, SL_OP_SUB, times(x, a, rotary->cosines), times(x, b, rotary->sines)),
                sl_expand_plus(x, times(x, b, rotary->cosines), times(x, a, rotary->sines)), &shape, half);
        return length == 2 * half ? turned : sl_expand_concat(x, turned, sl_expand_slice(x, value, 3, 2 * half, length), 3);
}

/* [batch, rows] of places, or one place, that of the first row. */
static uint32_t places_of_rows(struct sl_expansion *x, uint32_t places, int64_t rows)
{
        if (sl_expand_shape(x, places)->rank == 2)
                return places;
        if (rows < 0)
                sl_expand_refuse(x, "the place of the first row alone is given, and the number of rows is not known");
        return sl_expand_plus(x, places, sl_rotary_places(x, 0, rows < 0 ? 0 : rows));
}

/* [batch, rows, heads * length], or [batch, heads, rows, length] */
SL_CONTRIB(rotary_embedding)
{
        struct sl_expansion x = sl_expansion_of(im, node);
        uint32_t value = sl_expand_input(&x, 0);
        const struct sl_shape shape = *sl_expand_shape(&x, value);
        int64_t heads = sl_expand_int(&x, "num_heads", 0), half = sl_expand_shape(&x, sl_expand_input(&x, 2))->dims[1];
        struct sl_rotary rotary = {.interleaved = sl_expand_int(&x, "interleaved", 0)};
        bool by_rows = shape.rank == 3;
        uint32_t places;

        (void)draft;
        if (sl_expand_int(&x, "is_packed_batching", 0) || sl_expand_float(&x, "scale", 1) != 1)
                sl_expand_refuse(&x, "is_packed_batching, or a scale");
        if (!by_rows && shape.rank != 4)
                sl_expand_wrong(&x, "its input has another rank than 3 and 4");
        if (by_rows && shape.dims[2] < 0)
                sl_expand_refuse(&x, "the number of its columns is not known");
        if (by_rows && !heads && half > 0 && shape.dims[2] > 0)
                heads = shape.dims[2] / (2 * half);
        if (x.result == 0 && by_rows && (heads < 1 || shape.dims[2] < 1 || shape.dims[2] % heads))
                sl_expand_misfit(&x, "num_heads does not divide its columns");
        if (x.result < 0)
                return sl_expansion_end(&x);
        places = places_of_rows(&x, sl_expand_input(&x, 1), shape.dims[by_rows ? 1 : 2]);
        sl_rotary_take(&x, sl_expand_input(&x, 2), sl_expand_input(&x, 3), places,
                (int64_t)sl_expand_shape(&x, places)->rank - (by_rows ? 0 : 1), &rotary);
        if (by_rows)
                value = sl_expand_reshape(&x, value, (int64_t[]){0, 0, heads, shape.dims[2] / heads}, 4);
        value = sl_rotary_turn(&x, &rotary, value);
        if (by_rows)
                value = sl_expand_reshape(&x, value, (int64_t[]){0, 0, shape.dims[2]}, 3);
        sl_expand_output(&x, 0, value);
        return sl_expansion_end(&x);
}
