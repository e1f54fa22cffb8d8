/* SPDX-License-Identifier: Apache-2.0 */
/* The form in which filters lie in a plan for cuDNN: the channels of a pixel side by side, as in the image. Pure. */
#pragma once

#include "kernel_source.h"

#include <stdbool.h>

/* That of filters [F, C, H, W], or [F, C, W]. */
void sl_cuda_form_filters(const struct sl_tensor *filters, struct sl_packed *ret_packed);
bool sl_cuda_form_is_filters(const struct sl_tensor *filters, const struct sl_packed *packed);

/* @plain may lie at any address. */
void sl_cuda_form_repack(const struct sl_tensor *filters, const void *plain, void *ret_data);
