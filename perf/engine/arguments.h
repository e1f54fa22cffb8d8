/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver says when it starts the engine. Texts are those of argv. One thread.
 */
#pragma once

#include "lanes.h"
#include "lower_options.h"
#include "plan.h"

struct sl_engine_input {
        const char *name, *path;
};

struct sl_engine_arguments {
        const char *model, *plan; /* one of the two: an ONNX file, or a plan file that was kept */
        const char *keep_plan;    /* where the plan file is copied after the load; NULL: nowhere */
        bool copies;              /* each worker gets a plan of its own */
        uint32_t batch, n_cpus, n_inputs;
        int cpus[SL_LANES_MAX];
        struct sl_engine_input inputs[SL_PLAN_PORTS_MAX];
        struct sl_lower_options lowering;
};

/* Return: 0; -EINVAL, the text says what was wanted. The texts of argv are cut where a name ends. */
int sl_engine_arguments_parse(int argc, char **argv, struct sl_engine_arguments *ret_arguments, struct sl_error *error);
