/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *sl_load_stage_name(enum sl_load_stage stage)
{
        static const char *const names[] = {
#define X(id, name) name,
                SL_LOAD_STAGES(X)
#undef X
        };

        return names[stage];
}

static int init_latencies(struct sl_tally *tally)
{
        int r = sl_latencies_init(&tally->total);

        if (r == 0)
                r = sl_latencies_init(&tally->lateness);
        if (r == 0)
                r = sl_latencies_init(&tally->prompt);
        for (int i = 0; i < SL_LOAD_STAGES_N && r == 0; i++)
                r = sl_latencies_init(&tally->stages[i]);
        for (uint32_t i = 0; i < tally->options.n_models && r == 0; i++)
                r = sl_latencies_init(&tally->models[i].total);
        return r;
}

int sl_tally_init(struct sl_tally *tally, const struct sl_tally_options *options)
{
        size_t slices_bytes = SL_TALLY_SLICES * sizeof(*tally->slices);

        *tally = (struct sl_tally){.options = *options};
        tally->models = calloc(options->n_models, sizeof(*tally->models));
        tally->slices = aligned_alloc(alignof(struct sl_tally_slice), slices_bytes);
        if (!tally->models || !tally->slices)
                return -ENOMEM;
        memset(tally->slices, 0, slices_bytes);
        return init_latencies(tally);
}

void sl_tally_deinit(struct sl_tally *tally)
{
        sl_latencies_deinit(&tally->total);
        sl_latencies_deinit(&tally->lateness);
        sl_latencies_deinit(&tally->prompt);
        for (int i = 0; i < SL_LOAD_STAGES_N; i++)
                sl_latencies_deinit(&tally->stages[i]);
        for (uint32_t i = 0; tally->models && i < tally->options.n_models; i++)
                sl_latencies_deinit(&tally->models[i].total);
        free(tally->models);
        free(tally->slices);
        *tally = (struct sl_tally){0};
}

static bool is_measured(const struct sl_tally *tally, uint64_t at_ns)
{
        return at_ns >= tally->options.from_ns && at_ns < tally->options.until_ns;
}

static struct sl_tally_slice *slice_of(const struct sl_tally *tally, uint64_t due_ns)
{
        double share = (double)(due_ns - tally->options.from_ns) / (double)(tally->options.until_ns - tally->options.from_ns);

        return &tally->slices[(uint32_t)(share * SL_TALLY_SLICES) % SL_TALLY_SLICES];
}

void sl_tally_due(struct sl_tally *tally, uint32_t model, uint64_t due_ns)
{
        if (!is_measured(tally, due_ns))
                return;
        tally->due++;
        tally->models[model].due++;
        slice_of(tally, due_ns)->due++;
}

void sl_tally_unsent(struct sl_tally *tally, uint64_t due_ns)
{
        if (!is_measured(tally, due_ns))
                return;
        tally->unsent++;
        tally->violations++;
}

static void count_failure(struct sl_tally *tally, const struct sl_tally_entry *entry)
{
        tally->violations++;
        tally->models[entry->model].failed++;
        if (entry->status == -EBUSY || entry->status == -EDQUOT)
                tally->refused++;
        else if (entry->status == -ETIME)
                tally->expired++;
        else if (tally->failed++ == 0)
                tally->first_failure = entry->status;
}

/* The stages of the runtime may overlap by a few ns with what this side's clock reads: the rest is never below 0. */
static void add_stages(struct sl_tally *tally, const struct sl_tally_entry *entry, uint64_t total_ns)
{
        const uint64_t known[] = {
                entry->sent_ns - entry->due_ns, entry->queued_ns, entry->batched_ns, entry->computing_ns, entry->combining_ns};
        uint64_t sum = 0;

        for (int i = 0; i < SL_LOAD_WAKING; i++) {
                sl_latencies_add(&tally->stages[i], known[i]);
                sum += known[i];
        }
        sl_latencies_add(&tally->stages[SL_LOAD_WAKING], total_ns > sum ? total_ns - sum : 0);
}

static void count_answer(struct sl_tally *tally, const struct sl_tally_entry *entry)
{
        uint64_t total_ns = entry->answered_ns - entry->due_ns;

        tally->answered++;
        tally->samples += entry->samples;
        tally->violations += tally->options.objective_ns && total_ns > tally->options.objective_ns;
        sl_latencies_add(&tally->total, total_ns);
        sl_latencies_add(&tally->prompt, entry->answered_ns - (entry->blocked ? entry->due_ns : entry->sent_ns));
        sl_latencies_add(&tally->models[entry->model].total, total_ns);
        sl_histogram_record(&slice_of(tally, entry->due_ns)->latencies, total_ns);
        add_stages(tally, entry, total_ns);
}

void sl_tally_answer(struct sl_tally *tally, const struct sl_tally_entry *entry)
{
        if (entry->status == 0 && is_measured(tally, entry->answered_ns)) {
                tally->answered_in_time++;
                tally->samples_in_time += entry->samples;
        }
        if (!is_measured(tally, entry->due_ns))
                return;
        tally->last_ns = entry->answered_ns > tally->last_ns ? entry->answered_ns : tally->last_ns;
        if (entry->blocked)
                tally->blocked++;
        else
                sl_latencies_add(&tally->lateness, entry->sent_ns - entry->due_ns);
        if (entry->status < 0)
                count_failure(tally, entry);
        else
                count_answer(tally, entry);
}

static void merge_counts(struct sl_tally *into, const struct sl_tally *from)
{
        if (into->failed == 0)
                into->first_failure = from->first_failure;
        into->due += from->due;
        into->blocked += from->blocked;
        into->unsent += from->unsent;
        into->answered += from->answered;
        into->samples += from->samples;
        into->refused += from->refused;
        into->expired += from->expired;
        into->failed += from->failed;
        into->violations += from->violations;
        into->answered_in_time += from->answered_in_time;
        into->samples_in_time += from->samples_in_time;
        into->last_ns = from->last_ns > into->last_ns ? from->last_ns : into->last_ns;
}

void sl_tally_merge(struct sl_tally *into, const struct sl_tally *from)
{
        merge_counts(into, from);
        sl_latencies_merge(&into->total, &from->total);
        sl_latencies_merge(&into->lateness, &from->lateness);
        sl_latencies_merge(&into->prompt, &from->prompt);
        for (int i = 0; i < SL_LOAD_STAGES_N; i++)
                sl_latencies_merge(&into->stages[i], &from->stages[i]);
        for (uint32_t i = 0; i < into->options.n_models; i++) {
                into->models[i].due += from->models[i].due;
                into->models[i].failed += from->models[i].failed;
                sl_latencies_merge(&into->models[i].total, &from->models[i].total);
        }
        for (uint32_t i = 0; i < SL_TALLY_SLICES; i++) {
                into->slices[i].due += from->slices[i].due;
                sl_histogram_merge(&into->slices[i].latencies, &from->slices[i].latencies);
        }
}
