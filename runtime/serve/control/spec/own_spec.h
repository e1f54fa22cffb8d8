/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A specification (spec.h) with its own copies of what it points to. It never changes, but for its workers, which are a want of
 * their own (../want/want.h), and is shared by the want, what serves and whoever works on it: counted. Control thread only.
 */
#pragma once

#include "layout.h"
#include "spec.h"

#include <stdbool.h>

struct sl_own_spec {
        uint32_t refs;
        uint64_t file; /* specifications of the same model file and stamp have the same number: names.h; 0: of an ensemble */
        struct sl_model_spec spec;
        char name[SL_MODEL_NAME_BYTES];
        char *path;                    /* NULL: an ensemble */
        struct sl_dim_sizes *prepared; /* [spec.n_prepared] */
        char *members;                 /* their names, one behind the other */
        const char *member_names[SL_MEMBERS_MAX];
        float weights[SL_MEMBERS_MAX];
        struct sl_combining *combining;
};

/* Return: 0, -ENOMEM. */
int sl_own_spec_new(const struct sl_model_spec *spec, struct sl_own_spec **ret_own);

/* NULL is fine. */
struct sl_own_spec *sl_own_spec_hold(struct sl_own_spec *own);
struct sl_own_spec *sl_own_spec_free(struct sl_own_spec *own);

/* True when there is nothing to load again: at most the workers differ. */
bool sl_spec_same(const struct sl_model_spec *a, const struct sl_model_spec *b);
