/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The models that `starling fuse` looks at, with their plans, from the cache or compiled, and grouped by architecture: what serve
 * would put into one bundle. One owner thread.
 */
#pragma once

#include "base/error.h"
#include "lower_options.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_config;
struct sl_plan;
struct sl_plan_cache;

struct fuse_model {
        char *name, *path;
        struct sl_lower_options lowering;
        struct sl_plan *plan;             /* NULL: it cannot be compiled, and `reason` says why */
        uint32_t group;                   /* of models with one family and the same options; UINT32_MAX: none */
        char reason[SL_ERROR_TEXT_BYTES]; /* why it is in none; "" */
};

struct fuse_models {
        uint32_t n, n_groups;
        struct fuse_model *all;
};

/* Where models, plans and what is compiled with are found. */
struct fuse_search {
        struct sl_config *config;
        const char *const *options; /* KEY=VALUE */
        uint32_t n_options;
        struct sl_plan_cache *cache; /* NULL: there is none */
};

/* @config: a file; NULL: the defaults. Return: 0; -errno with a text. */
int fuse_search_init(struct fuse_search *search, const char *config, struct sl_error *error);

/* Waits until what was compiled is kept. */
void fuse_search_deinit(struct fuse_search *search);

/* A model file, the folder of a model, or a repository. Return: 0; -errno with a text that names it. */
int fuse_models_add(struct fuse_models *models, const struct fuse_search *search, const char *argument, struct sl_error *error);

/* Compiles what the cache has not, and groups. */
void fuse_models_compile(struct fuse_models *models, const struct fuse_search *search);

void fuse_models_deinit(struct fuse_models *models);
