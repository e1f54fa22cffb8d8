/* SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

const struct sl_target sl_target_typical = {.core = {.flops = 190e9, .weights = 13e9, .stream = 17e9, .far = 30e9, .near = 100e9}};
