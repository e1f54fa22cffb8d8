/* SPDX-License-Identifier: Apache-2.0 */
#include "task.h"

#include "client.h"
#include "layout.h"
#include "starling.h"
#include "task_page.h"
#include "task_view.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static_assert((int)STARLING_VARIANT_ABSENT == (int)SL_VARIANT_ABSENT && (int)STARLING_VARIANT_SERVES == (int)SL_VARIANT_SERVES &&
                      (int)STARLING_VARIANT_AVAILABLE == (int)SL_VARIANT_AVAILABLE &&
                      (int)STARLING_VARIANT_UNLOADED == (int)SL_VARIANT_UNLOADED &&
                      (int)STARLING_VARIANT_LOADING == (int)SL_VARIANT_LOADING &&
                      (int)STARLING_VARIANT_FAILED == (int)SL_VARIANT_FAILED &&
                      (int)STARLING_VARIANT_DIFFERS == (int)SL_VARIANT_DIFFERS,
        "the states are the page's");
static const char *task_name(const struct sl_task_copy *copy)
{
        return copy->texts + copy->task.name;
}

static void copy_text(char *to, size_t bytes, const char *from)
{
        size_t used = strnlen(from, bytes - 1);

        memcpy(to, from, used);
        to[used] = 0;
}

bool sl_task_is_there(const struct starling_client *client, const char *name)
{
        const struct sl_task_page *page = sl_task_page_of(client);
        struct sl_task_copy *copy = NULL;
        bool is_there = page && sl_task_page_copy(page, name, 0, &copy) == 0;

        free(copy);
        return is_there;
}

int starling_task_list(const struct starling_client *client, struct starling_task_entry *ret_entries, uint32_t max)
{
        const struct sl_task_page *page;
        uint32_t n;

        if (sl_forked(&client->fork))
                return -ECHILD;
        page = sl_task_page_of(client);
        if (!page)
                return -ENOTSUP;
        n = sl_task_page_count(page);
        for (uint32_t i = 0; i < n && i < max; i++) {
                struct sl_task_copy *copy;

                ret_entries[i] = (struct starling_task_entry){.variants = 0};
                if (sl_task_page_copy(page, NULL, i, &copy) < 0)
                        continue;
                copy_text(ret_entries[i].name, sizeof(ret_entries[i].name), task_name(copy));
                ret_entries[i].variants = copy->task.n;
                for (uint32_t v = 0; v < copy->task.n; v++)
                        ret_entries[i].serving += copy->rows[v].state == SL_VARIANT_SERVES;
                free(copy);
        }
        return (int)n;
}

/* The largest job that is known by measurement takes least a sample: where that no longer falls, what is said is extrapolated. */
static void describe_jobs(const struct sl_variant_line *line, struct starling_variant *variant)
{
        double best = 0;

        variant->latency_ns = sl_task_service_ns(line, 1);
        for (uint32_t i = 0; i < SL_VARIANT_SIZES; i++) {
                double sample_ns = (double)sl_task_service_ns(line, 1u << i) / (1u << i);

                if (sample_ns <= 0 || (best > 0 && sample_ns >= best * 0.99))
                        continue;
                best = sample_ns;
                variant->batch_samples = 1u << i;
                variant->batch_ns = sl_task_service_ns(line, 1u << i);
        }
}

static void describe(
        const struct sl_task_page *page, const struct sl_task_copy *copy, uint32_t number, struct starling_variant *variant)
{
        const struct sl_variant_row *row = &copy->rows[number];
        uint32_t word;

        *variant = (struct starling_variant){.state = (enum starling_variant_state)row->state,
                .accuracy = row->accuracy,
                .cost = row->cost,
                .memory_bytes = row->memory_bytes,
                .load_ns = row->load_ns,
                .choice = (uint32_t)sl_task_policy(copy)};
        copy_text(variant->name, sizeof(variant->name), sl_task_variant_name(copy, number));
        copy_text(variant->reason, sizeof(variant->reason), copy->texts + row->reason);
        if (row->index >= SL_CATALOGUE_MODELS || row->state == SL_VARIANT_DIFFERS)
                return;
        describe_jobs(&page->lines[row->index], variant);
        word = atomic_load_explicit(&page->lines[row->index].workers, memory_order_relaxed);
        variant->workers = sl_variant_workers_count(word);
        variant->condition = sl_variant_workers_condition(word);
        variant->wait_ns = sl_variant_word_wait_ns(atomic_load_explicit(&page->lines[row->index].word, memory_order_relaxed));
        if (variant->latency_ns)
                variant->doubt = sl_variant_workers_doubt(word);
        else
                variant->latency_ns = sl_task_variant_ns(&page->lines[row->index], row, 1);
        if (!copy->task.has_costs)
                variant->cost = sl_task_measured_cost(&page->lines[row->index], variant->latency_ns);
}

int starling_task_variants(
        const struct starling_client *client, const char *task, struct starling_variant *ret_variants, uint32_t max)
{
        const struct sl_task_page *page;
        struct sl_task_copy *copy;
        int r;

        if (sl_forked(&client->fork))
                return -ECHILD;
        page = sl_task_page_of(client);
        if (!page)
                return -ENOTSUP;
        r = sl_task_page_copy(page, task, 0, &copy);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < copy->task.n && i < max; i++)
                describe(page, copy, i, &ret_variants[i]);
        r = (int)copy->task.n;
        free(copy);
        return r;
}
