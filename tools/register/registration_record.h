/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was registered of a task, as JSON with a stamp: the hash of all else in it. What a later run finds there, for the same key
 * and with the file that was made then, is not measured again.
 */
#pragma once

#include "registration.h"

struct sl_error;

/* Folds what @path says of candidates with the same name and key into @registration. Return: 0, also without a file; -EBADMSG it is
 * not what was written; -errno with text. */
int registration_record_read(const char *path, struct registration *registration, struct sl_error *error);

/* Whole or not at all. Return: 0; -errno with a text that names the file. */
int registration_record_write(const char *path, const struct registration *registration, struct sl_error *error);
