/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of one scope of one runtime from scrape to scrape. Slots of the page are given back and used again, and several may
 * have the same labels; what is exported is a series for each different text of labels. A counter of a series is what its slots
 * count now, and what those counted that had these labels before: so it never goes back while the runtime lives. A gauge is the sum
 * of now. A series whose slots are all gone is remembered, not exported, unless it is a part of another one that still has some, as
 * the sizes of an open model are, which make room for each other: then its counters are.
 *
 *     ledger_begin() -> for each slot in use ledger_put(), or ledger_keep() where it cannot be read -> ledger_end() ->
 * ledger_value()
 *
 * What a slot counted between the last scrape and its end is not known. One thread.
 */
#pragma once

#include "metric.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ledger;

/* For the rows of @scope, and slots 0 to @slots - 1. NULL: no memory. */
struct ledger *ledger_new(enum metric_scope scope, uint32_t slots);
struct ledger *ledger_free(struct ledger *ledger);

/* Values of a slot, and of a series: the rows of the scope, one after the other, metric_width() of each. */
uint32_t ledger_width(const struct ledger *ledger);

void ledger_begin(struct ledger *ledger);

/* Return: 0; -ENOMEM: this slot is left out. */
int ledger_put(struct ledger *ledger, uint32_t slot, const char *labels, const uint64_t *values);

struct ledger_labels {
        const char *all;
        const char *whole;  /* of the series that this one is a part of; NULL: it is none */
        size_t owner_bytes; /* of @all, which say whose the slot is: with another rest it goes on counting, for another series */
};

/* The same, of labels of which that is known. */
int ledger_put_owned(struct ledger *ledger, uint32_t slot, const struct ledger_labels *labels, const uint64_t *values);

/* The slot is as it was. */
void ledger_keep(struct ledger *ledger, uint32_t slot);

/* Slots that were neither put nor kept are no longer in use. */
void ledger_end(struct ledger *ledger);

/* Series, those included that have no slot now. Does this one have a slot; if not, what it is a part of? */
uint32_t ledger_count(const struct ledger *ledger);
bool ledger_is_present(const struct ledger *ledger, uint32_t series);
bool ledger_stays(const struct ledger *ledger, uint32_t series);
const char *ledger_labels(const struct ledger *ledger, uint32_t series);

/* Value number @at of a series. */
uint64_t ledger_value(const struct ledger *ledger, uint32_t series, uint32_t at);
