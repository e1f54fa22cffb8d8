/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is at which address, without HTTP around it. One thread.
 */
#pragma once

#include "text.h"
#include "watch.h"

#define SITE_BYTES_MAX (64ul << 20) /* of one answer */

struct history;
struct host_names;

struct site {
        struct watch *watches; /* the caller's */
        uint32_t n_watches;
        const struct host_names *hosts; /* the caller's */
        struct history **histories;     /* the caller's, of each watch; NULL: none is kept */
        uint64_t step_ns;               /* CLOCK_MONOTONIC of the next point of the histories */
};

enum site_page {
        SITE_INDEX,
        SITE_METRICS,
        SITE_OPENMETRICS,
        SITE_HEALTH,
        SITE_READINESS,
        SITE_STATS,
        SITE_HISTORY,
        SITE_NOT_FOUND,
        SITE_NOT_ALLOWED,
        SITE_MISDIRECTED,
        SITE_PAGES
};

struct site_answer {
        unsigned status; /* of HTTP */
        const char *content_type;
        const char *allow;  /* NULL, or the methods that would do */
        const char *policy; /* Content-Security-Policy */
        struct text body;   /* the caller's: text_deinit() */
};

struct site_request {
        const char *method, *path;
        const char *host, *accept; /* headers; NULL: it says nothing */
};

/* What answers a request. */
enum site_page site_find(const struct site *site, const struct site_request *request);

/* Looks at the runtimes for their histories, when it is time. Return: milliseconds until it is time again. */
int site_step(struct site *site);

/* As it is now. Changes of the runtimes that were met are said on stderr. */
void site_answer(struct site *site, enum site_page page, struct site_answer *ret_answer);
