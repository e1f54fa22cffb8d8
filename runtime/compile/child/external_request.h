/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child's side of asking for external data: as sl_model_file's open_external() wants it. Waits for the answer.
 */
#pragma once

struct sl_error;

/* @number: a uint8_t, of the model; NULL: the first. Return: what sl_model_folder_open_file() said to the parent; -EIO the parent
 * does not answer, or passed no descriptor. */
int sl_external_request(void *number, const char *location, int *ret_fd, struct sl_error *error);
