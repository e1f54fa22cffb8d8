/* SPDX-License-Identifier: Apache-2.0 */
#include "health.h"

#include "base/quote.h"

#include <errno.h>

#define BUSY_MAX  16u /* slots that cannot be read, each for some ms */
#define LINES_MAX 64u /* of models of one runtime */

static void say(struct text *out, const struct watch *watch, const char *what)
{
        text_add(out, watch->name); /* a name of a runtime is a plain word */
        text_add(out, ": ");
        text_add(out, what);
        text_add(out, "\n");
}

static bool lives(struct text *out, const struct watch *watch)
{
        if (watch_is_up(watch))
                return true;
        say(out, watch, watch->cause.text);
        return false;
}

bool health_lives(struct text *out, const struct watch *watches, uint32_t n)
{
        bool all = true;

        for (uint32_t i = 0; i < n; i++) {
                bool one = lives(out, &watches[i]);

                if (one)
                        say(out, &watches[i], "lives");
                all = all && one;
        }
        return all;
}

/* ---- models ---- */

/* NULL: nothing is wrong. */
static const char *fault_of(const struct sl_model_stats *model)
{
        if (model->state == SL_STATS_MODEL_FAILED)
                return "has failed";
        if (model->state == SL_STATS_MODEL_DEGRADED && model->workers_wanted && !model->workers_serving)
                return "has no worker";
        return NULL;
}

static void say_fault(struct text *out, const struct watch *watch, const struct sl_model_stats *model, const char *fault)
{
        char name[4 * SL_STATS_MODEL_BYTES], why[4 * SL_STATS_WHY_BYTES];

        text_add(out, watch->name);
        text_add(out, ": model ");
        text_add(out, sl_quote(model->name, name, sizeof(name)));
        text_add_format(out, " %s%s", fault, model->why[0] ? ": " : "");
        text_add(out, model->why[0] ? sl_quote(model->why, why, sizeof(why)) : "");
        text_add(out, "\n");
}

/* How many models are in the way. One that is just being changed is not, and one of many may be left out of the lines. */
static uint32_t count_faults(struct text *out, const struct watch *watch)
{
        uint32_t n_slots = sl_stats_count(watch->view, SL_STATS_MODELS), n = 0, n_busy = 0;

        for (uint32_t i = 0; i < n_slots && n_busy < BUSY_MAX; i++) {
                struct sl_model_stats model;
                int r = sl_stats_read_model(watch->view, i, &model);
                const char *fault = r == 0 ? fault_of(&model) : NULL;

                n_busy += r == -EAGAIN;
                if (fault && n < LINES_MAX)
                        say_fault(out, watch, &model, fault);
                n += fault != NULL;
        }
        if (n > LINES_MAX)
                text_add_format(out, "and %u other models of it\n", n - LINES_MAX);
        return n;
}

static bool is_ready(struct text *out, const struct watch *watch)
{
        enum runtime_state state = (enum runtime_state)watch->page.facts.state;

        if (!lives(out, watch))
                return false;
        if (state != RUNTIME_READY) {
                say(out, watch, state == RUNTIME_STARTING ? "starting: its models are being loaded" : "stopping");
                return false;
        }
        return count_faults(out, watch) == 0;
}

bool health_is_ready(struct text *out, const struct watch *watches, uint32_t n)
{
        bool all = true;

        for (uint32_t i = 0; i < n; i++) {
                bool one = is_ready(out, &watches[i]);

                if (one)
                        say(out, &watches[i], "ready");
                all = all && one;
        }
        return all;
}
