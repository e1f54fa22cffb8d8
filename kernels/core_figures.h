/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one core reaches, for estimates of how long a kernel takes (sl_backend.algorithms). Plain values; only their ratios decide
 * which algorithm is named first, so the same figures give the same plan. A backend measures them (sl_backend.measure).
 */
#pragma once

struct sl_core_figures {
        double flops;   /* a second, two for each multiply-add: a product of matrices of float32 that lie in the L2 cache */
        double weights; /* bytes a second: a matrix that comes from memory, panel by panel, while a block of rows passes by it */
        double stream;  /* bytes a second: a matrix from memory that one row passes by */
        double far;     /* bytes a second, read and written: what is several times as large as the L2 cache */
        double near;    /* the same of what lies in the L2 cache */
};

/* Those of a core of a server with AVX-512, where nothing is measured. */
extern const struct sl_core_figures sl_core_figures_typical;
