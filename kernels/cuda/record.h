/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the plan file keeps for a node of the CUDA backend: the candidates, each a way in which it can be computed, what of scratch
 * the library's plan takes, and that plan, as text. The first is taken where nothing is timed. A node that own kernels compute has
 * no record. It is read where a hostile compiler may have written it.
 */
#pragma once

#include "cuda/recipe.h"
#include "kernel_source.h"

struct sl_error;

#define SL_CUDA_CANDIDATES_MAX 8u

/* What cuDNN says of an engine; for people. */
enum sl_cuda_note { SL_CUDA_TENSOR_CORES = 1, SL_CUDA_COMPILES = 2, SL_CUDA_NOTES = 3 };

struct sl_cuda_candidate {
        uint32_t way;             /* enum sl_cuda_way */
        uint32_t notes;           /* bits of enum sl_cuda_note */
        int64_t engine;           /* cuDNN's number */
        uint64_t workspace_bytes; /* that the text wants */
        const char *text;         /* of cuDNN, terminated; NULL: none. Where it is read: in the blob */
        uint64_t text_bytes;
};

struct sl_cuda_record {
        uint32_t n; /* 1 or more; only of convolutions and attention there are several */
        struct sl_cuda_candidate candidates[SL_CUDA_CANDIDATES_MAX];
};

/* Return: 0, the data are malloc()ed; -ENOMEM. */
int sl_cuda_record_write(const struct sl_cuda_record *record, void **ret_data, uint64_t *ret_bytes);

/* @blob NULL: own kernels. Return: 0; -EBADMSG the text says what is wrong. */
int sl_cuda_record_read(const struct sl_blob *blob, struct sl_cuda_record *ret_record, struct sl_error *error);

/* Is it computed by a plan of cuDNN? Pure. */
static inline bool sl_cuda_way_has_text(uint32_t way)
{
        return way == SL_CUDA_WAY_CONVOLUTION || way == SL_CUDA_WAY_BARE || way == SL_CUDA_WAY_BYTES_CONVOLUTION ||
               way == SL_CUDA_WAY_INT8_CONVOLUTION;
}
