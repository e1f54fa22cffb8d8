/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wanted of each name, and who wants it. One record a name (wanted.h), written here alone; what follows from it is
 * converge's business (../../converge/step.h).
 *
 * Precedence. What is to be served: the last word counts, of the repository, an administrator or a request for sizes; a name that
 * the repository lists and that has been unloaded comes back when it is read again. With which workers: what an allocation says
 * of the name, or of another name of its file (applied.h); else what its configuration says. Names of one file share a model, and
 * so its workers: where their configurations differ, the one with the most counts for all of them.
 *
 * Whoever asks for the same gets the same answer, and nothing is started twice. Who asks for something else changes the want at
 * once, whatever is under way: who asked before is answered with what has come of the last want.
 *
 * Control thread only.
 */
#pragma once

#include "wanted.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_allotment;
struct sl_error;
struct sl_model_spec;
struct sl_registry;
struct sl_served;

/*
 * What is to be served under one name: a new name, or in the place of what is wanted. The same as before changes nothing, unless it
 * has failed or is wanted @again, by a model that is loaded after that, also where other names of the file have one. Other workers
 * alone are no other want. @ret_served: the name. Return: 0; -ENOSPC the table has no room; -ENOMEM. With text.
 */
int sl_want(struct sl_registry *registry, const struct sl_model_spec *spec, bool again, enum sl_want_origin origin,
        struct sl_served **ret_served, struct sl_error *error);

/* What the repository has of that name cannot be served: FAILED, with the cause, unless something serves or is on its way. Return:
 * 0; -ENOSPC, -ENOMEM. */
int sl_want_refused(struct sl_registry *registry, const struct sl_model_spec *spec);

/* The name is to go. Those who wait for it are told @why, a literal, with -ECANCELED. */
void sl_want_nothing(struct sl_registry *registry, struct sl_served *served, enum sl_want_origin origin, const char *why);

/* What an allocation says of it, or of another name of the same file: they share its workers. NULL: nothing. */
const struct sl_allotment *sl_want_applied(struct sl_registry *registry, const struct sl_served *served);

/* The workers that it is to have, once what an allocation says may have changed. */
void sl_want_workers_again(struct sl_registry *registry, struct sl_served *served);

/* Another set than before, or the same to be tried again. */
void sl_want_workers(struct sl_registry *registry, struct sl_served *served, const struct sl_worker_set *workers);

/* As the log has it. */
const char *sl_want_origin_name(enum sl_want_origin origin);

/* The numbers of all that wants to be told apart. */
uint64_t sl_want_number(struct sl_registry *registry);
