/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the world is told of a change, once the dispatcher has taken it: the catalogue, the log and the stats page, then whoever
 * asked for it. A request that is submitted behind any of these meets the new version.
 *
 *     SERVE, ...  -->  NEWS_DUE  --the dispatcher answers a MARK that was sent behind-->  TOLD: catalogue, log, stats page
 *                      nobody knows of it         of a member: its ensembles are told too  |
 *                                         its versions are told, and nothing is to be done --+-->  whoever asked is answered
 *
 * One MARK is on its way at a time; what comes meanwhile has the next one. Nothing waits: control goes on, and a name whose news is
 * due is not replaced again before it is told. So an ensemble whose news is due may still be of an old member: it is told first,
 * goes over, and its members are told with that. Control thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_registry;
struct sl_served;

/* Something was just handed to the dispatcher for this name. @event: the line of the log, a literal; or NULL. */
void sl_news_add(struct sl_registry *registry, struct sl_served *served, const char *event);

/* Writes what the catalogue has of it, unless news of what serves is due, with which that is written. */
void sl_news_publish(struct sl_registry *registry, const struct sl_served *served);

/* The name has news that is not told yet. */
bool sl_news_is_due(const struct sl_served *served);

/* The dispatcher has answered the MARK. */
void sl_news_marked(struct sl_registry *registry);

/* Tells of ensembles, and of the rest, what can be told. Return: something was; it may be replaced now. */
bool sl_news_tell_ensembles(struct sl_registry *registry);
bool sl_news_tell_others(struct sl_registry *registry);

/* Answers who has what was asked for: once nothing is to be done before something else happens. */
void sl_news_answer(struct sl_registry *registry);

/* Sends the next MARK, behind everything else of a turn of the registry. */
void sl_news_mark(struct sl_registry *registry);

/* The name is about to be free, which the dispatcher has taken: tells what is due. */
void sl_news_flush(struct sl_registry *registry, struct sl_served *served);
