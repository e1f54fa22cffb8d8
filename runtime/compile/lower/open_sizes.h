/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model with open dimensions turns out to be at sizes that nobody asked for: whether its leading dimension is a batch, and
 * what types and ranks its outputs have, which files often declare wrongly. Compiler's process; pure but for reading the file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_data_folders;
struct sl_dim_sizes;
struct sl_error;
struct sl_lower_options;
struct sl_model_file;
struct sl_plan_info;
struct sl_signature;
struct sl_tried_sizes;

/* Gives every symbol that has none in @sizes this size. Return: 0; -E2BIG. */
int sl_sizes_bind(const struct sl_signature *signature, int64_t size, struct sl_dim_sizes *sizes);

/*
 * Gives every symbol that @options gives no size the same one, the next of a short list until the model takes it and a backend runs
 * each of its nodes; then the sizes of @tried, NULL: none. @why: text of what is lacking.
 *
 * Return: 0: @ret_info is the ladder at those sizes, or has no batches but describes the outputs, when the leading dimension
 * cannot be 1; -ERANGE none of the list suits, none of @tried is of this model, and nothing is known: others may; else none suits,
 * and what the import or the placement says of one is no matter of sizes, unless a batch is left open; or sizes that the file says
 * contradict each other whatever the open ones are.
 */
int sl_sizes_try(const struct sl_model_file *model, const struct sl_lower_options *options, const struct sl_signature *signature,
        const struct sl_tried_sizes *tried, struct sl_plan_info *ret_info, struct sl_error *why);

/*
 * For tools that look at a model without a request: gives each open dimension of the file beside the batch that has no size in
 * @lowering one that the model takes, @samples to what leads an input. Return: 0; -ENOTSUP none of the list suits; -EINVAL
 * with shapes_known, a size has a name that no input has; -errno of reading the file.
 */
int sl_open_sizes_choose(const char *model_path, const struct sl_data_folders *others, uint32_t samples,
        struct sl_lower_options *lowering, struct sl_error *error);
