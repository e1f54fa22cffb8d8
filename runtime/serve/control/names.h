/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of names: who is found in it, who gets a place, and what the world hears of one (served.h). Control thread only.
 */
#pragma once

#include "dispatcher.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_account;
struct sl_error;
struct sl_model_spec;
struct sl_registry;
struct sl_served;

/* One line of the log about a name, on behalf of whoever asked for its sizes; @text: its cause, or NULL. */
void sl_names_report(struct sl_registry *registry, int level, const char *event, const struct sl_served *served, const char *text);

/* The same on behalf of a user, or of nobody (NULL). */
void sl_names_report_to(struct sl_registry *registry, struct sl_account *account, int level, const char *event,
        const struct sl_served *served, const char *text);

/* The account of the user whose request asked for these sizes; NULL when no user did. */
struct sl_account *sl_names_account(const struct sl_registry *registry, const struct sl_served *served);

/* To whoever asked for the name, if anybody has. */
void sl_names_answer(struct sl_registry *registry, struct sl_served *served, int status, const char *text);

/* "a:2" is a version of "a". */
bool sl_names_is_version(const char *name, const char *plain);

/* Writes what the catalogue has of it, unless news of it is due (news.h). */
void sl_names_publish(struct sl_registry *registry, const struct sl_served *served);

void sl_names_command(struct sl_registry *registry, enum sl_command_kind kind, void *pointer, uint32_t index);

/* What has that name; NULL: nothing. */
struct sl_served *sl_names_find(struct sl_registry *registry, const char *name);

/*
 * What is to be served under one name: a new name, a replacement (@again: even of the same), or what is there already or on its
 * way, perhaps with another number of workers. Return: 0; -ENOSPC, -EBUSY with text.
 */
int sl_names_want(struct sl_registry *registry, const struct sl_model_spec *spec, bool again, struct sl_served **ret_served,
        struct sl_error *error);

/* What the repository has of that name cannot be served: FAILED, with the cause, unless something serves or is on its way. Return: 0;
 * -ENOSPC. */
int sl_names_refuse(struct sl_registry *registry, const struct sl_model_spec *spec);

/* It takes no more requests, and goes when the last has ended. */
void sl_names_drain(struct sl_registry *registry, struct sl_served *served);
