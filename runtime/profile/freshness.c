/* SPDX-License-Identifier: Apache-2.0 */
#include "freshness.h"

#include "backend.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/processor.h"
#include "base/utf8.h"
#include "format.h"
#include "lower_options.h"
#include "model_digest.h"
#include "stop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct hash {
        char path[SL_PROFILE_TEXT_BYTES], text[SL_HASH_BYTES];
        int result;
};

struct sl_freshness {
        const struct sl_profile_list *known;
        struct sl_worker_profile here; /* host, processor, versions */
        struct hash *hashes;
        size_t n_hashes;
};

static void look_here(struct sl_worker_profile *here)
{
        char libraries[SL_BACKEND_KEY_BYTES] = "";

        sl_worker_profile_init(here);
        if (gethostname(here->host, sizeof(here->host) - 1) < 0)
                snprintf(here->host, sizeof(here->host), "unknown");
        sl_processor_name(here->processor);
        snprintf(here->starling, sizeof(here->starling), "%s, plans %u", STARLING_PROFILE_VERSION, SL_PLAN_VERSION);
        if (sl_backend_cpu.key(NULL, libraries) == 0)
                snprintf(here->libraries, sizeof(here->libraries), "%s", libraries);
        snprintf(here->origin, sizeof(here->origin), "measured");
}

int sl_freshness_new(const struct sl_profile_list *known, struct sl_freshness **ret_freshness, struct sl_error *error)
{
        struct sl_freshness *freshness = calloc(1, sizeof(*freshness));

        if (!freshness)
                return sl_error_set(error, ENOMEM, "no memory for hashes of models");
        freshness->known = known;
        look_here(&freshness->here);
        *ret_freshness = freshness;
        return 0;
}

struct sl_freshness *sl_freshness_free(struct sl_freshness *freshness)
{
        if (!freshness)
                return NULL;
        free(freshness->hashes);
        free(freshness);
        return NULL;
}

void sl_freshness_stamp(const struct sl_freshness *freshness, struct sl_worker_profile *profile)
{
        const struct sl_worker_profile *here = &freshness->here;
        time_t now = time(NULL);
        struct tm utc;

        strcpy(profile->host, here->host);
        strcpy(profile->processor, here->processor);
        strcpy(profile->starling, here->starling);
        strcpy(profile->libraries, here->libraries);
        strcpy(profile->origin, here->origin);
        strftime(profile->date, sizeof(profile->date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
}

static void read_hash(struct hash *hash, const char *path)
{
        const struct sl_stop stop = {.verdict = NULL};
        struct sl_lower_options lowering;
        struct sl_model_content content = {.by_status = false};

        snprintf(hash->path, sizeof(hash->path), "%s", path);
        sl_lower_options_init(&lowering);
        hash->result = sl_model_digest(path, lowering.model_bytes_max, &stop, &content);
        snprintf(hash->text, sizeof(hash->text), "%016llx%016llx", (unsigned long long)content.digest.high,
                (unsigned long long)content.digest.low);
}

int sl_freshness_hash(struct sl_freshness *freshness, const char *path, char ret_hash[SL_HASH_BYTES], struct sl_error *error)
{
        struct hash *hashes;
        size_t i = 0;

        while (i < freshness->n_hashes && strcmp(freshness->hashes[i].path, path) != 0)
                i++;
        if (i == freshness->n_hashes) {
                hashes = reallocarray(freshness->hashes, i + 1, sizeof(*hashes));
                if (!hashes)
                        return sl_error_set(error, ENOMEM, "no memory for hashes of models");
                freshness->hashes = hashes;
                hashes[i] = (struct hash){.result = 0};
                read_hash(&hashes[i], path);
                freshness->n_hashes++;
        }
        if (freshness->hashes[i].result < 0)
                return sl_error_set(
                        error, -freshness->hashes[i].result, "\"%s\": %s", path, strerror(-freshness->hashes[i].result));
        memcpy(ret_hash, freshness->hashes[i].text, SL_HASH_BYTES);
        return 0;
}

static bool file_changed(struct sl_freshness *freshness, const char *model, const char *path, const char *before, size_t bytes,
        char ret_why[SL_STALE_TEXT_BYTES])
{
        struct sl_error error = {""};
        char now[SL_HASH_BYTES], name[100];

        sl_utf8_fit(model, name, sizeof(name));
        if (!*path)
                return false;
        if (sl_freshness_hash(freshness, path, now, &error) < 0) {
                snprintf(ret_why, SL_STALE_TEXT_BYTES, "the file of %s cannot be read: %s", name,
                        sl_error_fit(error.text, error.text, 270));
                return true;
        }
        if (strlen(now) == bytes && memcmp(now, before, bytes) == 0)
                return false;
        snprintf(ret_why, SL_STALE_TEXT_BYTES, "the model %s has changed: %.8s was measured, now it is %.8s", name, before, now);
        return true;
}

static bool text_changed(const char *what, const char *before, const char *now, char ret_why[SL_STALE_TEXT_BYTES])
{
        char was[121], is[121];

        if (strcmp(before, now) == 0)
                return false;
        snprintf(ret_why, SL_STALE_TEXT_BYTES, "%s has changed: \"%s\" before, \"%s\" now", what,
                sl_utf8_fit(before, was, sizeof(was)), sl_utf8_fit(now, is, sizeof(is)));
        return true;
}

/* The file of a model that was beside @profile: that of a profile of its own. */
static const char *find_path(const struct sl_freshness *freshness, const struct sl_worker_profile *profile, const char *model)
{
        for (size_t i = 0; i < freshness->known->n; i++) {
                const struct sl_worker_profile *known = &freshness->known->items[i];

                if (strcmp(known->host, profile->host) == 0 && strcmp(known->model, model) == 0)
                        return known->path;
        }
        return "";
}

/* "MODEL PRECISION BATCH + ..." and "HASH + ..." go in step. */
static bool beside_changed(
        struct sl_freshness *freshness, const struct sl_worker_profile *profile, char ret_why[SL_STALE_TEXT_BYTES])
{
        const char *worker = profile->beside, *hash = profile->beside_hashes;

        while (*worker && *hash) {
                char model[sizeof(profile->model)];
                const char *next_worker = strstr(worker, " + "), *next_hash = strstr(hash, " + ");
                size_t bytes = next_hash ? (size_t)(next_hash - hash) : strlen(hash);

                snprintf(model, sizeof(model), "%.*s", (int)strcspn(worker, " "), worker);
                if (file_changed(freshness, model, find_path(freshness, profile, model), hash, bytes, ret_why))
                        return true;
                worker = next_worker ? next_worker + 3 : "";
                hash = next_hash ? next_hash + 3 : "";
        }
        return false;
}

bool sl_freshness_is_stale(
        struct sl_freshness *freshness, const struct sl_worker_profile *profile, char ret_why[SL_STALE_TEXT_BYTES])
{
        const struct sl_worker_profile *here = &freshness->here;

        ret_why[0] = 0;
        if (!sl_profile_is_measured(profile) || strcmp(profile->host, here->host) != 0)
                return false;
        return file_changed(freshness, profile->model, profile->path, profile->model_hash, strlen(profile->model_hash), ret_why) ||
               beside_changed(freshness, profile, ret_why) ||
               text_changed("the processor", profile->processor, here->processor, ret_why) ||
               text_changed("starling", profile->starling, here->starling, ret_why) ||
               text_changed("the library", profile->libraries, here->libraries, ret_why);
}
