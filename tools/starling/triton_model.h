/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model configuration of Triton (config.pbtxt, message ModelConfig) says in the options of our config.yaml, and a note for
 * each thing that it says and that has no counterpart.
 *
 * Threads: one at a time. A translation belongs to whoever made it.
 */
#pragma once

#include <stddef.h>

struct sl_error;

struct triton_model {
        char *yaml;  /* lines of config.yaml; "" when all is as the defaults are */
        char *notes; /* "LINE: KEY: why", a line each */
};

/*
 * @path: .../NAME/config.pbtxt; @name: of the folder. Return: 0; -errno with text: it cannot be read; -ENOTSUP: nothing here serves
 * such a model, the text says why; -ENOMEM.
 */
int triton_model_translate(const char *path, const char *name, struct triton_model *ret_model, struct sl_error *error);
void triton_model_deinit(struct triton_model *model);
