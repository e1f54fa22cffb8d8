/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SparseTensorProto -> a dense constant: the elements that are there, at places in ascending order, among zeros. The dense size is
 * held against the limits before memory is taken; no place is believed before it was compared with the shape.
 */
#include "import/importer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct sparse {
        struct sl_tensor dense, values, places;
        const void *value_data, *place_data;
        uint64_t n;
};

static int read_dims(struct sl_importer *im, const Onnx__SparseTensorProto *proto, const char *name, struct sl_shape *shape)
{
        if (proto->n_dims > SL_RANK_MAX)
                return sl_error_set(im->error, E2BIG, "tensor \"%s\": rank %zu, at most %d", name, proto->n_dims, SL_RANK_MAX);
        *shape = (struct sl_shape){.rank = (uint32_t)proto->n_dims};
        for (uint32_t i = 0; i < shape->rank; i++) {
                if (proto->dims[i] < 0)
                        return sl_error_set(im->error, EBADMSG, "tensor \"%s\": dimension %u is %" PRId64, name, i, proto->dims[i]);
                shape->dims[i] = proto->dims[i];
        }
        return 0;
}

static int check_parts(struct sl_importer *im, const char *name, const struct sparse *s)
{
        const struct sl_shape *values = &s->values.shape, *places = &s->places.shape;
        char text[SL_SHAPE_TEXT_BYTES], place_text[SL_SHAPE_TEXT_BYTES];
        bool fits = values->rank == 1 && places->rank >= 1 && places->rank <= 2 && places->dims[0] == values->dims[0] &&
                    (places->rank == 1 || places->dims[1] == s->dense.shape.rank);

        if (s->places.dtype != SL_DTYPE_I64)
                return sl_error_set(im->error, EBADMSG, "sparse tensor \"%s\": its indices are %s, want int64", name,
                        sl_dtype_name(s->places.dtype));
        if (fits)
                return 0;
        return sl_error_set(im->error, EBADMSG,
                "sparse tensor \"%s\" of rank %u: values are %s and indices %s, want [n] and [n] or [n,rank]", name,
                s->dense.shape.rank, sl_shape_print(values, text), sl_shape_print(places, place_text));
}

/* The data may lie at any address. */
static int64_t index_at(const struct sparse *s, uint64_t i)
{
        int64_t index;

        memcpy(&index, (const char *)s->place_data + i * sizeof(index), sizeof(index));
        return index;
}

static int outside(struct sl_importer *im, const char *name, const struct sparse *s, uint64_t i, int64_t index)
{
        char text[SL_SHAPE_TEXT_BYTES];

        return sl_error_set(im->error, EBADMSG, "sparse tensor \"%s\": index %" PRId64 " of element %" PRIu64 " is outside %s",
                name, index, i, sl_shape_print(&s->dense.shape, text));
}

/* Where element @i goes. */
static int place_of(struct sl_importer *im, const char *name, const struct sparse *s, uint64_t i, uint64_t *ret_place)
{
        const struct sl_shape *shape = &s->dense.shape;
        uint64_t place = 0;

        if (s->places.shape.rank == 1) {
                int64_t index = index_at(s, i);

                *ret_place = (uint64_t)index;
                return index < 0 || (uint64_t)index >= sl_shape_elements(shape) ? outside(im, name, s, i, index) : 0;
        }
        for (uint32_t d = 0; d < shape->rank; d++) {
                int64_t index = index_at(s, i * shape->rank + d);

                if (index < 0 || index >= shape->dims[d])
                        return outside(im, name, s, i, index);
                place = place * (uint64_t)shape->dims[d] + (uint64_t)index;
        }
        *ret_place = place;
        return 0;
}

static int spread(struct sl_importer *im, const char *name, const struct sparse *s, char *dense)
{
        size_t bytes = sl_dtype_bytes(s->dense.dtype);
        uint64_t place = 0, before = 0;

        for (uint64_t i = 0; i < s->n; i++) {
                int result = place_of(im, name, s, i, &place);

                if (result < 0)
                        return result;
                if (i && place <= before)
                        return sl_error_set(im->error, EBADMSG,
                                "sparse tensor \"%s\": element %" PRIu64 " has place %" PRIu64 ", the one before it %" PRIu64
                                ": want them ascending",
                                name, i, place, before);
                memcpy(dense + place * bytes, (const char *)s->value_data + i * bytes, bytes);
                before = place;
        }
        return 0;
}

int sl_import_sparse(struct sl_importer *im, const Onnx__SparseTensorProto *proto, const char *name, uint32_t *ret_value)
{
        struct sparse s = {0};
        char *dense;
        int result;

        if (!proto->values || !proto->indices)
                return sl_error_set(im->error, EBADMSG, "sparse tensor \"%s\" has no values or no indices", name);
        result = read_dims(im, proto, name, &s.dense.shape);
        if (result == 0)
                result = sl_import_load(im, proto->values, name, &s.values, &s.value_data);
        if (result == 0)
                result = sl_import_load(im, proto->indices, name, &s.places, &s.place_data);
        if (result == 0)
                result = check_parts(im, name, &s);
        if (result < 0)
                return result;
        s.dense.dtype = s.values.dtype;
        s.n = sl_shape_elements(&s.values.shape);
        result = sl_import_check_size(im, name, &s.dense);
        if (result < 0)
                return result;
        dense = sl_graph_alloc(im->graph, sl_tensor_bytes(&s.dense));
        if (!dense)
                return sl_error_set(im->error, ENOMEM, "sparse tensor \"%s\": no memory for it", name);
        memset(dense, 0, sl_tensor_bytes(&s.dense));
        result = spread(im, name, &s, dense);
        return result < 0 ? result : sl_graph_add_constant(im->graph, name, &s.dense, dense, ret_value);
}
