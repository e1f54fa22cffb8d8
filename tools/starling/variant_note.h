/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line on standard error where a variant of a model (int8, bf16) should be slower than float32 on this processor; nothing where
 * it should not. The figures of the core are those of the options, else they are measured, which takes some tens of milliseconds.
 */
#pragma once

struct sl_data_folders;
struct sl_lower_options;

/* @plan_fd: of the compiled variant. What goes wrong is not said: the command has done what it was asked for. */
void note_if_slower(const char *command, int plan_fd, const struct sl_lower_options *lowering);

/* The same of a model file, which is compiled for it if the options, or what the file says of itself, make it a variant. */
void note_if_model_is_slower(
        const char *command, const char *path, const struct sl_data_folders *data_folders, const struct sl_lower_options *lowering);
