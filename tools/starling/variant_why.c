/* SPDX-License-Identifier: Apache-2.0 */
#include "variant_why.h"

#include "base/utf8.h"
#include "choice.h"
#include "starling.h"
#include "task_lines.h"
#include "task_wish.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TASKS_MAX    128
#define VARIANTS_MAX 256
#define LINE_BYTES   (STARLING_TEXT_BYTES + 256)

/* A task as it is looked at. */
struct looked {
        struct starling_variant *variants; /* [n] */
        struct task_reach *reaches;        /* [n] */
        struct task_reason *reasons;       /* [n]: for an accuracy of its own */
        uint32_t n, serving;
};

static void looked_free(struct looked *looked)
{
        free(looked->variants);
        free(looked->reaches);
        free(looked->reasons);
}

static bool look_at(const struct starling_client *client, const char *task, struct looked *ret_looked)
{
        struct looked looked = {.variants = calloc(VARIANTS_MAX, sizeof(*looked.variants)),
                .reaches = calloc(VARIANTS_MAX, sizeof(*looked.reaches)),
                .reasons = calloc(VARIANTS_MAX, sizeof(*looked.reasons))};
        int n = looked.variants && looked.reaches && looked.reasons
                        ? starling_task_variants(client, task, looked.variants, VARIANTS_MAX)
                        : -1;

        looked.n = n < 0 ? 0 : n < VARIANTS_MAX ? (uint32_t)n : VARIANTS_MAX;
        for (uint32_t i = 0; i < looked.n; i++)
                looked.serving += looked.variants[i].state == STARLING_VARIANT_SERVES;
        if (n < 0) {
                looked_free(&looked);
                return false;
        }
        task_wish_reach(looked.variants, looked.n, looked.reaches, looked.reasons);
        *ret_looked = looked;
        return true;
}

/* ---- in words ---- */

static const char *state_text(const struct starling_variant *variant)
{
        switch (variant->state) {
        case STARLING_VARIANT_SERVES:
                return "it serves";
        case STARLING_VARIANT_AVAILABLE:
                return "it is not loaded";
        case STARLING_VARIANT_UNLOADED:
                return "it is not loaded: only who opens it by its own name loads it";
        case STARLING_VARIANT_LOADING:
                return "it is being loaded";
        case STARLING_VARIANT_FAILED:
                return "it cannot be served";
        case STARLING_VARIANT_DIFFERS:
                return "it is left out";
        case STARLING_VARIANT_ABSENT:
                return "it is not there";
        }
        return "its state is unknown";
}

/* Why it is loaded, or is not. */
static void say_state(const struct starling_variant *variant, char ret_text[LINE_BYTES])
{
        char reason[sizeof(variant->reason)];
        size_t used;

        snprintf(ret_text, LINE_BYTES, "%s", state_text(variant));
        used = strlen(ret_text);
        if (variant->reason[0])
                snprintf(ret_text + used, LINE_BYTES - used, ": %s", sl_utf8_clean(variant->reason, reason, sizeof(reason)));
        else if (variant->state == STARLING_VARIANT_SERVES && variant->condition)
                snprintf(ret_text + used, LINE_BYTES - used, ", and is %s", task_condition_name(variant->condition));
        else if (variant->state == STARLING_VARIANT_AVAILABLE)
                snprintf(ret_text + used, LINE_BYTES - used,
                        ": no query has chosen it, or none for long; one that does waits for its load");
        used = strlen(ret_text);
        if (variant->state == STARLING_VARIANT_AVAILABLE && variant->load_ns)
                snprintf(ret_text + used, LINE_BYTES - used, ", %.1f ms the last time", (double)variant->load_ns / 1e6);
}

/* Which queries choose it, or why none does. */
static void say_reach(const struct task_reach *reach, const struct task_reason *reason, char ret_text[LINE_BYTES])
{
        const char *and_none = reach->by_default ? ", and where none is" : "";

        if (reach->is_chosen && reach->above > 0)
                snprintf(ret_text, LINE_BYTES, "choose it where an accuracy above %g, and of at most %g, is asked for%s",
                        reach->above, reach->up_to, and_none);
        else if (reach->is_chosen)
                snprintf(ret_text, LINE_BYTES, "choose it where an accuracy of at most %g is asked for%s", reach->up_to, and_none);
        else if (reach->by_default)
                snprintf(ret_text, LINE_BYTES, "choose it where no accuracy is asked for");
        else
                snprintf(ret_text, LINE_BYTES, "do not choose it by accuracy alone: %s", reason->why);
}

static void print_variant(const struct looked *looked, uint32_t i, const char *of)
{
        const struct starling_variant *variant = &looked->variants[i];
        char text[LINE_BYTES];

        say_state(variant, text);
        printf("    variant    %saccuracy %g, cost %g: %s\n", of, variant->accuracy, variant->cost, text);
        say_reach(&looked->reaches[i], &looked->reasons[i], text);
        printf("    queries    %s\n", text);
}

static json_t *variant_json(const struct looked *looked, uint32_t i)
{
        const struct task_reach *reach = &looked->reaches[i];
        const struct starling_variant *variant = &looked->variants[i];
        char state[LINE_BYTES], queries[LINE_BYTES];

        say_state(variant, state);
        say_reach(reach, &looked->reasons[i], queries);
        return json_pack("{s:s, s:s, s:f, s:f, s:s, s:s, s:o, s:o, s:b}", "variant", variant->name, "state",
                task_variant_state_name(variant->state), "accuracy", variant->accuracy, "cost", variant->cost, "why", state,
                "queries", queries, "chosen_above", reach->is_chosen ? json_real(reach->above) : json_null(), "chosen_up_to",
                reach->is_chosen ? json_real(reach->up_to) : json_null(), "chosen_by_default", reach->by_default);
}

/* ---- a variant ---- */

/* In each task that has it. @list: NULL: print it. */
static bool tell_of_model(const struct starling_client *client, const char *name, json_t *list)
{
        struct starling_task_entry *entries = calloc(TASKS_MAX, sizeof(*entries));
        int n = entries ? starling_task_list(client, entries, TASKS_MAX) : 0;
        bool any = false;

        for (int t = 0; t < n && t < TASKS_MAX; t++) {
                struct looked looked;
                char of[sizeof(entries[t].name) + 16];

                if (!look_at(client, entries[t].name, &looked))
                        continue;
                snprintf(of, sizeof(of), "of task %s, ", entries[t].name);
                for (uint32_t i = 0; i < looked.n; i++) {
                        json_t *object;

                        if (strcmp(looked.variants[i].name, name) != 0)
                                continue;
                        any = true;
                        if (!list) {
                                print_variant(&looked, i, of);
                                continue;
                        }
                        object = variant_json(&looked, i);
                        json_object_set_new(object, "task", json_string(entries[t].name));
                        json_array_append_new(list, object);
                }
                looked_free(&looked);
        }
        free(entries);
        return any;
}

bool variant_why_print_model(const struct starling_client *client, const char *name)
{
        return tell_of_model(client, name, NULL);
}

json_t *variant_why_model_json(const struct starling_client *client, const char *name)
{
        json_t *list = json_array();

        (void)tell_of_model(client, name, list);
        return list;
}

/* ---- a task ---- */

static const char *rule_of(const struct looked *looked)
{
        const char *rule = looked->n ? sl_choice_policy_name(looked->variants[0].choice) : NULL;

        return rule ? rule : "unknown";
}

bool variant_why_print_task(const struct starling_client *client, const char *name)
{
        struct looked looked;

        if (!look_at(client, name, &looked))
                return false;
        printf("%s  task  %" PRIu32 " of %" PRIu32 " variants serve, chosen by rule %s\n", name, looked.serving, looked.n,
                rule_of(&looked));
        for (uint32_t i = 0; i < looked.n; i++) {
                printf("  %s\n", looked.variants[i].name);
                print_variant(&looked, i, "");
        }
        looked_free(&looked);
        return true;
}

json_t *variant_why_task_json(const struct starling_client *client, const char *name)
{
        json_t *list = json_array();
        struct looked looked;
        json_t *object;

        if (!look_at(client, name, &looked)) {
                json_decref(list);
                return NULL;
        }
        for (uint32_t i = 0; i < looked.n; i++)
                json_array_append_new(list, variant_json(&looked, i));
        object = json_pack("{s:s, s:s, s:o}", "task", name, "choice", rule_of(&looked), "variants", list);
        looked_free(&looked);
        return object;
}
