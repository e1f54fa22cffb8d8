/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a planner plans for. Where the compiler runs there is no device, and nothing should be measured beside others: whoever
 * serves has found out, and says so. Plain values; the same target gives the same plan, which holds it. NULL stands for
 * sl_target_typical.
 */
#pragma once

#include "gpu_figures.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_error;

/*
 * What one core reaches, for estimates of how long a kernel takes: name, typical value, unit, what it is. Operations are what the
 * products of `flops` would do meanwhile; a share is of `flops`, too. kernels/cpu/measure.c and calibrate.c say what is run for
 * each.
 */
#define SL_CORE_FIGURES(X)                                                                                                         \
        X(flops, 190e9, "operations/s", "a product of matrices of float32 that lie in the L2 cache, two for a multiply-add")       \
        X(bytes, 760e9, "operations/s", "the same of uint8 by int8, stored as uint8")                                              \
        X(tiles, 760e9, "operations/s", "the same by tiles of AMX; where there are none, as above")                                \
        X(bf16, 380e9, "operations/s", "the same of bfloat16, stored as that")                                                     \
        X(weights, 13e9, "bytes/s", "a matrix that comes from memory, panel by panel, under a product of few rows")                \
        X(stream, 17e9, "bytes/s", "a matrix from memory that one row passes by, as it is read best")                              \
        X(abreast, 1, "share", "what one row gains that reads four panels of a matrix from memory side by side")                   \
        X(fetched, 1, "share", "what four rows gain when software fetches such a matrix ahead")                                    \
        X(shared, 60e9, "bytes/s", "matrices from memory that all cores read at once, one row passing by each: together")          \
        X(far, 30e9, "bytes/s", "read and written: what is several times as large as the L2 cache")                                \
        X(near, 100e9, "bytes/s", "the same of what lies in the L2 cache")                                                         \
        X(store, 19, "operations", "for each element that leaves the registers of an own product")                                 \
        X(light, 15, "operations", "for each element of a HardSwish behind an own product")                                        \
        X(heavy, 38, "operations", "for each element of a Sigmoid behind an own product")                                          \
        X(product, 1, "share", "own products, and convolutions that are one")                                                      \
        X(first, 0.95, "share", "own convolution of few channels, from NCHW to NHWC")                                              \
        X(frame, 0.95, "share", "im2col GEMM that reads its rows in a frame")                                                      \
        X(copied, 0.86, "share", "im2col GEMM that copies its rows")                                                               \
        X(winograd_2, 0.8, "share", "products of Winograd's F(2x2, 3x3)")                                                          \
        X(winograd_4, 0.7, "share", "products of Winograd's F(4x4, 3x3)")                                                          \
        X(winograd_strided, 0.95, "share", "products of Winograd's with stride 2")                                                 \
        X(depthwise, 0.5, "share", "own depthwise convolution")                                                                    \
        X(grouped, 0.64, "share", "own convolution of few channels in a group")                                                    \
        X(barrier, 1e-6, "s", "a team of two that has nothing to do: from the call to its end")                                    \
        X(onednn_call, 1e-6, "s", "a call of oneDNN that does nearly nothing")                                                     \
        X(onednn_product, 0.94, "share", "oneDNN's products and convolutions")                                                     \
        X(onednn_first, 0.94, "share", "oneDNN's convolution of few channels, from NCHW to NHWC")                                  \
        X(onednn_depthwise, 0.35, "share", "oneDNN's depthwise convolution")                                                       \
        X(onednn_groups_4, 0.2, "share", "oneDNN's convolution of 2 to 7 channels in a group")                                     \
        X(onednn_groups_8, 0.46, "share", "oneDNN's convolution of 8 to 15 channels in a group")                                   \
        X(onednn_groups_16, 0.8, "share", "oneDNN's convolution of 16 and more channels in a group")                               \
        X(onednn_light, 38, "operations", "for each element of a HardSwish of oneDNN")                                             \
        X(onednn_heavy, 72, "operations", "for each element of a Sigmoid of oneDNN")                                               \
        X(onednn_ragged, 285, "operations", "for each element of a residual whose channels fill no vector, of oneDNN")

struct sl_core_figures {
#define X(name, typical, unit, text) double name;
        SL_CORE_FIGURES(X)
#undef X
};

enum sl_core_figure {
#define X(name, typical, unit, text) SL_CORE_FIGURE_##name,
        SL_CORE_FIGURES(X)
#undef X
                SL_CORE_FIGURE_COUNT,
};

struct sl_target {
        struct sl_core_figures core; /* each positive and finite */
        struct sl_cuda_figures gpu;  /* of a backend that plans for one; else zeros */
        uint32_t tf32;               /* 1: products of float32 on a GPU may round their factors to 10 bits */
        uint32_t reserved;           /* 0 */
};

/* A core of a server with AVX-512, where nothing is measured. */
extern const struct sl_target sl_target_typical;

struct sl_core_figure_info {
        const char *name, *unit, *text;
};
struct sl_core_figure_info sl_core_figure_info(enum sl_core_figure figure);
double *sl_core_figure(struct sl_core_figures *figures, enum sl_core_figure figure);

/* All positive and finite? */
bool sl_core_figures_are_sound(const struct sl_core_figures *figures);

/*
 * Seconds in which a team of @members, 2 or more, is called and ends, beside what it computes: there are more of them to look at in
 * a larger one, an eighth of what it takes to call one for each.
 */
static inline double sl_core_team_call(const struct sl_core_figures *core, uint32_t members)
{
        return core->barrier * (1 + 0.125 * (members - 2));
}

/* Operations/s of products of bytes, by whatever is faster. */
static inline double sl_core_bytes_rate(const struct sl_core_figures *core)
{
        return core->tiles > core->bytes ? core->tiles : core->bytes;
}

/* Bytes/s that @members cores bring from memory at once. */
static inline double sl_core_team_bandwidth(const struct sl_core_figures *core, uint32_t members)
{
        return core->stream * members < core->shared ? core->stream * members : core->shared;
}

#define SL_CORE_FIGURES_TEXT_BYTES 1024

/* "flops=1.9e+11,weights=1.3e+10,...": the same figures, always the same text; those that are 0 are left out. */
void sl_core_figures_print(const struct sl_core_figures *figures, char ret_text[SL_CORE_FIGURES_TEXT_BYTES]);

/* The same back; what the text leaves out is 0. False: a name that is none, or a number that is not above 0 and below 1e18. */
bool sl_core_figures_parse(const char *text, struct sl_core_figures *ret_figures);

/* What is 0 becomes what is typical. */
struct sl_core_figures sl_core_figures_complete(const struct sl_core_figures *figures);
