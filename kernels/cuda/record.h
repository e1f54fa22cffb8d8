/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the plan file keeps for a node of the CUDA backend: in which way it is computed, what of scratch the library's plan takes,
 * and that plan, as text. A node that own kernels compute has none. It is read where a hostile compiler may have written it.
 */
#pragma once

#include "cuda/recipe.h"
#include "kernel_source.h"

struct sl_error;

struct sl_cuda_record {
        uint32_t way; /* enum sl_cuda_way */
        uint64_t workspace_bytes;
        const char *text; /* of cuDNN, terminated; NULL: none. Where it is read: in the blob */
        uint64_t text_bytes;
};

/* Return: 0, the data are malloc()ed; -ENOMEM. */
int sl_cuda_record_write(const struct sl_cuda_record *record, void **ret_data, uint64_t *ret_bytes);

/* @blob NULL: own kernels. Return: 0; -EBADMSG the text says what is wrong. */
int sl_cuda_record_read(const struct sl_blob *blob, struct sl_cuda_record *ret_record, struct sl_error *error);
