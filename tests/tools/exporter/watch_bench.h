/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime's page in a folder of its own, watched in this process, and the last scrape of it.
 */
#pragma once

#include "exposition.h"
#include "folder.h"
#include "scrape.h"
#include "stats.h"

extern struct folder folder;
extern struct watch watch;
extern struct text text;     /* of the last scrape */
extern struct scrape scrape; /* the same, parsed */

/* Before and after each test of a suite. */
void watch_bench_init(void);
void watch_bench_deinit(void);

/* A page of @bytes, 0: of the usual size, that is ready. */
struct sl_stats *create_page(uint64_t bytes);
const char *page_path(void);
struct sl_model_counting add_model(struct sl_stats *stats, const char *name);

/* The page of a runtime with the model lenet, which accepted so many requests and then was no more. */
void crash_with(uint32_t requests);

/* Scrapes: into `text` and `scrape`. */
void ask(void);
void ask_for(enum exposition_format format);

/* Of the runtime that is watched: NAME{LABELS}. Fails the test when there is none. */
double value(const char *name, const char *labels);
