/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model with bodies for tests: built in C, compiled into a plan here, run beside the reference evaluation. One thread.
 */
#pragma once

#include "base/error.h"
#include "builder.h"
#include "lower_options.h"
#include "plan.h"

#include <stdint.h>

#define MODEL_BODIES_MAX 4
#define MODEL_ROOM       (1 << 16) /* bytes of each open output */

struct model {
        struct builder *b, *bodies[MODEL_BODIES_MAX];
        struct sl_graph *graph;
        struct sl_plan *plan;
        struct sl_instance *instance;
        struct sl_lower_options options;
        struct sl_error error;
};

/* Imports model->b with the default options, and rewrites it. */
void model_import(struct model *m);

/* The plan file of the imported model, which is the caller's to close. */
int model_plan_fd(struct model *m);

/* The plan and an instance. */
void model_compile(struct model *m);
void model_end(struct model *m);

/* Makes the checksum of a changed plan file right. */
void plan_seal(uint8_t *bytes, uint64_t n_bytes);
int plan_open_bytes(const uint8_t *bytes, uint64_t n_bytes, struct sl_plan **ret_plan);

/* The bytes of a plan file, which are the caller's to free. */
uint8_t *plan_read(int fd, uint64_t *ret_bytes);
