/* SPDX-License-Identifier: Apache-2.0 */
#include "choice.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "freshness.h"
#include "subject.h"
#include "wish.h"
#include "worker_profile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

SL_DEFINE_CLEANUP(struct sl_freshness *, sl_freshness_free)

struct choice {
        const struct wish *wish;
        struct subjects subjects; /* none: all models */
        struct sl_freshness *freshness;
        struct sl_worker_profile here;
};

static bool has_device(const struct wish *wish, const char *name)
{
        for (uint32_t i = 0; i < wish->n_devices; i++)
                if (strcmp(wish->devices[i].name, name) == 0)
                        return true;
        return !wish->devices_given;
}

static bool has_batch(const struct wish *wish, uint64_t batch)
{
        for (uint32_t i = 0; i < wish->n_batches; i++)
                if (wish->batches[i] == batch)
                        return true;
        return !wish->batches_given;
}

static bool has_threads(const struct wish *wish, uint64_t threads)
{
        for (uint32_t i = 0; i < wish->threads.n; i++)
                if (wish->threads.items[i] == threads)
                        return true;
        return false;
}

/* A model that has no such batch any more has none in its costs. Return: 1, 0, -EINVAL a text of the subject is too long. */
static int is_of_subject(const struct sl_worker_profile *profile, const struct subject *subject, struct sl_error *error)
{
        struct sl_worker_profile wanted;
        int r = subject_fill(subject, &wanted, error);

        return r < 0 ? r
                     : profile->batch <= subject->lowering.batch_max && strcmp(profile->model, wanted.model) == 0 &&
                               strcmp(profile->path, wanted.path) == 0 && strcmp(profile->precision, wanted.precision) == 0 &&
                               strcmp(profile->options, wanted.options) == 0;
}

/* Beside one of these models, but in a precision that it does not have here. */
static bool is_beside_other(const struct subjects *subjects, const char *beside)
{
        char name[1152], precision[16];
        bool is_other = false;

        if (sscanf(beside, "%1151s %15s", name, precision) != 2)
                return false;
        for (uint32_t i = 0; i < subjects->n; i++) {
                if (strcmp(subjects->items[i].name, name) != 0)
                        continue;
                if (strcmp(subject_precision(&subjects->items[i]), precision) == 0)
                        return false;
                is_other = true;
        }
        return is_other;
}

/* Measured here, and it still holds. */
static bool holds_here(const struct choice *choice, const struct sl_worker_profile *profile)
{
        char why[SL_STALE_TEXT_BYTES];

        return strcmp(profile->host, choice->here.host) == 0 && sl_profile_is_measured(profile) &&
               !sl_freshness_is_stale(choice->freshness, profile, why);
}

static int is_chosen(const struct choice *choice, const struct sl_worker_profile *profile, struct sl_error *error)
{
        int r = choice->subjects.n == 0;

        if (!has_device(choice->wish, profile->device) || !has_batch(choice->wish, profile->batch))
                return 0;
        if (r)
                return r;
        for (uint32_t i = 0; i < choice->subjects.n && r == 0; i++)
                r = is_of_subject(profile, &choice->subjects.items[i], error);
        if (r < 1 || !has_threads(choice->wish, profile->threads) || is_beside_other(&choice->subjects, profile->beside))
                return r < 0 ? r : 0;
        return holds_here(choice, profile);
}

static int choose_each(
        const struct choice *choice, const struct sl_profile_list *all, struct sl_profile_list *chosen, struct sl_error *error)
{
        for (size_t i = 0; i < all->n; i++) {
                int r = is_chosen(choice, &all->items[i], error);

                if (r < 0)
                        return r;
                if (r && sl_profile_list_add(chosen, &all->items[i]) < 0)
                        return sl_error_set(error, ENOMEM, "no memory for %zu profiles", chosen->n + 1);
        }
        return choice->subjects.n && !chosen->n
                       ? sl_error_set(error, ENOENT,
                                 "\"%s\" has no profile of what is asked for that was measured here and is not stale",
                                 choice->wish->store)
                       : 0;
}

static bool is_plain(const struct subjects *subjects)
{
        for (uint32_t i = 0; i < subjects->n; i++)
                for (uint32_t k = 0; k < i; k++)
                        if (strcmp(subjects->items[k].name, subjects->items[i].name) == 0)
                                return false;
        return subjects->n > 0;
}

int choose_profiles(const struct wish *wish, const struct sl_profile_list *all, struct sl_profile_list *chosen, bool *ret_plain,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_freshness_free) struct sl_freshness *freshness = NULL;
        struct choice choice = {.wish = wish};
        int r = sl_freshness_new(all, &freshness, error);

        if (r < 0)
                return r;
        choice.freshness = freshness;
        sl_worker_profile_init(&choice.here);
        sl_freshness_stamp(freshness, &choice.here);
        r = subjects_find(wish, &choice.subjects, error);
        r = r < 0 ? r : choose_each(&choice, all, chosen, error);
        *ret_plain = is_plain(&choice.subjects);
        subjects_deinit(&choice.subjects);
        return r;
}
