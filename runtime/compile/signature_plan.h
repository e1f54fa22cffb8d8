/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a model whose open dimensions have no sizes yet: what its ports are, and nothing to run. Compiler's process.
 */
#pragma once

struct sl_error;
struct sl_lower_options;
struct sl_model_file;

/*
 * Return: 0: written to @fd, from its start; -ENOTSUP the file leaves no dimension open beside the batch to which @options gives no
 * size, or does not describe its ports; and what sl_import_signature() says, -ENOMEM, -errno of write.
 */
int sl_signature_write(const struct sl_model_file *model, const struct sl_lower_options *options, int fd);
