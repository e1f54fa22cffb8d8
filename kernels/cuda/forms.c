/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/forms.h"

#include <errno.h>
#include <string.h>

/* Filters [F, C, H, W], or [F, C, W], by pixel; those of bytes as floats; a matrix of bytes as floats. */
static const char *const names[SL_CUDA_WAY_COUNT] = {
        [SL_CUDA_WAY_CONVOLUTION] = "krsc",
        [SL_CUDA_WAY_BARE] = "krsc",
        [SL_CUDA_WAY_BYTES_CONVOLUTION] = "krsc floats",
        [SL_CUDA_WAY_BYTES_PRODUCT] = "floats",
};

static bool is_named(const struct sl_packed *packed, const char *name)
{
        return packed->form_bytes == strlen(name) && !memcmp(packed->form, name, strlen(name));
}

static uint64_t bytes_of(const struct sl_tensor *tensor, const char *name)
{
        return strcmp(name, "krsc") == 0 ? sl_tensor_bytes(tensor) : sl_shape_elements(&tensor->shape) * sizeof(float);
}

void sl_cuda_form_of(const struct sl_node_desc *node, enum sl_cuda_way way, uint32_t index, struct sl_packed *ret_packed)
{
        *ret_packed = (struct sl_packed){.data_bytes = 0};
        if (index != 1 || !names[way])
                return;
        ret_packed->data_bytes = bytes_of(&node->inputs[1], names[way]);
        ret_packed->form_bytes = (uint32_t)strlen(names[way]);
        memcpy(ret_packed->form, names[way], strlen(names[way]));
}

bool sl_cuda_form_is(const struct sl_node_desc *node, enum sl_cuda_way way, uint32_t index, const struct sl_packed *packed)
{
        struct sl_packed wanted;

        sl_cuda_form_of(node, way, index, &wanted);
        if (!wanted.data_bytes)
                return !packed || !packed->data_bytes;
        return packed && packed->data_bytes == wanted.data_bytes && is_named(packed, names[way]);
}

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

/* In place, from the last one to the first: bytes lie at the front. */
static void widen(float *data, uint64_t n)
{
        const int8_t *bytes = (const int8_t *)data;

        for (uint64_t i = n; i-- > 0;) {
                float value = (float)bytes[i];

                memcpy(&data[i], &value, sizeof(value));
        }
}

int sl_cuda_form_repack(const struct sl_tensor *tensor, const struct sl_packed *packed, const void *plain, void *ret_data)
{
        bool floats = is_named(packed, "floats") || is_named(packed, "krsc floats");

        if ((!floats && !is_named(packed, "krsc")) || (floats && tensor->dtype != SL_DTYPE_I8))
                return -ENOTSUP;
        if (packed->data_bytes != bytes_of(tensor, floats ? "floats" : "krsc"))
                return -ENOTSUP;
        if (is_named(packed, "floats"))
                memcpy(ret_data, plain, sl_tensor_bytes(tensor));
        else
                by_pixel(tensor, plain, ret_data);
        if (floats)
                widen(ret_data, sl_shape_elements(&tensor->shape));
        return 0;
}
