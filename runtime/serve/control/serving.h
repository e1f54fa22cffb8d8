/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a loaded model to what serves under a name, and down again. Control thread only; nothing waits.
 */
#pragma once

struct sl_ensemble;
struct sl_error;
struct sl_model;
struct sl_registry;
struct sl_served;

/* Brings a loaded model to its name and into all ensembles that have it as member. Return: 0; -errno with text: nothing is
 * changed. */
int sl_serving_model(struct sl_registry *registry, struct sl_served *served, struct sl_model *model, struct sl_error *error);

/* Makes the ensemble of that name from its members, if they are there; what fails is reported. */
void sl_serving_build(struct sl_registry *registry, struct sl_served *served);

/* The name cannot be served, or not be replaced. */
void sl_serving_fail(struct sl_registry *registry, struct sl_served *served, int status, const char *text);

/* The same as sl_names_drain() for a name and all of its sizes. */
void sl_serving_withdraw(struct sl_registry *registry, struct sl_served *served);

/* The end of a name. */
void sl_serving_clear(struct sl_registry *registry, struct sl_served *served);

/* An ensemble has come out of the dispatcher; a model has. */
void sl_serving_retired(struct sl_registry *registry, struct sl_ensemble *ensemble);
void sl_serving_unload(struct sl_registry *registry, struct sl_model *model);
