/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs and lets on which workers run, by their names:
 *
 *     gpu:0          the whole of it
 *     gpu:0/50%      a let of half its multiprocessors, as near as their groups come (runtime/cuda/let_map.h)
 *     gpu:*          every GPU that can be used, of a model's workers; with a percentage behind a slash a let of each
 *
 * Workers with the same name are on the same let. Plain values; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;

#define SL_GPU_LET_NAME_BYTES 32
#define SL_GPUS_MAX           16
#define SL_GPU_EACH           UINT32_MAX /* the number of gpu:* */

struct sl_gpu_let {
        char name[SL_GPU_LET_NAME_BYTES]; /* canonical: no percentage for all of it */
        uint32_t gpu;
        uint32_t percent; /* 100: all of it, in no green context */
};

/* Is it a GPU's name at all, whatever follows? */
bool sl_gpu_let_is_meant(const char *text);

/* Return: 0; -EINVAL with the text: no such kind, number or percentage. */
int sl_gpu_let_parse(const char *text, struct sl_gpu_let *ret_let, struct sl_error *error);

/* Percentage @percent, 1 to 100, of GPU @gpu, or of each. */
struct sl_gpu_let sl_gpu_let_of(uint32_t gpu, uint32_t percent);

/*
 * The devices of one model: GPUs, each once, or gpu:* by itself. Return: 0; -EINVAL with the text: none or more than SL_GPUS_MAX, a
 * GPU twice, gpu:* beside others, or as above.
 */
int sl_gpu_lets_parse(char *const *texts, uint32_t n, struct sl_gpu_let ret_lets[SL_GPUS_MAX], struct sl_error *error);
