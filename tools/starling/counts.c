/* SPDX-License-Identifier: Apache-2.0 */
#include "counts.h"
#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Reads every slot in use of one section. Return: 0, -ENOMEM. */
#define READ_SECTION(view, section, read, slots, n_slots)                                                                          \
        __extension__({                                                                                                            \
                uint32_t n_total = sl_stats_count((view), (section));                                                              \
                (n_slots) = 0;                                                                                                     \
                (slots) = aligned_alloc(128, (n_total + 1ul) * sizeof(*(slots)));                                                  \
                for (uint32_t i = 0; (slots) && i < n_total; i++)                                                                  \
                        (n_slots) += read((view), i, &(slots)[n_slots]) == 0;                                                      \
                (slots) ? 0 : -ENOMEM;                                                                                             \
        })

static struct model_counts *find_model(struct counts *counts, const char *name)
{
        for (uint32_t i = 0; i < counts->n_models; i++)
                if (strcmp(counts->models[i].counters.name, name) == 0)
                        return &counts->models[i];
        return NULL;
}

#define ADD_FIELD(name, text) sl_counter_add(&sum->counters.name, sl_counter_read(&slot->name));

static void add_counters(struct model_counts *sum, const struct sl_model_stats *slot)
{
        SL_MODEL_COUNTERS(ADD_FIELD)
}

static int add_model(struct counts *counts, const struct sl_stats_view *view, const struct sl_model_stats *slot)
{
        const struct sl_histogram_set *histograms = sl_stats_histograms(view, slot);
        struct model_counts *model = find_model(counts, slot->name);

        if (model) {
                add_counters(model, slot);
        } else {
                model = &counts->models[counts->n_models];
                model->histograms = aligned_alloc(128, sizeof(*model->histograms));
                if (!model->histograms)
                        return -ENOMEM;
                memset(model->histograms, 0, sizeof(*model->histograms));
                memcpy(&model->counters, slot, sizeof(*slot));
                counts->n_models++;
        }
        for (uint32_t stage = 0; histograms && stage < SL_STAGES; stage++)
                sl_histogram_merge(&model->histograms->stages[stage], &histograms->stages[stage]);
        return 0;
}

static int read_models(struct counts *counts, const struct sl_stats_view *view)
{
        uint32_t n = sl_stats_count(view, SL_STATS_MODELS);
        struct sl_model_stats slot;
        int result = 0;

        counts->models = aligned_alloc(128, (n + 1ul) * sizeof(*counts->models));
        if (!counts->models)
                return -ENOMEM;
        for (uint32_t i = 0; result == 0 && i < n; i++)
                if (sl_stats_read_model(view, i, &slot) == 0)
                        result = add_model(counts, view, &slot);
        return result;
}

static int read_all(struct counts *counts, const struct sl_stats_view *view)
{
        sl_stats_read_header(view, &counts->header);
        counts->live = sl_stats_is_live(view);
        int result = READ_SECTION(view, SL_STATS_DISPATCHERS, sl_stats_read_dispatcher, counts->dispatchers, counts->n_dispatchers);

        if (result == 0)
                result = READ_SECTION(view, SL_STATS_CLIENTS, sl_stats_read_client, counts->clients, counts->n_clients);
        if (result == 0)
                result = READ_SECTION(view, SL_STATS_WORKERS, sl_stats_read_worker, counts->workers, counts->n_workers);
        return result == 0 ? read_models(counts, view) : result;
}

int counts_read(const char *name, struct counts *ret_counts, struct sl_error *error)
{
        struct sl_stats_view *view;
        int result = sl_stats_open(name, NULL, &view, error);

        if (result < 0)
                return result;
        memset(ret_counts, 0, sizeof(*ret_counts));
        result = read_all(ret_counts, view);
        sl_stats_close(view);
        if (result < 0) {
                counts_deinit(ret_counts);
                return sl_error_set(error, -result, "out of memory");
        }
        return 0;
}

void counts_deinit(struct counts *counts)
{
        for (uint32_t i = 0; i < counts->n_models; i++)
                free(counts->models[i].histograms);
        free(counts->models);
        free(counts->dispatchers);
        free(counts->clients);
        free(counts->workers);
}
