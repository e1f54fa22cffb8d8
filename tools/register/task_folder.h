/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What serving needs, in a repository: each variant as NAME/1/model.onnx, the same file as in the folder where it was made, and the
 * task as TASK/config.yaml, which is written last and whole, with a stamp in its first line.
 */
#pragma once

#include "registration.h"

struct sl_error;

/*
 * Before anything is measured. Return: 0; -EEXIST what is called as the task or as one of the candidates is not what was written by
 * `register`, or its config.yaml has been changed since; -errno with text.
 */
int task_folder_check(const struct registration *registration, struct sl_error *error);

/* Candidates without a reason against them become variants, the others are taken away. Return: 0; -errno with text. */
int task_folder_write(const struct registration *registration, struct sl_error *error);
