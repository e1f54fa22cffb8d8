/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "base/error.h"
#include "choice.h"
#include "command_profile.h"
#include "costs.h"
#include "costs_file.h"
#include "freshness.h"
#include "memory_room.h"
#include "profile_costs.h"
#include "profile_file.h"
#include "profile_store.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

SL_DEFINE_CLEANUP(struct sl_freshness *, sl_freshness_free)
SL_DEFINE_CLEANUP(struct sl_profile_store *, sl_profile_store_free)

#define NUMBER_BYTES 32

static inline void close_list(struct sl_profile_list *list)
{
        sl_profile_list_deinit(list);
}

/* The user's own has nothing before anything is measured; one that is named has to be there. */
static int read_store(const struct wish *wish, struct sl_profile_list *list, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_profile_store_free) struct sl_profile_store *store = NULL;
        int r;

        if (access(wish->store, F_OK) < 0 && errno == ENOENT)
                return wish->store_named ? sl_error_set(error, ENOENT, "--store: \"%s\": %s", wish->store, strerror(ENOENT)) : 0;
        r = sl_profile_store_open(wish->store, false, &store, error);
        return r < 0 ? r : sl_profile_store_read(store, list, error);
}

/* @scale: of the figure, for people; "-": it is unknown. */
static const char *print_number(double figure, double scale, char text[NUMBER_BYTES])
{
        if (isnan(figure))
                strcpy(text, "-");
        else
                snprintf(text, NUMBER_BYTES, "%.4g", figure * scale);
        return text;
}

static void print_row(const struct sl_worker_profile *profile, const char *why, bool stale)
{
        char p50[NUMBER_BYTES], p95[NUMBER_BYTES], p99[NUMBER_BYTES], rate[NUMBER_BYTES], slowdown[NUMBER_BYTES];

        printf("%-10s %-16s %-9s %5llu %7llu %10s %10s %10s %10s %8s  %s%s%s%s%s\n", profile->device, profile->model,
                profile->precision, (unsigned long long)profile->batch, (unsigned long long)profile->threads,
                print_number(profile->latency_p50_ns, 1e-3, p50), print_number(profile->latency_p95_ns, 1e-3, p95),
                print_number(profile->latency_p99_ns, 1e-3, p99), print_number(profile->samples_per_second, 1, rate),
                print_number(profile->slowdown, 1, slowdown), profile->beside[0] ? "beside " : "", profile->beside,
                profile->beside[0] && (stale || !sl_profile_is_measured(profile)) ? "; " : "",
                stale                             ? "STALE: "
                : sl_profile_is_measured(profile) ? ""
                                                  : "not measured here: see show",
                stale ? why : "");
}

int profile_list(const struct wish *wish, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_freshness_free) struct sl_freshness *freshness = NULL;
        SL_CLEANUP(close_list) struct sl_profile_list list = {.n = 0};
        char why[SL_STALE_TEXT_BYTES];
        size_t n_stale = 0;
        int r = read_store(wish, &list, error);

        if (r == 0)
                r = sl_freshness_new(&list, &freshness, error);
        if (r < 0)
                return r;
        if (wish->json)
                return profile_file_write(&list, true, stdout);
        printf("%-10s %-16s %-9s %5s %7s %10s %10s %10s %10s %8s\n", "device", "model", "precision", "batch", "threads", "p50 us",
                "p95 us", "p99 us", "samples/s", "slow-down");
        for (size_t i = 0; i < list.n; i++) {
                bool stale = sl_freshness_is_stale(freshness, &list.items[i], why);

                n_stale += stale;
                print_row(&list.items[i], why, stale);
        }
        printf("%zu profiles, %zu stale, in %s\n", list.n, n_stale, wish->store);
        return 0;
}

/* ---- one model, whole ---- */

static void show_profile(const struct sl_worker_profile *profile, const char *why, bool stale)
{
        char text[SL_PROFILE_TEXT_BYTES], origin[SL_PROFILE_TEXT_BYTES];

        for (const struct sl_profile_field *field = sl_profile_fields; field->name; field++) {
                sl_profile_field_text(profile, field, text);
                sl_profile_origin(profile, field, origin);
                if (!text[0])
                        continue;
                printf("%-18s  %s", field->name, text);
                if (origin[0])
                        printf("  [%s]", origin);
                printf("  (%s)\n", field->text);
        }
        printf("%-18s  %s%s\n\n", "state",
                stale                             ? "STALE: "
                : sl_profile_is_measured(profile) ? "measured"
                                                  : "NOT MEASURED: the origin of each figure stands beside it",
                stale ? why : "");
}

int profile_show(const struct wish *wish, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_freshness_free) struct sl_freshness *freshness = NULL;
        SL_CLEANUP(close_list) struct sl_profile_list list = {.n = 0};
        char why[SL_STALE_TEXT_BYTES];
        int r = read_store(wish, &list, error);

        if (r == 0)
                r = sl_freshness_new(&list, &freshness, error);
        for (int name = 0; name < wish->n_names && r == 0; name++) {
                size_t n = 0;

                for (size_t i = 0; i < list.n; i++) {
                        if (strcmp(list.items[i].model, wish->names[name]) != 0)
                                continue;
                        show_profile(&list.items[i], why, sl_freshness_is_stale(freshness, &list.items[i], why));
                        n++;
                }
                if (!n)
                        r = sl_error_set(error, ENOENT, "\"%s\" has no profile of model \"%s\"", wish->store, wish->names[name]);
        }
        return r;
}

/* ---- in and out ---- */

SL_DEFINE_CLEANUP(struct sl_costs *, sl_costs_free)

static bool ends_with(const char *path, const char *ending)
{
        const char *dot = path ? strrchr(path, '.') : NULL;

        return dot && strcmp(dot, ending) == 0;
}

/* What a runtime may take here by default, in a container that of its control group. */
static uint64_t memory_for_workers(void)
{
        struct sl_memory_room room;

        sl_memory_room_read("", &room);
        return room.bytes < SL_COST_BYTES_MAX ? sl_memory_room_usable(room.bytes) : SL_COST_BYTES_MAX;
}

/* For `starling optimize`. */
static int write_costs(const struct sl_costs *costs, FILE *stream, struct sl_error *error)
{
        int r;

        fputs("# costs out of profiles; memory is what a runtime may take here: of devices elsewhere, say what they have\n", stream);
        r = sl_costs_file_write(stream, costs);
        return r < 0 ? sl_error_set(error, -r, "the costs cannot be written: %s", strerror(-r)) : 0;
}

static int write_profiles(const struct sl_profile_list *list, bool json, FILE *stream, struct sl_error *error)
{
        int r = profile_file_write(list, json, stream);

        return r < 0 ? sl_error_set(error, -r, "the profiles cannot be written: %s", strerror(-r)) : 0;
}

/* There is a file only of what can be written to it. */
int profile_export(const struct wish *wish, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_costs_free) struct sl_costs *costs = NULL;
        SL_CLEANUP(close_list) struct sl_profile_list all = {.n = 0};
        SL_CLEANUP(close_list) struct sl_profile_list list = {.n = 0};
        FILE *stream = stdout;
        bool plain = false;
        int r = read_store(wish, &all, error);

        r = r < 0 ? r : choose_profiles(wish, &all, &list, &plain, error);
        if (r == 0 && ends_with(wish->output, ".yaml"))
                r = sl_profile_costs(&list, plain, memory_for_workers(), &costs, error);
        if (r < 0)
                return r;
        if (wish->output && !(stream = fopen(wish->output, "we")))
                return sl_error_set(error, errno, "\"%s\": %s", wish->output, strerror(errno));
        r = costs ? write_costs(costs, stream, error)
                  : write_profiles(&list, wish->json || ends_with(wish->output, ".json"), stream, error);
        if (wish->output && fclose(stream) != 0 && r == 0)
                r = sl_error_set(error, errno, "\"%s\": %s", wish->output, strerror(errno));
        return r;
}

int profile_import(const struct wish *wish, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_profile_store_free) struct sl_profile_store *store = NULL;
        SL_CLEANUP(close_list) struct sl_profile_list list = {.n = 0};
        int r = 0;

        for (int i = 0; i < wish->n_names && r == 0; i++)
                r = profile_file_read(wish->names[i], &list, error);
        for (size_t i = 0; i < list.n && r == 0; i++)
                if (!list.items[i].model[0] || !list.items[i].device[0] || !list.items[i].batch || !list.items[i].origin[0] ||
                        !list.items[i].threads)
                        r = sl_error_set(error, EINVAL, "profile %zu lacks its model, device, batch, threads or origin", i + 1);
        if (r == 0)
                r = sl_profile_store_open(wish->store, true, &store, error);
        if (r == 0)
                r = sl_profile_store_put(store, list.items, list.n, error);
        if (r == 0)
                printf("%zu profiles into %s\n", list.n, wish->store);
        return r;
}
