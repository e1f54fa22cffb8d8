/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/forms.h"

#include "cuda/int8.h"
#include "op.h"

#include <errno.h>
#include <string.h>

/* Filters are [F, C, H, W] or [F, C, W], matrices [K, N] or [N, K]. */
#define FORMS(X)                                                                                                                   \
        X(KRSC, "krsc")               /* filters by pixel */                                                                       \
        X(KRSC_FLOATS, "krsc floats") /* the same of bytes, as float32 */                                                          \
        X(FLOATS, "floats")           /* a matrix of bytes as float32 */                                                           \
        X(KRSC_INT8, "krsc int8")     /* filters of bytes by pixel, and the total of each */                                       \
        X(KN_INT8, "kn int8")         /* a matrix of bytes turned, and the total of each column */                                 \
        X(NK_INT8, "nk int8")         /* one that is turned, and the total of each row */

enum form {
        AS_IT_IS,
#define X(id, name) id,
        FORMS(X)
#undef X
                FORM_COUNT,
};

static const char *const names[FORM_COUNT] = {"",
#define X(id, name) name,
        FORMS(X)
#undef X
};

static enum form form_of(const struct sl_node_desc *node, enum sl_cuda_way way)
{
        switch (way) {
        case SL_CUDA_WAY_CONVOLUTION:
        case SL_CUDA_WAY_BARE:
                return KRSC;
        case SL_CUDA_WAY_BYTES_CONVOLUTION:
                return KRSC_FLOATS;
        case SL_CUDA_WAY_BYTES_PRODUCT:
                return FLOATS;
        case SL_CUDA_WAY_INT8_CONVOLUTION:
        case SL_CUDA_WAY_INT8_ROWS:
                return KRSC_INT8;
        case SL_CUDA_WAY_INT8_PRODUCT:
                return sl_attrs_int(&node->attrs, SL_ATTR_TRANS_B, 0) ? NK_INT8 : KN_INT8;
        default:
                return AS_IT_IS;
        }
}

static bool is_named(const struct sl_packed *packed, const char *name)
{
        return packed->form_bytes == strlen(name) && !memcmp(packed->form, name, strlen(name));
}

/* Filters, columns of a matrix, rows of one that is turned: what has a total. */
static uint64_t count_totals(const struct sl_tensor *tensor, enum form form)
{
        return (uint64_t)tensor->shape.dims[form == KN_INT8];
}

static uint64_t bytes_of(const struct sl_tensor *tensor, enum form form)
{
        switch (form) {
        case KRSC_FLOATS:
        case FLOATS:
                return sl_shape_elements(&tensor->shape) * sizeof(float);
        case KRSC_INT8:
        case KN_INT8:
        case NK_INT8:
                return sl_cuda_int8_totals_at(tensor) + count_totals(tensor, form) * sizeof(int32_t);
        default:
                return sl_tensor_bytes(tensor);
        }
}

void sl_cuda_form_of(const struct sl_node_desc *node, enum sl_cuda_way way, uint32_t index, struct sl_packed *ret_packed)
{
        enum form form = form_of(node, way);

        *ret_packed = (struct sl_packed){.data_bytes = 0};
        if (index != 1 || form == AS_IT_IS)
                return;
        ret_packed->data_bytes = bytes_of(&node->inputs[1], form);
        ret_packed->form_bytes = (uint32_t)strlen(names[form]);
        memcpy(ret_packed->form, names[form], strlen(names[form]));
}

bool sl_cuda_form_is(const struct sl_node_desc *node, enum sl_cuda_way way, uint32_t index, const struct sl_packed *packed)
{
        struct sl_packed wanted;

        sl_cuda_form_of(node, way, index, &wanted);
        if (!wanted.data_bytes)
                return !packed || !packed->data_bytes;
        return packed && packed->data_bytes == wanted.data_bytes && is_named(packed, names[form_of(node, way)]);
}

/* ---- making them ---- */

static void by_pixel(const struct sl_tensor *filters, const uint8_t *from, uint8_t *to)
{
        size_t bytes = sl_dtype_bytes(filters->dtype);
        uint64_t n_filters = (uint64_t)filters->shape.dims[0], channels = (uint64_t)filters->shape.dims[1], pixels = 1;

        for (uint32_t i = 2; i < filters->shape.rank; i++)
                pixels *= (uint64_t)filters->shape.dims[i];
        for (uint64_t f = 0; f < n_filters; f++)
                for (uint64_t p = 0; p < pixels; p++)
                        for (uint64_t c = 0; c < channels; c++, to += bytes)
                                memcpy(to, from + ((f * channels + c) * pixels + p) * bytes, bytes);
}

static void turn(const struct sl_tensor *matrix, const int8_t *from, int8_t *to)
{
        int64_t rows = matrix->shape.dims[0], columns = matrix->shape.dims[1];

        for (int64_t column = 0; column < columns; column++)
                for (int64_t row = 0; row < rows; row++)
                        *to++ = from[row * columns + column];
}

/* In place, from the last one to the first: bytes lie at the front. */
static void widen(float *data, uint64_t n)
{
        const int8_t *bytes = (const int8_t *)data;

        for (uint64_t i = n; i-- > 0;) {
                float value = (float)bytes[i];

                memcpy(&data[i], &value, sizeof(value));
        }
}

/* Of rows that lie at the front. */
static void add_totals(const struct sl_tensor *tensor, enum form form, int8_t *data)
{
        uint64_t n = count_totals(tensor, form), depth = n ? sl_shape_elements(&tensor->shape) / n : 0;
        uint64_t at = sl_cuda_int8_totals_at(tensor);
        const int8_t *row = data;

        memset(data + n * depth, 0, at - n * depth);
        for (uint64_t i = 0; i < n; i++, row += depth) {
                int32_t total = 0;

                for (uint64_t k = 0; k < depth; k++)
                        total += row[k];
                memcpy(data + at + i * sizeof(total), &total, sizeof(total));
        }
}

static enum form form_named(const struct sl_packed *packed)
{
        for (uint32_t form = AS_IT_IS + 1; form < FORM_COUNT; form++)
                if (is_named(packed, names[form]))
                        return form;
        return AS_IT_IS;
}

int sl_cuda_form_repack(const struct sl_tensor *tensor, const struct sl_packed *packed, const void *plain, void *ret_data)
{
        enum form form = form_named(packed);

        if (form == AS_IT_IS || (form != KRSC && tensor->dtype != SL_DTYPE_I8) || packed->data_bytes != bytes_of(tensor, form))
                return -ENOTSUP;
        if (form == KRSC || form == KRSC_FLOATS || form == KRSC_INT8)
                by_pixel(tensor, plain, ret_data);
        else if (form == KN_INT8)
                turn(tensor, plain, ret_data);
        else
                memcpy(ret_data, plain, sl_tensor_bytes(tensor));
        if (form == FLOATS || form == KRSC_FLOATS)
                widen(ret_data, sl_shape_elements(&tensor->shape));
        else if (form != KRSC)
                add_totals(tensor, form, ret_data);
        return 0;
}
