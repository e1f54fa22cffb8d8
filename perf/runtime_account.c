/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime_account.h"

#include "process.h"
#include "stats.h"

#include <stdio.h>
#include <string.h>

/* The name of the runtime whose socket is ".../NAME.sock". */
static void runtime_name(const char *runtime, char *ret_name, size_t bytes)
{
        const char *slash = runtime ? strrchr(runtime, '/') : NULL;

        snprintf(ret_name, bytes, "%s", !runtime ? "starling" : slash ? slash + 1 : runtime);
        char *dot = slash ? strrchr(ret_name, '.') : NULL;
        if (dot)
                *dot = 0;
}

static void add_models(const struct sl_stats_view *view, struct sl_runtime_account *account)
{
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_MODELS); i++) {
                struct sl_model_stats model;

                if (sl_stats_read_model(view, i, &model) < 0)
                        continue;
                struct sl_histogram combining;

                account->compute_ns += sl_counter_read(&model.compute_ns);
                account->busy_ns += sl_counter_read(&model.worker_busy_ns);
                account->batches += sl_counter_read(&model.batches);
                account->batch_samples += sl_counter_read(&model.batch_samples);
                if ((model.histograms || i == 0) &&
                        sl_stats_read_histogram(view, model.histograms, SL_STAGE_COMBINING, &combining) == 0)
                        account->combining_ns += sl_counter_read(&combining.sum_ns);
        }
}

static void add_dispatchers(const struct sl_stats_view *view, struct sl_runtime_account *account)
{
        for (uint32_t i = 0; i < sl_stats_count(view, SL_STATS_DISPATCHERS); i++) {
                struct sl_dispatcher_stats dispatcher;

                if (sl_stats_read_dispatcher(view, i, &dispatcher) == 0)
                        account->wakes += sl_counter_read(&dispatcher.wakes);
        }
}

struct sl_runtime_account sl_runtime_account_take(const char *runtime)
{
        struct sl_runtime_account account = {0};
        struct sl_stats_header header;
        struct sl_stats_view *view;
        char name[128];

        runtime_name(runtime, name, sizeof(name));
        if (sl_stats_open(name, NULL, &view, NULL) < 0)
                return account;
        sl_stats_read_header(view, &header);
        add_models(view, &account);
        add_dispatchers(view, &account);
        account.known = true;
        account.measured = sl_process_cpu_ns((pid_t)header.pid, &account.cpu_ns) == 0 &&
                           sl_process_rss((pid_t)header.pid, &account.rss_bytes) == 0;
        sl_stats_close(view);
        return account;
}
