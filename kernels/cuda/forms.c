/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/forms.h"

#include <string.h>

static const uint8_t channels_last[] = {'k', 'r', 's', 'c'};

void sl_cuda_form_filters(const struct sl_tensor *filters, struct sl_packed *ret_packed)
{
        ret_packed->data_bytes = sl_tensor_bytes(filters);
        ret_packed->form_bytes = sizeof(channels_last);
        memcpy(ret_packed->form, channels_last, sizeof(channels_last));
}

bool sl_cuda_form_is_filters(const struct sl_tensor *filters, const struct sl_packed *packed)
{
        return packed->data_bytes && packed->data_bytes == sl_tensor_bytes(filters) &&
               packed->form_bytes == sizeof(channels_last) && !memcmp(packed->form, channels_last, sizeof(channels_last));
}

void sl_cuda_form_repack(const struct sl_tensor *filters, const void *plain, void *ret_data)
{
        size_t bytes = sl_dtype_bytes(filters->dtype);
        uint64_t n_filters = (uint64_t)filters->shape.dims[0], channels = (uint64_t)filters->shape.dims[1], pixels = 1;
        const uint8_t *from = plain;
        uint8_t *to = ret_data;

        for (uint32_t i = 2; i < filters->shape.rank; i++)
                pixels *= (uint64_t)filters->shape.dims[i];
        for (uint64_t f = 0; f < n_filters; f++)
                for (uint64_t p = 0; p < pixels; p++)
                        for (uint64_t c = 0; c < channels; c++, to += bytes)
                                memcpy(to, from + ((f * channels + c) * pixels + p) * bytes, bytes);
}
