/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model that a command looks at, as `starling serve` would take it: a file; or the folder of a model in a repository, whose
 * newest version that is served is meant, with the options of its config.yaml.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_data_folders;
struct sl_error;
struct sl_lower_options;

struct model_argument {
        char path[PATH_MAX]; /* of the file */
        bool configured;     /* it was a folder, and @lowering is what its configuration says */
};

/* Return: 0; -errno with a text that names the folder, and why nothing in it can be looked at. */
int model_argument_find(
        const char *text, struct sl_lower_options *lowering, struct model_argument *ret_argument, struct sl_error *error);

/*
 * Gives what the file leaves open beside the batch, and @lowering gives no size, a size that the model takes, @samples to what
 * leads an input, and says so on stderr. @data_folders: as of struct confined. A process of its own reads the file (confined.h).
 * Return: 0; -ENOTSUP no size that is tried will do; -errno of reading the file; as confined_run().
 */
int model_argument_settle(const char *command, const struct model_argument *argument, const struct sl_data_folders *data_folders,
        uint32_t samples, struct sl_lower_options *lowering, struct sl_error *error);
