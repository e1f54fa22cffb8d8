/* SPDX-License-Identifier: Apache-2.0 */
#include "repository_scan.h"

#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "lenet:1" names the model "lenet" when that serves version 1 and no other. */
static struct sl_scanned *find_member(const struct sl_repository_scan *scan, const char *name)
{
        struct sl_scanned *served = sl_scan_find(scan, name);
        size_t bytes = strcspn(name, ":");
        char plain[SL_MODEL_NAME_BYTES];

        if (served || !name[bytes])
                return served;
        snprintf(plain, sizeof(plain), "%.*s", (int)bytes, name);
        served = sl_scan_find(scan, plain);
        return served && served->path && served->spec->version == atoll(name + bytes + 1) ? served : NULL;
}

/* A member has to be a model, not an ensemble, that is served. Return: what is wrong with @member; NULL: nothing. */
static const char *member_fault(const struct sl_scanned *member)
{
        if (!member)
                return "not served";
        if (member->cause)
                return "left out";
        return member->config->is_ensemble ? "an ensemble" : member->config->task ? "a task" : NULL;
}

static int check_members(const struct sl_repository_scan *scan, struct sl_scanned *ensemble)
{
        struct sl_error error;

        for (uint32_t i = 0; i < ensemble->config->members->n; i++) {
                const char *name = ensemble->config->members->names[i];
                const struct sl_scanned *member = find_member(scan, name);
                bool is_combiner = i == ensemble->config->n_members;
                const char *fault = member_fault(member);

                if (!fault && is_combiner && (member->config->on_gpu || member->config->worker.isolation == SL_ISOLATION_PROCESS))
                        fault = "computed by processes of its own, which see no predictions of others: isolation: none, device: "
                                "cpu";

                if (!fault) {
                        ensemble->members[i] = member->name;
                        continue;
                }
                sl_error_set(&error, ENOENT, "ensemble \"%s\": %s \"%s\" is %s", ensemble->name,
                        is_combiner ? "combiner" : "member", name, fault);
                sl_scan_report(scan, "%s", error.text);
                return sl_scan_refuse(ensemble, error.text);
        }
        return 0;
}

static int check_ensembles(const struct sl_repository_scan *scan)
{
        int result = 0;

        for (uint32_t i = 0; i < scan->n && result == 0; i++)
                if (scan->served[i]->config->is_ensemble && !scan->served[i]->cause)
                        result = check_members(scan, scan->served[i]);
        return result;
}

/*
 * A task goes on without a variant that is missing or left out; a name that is nowhere may be a mistake. Of a scan for some models
 * alone nobody can say that.
 */
static int check_variants(const struct sl_repository_scan *scan, struct sl_scanned *task)
{
        for (uint32_t i = 0; i < task->config->task->n; i++) {
                const char *name = task->config->task->variants[i];
                const struct sl_scanned *variant = sl_scan_find(scan, name);
                struct sl_error error;

                if (variant && variant->config->task) {
                        sl_error_set(&error, EINVAL, "task \"%s\": variant \"%s\" is a task", task->name, name);
                        sl_scan_report(scan, "%s", error.text);
                        return sl_scan_refuse(task, error.text);
                }
                if (!variant && sl_scan_wants(scan->query, name))
                        sl_scan_report(scan, "task \"%s\": variant \"%s\" is not in the repository", task->name, name);
        }
        return 0;
}

static int check_tasks(const struct sl_repository_scan *scan)
{
        int result = 0;

        for (uint32_t i = 0; i < scan->n && result == 0; i++)
                if (scan->served[i]->config->task && !scan->served[i]->cause)
                        result = check_variants(scan, scan->served[i]);
        return result;
}

/* One that is left out may come back. */
static const char *stranger_fault(const struct sl_scanned *served)
{
        return !served ? "neither never nor auto nor a model that is served" : served->config->is_ensemble ? "an ensemble" : NULL;
}

/* Of a scan for some models alone nobody can say whether there are others. */
static const char *find_stranger(const struct sl_repository_scan *scan, const struct sl_scanned *served)
{
        for (uint32_t i = 0; served->config->fuse_names && i < served->config->fuse_names->n; i++) {
                const char *name = served->config->fuse_names->names[i];

                if (sl_scan_wants(scan->query, name) && stranger_fault(find_member(scan, name)))
                        return name;
        }
        return NULL;
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static uint64_t mix_name(uint64_t seed, const char *name)
{
        for (size_t i = 0; i <= strlen(name); i++)
                seed = (seed ^ (unsigned char)name[i]) * 0x100000001b3u; /* FNV-1a */
        return seed;
}

/* The same number for the same names in any order, the model's own among them, each once; never 0. */
static uint64_t circle_of(const struct sl_scanned *served)
{
        const char *names[SL_FUSE_NAMES_MAX + 1] = {served->name};
        uint32_t n = 1;
        uint64_t circle = 0xcbf29ce484222325u;

        for (uint32_t i = 0; i < served->config->fuse_names->n; i++)
                names[n++] = served->config->fuse_names->names[i];
        qsort(names, n, sizeof(*names), compare_names);
        for (uint32_t i = 0; i < n; i++)
                if (!i || strcmp(names[i], names[i - 1]) != 0)
                        circle = mix_name(circle, names[i]);
        return circle | 1;
}

static int refuse_stranger(const struct sl_repository_scan *scan, struct sl_scanned *served, const char *stranger)
{
        struct sl_error error;

        sl_error_set(&error, ENOENT, "model \"%s\": fuse: \"%s\" is %s", served->name, stranger,
                stranger_fault(find_member(scan, stranger)));
        sl_scan_report(scan, "%s", error.text);
        return sl_scan_refuse(served, error.text);
}

static int check_fuses(const struct sl_repository_scan *scan)
{
        int result = 0;

        for (uint32_t i = 0; i < scan->n && result == 0; i++) {
                struct sl_scanned *served = scan->served[i];
                const char *stranger = served->cause ? NULL : find_stranger(scan, served);

                if (stranger)
                        result = refuse_stranger(scan, served, stranger);
                else if (served->config->fuse_names && !served->cause)
                        served->spec->fuse_circle = circle_of(served);
        }
        return result;
}

int sl_scan_relate(const struct sl_repository_scan *scan)
{
        int result = check_fuses(scan);

        if (result == 0)
                result = check_ensembles(scan);
        return result < 0 ? result : check_tasks(scan);
}
