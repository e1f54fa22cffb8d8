/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the world is told of a change, once the dispatcher has taken it: the catalogue, the log and the stats page, then whoever
 * asked for it. A request that is submitted behind any of these meets the new version.
 *
 *     SERVE, ...  -->  NEWS_DUE  --the dispatcher answers a MARK that was sent behind-->  TOLD: catalogue, log, stats page
 *                      nobody knows of it                                                  |
 *                                           its ensembles and versions are told as well  --+-->  whoever asked is answered
 *
 * One MARK is on its way at a time; what comes meanwhile has the next one. Nothing waits: control goes on, and a name whose news is
 * due is not replaced again before it is told. Control thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_registry;
struct sl_served;

/*
 * Something was just handed to the dispatcher for this name. @event: the line of the log, or NULL; @answer: what whoever asked for
 * the name will hear, or NULL. Both are literals.
 */
void sl_news_add(struct sl_registry *registry, struct sl_served *served, const char *event, const char *answer);

/* The number of the commands so far, for sl_news_is_taken(). */
uint64_t sl_news_mark(struct sl_registry *registry);

/* The dispatcher has obeyed all commands up to that number. */
bool sl_news_is_taken(const struct sl_registry *registry, uint64_t mark);

/* The name has news that is not told yet. */
bool sl_news_is_due(const struct sl_served *served);

/* The dispatcher has answered the MARK. */
void sl_news_marked(struct sl_registry *registry);

/* Tells what can be told, and sends the next MARK. Behind everything else of a turn of the registry. */
void sl_news_advance(struct sl_registry *registry);

/* The name is about to be free, which the dispatcher has taken: tells what is due. */
void sl_news_flush(struct sl_registry *registry, struct sl_served *served);
