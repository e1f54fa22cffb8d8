/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When an offline job computes. It reads the runtime's stats page, and asks the runtime nothing.
 *
 *     starling   in turns of two seconds, for a share of each. Requests that end while it computes are compared with those that end
 *                while it rests: the share grows while their p99 is at most 1.05 x, up to 0.9, and shrinks else. Without requests
 *                it computes all the time, beside too few to compare half of it
 *     infaas     while others use at most 40 % of the host's cores, and the p99 of the requests of the last second is not above
 *                that of the second before the job began
 *     none       all the time: the class alone keeps it behind requests
 *
 * Sources: Romero et al., INFaaS, 2021, section 6.3.2 (rule `infaas`).
 * A plain value, but for the page that it has open. One thread.
 */
#pragma once

#include "histogram.h"

#include <stdbool.h>

struct sl_stats_view;

#define OFFLINE_TICK_NS         100000000ull
#define OFFLINE_RATIO_MAX       1.05
#define OFFLINE_UTILISATION_MAX 0.4

enum offline_rule_kind { OFFLINE_RULE_STARLING, OFFLINE_RULE_INFAAS, OFFLINE_RULE_NONE, OFFLINE_RULES };

/* What is counted at a tick. */
struct offline_counts {
        uint64_t at_ns, host_busy_ns, background_ns; /* since some time */
        struct sl_histogram online;                  /* of all requests that somebody waits for */
};

struct offline_rule {
        enum offline_rule_kind kind;
        struct sl_stats_view *view;
        uint32_t n_cores;
        struct offline_counts last;
        bool has_last, computes, settles; /* settles: of this tick, a part was before a change */

        /* starling */
        double share, turn_at;                           /* of a turn */
        double online[2][SL_HISTOGRAM_BUCKETS], seen[2]; /* that ended while it rested, and while it computed; fading */
        double ratio;                                    /* of their p99, as it was last known; 0: it was not */

        /* infaas: of ten ticks */
        double window[10][SL_HISTOGRAM_BUCKETS], utilisation;
        uint32_t n_ticks;
        uint64_t profiled_ns; /* 0: it is learned */
};

/* "starling"; OFFLINE_RULES: there is no such rule. */
enum offline_rule_kind offline_rule_named(const char *name);

/* Of the runtime @name. Without its page the rule computes all the time. */
void offline_rule_begin(struct offline_rule *rule, enum offline_rule_kind kind, const char *name);
void offline_rule_end(struct offline_rule *rule);

/* May it compute now? It looks once a tick. */
bool offline_rule_look(struct offline_rule *rule, uint64_t now_ns);

/* The same, of what was counted: pure. */
void offline_rule_learn(struct offline_rule *rule, const struct offline_counts *counts);
