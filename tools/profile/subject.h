/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is profiled: one model in one precision. Its plan is compiled when it is first needed, in a child process as the runtime's
 * are. One owner.
 */
#pragma once

#include "layout.h"
#include "lower_options.h"
#include "worker_profile.h"

#include <limits.h>

struct sl_error;
struct sl_plan;
struct wish;

struct subject {
        char name[SL_MODEL_NAME_BYTES], path[PATH_MAX];
        struct sl_lower_options lowering;
        const struct sl_data_folders *data_folders; /* the command line's */
        struct sl_plan *plan;                       /* NULL: not compiled */
        double cold_load_ns, warm_load_ns;
};

struct subjects {
        struct subject *items;
        uint32_t n;
};

/*
 * The models that the command line names, members in the place of ensembles, each in every precision that is asked for.
 * Return: 0; -errno with a text that names the argument. Deinit it in either case.
 */
int subjects_find(const struct wish *wish, struct subjects *subjects, struct sl_error *error);
void subjects_deinit(struct subjects *subjects);

/* "fp32" */
const char *subject_precision(const struct subject *subject);

/* Name, path, precision and options. Return: 0; -EINVAL one of them is too long. */
int subject_fill(const struct subject *subject, struct sl_worker_profile *profile, struct sl_error *error);

/*
 * Compiles it unless that is done: the time of that and of what follows until a worker of @batch could compute is the cold load;
 * the same with the plan from the cache is the warm one, NaN where there is no cache. Return: 0; -errno with text.
 */
int subject_load(struct subject *subject, uint32_t batch, struct sl_error *error);
