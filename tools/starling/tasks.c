/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `starling tasks`: tasks, their variants, and how each stands just now. The figures are those by which queries choose.
 */
#include "base/error.h"
#include "base/utf8.h"
#include "command.h"
#include "session.h"
#include "task_lines.h"
#include "task_wish.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option options[] = {TASKS_OPTIONS(OPTION_GETOPT){0}};

#define TASKS_MAX    128
#define VARIANTS_MAX 256

const char *task_variant_state_name(enum starling_variant_state state)
{
        switch (state) {
        case STARLING_VARIANT_ABSENT:
                return "absent";
        case STARLING_VARIANT_SERVES:
                return "serves";
        case STARLING_VARIANT_AVAILABLE:
        case STARLING_VARIANT_UNLOADED:
                return "available";
        case STARLING_VARIANT_LOADING:
                return "loading";
        case STARLING_VARIANT_FAILED:
                return "failed";
        case STARLING_VARIANT_DIFFERS:
                return "differs";
        }
        return "unknown";
}

const char *task_condition_name(uint32_t condition)
{
        static const char *const names[] = {"", "active", "overloaded", "interfered"};

        return condition < sizeof(names) / sizeof(*names) ? names[condition] : "unknown";
}

/* Samples a second, of all workers together, at the batch that is fastest a sample. */
static double rate_of(const struct starling_variant *variant)
{
        uint32_t workers = variant->workers ? variant->workers : 1;

        return variant->batch_ns ? 1e9 * variant->batch_samples * workers / (double)variant->batch_ns : 0;
}

/* @why: NULL: nobody has asked why. */
static json_t *variant_json(const struct starling_variant *variant, const struct task_reason *why)
{
        char reason[sizeof(variant->reason)];
        json_t *object = json_pack("{s:s, s:s, s:s, s:f, s:f, s:I, s:f, s:i, s:I, s:i, s:I, s:s}", "name", variant->name, "state",
                task_variant_state_name(variant->state), "condition", task_condition_name(variant->condition), "accuracy",
                variant->accuracy, "cost", variant->cost, "latency_ns", (json_int_t)variant->latency_ns, "samples_per_second",
                rate_of(variant), "batch", (int)variant->batch_samples, "wait_ns", (json_int_t)variant->wait_ns, "workers",
                (int)variant->workers, "memory_bytes", (json_int_t)variant->memory_bytes, "reason",
                sl_utf8_clean(variant->reason, reason, sizeof(reason)));

        if (why) {
                json_object_set_new(object, "chosen", json_boolean(why->is_chosen));
                json_object_set_new(object, "why", json_string(why->why));
        }
        return object;
}

static void print_variant(const struct starling_variant *variant, const struct task_reason *why)
{
        char reason[sizeof(variant->reason)];

        printf("  %-24s %-9s accuracy %-7g cost %-8.6g", variant->name, task_variant_state_name(variant->state), variant->accuracy,
                variant->cost);
        if (variant->latency_ns)
                printf(" %.1f us a sample, %.0f/s in batches of %" PRIu32 ", waits %.1f us", (double)variant->latency_ns / 1000,
                        rate_of(variant), variant->batch_samples, (double)variant->wait_ns / 1000);
        if (variant->condition)
                printf(", %s", task_condition_name(variant->condition));
        if (variant->memory_bytes)
                printf(", %.1f MiB", (double)variant->memory_bytes / (1 << 20));
        if (variant->reason[0])
                printf("  %s", sl_utf8_clean(variant->reason, reason, sizeof(reason)));
        putchar('\n');
        if (why)
                printf("    %s%s\n", why->is_chosen ? "* " : "  ", why->why);
}

/* Return: how many there are; -errno. */
static int print_task(const struct starling_client *client, const char *task, const struct task_wish *wish,
        struct starling_variant *variants, json_t *array)
{
        static struct task_reason reasons[VARIANTS_MAX];
        int n = starling_task_variants(client, task, variants, VARIANTS_MAX);
        json_t *list = array ? json_array() : NULL;

        if (!array && n >= 0)
                printf("%s\n", task);
        if (wish && n > 0)
                task_wish_explain(wish, variants, n < VARIANTS_MAX ? (uint32_t)n : VARIANTS_MAX, reasons);
        for (int i = 0; i < n && i < VARIANTS_MAX; i++) {
                if (array)
                        json_array_append_new(list, variant_json(&variants[i], wish ? &reasons[i] : NULL));
                else
                        print_variant(&variants[i], wish ? &reasons[i] : NULL);
        }
        if (array && n >= 0)
                json_array_append_new(array, json_pack("{s:s, s:O}", "task", task, "variants", list));
        json_decref(list);
        return n;
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(((const struct starling_task_entry *)a)->name, ((const struct starling_task_entry *)b)->name);
}

static int list(const struct starling_client *client, struct starling_task_entry *entries)
{
        int n = starling_task_list(client, entries, TASKS_MAX);

        if (n > TASKS_MAX)
                n = TASKS_MAX;
        if (n > 0)
                qsort(entries, (size_t)n, sizeof(*entries), compare_names);
        return n;
}

static int complain_of_tasks(const char *command, const char *task, int result)
{
        if (result == -ENOTSUP)
                return complain(STATUS_FAILED, command, "the runtime has no tasks: it is older than this command");
        if (result == -ENOENT)
                return complain(STATUS_FAILED, command, "no task \"%s\"", task);
        return complain(STATUS_FAILED, command, "the page of tasks cannot be read: %s", strerror(-result));
}

/* One task, or all of them. */
static int print_tasks(const char *command, const struct starling_client *client, const char *task, const struct task_wish *wish,
        json_t *array)
{
        struct starling_task_entry *entries = calloc(TASKS_MAX, sizeof(*entries));
        struct starling_variant *variants = calloc(VARIANTS_MAX, sizeof(*variants));
        int n = entries && variants ? list(client, entries) : -ENOMEM, status = STATUS_OK;

        if (n < 0)
                status = complain_of_tasks(command, task, n);
        for (int i = 0; i < n && !task; i++)
                (void)print_task(client, entries[i].name, wish, variants, array); /* one that has gone meanwhile is not listed */
        if (n >= 0 && task) {
                n = print_task(client, task, wish, variants, array);
                status = n < 0 ? complain_of_tasks(command, task, n) : STATUS_OK;
        }
        free(entries);
        free(variants);
        return status;
}

void tasks_print_lines(const struct starling_client *client)
{
        struct starling_task_entry *entries = calloc(TASKS_MAX, sizeof(*entries));
        int n = entries ? list(client, entries) : 0;

        for (int i = 0; i < n; i++)
                printf("%-24s %-8s %-10s %" PRIu32 " of %" PRIu32 " variants serve\n", entries[i].name,
                        entries[i].serving ? "ready" : "failed", "task", entries[i].serving, entries[i].variants);
        free(entries);
}

int command_tasks(int argc, char **argv)
{
        struct session_arguments arguments;
        struct starling_client *client;
        struct task_wish wish;
        struct sl_error error;
        json_t *array = NULL;
        int status = session_parse(argc, argv, options, 0, 1, &arguments);

        if (status == STATUS_OK && arguments.explain && sl_needs_parse(arguments.explain, &wish.needs, &wish.samples, &error) < 0)
                status = complain(STATUS_USAGE, argv[0], "--explain: %s", error.text);
        if (status == STATUS_OK)
                status = session_open(argv[0], &arguments, STARLING_ROLE_READER, &client);
        if (status != STATUS_OK)
                return status;
        if (arguments.json)
                array = json_array();
        status = print_tasks(argv[0], client, arguments.n_arguments ? arguments.arguments[0] : NULL,
                arguments.explain ? &wish : NULL, array);
        if (array && status == STATUS_OK) {
                json_dumpf(array, stdout, JSON_INDENT(2));
                putchar('\n');
        }
        json_decref(array);
        starling_close(client);
        return status;
}
