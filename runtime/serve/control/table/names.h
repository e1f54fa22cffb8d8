/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of names: who is found in it, who gets a place, and what the world hears of one (served.h). Control thread only.
 */
#pragma once

#include "dispatcher.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_account;
struct sl_registry;
struct sl_served;

/* What has that name; NULL: nothing. */
struct sl_served *sl_names_find(struct sl_registry *registry, const char *name);

/* A place for a name that has none, of which nothing is wanted yet. NULL: there is none. */
struct sl_served *sl_names_take(struct sl_registry *registry, const char *name);

/*
 * Something may have to be done for the name: it is among those that are looked at when anything happens. A name that has its place
 * anew is. One that is available, or has failed, and for which nobody waits is not any more once that has been published
 * (sl_names_let_sleep()), so that thousands of those cost nothing. Whoever changes what is wanted of a name, or asks for it, wakes
 * it first.
 */
void sl_names_wake(struct sl_registry *registry, struct sl_served *served);
void sl_names_let_sleep(struct sl_registry *registry);

/* The place is free. */
void sl_names_drop(struct sl_registry *registry, struct sl_served *served);

/* One line of the log about a name, on behalf of whoever asked for its sizes; @text: its cause, or NULL. */
void sl_names_report(struct sl_registry *registry, int level, const char *event, const struct sl_served *served, const char *text);

/* The same on behalf of a user, or of nobody (NULL). */
void sl_names_report_to(struct sl_registry *registry, struct sl_account *account, int level, const char *event,
        const struct sl_served *served, const char *text);

/* The account of the user whose request asked for these sizes; NULL when no user did. */
struct sl_account *sl_names_account(const struct sl_registry *registry, const struct sl_served *served);

/* "a:2" is a version of "a". */
bool sl_names_is_version(const char *name, const char *plain);

void sl_names_command(struct sl_registry *registry, enum sl_command_kind kind, void *pointer, uint32_t index);

/* What serves takes no more requests, and goes when the last has ended. */
void sl_names_drain(struct sl_registry *registry, struct sl_served *served);
