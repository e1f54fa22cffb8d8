/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of own kernels on the machine's own GPU, for the tests that else run them on the host: operands go there, the kernels of
 * the build run, and what they write comes back. One thread; the device stays open to the end of the process.
 */
#pragma once

#include "cuda/own/own.h"
#include "node.h"

#include <stdbool.h>

/* STARLING_TRY_GPU says so. */
bool own_device_wanted(void);

/* As host_run_plan(): @binding has addresses of this process. Ends the test where the device does not do it. */
void own_device_run(const struct sl_node_desc *node, const struct sl_own_plan *plan, const struct sl_own_binding *binding);
