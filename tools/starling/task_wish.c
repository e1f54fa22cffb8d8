/* SPDX-License-Identifier: Apache-2.0 */
#include "task_wish.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- why ---- */

static enum sl_candidate_state state_of(const struct starling_variant *variant)
{
        return variant->state == STARLING_VARIANT_SERVES      ? SL_CANDIDATE_SERVES
               : variant->state == STARLING_VARIANT_AVAILABLE ? SL_CANDIDATE_UNLOADED
                                                              : SL_CANDIDATE_OUT;
}

/* Of a request larger than one sample: by the batch that is known. */
static uint64_t service_ns(const struct starling_variant *variant, uint32_t samples)
{
        if (samples <= 1 || !variant->batch_samples)
                return variant->latency_ns * samples;
        return variant->batch_ns * (uint64_t)ceil((double)samples / variant->batch_samples);
}

static struct sl_candidate candidate_of(const struct starling_variant *variant, uint32_t samples)
{
        return (struct sl_candidate){.state = state_of(variant),
                .accuracy = variant->accuracy,
                .cost = variant->cost,
                .service_ns = service_ns(variant, samples),
                .doubt = variant->doubt,
                .wait_ns = variant->wait_ns,
                .load_ns = variant->load_ns,
                .is_interfered = variant->condition == STARLING_CONDITION_INTERFERED};
}

static double microseconds(uint64_t ns)
{
        return (double)ns / 1000;
}

static void say_lack(const struct sl_needs *needs, const struct sl_candidate *c, enum sl_lack lack, char *ret_why)
{
        double least = needs->accuracy_least > 0 ? needs->accuracy_least : needs->accuracy;

        switch (lack) {
        case SL_LACK_ACCURACY:
                snprintf(ret_why, TASK_WISH_WHY_BYTES, "its accuracy, %g, is below %g", c->accuracy, least);
                break;
        case SL_LACK_COST:
                snprintf(ret_why, TASK_WISH_WHY_BYTES, "it costs %g, above %g", c->cost, needs->cost);
                break;
        case SL_LACK_LATENCY:
                if (c->service_ns)
                        snprintf(ret_why, TASK_WISH_WHY_BYTES, "it takes %.1f us when nothing waits, above %.1f",
                                microseconds(c->service_ns), microseconds(needs->latency_ns));
                else
                        snprintf(ret_why, TASK_WISH_WHY_BYTES, "it is not known yet what it takes");
                break;
        case SL_LACK_ROOM:
                snprintf(ret_why, TASK_WISH_WHY_BYTES, "it would answer in %.1f us, of which it waits %.1f, above %.1f",
                        microseconds(c->wait_ns + c->service_ns), microseconds(c->wait_ns), microseconds(needs->latency_ns));
                break;
        case SL_LACK_LOAD:
                if (c->load_ns)
                        snprintf(ret_why, TASK_WISH_WHY_BYTES, "it is not loaded: with that it would answer in %.1f us, above %.1f",
                                microseconds(c->load_ns + c->service_ns), microseconds(needs->latency_ns));
                else
                        snprintf(ret_why, TASK_WISH_WHY_BYTES, "it is not loaded, and not known yet what that takes");
                break;
        case SL_LACK_NOTHING:
        case SL_LACK_VARIANTS:
                snprintf(ret_why, TASK_WISH_WHY_BYTES, "it takes no requests");
                break;
        }
}

/* Of one that suits, beside the one that was chosen. */
static void say_beside(const struct sl_candidate *c, enum sl_met met, const struct sl_candidate *chosen, enum sl_met chosen_met,
        const char *name, char *ret_why)
{
        const char *format = "it suits; \"%.*s\" waits less, or it is its turn";

        if (met > chosen_met)
                format = "it suits as least alone; \"%.*s\" is as accurate as asked";
        else if (c->state == SL_CANDIDATE_UNLOADED && chosen->state == SL_CANDIDATE_SERVES)
                format = "it would suit, and is not loaded; \"%.*s\" serves";
        else if (c->is_interfered && !chosen->is_interfered)
                format = "it suits, and is interfered with; \"%.*s\" is calm";
        else if (chosen->accuracy > c->accuracy && chosen->cost >= c->cost)
                format = "it suits; \"%.*s\" is more accurate";
        else if (chosen->cost < c->cost)
                format = "it suits; \"%.*s\" costs less";
        snprintf(ret_why, TASK_WISH_WHY_BYTES, format, 128, name);
}

void task_wish_explain(
        const struct task_wish *wish, const struct starling_variant *variants, uint32_t n, struct task_reason *ret_reasons)
{
        static const char *const mets[] = {"it is chosen, and meets all", "it is chosen, as least", "it is chosen, as the closest"};
        struct sl_candidate *candidates = calloc(n + 1u, sizeof(*candidates));
        enum sl_choice_policy policy =
                n && variants[0].choice < SL_CHOICE_POLICY_COUNT ? (enum sl_choice_policy)variants[0].choice : SL_CHOICE_starling;
        struct sl_needs alone = wish->needs;
        struct sl_choice choice, its;
        bool chosen;

        for (uint32_t i = 0; candidates && i < n; i++)
                candidates[i] = candidate_of(&variants[i], wish->samples);
        alone.closest = false;
        chosen = candidates && sl_choose(policy, &wish->needs, candidates, n, 0, &choice);
        for (uint32_t i = 0; i < n; i++) {
                ret_reasons[i] = (struct task_reason){.is_chosen = chosen && choice.number == i};
                if (ret_reasons[i].is_chosen)
                        snprintf(ret_reasons[i].why, TASK_WISH_WHY_BYTES, "%s", mets[choice.met]);
                else if (candidates && sl_choose(policy, &alone, &candidates[i], 1, 0, &its) && chosen)
                        say_beside(&candidates[i], its.met, &candidates[choice.number], choice.met, variants[choice.number].name,
                                ret_reasons[i].why);
                else if (candidates)
                        say_lack(&wish->needs, &candidates[i], its.lack, ret_reasons[i].why);
        }
        free(candidates);
}

/* ---- by accuracy ---- */

/* Of @variants the least accuracy above @accuracy; 2: there is none. */
static double next_level(const struct starling_variant *variants, uint32_t n, double accuracy)
{
        double next = 2;

        for (uint32_t i = 0; i < n; i++)
                if (variants[i].accuracy > accuracy && variants[i].accuracy < next)
                        next = variants[i].accuracy;
        return next;
}

static uint32_t chosen_of(const struct task_reason *reasons, uint32_t n)
{
        uint32_t i = 0;

        while (i < n && !reasons[i].is_chosen)
                i++;
        return i;
}

void task_wish_reach(
        const struct starling_variant *variants, uint32_t n, struct task_reach *ret_reaches, struct task_reason *ret_reasons)
{
        struct task_reason *reasons = calloc(n + 1u, sizeof(*reasons));
        struct task_wish wish = {.samples = 1};
        uint32_t chosen;

        memset(ret_reaches, 0, n * sizeof(*ret_reaches));
        if (!reasons) {
                memset(ret_reasons, 0, n * sizeof(*ret_reasons));
                return;
        }
        task_wish_explain(&wish, variants, n, reasons);
        memcpy(ret_reasons, reasons, n * sizeof(*ret_reasons)); /* of what has none */
        chosen = chosen_of(reasons, n);
        if (chosen < n)
                ret_reaches[chosen].by_default = true;
        for (double below = 0, level; (level = next_level(variants, n, below)) <= 1; below = level) {
                wish.needs.accuracy = level;
                task_wish_explain(&wish, variants, n, reasons);
                chosen = chosen_of(reasons, n);
                if (chosen < n && !ret_reaches[chosen].is_chosen)
                        ret_reaches[chosen] = (struct task_reach){
                                .is_chosen = true, .by_default = ret_reaches[chosen].by_default, .above = below};
                if (chosen < n)
                        ret_reaches[chosen].up_to = level;
                for (uint32_t i = 0; i < n; i++)
                        if (variants[i].accuracy <= level && variants[i].accuracy > below)
                                ret_reasons[i] = reasons[i];
        }
        free(reasons);
}
