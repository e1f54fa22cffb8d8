/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel should take on a core of given figures, for the order in which algorithms are tried and for choosing where nothing
 * is timed. Weights are taken to come from memory beyond the L2 cache, as they do within a network. What a kernel does
 * beside its products is counted in operations of those. Pure; any thread.
 */
#pragma once

#include "node.h"
#include "target.h"

#include <stdbool.h>

static inline double sl_cost_longer(double a, double b)
{
        return a > b ? a : b;
}

/* Seconds in which activations of so many bytes are read and written: from the L2 cache as long as they fit. */
double sl_cost_traffic(const struct sl_core_figures *core, double bytes);

/* Seconds that a residual of so many elements adds. */
double sl_cost_residual(const struct sl_core_figures *core, double elements);

/* Seconds that an activation adds; what is a clip adds nothing. */
double sl_cost_activation(const struct sl_core_figures *core, uint32_t activation, double elements, bool onednn);
