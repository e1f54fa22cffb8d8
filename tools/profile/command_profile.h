/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actions of `starling profile`. Each prints on stdout; one thread.
 */
#pragma once

#include "wish.h"

#include <stdatomic.h>

/*
 * Measures what is not stored, or stale, and stores each as it is known. @stops: true: no more. Return: 0; -EINTR with a text that
 * says how far it came; -errno with text.
 */
int profile_measure(const struct wish *wish, const atomic_bool *stops, struct sl_error *error);

/*
 * The offline phase of E-Ebird for the one model and device of @wish: keys of its config.yaml, to the output. Return: 0; -EINVAL
 * there are several, or it has no batches of 32; -EINTR; -errno with text.
 */
int profile_elastic(const struct wish *wish, const atomic_bool *stops, struct sl_error *error);

/* A line each, with what is stale and why; all that is known of the models that are named; a difference and whether it is noise. */
int profile_list(const struct wish *wish, struct sl_error *error);
int profile_show(const struct wish *wish, struct sl_error *error);
int profile_diff(const struct wish *wish, struct sl_error *error);

/* The store, or what of it is asked for (choice.h), as CSV, JSON or costs; such files, or another store, into it. */
int profile_export(const struct wish *wish, struct sl_error *error);
int profile_import(const struct wish *wish, struct sl_error *error);
