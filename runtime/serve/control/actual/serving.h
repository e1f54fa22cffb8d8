/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a loaded model to what serves under a name, and down again. Control thread only; nothing waits.
 */
#pragma once

#include <stdint.h>

struct sl_ensemble;
struct sl_error;
struct sl_model;
struct sl_registry;
struct sl_served;
struct sl_standby;

/* Brings a loaded model to its name. @workers: the number of the set that it has. Return: 0; -errno with text: nothing is changed.
 */
int sl_serving_model(
        struct sl_registry *registry, struct sl_served *served, struct sl_model *model, uint64_t workers, struct sl_error *error);

/* Its model goes, or the plan that it has on standby, and requests for it wait until it is loaded again. */
void sl_serving_rest(struct sl_registry *registry, struct sl_served *served);

/* Its model goes, where it has one, and this plan of it stays, which is the name's from here on; requests for it wait until its
 * workers have started. What fails is reported. */
void sl_serving_stand_by(struct sl_registry *registry, struct sl_served *served, struct sl_standby *standby);

/* The name is served by the model of another one, of the same file or with the same sizes; what fails is reported. */
void sl_serving_share(struct sl_registry *registry, struct sl_served *served, const struct sl_served *twin);

/* Makes the ensemble of that name from its members; what fails is reported. @composition: of which models (fleet.h). */
void sl_serving_compose(struct sl_registry *registry, struct sl_served *served, uint64_t composition);

/* One of them is not there and will not come. */
void sl_serving_lacks_member(struct sl_registry *registry, struct sl_served *served);

/* What is wanted cannot be served: whoever waits for it is told, and what serves goes on. */
void sl_serving_fail(struct sl_registry *registry, struct sl_served *served, int status, const char *text);

/* It takes no more requests, nor do its sizes, and goes when the last has ended. */
void sl_serving_withdraw(struct sl_registry *registry, struct sl_served *served);

/* The end of a name of which nothing is wanted and nothing there. */
void sl_serving_forget(struct sl_registry *registry, struct sl_served *served);

/* An ensemble has come out of the dispatcher; a model has. */
void sl_serving_retired(struct sl_registry *registry, struct sl_ensemble *ensemble);
void sl_serving_gone(struct sl_registry *registry, struct sl_model *model);

/* A model that nobody knows any more, and whose workers are to end: it is there until they have. */
void sl_serving_end(struct sl_registry *registry, struct sl_model *model);

/* Frees those whose workers have ended. */
void sl_serving_bury(struct sl_registry *registry);

/* Frees all that there are, which may wait for them. */
void sl_serving_free(struct sl_registry *registry);
