/* SPDX-License-Identifier: Apache-2.0 */
#include "open_sizes.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "check_open.h"
#include "graph.h"
#include "import.h"
#include "ladder.h"
#include "lower.h"
#include "model_file.h"
#include "placement.h"
#include "signature.h"
#include "tried_sizes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

SL_DEFINE_CLEANUP(struct sl_graph *, sl_graph_free)
SL_DEFINE_CLEANUP(struct sl_placement *, sl_placement_free)

/*
 * Tokens, pixels and samples of most models; then what divides little; 1, at which much can be broadcast; and lengths that
 * exporters fix.
 */
static const int64_t sizes_tried[] = {64, 224, 16, 512, 8, 4, 3, 2, 1, 128, 384, 256, 32};

int sl_sizes_bind(const struct sl_signature *signature, int64_t size, struct sl_dim_sizes *sizes)
{
        int r = 0;

        for (uint32_t i = 0; i < signature->n_symbols && r == 0; i++)
                if (sl_dim_sizes_find(sizes, signature->symbols[i]) == SL_DIM_SIZE_NONE)
                        r = sl_dim_sizes_add(sizes, signature->symbols[i], strlen(signature->symbols[i]), size);
        return r;
}

/* What the passes and the ladder call wrong is so at these sizes. */
static int as_sizes(int r)
{
        return r == -ENOTSUP || r == -ENOMEM ? r : -ERANGE;
}

/* Some backend runs each node, at the smallest batch. */
static int try_backend(const struct sl_graph *single, const struct sl_lower_options *options, struct sl_error *why)
{
        SL_CLEANUP(sl_cleanup_sl_placement_free) struct sl_placement *placement = NULL;
        const struct sl_target target = sl_lower_options_target(options);

        return sl_placement_new(single, sl_lower_options_backend(options), &target, &placement, why);
}

/*
 * @describe: where there is no ladder, the ports as far as they are known will do. Return: 0; -ERANGE these sizes will not do; else
 * the import, or a backend, lacks something whatever they are, as far as it can be told. With text.
 */
static int try_one(const struct sl_model_file *model, const struct sl_lower_options *options, bool describe,
        struct sl_plan_info *ret_info, struct sl_error *why)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *graph = NULL;
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *single = NULL;
        struct sl_plan_info info = {0};
        struct sl_graph_limits limits = sl_lower_graph_limits(options);
        int r = sl_import_onnx_file(model, &limits, &options->shapes, &graph, why);

        if (r < 0)
                return r;
        r = sl_lower_rewrite(graph, options, why);
        if (r < 0)
                return as_sizes(r);
        r = sl_ladder_choose(graph, sl_lower_ladder_max(options), &info, &single, why);
        if (r == 0)
                r = try_backend(single, options, why);
        else if (describe && sl_ladder_describe(graph, &info, NULL) == 0)
                r = 0;
        if (r < 0) {
                sl_plan_info_deinit(&info);
                return as_sizes(r);
        }
        sl_plan_info_deinit(ret_info);
        *ret_info = info;
        return 0;
}

/* Callers say which model it is. */
static const char *without_path(const struct sl_model_file *model, const char *text)
{
        size_t n = strlen(model->path);

        return !strncmp(text, model->path, n) && !strncmp(text + n, ": ", 2) ? text + n + 2 : text;
}

/* What trying has come to so far. */
struct trial {
        const struct sl_model_file *model;
        const struct sl_signature *signature;
        struct sl_plan_info *info; /* of those that suit best */
        bool known;
        int lacks; /* what is no matter of sizes; 0: nothing */
        struct sl_error *why;
};

static bool trial_has_ended(const struct trial *trial)
{
        return trial->known && trial->info->n_batches;
}

/* Symbols to which @bound gives none get @size. */
static void try_sizes(struct trial *trial, struct sl_lower_options *bound, int64_t size, struct sl_error *ret_text)
{
        int r = sl_sizes_bind(trial->signature, size, &bound->shapes);

        ret_text->text[0] = 0;
        if (r == 0)
                r = try_one(trial->model, bound, !trial->known, trial->info, ret_text);
        trial->known |= r == 0;
        if (r == 0 || r == -ERANGE || trial->lacks)
                return;
        trial->lacks = r;
        *trial->why = *ret_text;
}

/* Those of this model. Return: whether there are any. */
static bool bind_further(const struct sl_signature *signature, const struct sl_dim_sizes *further, struct sl_dim_sizes *sizes)
{
        bool any = false;

        for (uint32_t i = 0; i < signature->n_symbols; i++) {
                const char *name = signature->symbols[i];
                int64_t size = sl_dim_sizes_find(further, name);

                if (sl_dim_sizes_find(sizes, name) == SL_DIM_SIZE_NONE && size != SL_DIM_SIZE_NONE)
                        any |= sl_dim_sizes_add(sizes, name, strlen(name), size) == 0;
        }
        return any;
}

/* What nobody has tried may suit; what suits none that somebody is going to ask for does not. */
static void try_further(struct trial *trial, const struct sl_lower_options *options, const struct sl_tried_sizes *tried)
{
        struct sl_error text = {.text = ""};
        bool any = false;

        for (uint32_t i = 0; i < tried->n && !trial_has_ended(trial); i++) {
                struct sl_lower_options bound = *options;

                if (!bind_further(trial->signature, &tried->items[i], &bound.shapes))
                        continue;
                any = true;
                try_sizes(trial, &bound, 1, &text);
        }
        if (any && !trial->known && !trial->lacks)
                trial->lacks = sl_error_set(trial->why, ENOTSUP,
                        "none of the sizes that are tried suits it, nor those that are prepared or were asked for: %s",
                        without_path(trial->model, text.text));
}

/* Some node refuses the sizes that the file says itself, whatever the open ones are, or two want different ones. With text. */
static bool contradicts_itself(const struct trial *trial, const struct sl_lower_options *options)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *graph = NULL;
        struct sl_graph_limits limits = sl_lower_graph_limits(options);
        struct sl_error text = {.text = ""};
        int r;

        limits.sizes_unknown = true;
        r = sl_import_onnx_file(trial->model, &limits, &options->shapes, &graph, &text);
        if (r == 0)
                r = sl_graph_check_open(graph, &text);
        if (r != -EBADMSG)
                return false;
        sl_error_set(trial->why, ENOTSUP, "no sizes of its open dimensions suit it: %s", without_path(trial->model, text.text));
        return true;
}

int sl_sizes_try(const struct sl_model_file *model, const struct sl_lower_options *options, const struct sl_signature *signature,
        const struct sl_tried_sizes *tried, struct sl_plan_info *ret_info, struct sl_error *why)
{
        size_t n = signature->n_symbols ? sizeof(sizes_tried) / sizeof(sizes_tried[0]) : 1;
        struct trial trial = {.model = model, .signature = signature, .info = ret_info, .why = why};

        for (size_t i = 0; i < n && !trial_has_ended(&trial); i++) {
                struct sl_lower_options bound = *options;
                struct sl_error text;

                try_sizes(&trial, &bound, sizes_tried[i], &text);
        }
        if (tried && !trial.known)
                try_further(&trial, options, tried);
        if (!trial.known && !trial.lacks && !signature->has_batch && contradicts_itself(&trial, options))
                trial.lacks = -ENOTSUP;
        return trial.known ? 0 : trial.lacks ? trial.lacks : -ERANGE;
}

/* ---- tools ---- */

static bool leads_an_input(const struct sl_signature *signature, uint32_t symbol)
{
        for (uint32_t i = 0; i < signature->n_inputs; i++)
                if (signature->inputs[i].tensor.shape.rank && signature->inputs[i].symbols[0] == symbol)
                        return true;
        return false;
}

/* Return: 0; -EINVAL a size has a name that no input has, whatever the others are; -ENOTSUP none will do, the last because of @why.
 */
static int choose(const struct sl_model_file *model, const struct sl_signature *signature, uint32_t samples,
        struct sl_lower_options *lowering, struct sl_error *why)
{
        SL_CLEANUP(sl_plan_info_deinit) struct sl_plan_info info = {0};
        struct sl_lower_options first = *lowering;

        for (uint32_t i = 0; i < signature->n_symbols; i++) {
                const char *name = signature->symbols[i];

                if (leads_an_input(signature, i) && sl_dim_sizes_find(&first.shapes, name) == SL_DIM_SIZE_NONE)
                        sl_dim_sizes_add(&first.shapes, name, strlen(name), samples);
        }
        for (size_t i = 0; i < sizeof(sizes_tried) / sizeof(sizes_tried[0]); i++) {
                struct sl_lower_options bound = first;
                int r = sl_sizes_bind(signature, sizes_tried[i], &bound.shapes);

                r = r < 0 ? -ENOTSUP : try_one(model, &bound, false, &info, why);
                if (r == 0)
                        *lowering = bound;
                if (r == 0 || r == -EINVAL)
                        return r;
        }
        return -ENOTSUP;
}

/* A dimension that has no size yet, other than that of the samples; NULL. */
static const char *find_open(const struct sl_signature *signature, const struct sl_lower_options *lowering)
{
        for (uint32_t i = 0; i < signature->n_symbols; i++)
                if (!leads_an_input(signature, i) &&
                        sl_dim_sizes_find(&lowering->shapes, signature->symbols[i]) == SL_DIM_SIZE_NONE)
                        return signature->symbols[i];
        return NULL;
}

/* Also a leading dimension, where the file has no form with an open one. */
static int settle(const struct sl_model_file *model, uint32_t samples, struct sl_lower_options *lowering, struct sl_error *error)
{
        struct sl_graph_limits limits = sl_lower_graph_limits(lowering);
        SL_CLEANUP(sl_signature_deinit) struct sl_signature signature = {0};
        struct sl_error why = {.text = ""};
        int r = sl_import_signature(model, &limits, &signature, error);
        const char *open;

        if (r < 0)
                return r;
        r = choose(model, &signature, samples, lowering, &why);
        if (r == -ENOTSUP && signature.has_batch && sl_signature_open_batch(&signature, NULL) == 0)
                r = choose(model, &signature, samples, lowering, &why);
        if (r == -EINVAL)
                return sl_error_set(error, EINVAL, "%s", without_path(model, why.text));
        if (r == 0 || !signature.n_symbols)
                return 0;
        open = find_open(&signature, lowering);
        if (!open)
                return sl_error_set(error, ENOTSUP, "%s", without_path(model, why.text));
        return sl_error_set(error, ENOTSUP,
                "dimension \"%s\" is open, and no size that is tried will do: -O shapes=\"%s=SIZE\"; %s", open, open,
                without_path(model, why.text));
}

int sl_open_sizes_choose(const char *model_path, const struct sl_data_folders *others, uint32_t samples,
        struct sl_lower_options *lowering, struct sl_error *error)
{
        struct sl_model_file model;
        int r = sl_model_file_open(model_path, &model, error);

        if (r < 0)
                return r;
        sl_model_file_use_folder(&model, others);
        r = settle(&model, samples, lowering, error);
        sl_model_file_close(&model);
        return r;
}
