/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel should take, for the order in which algorithms are tried and for choosing where nothing is timed. The figures are
 * those of a core of a server with AVX-512; only their ratios count. Weights are taken to come from memory beyond the second-level
 * cache, as they do within a network. Pure; any thread.
 */
#pragma once

#include "node.h"

#include <stdbool.h>

#define SL_COST_FLOPS  190e9  /* a second, of a product in registers */
#define SL_COST_BYTES  13e9   /* a second, of weights */
#define SL_COST_FAR    30e9   /* bytes a second, of what lies in the third-level cache */
#define SL_COST_NEAR   100e9  /* bytes a second, of what lies in the second-level cache */
#define SL_COST_LAUNCH 1e-6   /* seconds of a call of the library */
#define SL_COST_STORE  0.1e-9 /* seconds for each element of a product in the own loops: its sums leave the registers */

static inline double sl_cost_longer(double a, double b)
{
        return a > b ? a : b;
}

/* Seconds in which activations of so many bytes are read and written: from the second-level cache as long as they fit. */
double sl_cost_traffic(double bytes);

/* Seconds that a residual of so many elements adds. */
double sl_cost_residual(double elements);

/* Seconds of the library's kernel. */
double sl_cost_library(const struct sl_node_desc *node);

/* Seconds that an activation adds; what is a clip adds nothing. */
double sl_cost_activation(uint32_t activation, double elements, bool library);
