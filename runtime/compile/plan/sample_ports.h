/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs and outputs of a plan at one batch size, with something in the inputs: floats around 0 from a seed, integers 1. One owner.
 */
#pragma once

#include "plan.h"

#include <stdint.h>

struct sl_sample_ports {
        uint32_t n_inputs, n_outputs;
        void **inputs, **outputs;
        struct sl_open_output *open; /* [outputs] */
};

/* Return: 0, -ENOMEM; deinit it in either case. */
int sl_sample_ports_init(struct sl_sample_ports *ports, const struct sl_plan_info *info, uint32_t batch);

/* What is all zero is fine. */
void sl_sample_ports_deinit(struct sl_sample_ports *ports);

/* Memory that they take. Pure. */
uint64_t sl_sample_ports_bytes(const struct sl_plan_info *info, uint32_t batch);

/* One run of the instance; outputs whose shape is data-dependent are computed, not written. Return: as sl_instance_run(). */
int sl_sample_ports_run(const struct sl_sample_ports *ports, struct sl_instance *instance, uint32_t batch);
