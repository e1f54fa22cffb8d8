/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exporter as a process, and the page of a runtime that it looks at.
 */
#pragma once

#include "exporter_process.h"
#include "folder.h"
#include "stats.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define CLOSE         " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" /* the begin of a head, behind the address */

extern struct folder folder;
extern struct exporter_process exporter;
extern struct sl_stats *stats;
extern char name[32]; /* of the runtime */

/* Before and after each test of a suite. */
void server_bench_init(void);
void server_bench_deinit(void);

void start(void);

/* The runtime, with @models models. */
void create_page(uint32_t models);

/* The answer to @request begins so, and has this part. */
void expect_answer(const char *request, const char *begin, const char *part);

/* It is there, and nothing is wrong with what it says. */
void expect_scrape(double up);
