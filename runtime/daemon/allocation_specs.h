/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an allocation says of the workers of models, in the place of what their own configurations say. Any thread.
 */
#pragma once

#include "spec.h"

#include <sched.h>

struct sl_allocation;
struct sl_error;

/*
 * The workers of each model that @allocation names; of the other models nothing is changed. Versions under names of their own get
 * the workers of the name that serves the same file. @worker_cores: empty: any. Return: 0; -EINVAL with the model and the device: a
 * model that is not among @specs, an ensemble, a column without workers, more workers than a model may have, cores that are no
 * worker cores, a GPU for a model whose device is cpu, or cores for one whose device is a GPU. Nothing is changed then.
 */
int sl_allocation_specs(const struct sl_allocation *allocation, const cpu_set_t *worker_cores, struct sl_model_spec *specs,
        uint32_t n, struct sl_error *error);
