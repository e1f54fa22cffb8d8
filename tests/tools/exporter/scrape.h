/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scrape as a scraper reads it: any line that Prometheus' text format does not allow fails the test. OpenMetrics differs in its
 * last line, in units, and in what a family is called.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct scrape_sample {
        char *name;   /* "starling_up{runtime=\"demo\"}": as it stands there */
        char *family; /* what TYPE named it */
        char type[16];
        double value;
};

struct scrape {
        struct scrape_sample *samples;
        size_t n, room;
};

/* Fails the test where the text breaks the format: families that come in parts, samples that come twice, histograms that do not add
 * up. */
void scrape_parse(const char *text, bool openmetrics, struct scrape *ret_scrape);
void scrape_deinit(struct scrape *scrape);

/* NULL when there is none. */
const struct scrape_sample *scrape_find(const struct scrape *scrape, const char *name);

/* Fails the test when there is none. */
double scrape_value(const struct scrape *scrape, const char *name);
