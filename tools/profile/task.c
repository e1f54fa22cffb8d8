/* SPDX-License-Identifier: Apache-2.0 */
#include "task.h"

#include "base/error.h"
#include "freshness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Worker @index of a device: batch by batch, and in each the models in their order. */
static void seat_worker(const struct wish *wish, const struct subjects *subjects, uint32_t index, struct task *task)
{
        task->subjects[task->n] = &subjects->items[index % subjects->n];
        task->batches[task->n++] = wish->batches[index / subjects->n];
}

static int add_task(struct tasks *tasks, const struct task *task, struct sl_error *error)
{
        if (tasks->n == TASKS_MAX)
                return sl_error_set(error, E2BIG, "more than %u combinations of workers", TASKS_MAX);
        if (tasks->n == tasks->room) {
                uint32_t room = tasks->room ? 2 * tasks->room : 64;
                struct task *items = reallocarray(tasks->items, room, sizeof(*items));

                if (!items)
                        return sl_error_set(error, ENOMEM, "no memory for %u combinations of workers", room);
                tasks->items = items;
                tasks->room = room;
        }
        tasks->items[tasks->n++] = *task;
        return 0;
}

/* All combinations of @task's workers with @missing more, of indices from @first on, so that each is there once. */
static int add_combinations(const struct wish *wish, const struct subjects *subjects, const struct task *task, uint32_t first,
        uint32_t missing, struct tasks *tasks, struct sl_error *error)
{
        int r = 0;

        if (!missing)
                return add_task(tasks, task, error);
        for (uint32_t i = first; i < subjects->n * wish->n_batches && r == 0; i++) {
                struct task more = *task;

                seat_worker(wish, subjects, i, &more);
                if (wish->mixed || more.batches[0] == more.batches[more.n - 1])
                        r = add_combinations(wish, subjects, &more, i, missing - 1, tasks, error);
        }
        return r;
}

static int plan_device(const struct wish *wish, const struct subjects *subjects, const struct sl_device_let *device, uint32_t n,
        struct tasks *tasks, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < wish->threads.n && r == 0; i++)
                r = add_combinations(
                        wish, subjects, &(struct task){.device = device, .threads = wish->threads.items[i]}, 0, n, tasks, error);
        return r;
}

int tasks_plan(const struct wish *wish, const struct subjects *subjects, struct tasks *tasks, struct sl_error *error)
{
        int r = 0;

        *tasks = (struct tasks){.n = 0};
        for (uint32_t n = 1; n <= wish->n_beside; n++)
                for (uint32_t device = 0; device < wish->n_devices && r == 0; device++)
                        r = plan_device(wish, subjects, &wish->devices[device], n, tasks, error);
        return r;
}

void tasks_deinit(struct tasks *tasks)
{
        free(tasks->items);
        *tasks = (struct tasks){.n = 0};
}

bool task_repeats(const struct task *task, uint32_t i)
{
        for (uint32_t k = 0; k < i; k++)
                if (task->subjects[k] == task->subjects[i] && task->batches[k] == task->batches[i])
                        return true;
        return false;
}

static int add_beside(struct sl_worker_profile *profile, const struct subject *subject, uint32_t batch, const char *hash)
{
        size_t used = strlen(profile->beside), hashes = strlen(profile->beside_hashes);
        int n = snprintf(profile->beside + used, sizeof(profile->beside) - used, "%s%s %s %u", used ? " + " : "", subject->name,
                subject_precision(subject), batch);
        int m = snprintf(
                profile->beside_hashes + hashes, sizeof(profile->beside_hashes) - hashes, "%s%s", hashes ? " + " : "", hash);

        return used + (size_t)n < sizeof(profile->beside) && hashes + (size_t)m < sizeof(profile->beside_hashes) ? 0 : -EINVAL;
}

static int fill_beside(const struct task *task, uint32_t i, struct sl_freshness *freshness, struct sl_worker_profile *profile,
        struct sl_error *error)
{
        char hash[SL_HASH_BYTES];
        int r = 0;

        for (uint32_t k = 0; k < task->n && r == 0; k++) {
                if (k == i)
                        continue;
                r = sl_freshness_hash(freshness, task->subjects[k]->path, hash, error);
                if (r == 0 && add_beside(profile, task->subjects[k], task->batches[k], hash) < 0)
                        r = sl_error_set(error, EINVAL, "names of %u workers beside each other have more than %zu bytes", task->n,
                                sizeof(profile->beside) - 1);
        }
        return r;
}

int task_fill(const struct task *task, uint32_t i, struct sl_freshness *freshness, struct sl_worker_profile *profile,
        struct sl_error *error)
{
        int r;

        sl_worker_profile_init(profile);
        sl_freshness_stamp(freshness, profile);
        strcpy(profile->device, task->device->name);
        profile->batch = task->batches[i];
        profile->threads = task->threads;
        profile->transfer_ns = 0;
        r = subject_fill(task->subjects[i], profile, error);
        if (r == 0)
                r = sl_freshness_hash(freshness, profile->path, profile->model_hash, error);
        return r < 0 ? r : fill_beside(task, i, freshness, profile, error);
}
