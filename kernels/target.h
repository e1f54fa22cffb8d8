/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a planner plans for. Where the compiler runs there is no device, and nothing should be measured beside others: whoever
 * serves has found out, and says so. Plain values; the same target gives the same plan. NULL stands for sl_target_typical.
 */
#pragma once

/* What one core reaches, for estimates of how long a kernel takes; only their ratios decide which algorithm is named first. */
struct sl_core_figures {
        double flops;   /* a second, two for each multiply-add: a product of matrices of float32 that lie in the L2 cache */
        double weights; /* bytes a second: a matrix that comes from memory, panel by panel, while a block of rows passes by it */
        double stream;  /* bytes a second: a matrix from memory that one row passes by */
        double far;     /* bytes a second, read and written: what is several times as large as the L2 cache */
        double near;    /* the same of what lies in the L2 cache */
};

struct sl_target {
        struct sl_core_figures core;
};

/* A core of a server with AVX-512, where nothing is measured. */
extern const struct sl_target sl_target_typical;
