/*
 * What a kernel should take, for the order in which algorithms are tried and for choosing where nothing is timed. The figures are
 * those of a core of a server with AVX-512; only their ratios count. Weights are taken to come from memory beyond the second-level
 * cache, as they do within a network. Pure; any thread.
 */
#pragma once

#include "node.h"

#include <stdbool.h>

#define SL_COST_FLOPS  220e9  /* a second, of a product in registers */
#define SL_COST_BYTES  11e9   /* a second, of weights */
#define SL_COST_FAR    30e9   /* bytes a second, of what lies in the third-level cache */
#define SL_COST_NEAR   100e9  /* bytes a second, of what lies in the second-level cache */
#define SL_COST_LAUNCH 0.5e-6 /* seconds of a call of the library */

static inline double sl_cost_longer(double a, double b)
{
        return a > b ? a : b;
}

/* Seconds of the library's kernel. */
double sl_cost_library(const struct sl_node_desc *node);

/* Seconds that an activation adds; what is a clip adds nothing. */
double sl_cost_activation(uint32_t activation, double elements, bool library);
