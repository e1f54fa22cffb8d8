/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one worker costs: one model in one precision and batch size on one device or let, alone or beside others. One table, from
 * which come the struct, the columns of the store (profile_store.h), and those of CSV and JSON. Plain values; any thread.
 *
 * A let is a set of cores. A worker of t threads has a team (kernels/team.h) of t of them, one of a single thread has one core.
 * With others on the same let, which have as many threads each, worker i has the t cores from core i * t of it on, and from the
 * beginning again where there are more threads than cores. Files and stores that do not say the number of threads mean one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_error;

/*
 * name, kind, its bytes, whether it tells one profile from another, what it is. A kind is TEXT; COUNT, a number that is always
 * known; FIGURE, a number that may be unknown (NaN, in a text nothing).
 */
/* clang-format off */
#define SL_WORKER_PROFILE_FIELDS(X) \
        X(host,               TEXT,   65,   true,  "where it was measured") \
        X(device,             TEXT,   64,   true,  "device or let: cpu:0-1") \
        X(processor,          TEXT,   128,  false, "of that host") \
        X(model,              TEXT,   1152,   true,  "its name in a repository, or that of its file") \
        X(path,               TEXT,   1024, true,  "of its file") \
        X(precision,          TEXT,   16,   true,  "of weights and activations") \
        X(options,            TEXT,   512,  true,  "how it was compiled, beside precision and largest batch") \
        X(batch,              COUNT,  0,    true,  "samples of a batch") \
        X(threads,            COUNT,  0,    true,  "of its team, and of each that is beside it") \
        X(beside,             TEXT,   4096,  true,  "workers that computed at the same time: MODEL PRECISION BATCH + ...") \
        X(model_hash,         TEXT,   33,   false, "of the file's content") \
        X(beside_hashes,      TEXT,   512,  false, "of the files of the workers beside it, in their order") \
        X(starling,           TEXT,   64,   false, "version, and that of plans") \
        X(libraries,          TEXT,   240,  false, "versions") \
        X(date,               TEXT,   32,   false, "UTC") \
        X(origin,             TEXT,   512,  false, "measured, published, derived; or of single figures: FIGURE=ORIGIN NOTE, ...") \
        X(source,             TEXT,   1024, false, "who published it, or the formula") \
        X(runs,               COUNT,  0,    false, "batches that were timed") \
        X(rounds,             COUNT,  0,    false, "parts of the measurement, of whose medians the interval is") \
        X(converged,          COUNT,  0,    false, "1: the interval became as narrow as was asked for; 0: the time was over before") \
        X(latency_p50_ns,     FIGURE, 0,    false, "of a batch") \
        X(latency_low_ns,     FIGURE, 0,    false, "from here") \
        X(latency_high_ns,    FIGURE, 0,    false, "to here lies the median with 95 %") \
        X(latency_p95_ns,     FIGURE, 0,    false, "of a batch") \
        X(latency_p99_ns,     FIGURE, 0,    false, "of a batch") \
        X(samples_per_second, FIGURE, 0,    false, "of this worker") \
        X(cold_load_ns,       FIGURE, 0,    false, "from the model's file: compiled in a child, mapped, kernels made") \
        X(warm_load_ns,       FIGURE, 0,    false, "from the cache of plans") \
        X(weights_bytes,      FIGURE, 0,    false, "resident, once for all workers of the model") \
        X(workspace_bytes,    FIGURE, 0,    false, "of each worker besides") \
        X(transfer_ns,        FIGURE, 0,    false, "of inputs and outputs; 0 on a CPU, which reads them where they are") \
        X(slowdown,           FIGURE, 0,    false, "time of a batch beside the others, over that alone") \
        X(slowdown_low,       FIGURE, 0,    false, "from here") \
        X(slowdown_high,      FIGURE, 0,    false, "to here lies its median with 95 %") \
        X(floor_before_ns,    FIGURE, 0,    false, "a cache line's way from core to core and back before it") \
        X(floor_after_ns,     FIGURE, 0,    false, "and after it")
/* clang-format on */

#define SL_PROFILE_MEMBER_TEXT(name, bytes)   char name[bytes];
#define SL_PROFILE_MEMBER_COUNT(name, bytes)  uint64_t name;
#define SL_PROFILE_MEMBER_FIGURE(name, bytes) double name;

struct sl_worker_profile {
#define X(name, kind, bytes, is_key, text) SL_PROFILE_MEMBER_##kind(name, bytes)
        SL_WORKER_PROFILE_FIELDS(X)
#undef X
};

enum sl_profile_field_kind { SL_PROFILE_TEXT, SL_PROFILE_COUNT, SL_PROFILE_FIGURE };

struct sl_profile_field {
        const char *name; /* NULL behind the last */
        enum sl_profile_field_kind kind;
        size_t offset, bytes;
        bool is_key;
        const char *text;
};

extern const struct sl_profile_field sl_profile_fields[];

#define SL_PROFILE_TEXT_BYTES 4096 /* of any field, terminated */
#define SL_PROFILE_COUNT_MAX  (1ull << 53)

/* NULL: there is none of that name. */
const struct sl_profile_field *sl_profile_field_find(const char *name);

/* No text, no count but one thread, and no figure is known. */
void sl_worker_profile_init(struct sl_worker_profile *profile);

/* "" is an unknown figure. Return: 0; -EINVAL with field, value and what it wanted. */
int sl_profile_field_set(
        struct sl_worker_profile *profile, const struct sl_profile_field *field, const char *value, struct sl_error *error);

/* What sl_profile_field_set() reads as the same value. Returns @text, SL_PROFILE_TEXT_BYTES. */
const char *sl_profile_field_text(const struct sl_worker_profile *profile, const struct sl_profile_field *field, char *text);

/* Of a field of that kind. */
double *sl_profile_figure(const struct sl_worker_profile *profile, const struct sl_profile_field *field);
uint64_t *sl_profile_count(const struct sl_worker_profile *profile, const struct sl_profile_field *field);
char *sl_profile_text(const struct sl_worker_profile *profile, const struct sl_profile_field *field);

/* Where the figure comes from: "measured", "published 1"; "" it is unknown. Returns @text, SL_PROFILE_TEXT_BYTES. */
const char *sl_profile_origin(const struct sl_worker_profile *profile, const struct sl_profile_field *field, char *text);

/* True when no figure of it says that it was not measured. */
bool sl_profile_is_measured(const struct sl_worker_profile *profile);

/* Do they stand for the same worker? @everywhere: hosts and paths are not looked at. */
bool sl_profile_is_same(const struct sl_worker_profile *a, const struct sl_worker_profile *b, bool everywhere);

/* A list that grows; the caller's. */
struct sl_profile_list {
        struct sl_worker_profile *items;
        size_t n, room;
};

/* Return: 0, -ENOMEM. */
int sl_profile_list_add(struct sl_profile_list *list, const struct sl_worker_profile *profile);
void sl_profile_list_deinit(struct sl_profile_list *list);
