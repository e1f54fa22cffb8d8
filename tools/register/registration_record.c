/* SPDX-License-Identifier: Apache-2.0 */
#include "registration_record.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "file_hash.h"
#include "whole_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FORMAT 1

static json_t *json_cleaned(json_t *json)
{
        json_decref(json);
        return NULL;
}

SL_DEFINE_CLEANUP(json_t *, json_cleaned)

/* ---- written ---- */

static json_t *points_json(const struct registered *candidate)
{
        json_t *points = json_array();

        for (uint32_t i = 0; i < candidate->n_points; i++)
                json_array_append_new(
                        points, json_pack("{s:i, s:i, s:f, s:f}", "batch", (int)candidate->points[i].batch, "threads",
                                        (int)candidate->points[i].threads, "latency_ns", candidate->points[i].latency_ns,
                                        "samples_per_second", candidate->points[i].samples_per_second));
        return points;
}

static json_t *candidate_json(const struct registration *registration, const struct registered *candidate)
{
        json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name", candidate->name, "network",
                registration->networks[candidate->network].name, "network_hash", registration->networks[candidate->network].hash,
                "kind", registration->kinds[candidate->kind].name, "left_out", candidate->reason, "adapter", candidate->adapter);

        if (candidate->state != REGISTERED_MADE)
                return json;
        json_object_update_new(
                json, json_pack("{s:s, s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:o}", "key", candidate->key, "hash",
                              candidate->hash, "origin", candidate->origin, "samples", (json_int_t)candidate->samples, "right",
                              (json_int_t)candidate->right, "accuracy", candidate->accuracy, "low", candidate->low, "high",
                              candidate->high, "weights_bytes", candidate->weights_bytes, "profile", points_json(candidate)));
        return json;
}

static json_t *registration_json(const struct registration *registration)
{
        json_t *variants = json_array();
        const char *reference = registration->labels_hash[0] ? "" : registration->networks[registration->reference].name;

        for (uint32_t i = 0; i < registration->n; i++)
                json_array_append_new(variants, candidate_json(registration, &registration->candidates[i]));
        return json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:o}", "format", FORMAT, "task", registration->task, "metric",
                registration->labels_hash[0] ? "top_1" : "agreement", "reference", reference, "samples",
                (json_int_t)registration->count, "calibration", (json_int_t)registration->calibration, "data_hash",
                registration->data_hash, "labels_hash", registration->labels_hash, "variants", variants);
}

static bool find_stamp(json_t *root, char ret_stamp[REGISTER_HASH_BYTES])
{
        SL_CLEANUP(sl_cleanup_free) char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);

        if (text)
                text_hash(text, ret_stamp);
        return text;
}

static int write_text(int fd, void *context)
{
        const char *text = context;

        for (size_t n = strlen(text); n;) {
                ssize_t now = write(fd, text, n);

                if (now < 0 && errno == EINTR)
                        continue;
                if (now <= 0)
                        return now < 0 ? -errno : -EIO;
                text += now;
                n -= (size_t)now;
        }
        return 0;
}

int registration_record_write(const char *path, const struct registration *registration, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_json_cleaned) json_t *root = registration_json(registration);
        SL_CLEANUP(sl_cleanup_free) char *text = NULL;
        char stamp[REGISTER_HASH_BYTES];

        if (!root || !find_stamp(root, stamp) || json_object_set_new(root, "stamp", json_string(stamp)) < 0 ||
                !(text = json_dumps(root, JSON_INDENT(2))))
                return sl_error_set(error, ENOMEM, "no memory for \"%s\"", path);
        return keep_whole_file(path, write_text, text, error);
}

/* ---- read ---- */

static void take_text(const json_t *json, const char *key, char *ret_text, size_t bytes)
{
        const char *text = json_string_value(json_object_get(json, key));

        snprintf(ret_text, bytes, "%s", text ? text : "");
}

static void take_points(const json_t *points, struct registered *candidate)
{
        size_t i;
        json_t *point;

        candidate->n_points = 0;
        json_array_foreach(points, i, point)
        {
                if (candidate->n_points < REGISTER_POINTS_MAX)
                        candidate->points[candidate->n_points++] =
                                (struct registered_point){.batch = (uint32_t)json_integer_value(json_object_get(point, "batch")),
                                        .threads = (uint32_t)json_integer_value(json_object_get(point, "threads")),
                                        .latency_ns = json_number_value(json_object_get(point, "latency_ns")),
                                        .samples_per_second = json_number_value(json_object_get(point, "samples_per_second"))};
        }
}

/* Its points are the store's to say whether they are fresh. */
static void take_candidate(const json_t *json, struct registered *candidate)
{
        candidate->state = REGISTERED_MADE;
        take_text(json, "hash", candidate->hash, sizeof(candidate->hash));
        take_text(json, "adapter", candidate->adapter, sizeof(candidate->adapter));
        take_text(json, "origin", candidate->origin, sizeof(candidate->origin));
        candidate->samples = (uint64_t)json_integer_value(json_object_get(json, "samples"));
        candidate->right = (uint64_t)json_integer_value(json_object_get(json, "right"));
        candidate->accuracy = json_number_value(json_object_get(json, "accuracy"));
        candidate->low = json_number_value(json_object_get(json, "low"));
        candidate->high = json_number_value(json_object_get(json, "high"));
        candidate->weights_bytes = json_number_value(json_object_get(json, "weights_bytes"));
        take_points(json_object_get(json, "profile"), candidate);
}

static bool is_stamped(json_t *root)
{
        char stamp[REGISTER_HASH_BYTES], found[REGISTER_HASH_BYTES];

        take_text(root, "stamp", found, sizeof(found));
        json_object_del(root, "stamp");
        return json_integer_value(json_object_get(root, "format")) == FORMAT && find_stamp(root, stamp) &&
               strcmp(stamp, found) == 0;
}

int registration_record_read(const char *path, struct registration *registration, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_json_cleaned) json_t *root = NULL;
        json_error_t complaint;
        json_t *variant;
        size_t i;

        if (access(path, F_OK) < 0 && errno == ENOENT)
                return 0;
        root = json_load_file(path, JSON_REJECT_DUPLICATES, &complaint);
        if (!root)
                return sl_error_set(error, EBADMSG, "\"%s\": %s: remove it, and all is measured anew", path, complaint.text);
        if (!is_stamped(root))
                return sl_error_set(error, EBADMSG, "\"%s\" is not as it was written: remove it, and all is measured anew", path);
        registration->count = (uint64_t)json_integer_value(json_object_get(root, "samples"));
        registration->calibration = (uint64_t)json_integer_value(json_object_get(root, "calibration"));
        json_array_foreach(json_object_get(root, "variants"), i, variant)
        {
                const char *name = json_string_value(json_object_get(variant, "name"));
                const char *key = json_string_value(json_object_get(variant, "key"));

                for (uint32_t k = 0; name && key && k < registration->n; k++)
                        if (strcmp(name, registration->candidates[k].name) == 0 &&
                                strcmp(key, registration->candidates[k].key) == 0)
                                take_candidate(variant, &registration->candidates[k]);
        }
        return 0;
}
