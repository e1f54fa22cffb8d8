/* SPDX-License-Identifier: Apache-2.0 */
#include "offline_rule.h"

#include "base/clock.h"
#include "stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The least share, and the rest beside the most, are two ticks of a turn: one that settles, one that counts. */
#define TURN_SECONDS 2.0
#define SHARE_MAX    0.9
#define SHARE_HALF   0.5 /* beside requests of which too little is known */
#define SHARE_LEAST  0.1
#define SHARE_STEP   0.05
#define FADES        0.8 /* in a turn: what is known is that of ten seconds */
#define KNOWN        100.0
#define WINDOW       10u

static const char *const names[OFFLINE_RULES] = {"starling", "infaas", "none"};

enum offline_rule_kind offline_rule_named(const char *name)
{
        for (uint32_t i = 0; i < OFFLINE_RULES; i++)
                if (strcmp(names[i], name) == 0)
                        return i;
        return OFFLINE_RULES;
}

/* ---- what is counted ---- */

static void count_online(const struct sl_stats_view *view, struct sl_histogram *ret_online)
{
        static _Thread_local struct sl_histogram one;
        struct sl_model_stats model;
        bool common = false;

        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_MODELS); i++) {
                if (sl_stats_read_model(view, i, &model) < 0 || model.histograms == SL_STATS_NONE || (common && !model.histograms))
                        continue;
                common |= !model.histograms;
                if (sl_stats_read_histogram(view, model.histograms, SL_STAGE_TOTAL, &one) == 0)
                        sl_histogram_merge(ret_online, &one);
        }
}

static uint64_t count_background(const struct sl_stats_view *view)
{
        struct sl_let_stats let;
        uint64_t ns = 0;

        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_LETS); i++)
                if (sl_stats_read_let(view, i, &let) == 0)
                        ns += sl_counter_read(&let.background_ns);
        return ns;
}

/* Of all cores. */
static uint64_t count_host(void)
{
        unsigned long long user = 0, nice = 0, system = 0, irq = 0, soft_irq = 0;
        FILE *file = fopen("/proc/stat", "re");
        int n = file ? fscanf(file, "cpu %llu %llu %llu %*u %*u %llu %llu", &user, &nice, &system, &irq, &soft_irq) : 0;

        if (file)
                fclose(file);
        return n == 5 ? (user + nice + system + irq + soft_irq) * (SL_NS_PER_SECOND / (uint64_t)sysconf(_SC_CLK_TCK)) : 0;
}

/* ---- what follows ---- */

static uint64_t quantile(const double *buckets, double sum, double q)
{
        double so_far = 0;

        for (uint32_t i = 0; i < SL_HISTOGRAM_BUCKETS; i++) {
                so_far += buckets[i];
                if (so_far >= q * sum && so_far > 0)
                        return sl_histogram_value(i);
        }
        return 0;
}

/* Step by step: the nearer to a half, the more is known of both. At once where there were no requests. */
static double nearer_to_half(double share)
{
        if (share > SHARE_MAX || fabs(share - SHARE_HALF) < SHARE_STEP)
                return SHARE_HALF;
        return share < SHARE_HALF ? share + SHARE_STEP : share - SHARE_STEP;
}

static void adapt_share(struct offline_rule *rule)
{
        uint64_t rests_ns = quantile(rule->online[0], rule->seen[0], 0.99);

        if (rule->seen[0] + rule->seen[1] < 1) {
                rule->share = 1;
        } else if (rule->seen[0] < KNOWN || rule->seen[1] < KNOWN || !rests_ns) {
                rule->share = nearer_to_half(rule->share);
        } else {
                rule->ratio = (double)quantile(rule->online[1], rule->seen[1], 0.99) / (double)rests_ns;
                rule->share = rule->ratio > OFFLINE_RATIO_MAX ? rule->share * 0.7 : rule->share + SHARE_STEP;
        }
        rule->share = rule->share < SHARE_LEAST ? SHARE_LEAST : rule->share;
        if (rule->share > SHARE_MAX && rule->seen[0] + rule->seen[1] >= 1)
                rule->share = SHARE_MAX;
        for (uint32_t k = 0; k < 2; k++) {
                rule->seen[k] = rule->seen[k] < 0.1 ? 0 : rule->seen[k] * FADES;
                for (uint32_t i = 0; i < SL_HISTOGRAM_BUCKETS; i++)
                        rule->online[k][i] *= FADES;
        }
}

static void learn_starling(struct offline_rule *rule, const struct offline_counts *counts, double seconds)
{
        bool computed = rule->computes;

        for (uint32_t i = 0; i < SL_HISTOGRAM_BUCKETS && !rule->settles; i++) {
                double n = (double)(counts->online.buckets[i] - rule->last.online.buckets[i]);

                rule->online[computed][i] += n;
                rule->seen[computed] += n;
        }
        rule->turn_at += seconds / TURN_SECONDS;
        if (rule->turn_at >= 1) {
                rule->turn_at = 0;
                adapt_share(rule);
        }
        rule->computes = rule->turn_at < rule->share;
        rule->settles = rule->computes != computed;
}

static void learn_infaas(struct offline_rule *rule, const struct offline_counts *counts, double ns)
{
        uint64_t background_ns = counts->background_ns - rule->last.background_ns,
                 host_ns = counts->host_busy_ns - rule->last.host_busy_ns;
        double used = host_ns > background_ns ? (double)(host_ns - background_ns) / (ns * rule->n_cores) : 0;
        double all[SL_HISTOGRAM_BUCKETS] = {0}, sum = 0;
        uint64_t p99_ns;

        rule->utilisation += (used - rule->utilisation) / (rule->n_ticks < WINDOW ? rule->n_ticks + 1 : WINDOW);
        for (uint32_t i = 0; i < SL_HISTOGRAM_BUCKETS; i++) {
                rule->window[rule->n_ticks % WINDOW][i] = (double)(counts->online.buckets[i] - rule->last.online.buckets[i]);
                for (uint32_t k = 0; k < WINDOW; k++)
                        all[i] += rule->window[k][i];
                sum += all[i];
        }
        p99_ns = quantile(all, sum, 0.99);
        if (++rule->n_ticks == WINDOW)
                rule->profiled_ns = p99_ns;
        rule->computes = rule->n_ticks >= WINDOW && rule->utilisation <= OFFLINE_UTILISATION_MAX &&
                         (!rule->profiled_ns || p99_ns <= rule->profiled_ns);
}

void offline_rule_learn(struct offline_rule *rule, const struct offline_counts *counts)
{
        uint64_t ns = counts->at_ns - rule->last.at_ns;

        if (rule->has_last && ns) {
                if (rule->kind == OFFLINE_RULE_STARLING)
                        learn_starling(rule, counts, (double)ns / SL_NS_PER_SECOND);
                else if (rule->kind == OFFLINE_RULE_INFAAS)
                        learn_infaas(rule, counts, (double)ns);
        }
        rule->last = *counts;
        rule->has_last = true;
}

void offline_rule_begin(struct offline_rule *rule, enum offline_rule_kind kind, const char *name)
{
        long n = sysconf(_SC_NPROCESSORS_ONLN);

        *rule = (struct offline_rule){
                .kind = kind, .n_cores = n > 0 ? (uint32_t)n : 1, .share = 0.5, .computes = kind != OFFLINE_RULE_INFAAS};
        if (kind != OFFLINE_RULE_NONE && sl_stats_open(name, NULL, &rule->view, NULL) < 0)
                rule->computes = true;
}

void offline_rule_end(struct offline_rule *rule)
{
        sl_stats_close(rule->view);
        rule->view = NULL;
}

bool offline_rule_look(struct offline_rule *rule, uint64_t now_ns)
{
        struct offline_counts counts = {.at_ns = now_ns};

        if (!rule->view || (rule->has_last && now_ns - rule->last.at_ns < OFFLINE_TICK_NS))
                return rule->computes;
        counts.host_busy_ns = count_host();
        counts.background_ns = count_background(rule->view);
        count_online(rule->view, &counts.online);
        offline_rule_learn(rule, &counts);
        return rule->computes;
}
