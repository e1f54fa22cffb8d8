/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a model whose open dimensions have no sizes yet: what its ports are, and nothing to run; and what the plan of one
 * that has a size for the only open dimension, which is no batch, says of the others that it may have. Compiler's process.
 *
 * An open dimension that leads all inputs is a batch if the samples are computed apart from each other, as far as that can be told:
 * for a model with others that are open by trying sizes (open_sizes.h). Otherwise it is a symbol: each of its sizes is compiled for
 * itself, and a request is one segment.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_graph;
struct sl_lower_options;
struct sl_model_file;
struct sl_plan_info;
struct sl_tried_sizes;

/* How a model is to be open. */
struct sl_open_wish {
        bool batch;                         /* the leading dimension of the inputs may be the batch */
        const struct sl_tried_sizes *tried; /* NULL: none */
};

/*
 * Where the leading dimension is the batch it is open in every plan; without, or when the nodes say otherwise, it wants a size as
 * well. A model that lacks something whatever its sizes are has no signature.
 *
 * Return: 0: written to @fd, from its start; -ENOTSUP the file leaves no dimension open beside the batch to which @options gives no
 * size; -ERANGE it does not describe its ports, and no size that is tried suits it; what sl_sizes_try() says the model lacks, with
 * its text in @why, which is left as it is otherwise; and what sl_import_signature() says, -ENOMEM, -errno of write.
 */
int sl_signature_write(const struct sl_model_file *model, const struct sl_lower_options *options, const struct sl_open_wish *wish,
        int fd, struct sl_error *why);

/* Gives what the file leaves open and @options gives no size, the leading dimension as well, this one. Return: as the import. */
int sl_signature_bind(const struct sl_model_file *model, int64_t size, struct sl_lower_options *options);

/*
 * @info: that of a plan of any size. Adds its symbols, and where the inputs have them. Return: 0; -ENOTSUP the file has too many;
 * -ENOMEM and what else the import says.
 */
int sl_signature_name_open(const struct sl_model_file *model, const struct sl_lower_options *options, struct sl_plan_info *info,
        struct sl_error *error);

/*
 * @info: the ladder of @graph, the file's with an open leading dimension, or with the size 1 for it. Adds which sizes of @options
 * are of a dimension that an input has; and its symbols when it is no batch, unless the graph takes no other size of it. What the
 * file does not describe is left as it is. Return: 0; -ENOMEM and what else the import says.
 */
int sl_signature_complete(const struct sl_model_file *model, const struct sl_lower_options *options, const struct sl_graph *graph,
        struct sl_plan_info *info);
