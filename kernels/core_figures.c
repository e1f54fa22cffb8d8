/* SPDX-License-Identifier: Apache-2.0 */
#include "core_figures.h"

const struct sl_core_figures sl_core_figures_typical = {
        .flops = 190e9, .weights = 13e9, .stream = 17e9, .far = 30e9, .near = 100e9};
