/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sets of profiles beside each other, those of the same device, model, precision, options, batch, threads and company. Two
 * medians whose 95 % intervals touch are called noise; bytes have no noise.
 */
#include "base/cleanup.h"
#include "base/error.h"
#include "command_profile.h"
#include "profile_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static inline void close_list(struct sl_profile_list *list)
{
        sl_profile_list_deinit(list);
}

/* A median with its interval; low and high are NaN where there is none. */
struct median {
        double low, value, high;
};

static const struct sl_worker_profile *find_same(const struct sl_profile_list *list, const struct sl_worker_profile *wanted)
{
        for (size_t i = 0; i < list->n; i++)
                if (sl_profile_is_same(&list->items[i], wanted, true))
                        return &list->items[i];
        return NULL;
}

static void print_worker(const struct sl_worker_profile *profile)
{
        printf("%s %s %s %llu", profile->device, profile->model, profile->precision, (unsigned long long)profile->batch);
        if (profile->threads > 1)
                printf(" threads %llu", (unsigned long long)profile->threads);
        printf("%s%s: ", profile->beside[0] ? " beside " : "", profile->beside);
}

static const char *verdict(const struct median *before, const struct median *after)
{
        if (isnan(before->low) || isnan(after->low))
                return "no interval: cannot tell from noise";
        if (before->low <= after->high && after->low <= before->high)
                return "noise";
        return after->value > before->value ? "larger" : "smaller";
}

static void print_medians(const char *name, double scale, const struct median *before, const struct median *after)
{
        if (isnan(before->value) || isnan(after->value))
                return;
        printf("  %s %.4g -> %.4g (%+.1f %%) %s", name, before->value * scale, after->value * scale,
                100 * (after->value / before->value - 1), verdict(before, after));
}

static void print_exact(const char *name, double before, double after)
{
        if (!isnan(before) && !isnan(after) && before != after)
                printf("  %s %.0f -> %.0f changed", name, before, after);
}

static void compare(const struct sl_worker_profile *before, const struct sl_worker_profile *after)
{
        const struct median times[] = {{before->latency_low_ns, before->latency_p50_ns, before->latency_high_ns},
                {after->latency_low_ns, after->latency_p50_ns, after->latency_high_ns}};
        const struct median slowdowns[] = {{before->slowdown_low, before->slowdown, before->slowdown_high},
                {after->slowdown_low, after->slowdown, after->slowdown_high}};

        print_worker(after);
        print_medians("p50 us", 1e-3, &times[0], &times[1]);
        if (after->beside[0])
                print_medians("slow-down", 1, &slowdowns[0], &slowdowns[1]);
        print_exact("weights_bytes", before->weights_bytes, after->weights_bytes);
        print_exact("workspace_bytes", before->workspace_bytes, after->workspace_bytes);
        if (strcmp(before->model_hash, after->model_hash) != 0)
                printf("  another model file");
        printf("\n");
}

static void print_missing(const struct sl_profile_list *list, const struct sl_profile_list *other, const char *name)
{
        for (size_t i = 0; i < list->n; i++)
                if (!find_same(other, &list->items[i])) {
                        print_worker(&list->items[i]);
                        printf(" only in %s\n", name);
                }
}

/* One argument: what it says before, the store after. */
int profile_diff(const struct wish *wish, struct sl_error *error)
{
        SL_CLEANUP(close_list) struct sl_profile_list before = {.n = 0};
        SL_CLEANUP(close_list) struct sl_profile_list after = {.n = 0};
        const char *later = wish->n_names == 2 ? wish->names[1] : wish->store;
        int r = profile_file_read(wish->names[0], &before, error);

        if (r == 0)
                r = profile_file_read(later, &after, error);
        for (size_t i = 0; i < after.n && r == 0; i++) {
                const struct sl_worker_profile *same = find_same(&before, &after.items[i]);

                if (same)
                        compare(same, &after.items[i]);
        }
        if (r == 0) {
                print_missing(&before, &after, wish->names[0]);
                print_missing(&after, &before, later);
        }
        return r;
}
