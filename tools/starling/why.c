/* SPDX-License-Identifier: Apache-2.0 */
#include "why.h"

#include "json_value.h"
#include "snapshot_json.h"

#include <inttypes.h>
#include <stdio.h>

#define TEXT_BYTES (SL_STATS_MODEL_BYTES + SL_STATS_CAUSE_BYTES)

static const char *age(const struct snapshot *s, uint64_t since_ns, char ret_text[QUANTITY_BYTES])
{
        return quantity_time(s->taken_ns > since_ns ? s->taken_ns - since_ns : 0, ret_text);
}

static void print_wanted(const struct snapshot *s, const struct sl_model_stats *model)
{
        char text[QUANTITY_BYTES];

        printf("    wanted     %s, for %s, by: %s", model->want ? "to be served" : "to go", age(s, model->wanted_ns, text),
                model->origin);
        if (model->want)
                printf(" (want %" PRIu64 ")", model->want);
        putchar('\n');
}

static void print_actual(const struct sl_model_stats *model)
{
        if (!model->want_served) {
                printf("    serves     nothing\n");
                return;
        }
        printf(model->state == SL_STATS_MODEL_STANDBY ? "    holds      the plan of " : "    serves     ");
        if (model->version)
                printf("version %" PRId64, model->version);
        else
                printf("%u members", model->n_members);
        printf(", %s", model->want_served == model->want ? "as it is wanted" : "as it was wanted before");
        if (model->want_served != model->want)
                printf(" (want %" PRIu64 ")", model->want_served);
        if (model->state == SL_STATS_MODEL_STANDBY)
                printf("; no workers\n");
        else
                printf("; %u of %u workers\n", model->workers_serving, model->workers_wanted);
}

static void print_awaited(const struct snapshot *s, const struct sl_model_stats *model)
{
        const struct model_snapshot *of = snapshot_model_at(s, model->awaits_of);
        char text[QUANTITY_BYTES], name[TEXT_BYTES];

        if (!model->awaits[0]) {
                printf("    waits for  nothing\n");
                return;
        }
        printf("    waits for  %s", model->awaits);
        if (of)
                printf(": %s (%s)", quantity_text(of->slot.name, name, sizeof(name)), sl_stats_model_state_name(of->slot.state));
        printf(", for %s", age(s, model->awaits_ns, text));
        if (model->step[0])
                printf("; then: %s", model->step);
        putchar('\n');
}

void why_print_text(const struct snapshot *s, const struct sl_model_stats *model)
{
        char text[TEXT_BYTES];

        printf("%s  %s", quantity_text(model->name, text, sizeof(text)), sl_stats_model_state_name(model->state));
        printf("  for %s\n", age(s, model->since_ns, text));
        print_wanted(s, model);
        print_actual(model);
        print_awaited(s, model);
        if (model->state == SL_STATS_MODEL_DEGRADED)
                printf("    lacks      %s\n", quantity_text(model->why, text, sizeof(text)));
        if (model->cause[0])
                printf("    failed     %s\n", quantity_text(model->cause, text, sizeof(text)));
}

json_t *why_json(const struct snapshot *s, const struct sl_model_stats *model)
{
        json_t *object = json_object();

        json_set(object, "name", json_text(model->name));
        json_set(object, "state", json_string(sl_stats_model_state_name(model->state)));
        json_set(object, "since_ns", json_number(model->since_ns));
        json_set(object, "taken_ns", json_number(s->taken_ns));
        json_set(object, "version", json_integer(model->version));
        json_set(object, "workers_wanted", json_number(model->workers_wanted));
        json_set(object, "workers_serving", json_number(model->workers_serving));
        json_set(object, "why", model->why[0] ? json_text(model->why) : json_null());
        json_set(object, "want", snapshot_want_json(s, model));
        return object;
}
