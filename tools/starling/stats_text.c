/* SPDX-License-Identifier: Apache-2.0 */
#include "stats_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define VALUE(slot, field) sl_counter_read(&(slot)->field)

static const char *plain(const char *text)
{
        static char copy[SL_STATS_MODEL_BYTES];

        return quantity_text(text, copy, sizeof(copy));
}

static void print_time(uint64_t ns)
{
        char text[QUANTITY_BYTES];

        printf("%9s", quantity_time(ns, text));
}

static void print_stages(const struct sl_histogram_set *histograms)
{
        for (uint32_t i = 0; i < SL_STAGES; i++) {
                const struct sl_histogram *histogram = &histograms->stages[i];

                if (!VALUE(histogram, count))
                        continue;
                printf("    %-10s p50", sl_stage_name(i));
                print_time(sl_histogram_quantile(histogram, 0.5));
                printf("  p99");
                print_time(sl_histogram_quantile(histogram, 0.99));
                printf("  p99.9");
                print_time(sl_histogram_quantile(histogram, 0.999));
                printf("  max");
                print_time(VALUE(histogram, max_ns));
                putchar('\n');
        }
}

static void print_header(const struct snapshot *s)
{
        const struct sl_stats_header *header = &s->header;
        char up[QUANTITY_BYTES];

        printf("runtime %s  %s  pid %u  ", plain(header->runtime_name), snapshot_state(s), header->pid);
        if (s->live)
                printf("up %s  ", quantity_age(s->taken_ns - header->started_ns, up));
        printf("starling %s  wait %s  stats page %" PRIu64 " bytes\n", header->release, header->wait_name, header->bytes);
}

static void print_memory(const struct snapshot *s)
{
        uint64_t most = VALUE(&s->header, memory_max);

        printf("memory  promised %" PRIu64 " of ", VALUE(&s->header, memory_bytes));
        if (most == UINT64_MAX)
                printf("no limit\n");
        else
                printf("memory_max %" PRIu64 " bytes\n", most);
        for (uint32_t i = 0; i < s->n_memory; i++)
                if (VALUE(&s->memory[i].slot, most_bytes))
                        printf("    %-10s %12" PRIu64 "  most %12" PRIu64 "\n", plain(s->memory[i].slot.name),
                                VALUE(&s->memory[i].slot, bytes), VALUE(&s->memory[i].slot, most_bytes));
}

/* How often each kind was carried out; what never was is left out. */
static void print_steps(const struct snapshot *s)
{
        bool any = false;

        for (uint32_t i = 0; i < s->n_steps; i++) {
                const struct sl_step_stats *slot = &s->steps[i].slot;

                if (!VALUE(slot, taken))
                        continue;
                printf("%s  %s %" PRIu64, any ? "" : "steps", plain(slot->name), VALUE(slot, taken));
                any = true;
        }
        if (any)
                putchar('\n');
}

static void print_dispatcher(const struct sl_dispatcher_stats *slot)
{
        printf("dispatcher  core %d  requests %" PRIu64 "  completions %" PRIu64 "  in flight %" PRIu64 "  sleeps %" PRIu64
               "  wakes %" PRIu64 "%s%s\n",
                slot->core, VALUE(slot, requests), VALUE(slot, completions), VALUE(slot, in_flight), VALUE(slot, sleeps),
                VALUE(slot, wakes), VALUE(slot, crowded) ? "  crowded" : "", VALUE(slot, saturated) ? "  saturated" : "");
        for (uint32_t i = 0; i < SL_REFUSAL_LIMIT; i++)
                if (VALUE(slot, refusals[i]))
                        printf("    refused %" PRIu64 ": %s\n", VALUE(slot, refusals[i]), sl_refusal_text(i));
}

/* What goes on counting while its sizes make room for each other. */
static void print_with_sizes(const struct model_sums *sums)
{
        printf("    with its sizes  requests %" PRIu64 "  samples %" PRIu64 "  done %" PRIu64 "  failed %" PRIu64
               "  expired %" PRIu64 "  cancelled %" PRIu64 "  refused %" PRIu64 "  batches %" PRIu64 "\n",
                sums->requests, sums->samples, sums->completed, sums->failed, sums->expired, sums->cancelled, sums->refused,
                sums->batches);
}

static void print_model(const struct model_snapshot *entry)
{
        const struct sl_model_stats *slot = &entry->slot;

        if (entry->index == 0 && !VALUE(slot, requests)) /* common to those without a slot */
                return;
        printf("model %s  %s", plain(slot->name), sl_stats_model_state_name(slot->state));
        if (slot->kind != SL_STATS_MODEL_PLAIN)
                printf("  %s", sl_stats_model_kind_name(slot->kind));
        printf("  requests %" PRIu64 "  samples %" PRIu64 "  done %" PRIu64 "  failed %" PRIu64 "  expired %" PRIu64
               "  cancelled %" PRIu64 "  refused %" PRIu64 "  in flight %" PRIu64 "  batches %" PRIu64 "\n",
                VALUE(slot, requests), VALUE(slot, samples), VALUE(slot, completed), VALUE(slot, failed), VALUE(slot, expired),
                VALUE(slot, cancelled), VALUE(slot, refused), VALUE(slot, in_flight), VALUE(slot, batches));
        if (slot->why[0])
                printf("    %s\n", plain(slot->why));
        if (entry->has_sizes)
                print_with_sizes(&entry->with_sizes);
        print_stages(entry->histograms);
}

static void print_queue(const struct snapshot *s, const struct sl_queue_stats *slot)
{
        uint64_t oldest_ns = VALUE(slot, oldest_ns);

        if (!VALUE(slot, depth) && !VALUE(slot, given_samples))
                return;
        printf("queue of %s  %s %" PRIu64 "  samples %" PRIu64 "  given %" PRIu64 " samples", plain(slot->model),
                sl_stats_queue_kind_name(slot->kind), VALUE(slot, depth), VALUE(slot, samples), VALUE(slot, given_samples));
        if (VALUE(slot, given_jobs))
                printf(" in %" PRIu64 " jobs", VALUE(slot, given_jobs));
        if (oldest_ns && s->taken_ns > oldest_ns) {
                printf("  oldest");
                print_time(s->taken_ns - oldest_ns);
        }
        putchar('\n');
}

static void print_client(const struct sl_client_stats *slot)
{
        printf("client %" PRIu64 "  uid %u  pid %u  %s  requests %" PRIu64 "  completions %" PRIu64 "  failed %" PRIu64
               "  refused %" PRIu64 "  in flight %" PRIu64 "  arena %" PRIu64 " bytes\n",
                slot->id, slot->uid, slot->pid, plain(slot->label), VALUE(slot, requests), VALUE(slot, completions),
                VALUE(slot, failed), VALUE(slot, refused), VALUE(slot, in_flight), VALUE(slot, arena_bytes));
}

static void print_worker(const struct snapshot *s, const struct worker_snapshot *entry)
{
        const struct sl_worker_stats *slot = &entry->slot;
        const char *gpu = snapshot_gpu(s, slot);

        printf("worker of %s  %s  %s", plain(slot->model), slot->executor, sl_stats_worker_state_name(slot->state));
        if (slot->pid)
                printf("  pid %u", slot->pid);
        if (gpu)
                printf("  on %s", plain(gpu));
        else
                printf("  core %d", slot->core);
        printf("  batch_max %u  batches %" PRIu64 "  samples %" PRIu64 "  busy", slot->batch_max, VALUE(slot, batches),
                VALUE(slot, samples));
        print_time(VALUE(slot, busy_ns));
        if (slot->restarts || slot->why[0])
                printf("  restarts %u: %s", slot->restarts, plain(slot->why));
        putchar('\n');
        if (entry->histograms)
                print_stages(entry->histograms);
}

static void print_let(const struct sl_let_stats *slot)
{
        if (!slot->workers && !VALUE(slot, turns))
                return;
        printf("let %s  cores %s  workers %u  jobs %" PRIu64 "  samples %" PRIu64 "  busy", plain(slot->name),
                slot->cores[0] ? slot->cores : "any", slot->workers, VALUE(slot, turns), VALUE(slot, samples));
        print_time(VALUE(slot, busy_ns));
        putchar('\n');
}

void stats_print_text(const struct snapshot *s)
{
        print_header(s);
        print_memory(s);
        print_steps(s);
        for (uint32_t i = 0; i < s->n_dispatchers; i++)
                print_dispatcher(&s->dispatchers[i].slot);
        for (uint32_t i = 0; i < s->n_models; i++)
                print_model(&s->models[i]);
        for (uint32_t i = 0; i < s->n_queues; i++)
                print_queue(s, &s->queues[i].slot);
        for (uint32_t i = 0; i < s->n_clients; i++)
                print_client(&s->clients[i].slot);
        for (uint32_t i = 0; i < s->n_workers; i++)
                print_worker(s, &s->workers[i]);
        for (uint32_t i = 0; i < s->n_lets; i++)
                print_let(&s->lets[i].slot);
}

/* ---- an interval a line ---------------------------------------------------------------------------------------------- */

void stats_print_heading(void)
{
        puts("time      requests/s samples/s failed/s refused/s  batch waiting in_flight      p50      p99    p99.9  busy");
}

/* What did not end as it should, beside what was refused. */
static double failures(const struct model_rates *rates)
{
        return rates->failed + rates->expired + rates->cancelled;
}

void stats_print_line(const struct interval *interval, const struct model_interval *shown)
{
        const struct model_rates *rates = &shown->per_second;
        const struct stage_times *total = &shown->stages[SL_STAGE_TOTAL];
        char text[11][QUANTITY_BYTES], clock[16];
        time_t now = time(NULL);
        struct tm local;

        (void)interval;
        strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &local));
        printf("%s %11s %9s %8s %9s %6s %7s %9s %8s %8s %8s %5s\n", clock, quantity_count(rates->requests, text[0]),
                quantity_count(rates->samples, text[1]), quantity_count(failures(rates), text[2]),
                quantity_count(rates->refused, text[3]), quantity_count(shown->batch_samples, text[4]),
                quantity_count((double)(shown->waiting.requests + shown->waiting.segments), text[5]),
                quantity_count((double)shown->in_flight, text[6]), quantity_time(total->p50_ns, text[7]),
                quantity_time(total->p99_ns, text[8]), quantity_time(total->p999_ns, text[9]),
                quantity_count(shown->busy, text[10]));
}
