/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger.h"

#include "page_scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_SERIES UINT32_MAX

/* A slot of the page in the use that was seen last. */
struct use {
        uint64_t *values;
        uint64_t *before; /* what of them it had counted for other series */
        uint32_t series;  /* NO_SERIES: not in use */
        bool is_seen;     /* since ledger_begin() */
};

struct series {
        char *labels;
        char *whole;      /* labels of what it is a part of; NULL: it is none */
        uint64_t *former; /* what slots counted that are no longer in use; gauges stay 0 */
        uint64_t *now;    /* the sum over slots in use; true after ledger_end() */
        uint32_t slots;
};

struct ledger {
        uint32_t width, n_slots, n_series, room;
        bool *is_counter; /* [width] */
        struct use *uses; /* [n_slots] */
        struct series *series;
};

/* Marks which values are counters, when there is room to; returns how many there are. */
static uint32_t lay_out(enum metric_scope scope, bool *is_counter)
{
        uint32_t width = 0;

        for (size_t row = 0; row < metric_table_rows; row++) {
                const struct metric *metric = &metric_table[row];
                bool counter = metric->type == METRIC_COUNTER || metric->type == METRIC_HISTOGRAM;

                for (uint32_t i = 0; metric->scope == scope && i < metric_width(metric); i++, width++)
                        if (is_counter)
                                is_counter[width] = counter;
        }
        return width;
}

struct ledger *ledger_new(enum metric_scope scope, uint32_t slots)
{
        struct ledger *ledger = calloc(1, sizeof(*ledger));

        if (!ledger)
                return NULL;
        ledger->width = lay_out(scope, NULL);
        ledger->is_counter = calloc(ledger->width + 1ul, sizeof(*ledger->is_counter));
        ledger->uses = calloc(slots + 1ul, sizeof(*ledger->uses));
        if (!ledger->is_counter || !ledger->uses)
                return ledger_free(ledger);
        lay_out(scope, ledger->is_counter);
        ledger->n_slots = slots;
        for (uint32_t i = 0; i < slots; i++)
                ledger->uses[i].series = NO_SERIES;
        return ledger;
}

static void free_series(struct series *series)
{
        free(series->labels);
        free(series->whole);
        free(series->former);
        free(series->now);
}

struct ledger *ledger_free(struct ledger *ledger)
{
        if (!ledger)
                return NULL;
        for (uint32_t i = 0; i < ledger->n_slots; i++) {
                free(ledger->uses[i].values);
                free(ledger->uses[i].before);
        }
        for (uint32_t i = 0; i < ledger->n_series; i++)
                free_series(&ledger->series[i]);
        free(ledger->series);
        free(ledger->uses);
        free(ledger->is_counter);
        free(ledger);
        return NULL;
}

uint32_t ledger_width(const struct ledger *ledger)
{
        return ledger->width;
}

/* ---- series ---- */

static struct series *find_series(const struct ledger *ledger, const char *labels)
{
        for (uint32_t i = 0; i < ledger->n_series; i++)
                if (strcmp(ledger->series[i].labels, labels) == 0)
                        return &ledger->series[i];
        return NULL;
}

/* Once there are twice as many series as slots, one that has none is forgotten for each new one. */
static struct series *forget_series(struct ledger *ledger)
{
        for (uint32_t i = 0; i < ledger->n_series; i++)
                if (ledger->series[i].slots == 0)
                        return &ledger->series[i];
        return NULL;
}

static struct series *grow_series(struct ledger *ledger)
{
        if (ledger->n_series == ledger->room) {
                uint32_t room = ledger->room ? 2 * ledger->room : 8;
                struct series *series = realloc(ledger->series, room * sizeof(*series));

                if (!series)
                        return NULL;
                ledger->series = series;
                ledger->room = room;
        }
        ledger->series[ledger->n_series] = (struct series){0};
        return &ledger->series[ledger->n_series];
}

/* Return: a series of these labels from zero on; NULL: no memory. */
static struct series *add_series(struct ledger *ledger, const char *labels)
{
        bool is_full = ledger->n_series >= 2 * ledger->n_slots;
        struct series *series = is_full ? forget_series(ledger) : grow_series(ledger);
        struct series fresh = {.labels = strdup(labels),
                .former = calloc(ledger->width, sizeof(uint64_t)),
                .now = calloc(ledger->width, sizeof(uint64_t))};

        if (!series || !fresh.labels || !fresh.former || !fresh.now) {
                free_series(&fresh);
                return NULL;
        }
        free_series(series);
        *series = fresh;
        ledger->n_series += !is_full;
        return series;
}

/* ---- slots ---- */

static void end_use(struct ledger *ledger, struct use *use)
{
        struct series *series = &ledger->series[use->series];

        for (uint32_t i = 0; i < ledger->width; i++)
                if (ledger->is_counter[i])
                        series->former[i] += use->values[i] - use->before[i];
        series->slots--;
        use->series = NO_SERIES;
}

static int begin_use(struct ledger *ledger, struct use *use, const char *labels)
{
        struct series *series = find_series(ledger, labels);

        if (!use->values)
                use->values = malloc((ledger->width + 1ul) * sizeof(*use->values));
        if (!use->before)
                use->before = calloc(ledger->width + 1ul, sizeof(*use->before));
        if (!series)
                series = add_series(ledger, labels);
        if (!use->values || !use->before || !series)
                return -ENOMEM;
        series->slots++;
        use->series = (uint32_t)(series - ledger->series);
        return 0;
}

/* Whether a slot whose labels are still the same was given back and is used again: it counts from zero. */
static bool began_again(const struct ledger *ledger, const struct use *use, const uint64_t *values)
{
        for (uint32_t i = 0; i < ledger->width; i++)
                if (ledger->is_counter[i] && values[i] < use->values[i])
                        return true;
        return false;
}

void ledger_begin(struct ledger *ledger)
{
        for (uint32_t i = 0; i < ledger->n_slots; i++)
                ledger->uses[i].is_seen = false;
}

/* What was counted so far stays with the series that it was counted for, if it is the same worker, in another place. */
static void leave_series(struct ledger *ledger, struct use *use, const struct ledger_labels *labels, const uint64_t *values)
{
        const char *former = ledger->series[use->series].labels;
        bool goes_on = labels->owner_bytes && strncmp(former, labels->all, labels->owner_bytes) == 0 &&
                       strcmp(former, labels->all) != 0 && !began_again(ledger, use, values);

        end_use(ledger, use);
        for (uint32_t i = 0; i < ledger->width; i++)
                use->before[i] = goes_on && ledger->is_counter[i] ? use->values[i] : 0;
}

int ledger_put(struct ledger *ledger, uint32_t slot, const char *labels, const uint64_t *values)
{
        return ledger_put_owned(ledger, slot, &(struct ledger_labels){.all = labels}, values);
}

int ledger_put_owned(struct ledger *ledger, uint32_t slot, const struct ledger_labels *labels, const uint64_t *values)
{
        struct use *use = &ledger->uses[slot];

        if (use->series != NO_SERIES &&
                (strcmp(ledger->series[use->series].labels, labels->all) != 0 || began_again(ledger, use, values)))
                leave_series(ledger, use, labels, values);
        if (use->series == NO_SERIES && begin_use(ledger, use, labels->all) < 0)
                return -ENOMEM;
        if (labels->whole && !ledger->series[use->series].whole) /* a page may say so later than that there is the slot */
                ledger->series[use->series].whole = strdup(labels->whole);
        memcpy(use->values, values, ledger->width * sizeof(*values));
        use->is_seen = true;
        return 0;
}

void ledger_keep(struct ledger *ledger, uint32_t slot)
{
        ledger->uses[slot].is_seen = true;
}

void ledger_end(struct ledger *ledger)
{
        for (uint32_t i = 0; i < ledger->n_series; i++)
                memset(ledger->series[i].now, 0, ledger->width * sizeof(uint64_t));
        for (uint32_t slot = 0; slot < ledger->n_slots; slot++) {
                struct use *use = &ledger->uses[slot];

                if (use->series == NO_SERIES)
                        continue;
                if (!use->is_seen) {
                        end_use(ledger, use);
                        memset(use->before, 0, ledger->width * sizeof(*use->before));
                        continue;
                }
                for (uint32_t i = 0; i < ledger->width; i++)
                        ledger->series[use->series].now[i] += use->values[i] - use->before[i];
        }
}

/* ---- what is exported ---- */

uint32_t ledger_count(const struct ledger *ledger)
{
        return ledger->n_series;
}

bool ledger_is_present(const struct ledger *ledger, uint32_t series)
{
        return ledger->series[series].slots > 0;
}

bool ledger_stays(const struct ledger *ledger, uint32_t series)
{
        const char *labels = ledger->series[series].whole;
        const struct series *whole = labels ? find_series(ledger, labels) : NULL;

        return whole && whole->slots > 0;
}

const char *ledger_labels(const struct ledger *ledger, uint32_t series)
{
        return ledger->series[series].labels;
}

uint64_t ledger_value(const struct ledger *ledger, uint32_t series, uint32_t at)
{
        return ledger->series[series].former[at] + ledger->series[series].now[at];
}
