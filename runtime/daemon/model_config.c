/* SPDX-License-Identifier: Apache-2.0 */
#include "model_config.h"
#include "base/error.h"
#include "base/value.h"
#include "gpu_tuning.h"
#include "port.h"
#include "schema.h"
#include "setting.h"
#include "shapes.h"
#include "spec.h"
#include "team.h"
#include "workers.h"
#include "yaml_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTING(member, kind, ...) SL_SETTING(struct sl_model_texts, struct sl_model_config, member, #member, kind, __VA_ARGS__)

static const char *const loads[] = {"at_start", "on_request", "standby"};
static const char *const fuses[] = {[SL_SHARING_NEVER] = "never", [SL_SHARING_AUTO] = "auto"};
static const char *const all_cores[] = {"auto"};

static const char *const answers[] = {"no", "yes"};
static const char *const policies[] = {
#define X(name, waits) [SL_POLICY_##name] = #name,
        SL_POLICIES(X)
#undef X
};

/* clang-format off */
#define PART(key, member, kind, ...)                                                                                               \
        {#key, offsetof(struct sl_model_texts, key), offsetof(struct sl_model_config, member),                                     \
                sizeof(((struct sl_model_config *)NULL)->member), kind, __VA_ARGS__}
/* clang-format on */

#define WORDS(...)                                                                                                                 \
        .names = (const char *const[]){__VA_ARGS__}, .n_names = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

#define WORKER_NUMBER(key, preset, least, most) PART(key, worker.key, SL_SETTING_NUMBER, .min = (least), .max = (most)),
#define WORKER_CHOICE(key, preset, ...)         PART(key, worker.key, SL_SETTING_CHOICE, WORDS(__VA_ARGS__)),

static const struct sl_setting settings[] = {
        SETTING(batch_bytes_max, SL_SETTING_BYTES, .min = 1, .max = 1ull << 44),
        SETTING(instances, SL_SETTING_NUMBER, .min = 1, .max = SL_WORKERS_MAX),
        PART(threads, worker.threads, SL_SETTING_NUMBER, .min = 1, .max = SL_TEAM_MEMBERS_MAX, .names = all_cores, .n_names = 1),
        SETTING(segment_samples, SL_SETTING_NUMBER, .min = 1, .max = 65536),
        SETTING(slice_ms, SL_SETTING_NUMBER, .min = 1, .max = 60000),
        SETTING(samples_max, SL_SETTING_NUMBER, .min = 1, .max = SL_SERVED_SAMPLES_MAX),
        SETTING(queue_requests, SL_SETTING_NUMBER, .min = 1, .max = 1u << 20),
        SETTING(shapes_max, SL_SETTING_NUMBER, .min = 1, .max = SL_SHAPES_MAX),
        SETTING(load, SL_SETTING_CHOICE, .names = loads, .n_names = 3),
        SETTING(idle_unload_s, SL_SETTING_NUMBER, .min = 0, .max = 31536000),
        SETTING(idle_standby_s, SL_SETTING_NUMBER, .min = 0, .max = 31536000),
        SL_WORKER_OPTIONS(WORKER_NUMBER, WORKER_CHOICE)
                PART(batching, batching.policy, SL_SETTING_CHOICE, .names = policies, .n_names = SL_POLICY_COUNT),
        PART(batching_delay_us, batching.delay_us, SL_SETTING_NUMBER, .min = 0, .max = 60000000),
        PART(batching_latency_ms, batching.latency_ms, SL_SETTING_NUMBER, .min = 1, .max = 60000),
        PART(batching_in_order, batching.in_order, SL_SETTING_CHOICE, .names = answers, .n_names = 2),
};

static const cyaml_schema_field_t version_fields[] = {
        SL_TEXT_FIELD(struct sl_version_texts, latest),
        SL_TEXT_FIELD(struct sl_version_texts, all),
        SL_LIST_FIELD(struct sl_version_texts, specific),
        CYAML_FIELD_END,
};

#define FIELD_NUMBER    SL_TEXT_FIELD
#define FIELD_BYTES     SL_TEXT_FIELD
#define FIELD_REAL      SL_TEXT_FIELD
#define FIELD_FLAG      SL_TEXT_FIELD
#define FIELD_BACKEND   SL_TEXT_FIELD
#define FIELD_TUNE      SL_TEXT_FIELD
#define FIELD_OPTIONALS SL_TEXT_FIELD
#define FIELD_ANY_SIZE  SL_TEXT_FIELD
#define FIELD_PRECISION SL_TEXT_FIELD
#define FIELD_WEIGHTS   SL_TEXT_FIELD
#define FIELD_PASSES    SL_LIST_FIELD
#define FIELD_SHAPES    SL_LIST_FIELD
#define FIELD_CORE      SL_TEXT_FIELD
#define FIELD_GPU       SL_TEXT_FIELD

#define LOWERING_FIELD(name, kind, text, least, most) FIELD_##kind(struct sl_model_texts, name),

#define WORKER_FIELD(name, ...) SL_TEXT_FIELD(struct sl_model_texts, name),

#define MODEL_FIELDS                                                                                                               \
        SL_LOWER_OPTIONS(LOWERING_FIELD)                                                                                           \
        SL_TEXT_FIELD(struct sl_model_texts, batch_bytes_max), SL_TEXT_FIELD(struct sl_model_texts, instances),                    \
                SL_TEXT_FIELD(struct sl_model_texts, segment_samples), SL_TEXT_FIELD(struct sl_model_texts, slice_ms),             \
                SL_TEXT_FIELD(struct sl_model_texts, samples_max), SL_TEXT_FIELD(struct sl_model_texts, queue_requests),           \
                SL_TEXT_FIELD(struct sl_model_texts, shapes_max), SL_TEXT_FIELD(struct sl_model_texts, load),                      \
                SL_TEXT_FIELD(struct sl_model_texts, idle_unload_s), SL_TEXT_FIELD(struct sl_model_texts, idle_standby_s),         \
                SL_WORDS_FIELD(struct sl_model_texts, device),                                                                     \
                SL_WORKER_OPTIONS(WORKER_FIELD, WORKER_FIELD) SL_TEXT_FIELD(struct sl_model_texts, threads),                       \
                SL_WORDS_FIELD(struct sl_model_texts, fuse), SL_LIST_FIELD(struct sl_model_texts, batch_sizes),                    \
                SL_LIST_FIELD(struct sl_model_texts, prepared_shapes), SL_TEXT_FIELD(struct sl_model_texts, batching),             \
                SL_TEXT_FIELD(struct sl_model_texts, batching_delay_us),                                                           \
                SL_TEXT_FIELD(struct sl_model_texts, batching_latency_ms),                                                         \
                SL_TEXT_FIELD(struct sl_model_texts, batching_in_order), SL_LIST_FIELD(struct sl_model_texts, batching_sizes),     \
                SL_LIST_FIELD(struct sl_model_texts, batching_rows),                                                               \
                SL_MAPPING_FIELD(struct sl_model_texts, version_policy, version_fields)

const cyaml_schema_field_t sl_model_default_fields[] = {MODEL_FIELDS, CYAML_FIELD_END};

const cyaml_schema_field_t sl_model_fields[] = {
        MODEL_FIELDS,
        SL_TEXT_FIELD(struct sl_model_texts, name),
        SL_MAPPING_FIELD(struct sl_model_texts, ensemble, sl_ensemble_fields),
        SL_MAPPING_FIELD(struct sl_model_texts, task, sl_task_fields),
        CYAML_FIELD_END,
};

static const cyaml_schema_value_t model_schema = {CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct sl_model_texts, sl_model_fields)};

const struct sl_setting *sl_model_config_settings(size_t *ret_n)
{
        *ret_n = sizeof(settings) / sizeof(*settings);
        return settings;
}

/* What takes time to find out about teams is of no use to one thread. What may be merged is packed for it. */
struct sl_lower_options sl_model_config_lowering(const struct sl_model_config *config)
{
        struct sl_lower_options lowering = config->lowering;
        char wish[SL_WISH_BYTES];

        sl_lower_options_use_threads(&lowering, config->worker.threads);
        lowering.laned |= config->fuse != SL_SHARING_NEVER;
        if (config->on_gpu) /* where the build has no such backend, the GPU's process says what it lacks */
                (void)sl_lower_options_set(&lowering, SL_LOWER_OPTION_backend, "cuda", wish);
        return lowering;
}

#define PRESET(key, preset, ...) .key = (preset),

void sl_model_config_init(struct sl_model_config *config)
{
        *config = (struct sl_model_config){
                .batch_bytes_max = 64ull << 20,
                .instances = 1,
                .worker = {.threads = 1, SL_WORKER_OPTIONS(PRESET, PRESET)},
                .segment_samples = 128,
                .slice_ms = 10,
                .samples_max = 1u << 20,
                .queue_requests = 1024,
                .shapes_max = 16,
                .batching = {.policy = SL_POLICY_work_conserving, .latency_ms = 20},
                .version_policy = {.kind = SL_VERSIONS_LATEST, .latest = 1},
                .rule = SL_RULE_NONE, /* of a model by itself */
        };
        sl_lower_options_init(&config->lowering);
}

/* What the functions below share: the file, the place in it, and where an error goes. */
struct reading {
        const struct sl_yaml_file *file;
        const char *prefix;
        struct sl_error *error;
};

/* Names the key below the prefix: bad(reading, "ensemble.rule", "...", ...). */
#define bad(reading, key, ...)                                                                                                     \
        __extension__({                                                                                                            \
                char sl_path[128];                                                                                                 \
                snprintf(sl_path, sizeof(sl_path), "%s%s%s", (reading)->prefix, *(reading)->prefix ? "." : "", (key));             \
                sl_yaml_file_error((reading)->file, (reading)->error, sl_path, __VA_ARGS__);                                       \
        })

static int apply_option(
        const struct reading *reading, enum sl_lower_option option, const char *text, struct sl_model_config *config)
{
        char wish[SL_WISH_BYTES];

        if (!text || sl_lower_options_set(&config->lowering, option, text, wish) == 0)
                return 0;
        return bad(reading, sl_lower_option_name(option), "\"%s\" is %s", text, wish);
}

/* A list becomes one text, names with commas between them; what does not fit cannot be names of passes. */
static int apply_list(const struct reading *reading, enum sl_lower_option option, char *const *entries, uint32_t n,
        struct sl_model_config *config)
{
        char text[SL_LOWER_OPTION_TEXT_BYTES] = "";
        size_t used = 0;

        for (uint32_t i = 0; i < n; i++) {
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? "," : "", entries[i]);
                if (used >= sizeof(text))
                        return bad(reading, sl_lower_option_name(option), "a list of %u names is too long", n);
        }
        return entries ? apply_option(reading, option, text, config) : 0;
}

#define APPLY_TEXT(name)   apply_option(reading, SL_LOWER_OPTION_##name, texts->name, config)
#define APPLY_NUMBER       APPLY_TEXT
#define APPLY_BYTES        APPLY_TEXT
#define APPLY_REAL         APPLY_TEXT
#define APPLY_FLAG         APPLY_TEXT
#define APPLY_BACKEND      APPLY_TEXT
#define APPLY_TUNE         APPLY_TEXT
#define APPLY_OPTIONALS    APPLY_TEXT
#define APPLY_ANY_SIZE     APPLY_TEXT
#define APPLY_PRECISION    APPLY_TEXT
#define APPLY_WEIGHTS      APPLY_TEXT
#define APPLY_PASSES(name) apply_list(reading, SL_LOWER_OPTION_##name, texts->name, texts->name##_count, config)
#define APPLY_SHAPES       APPLY_PASSES
#define APPLY_CORE         APPLY_TEXT
#define APPLY_GPU          APPLY_TEXT

static int apply_lowering(const struct reading *reading, const struct sl_model_texts *texts, struct sl_model_config *config)
{
        int result = 0;

#define X(name, kind, text, least, most) result = result < 0 ? result : APPLY_##kind(name);
        SL_LOWER_OPTIONS(X)
#undef X
        if (texts->shapes && !*reading->prefix && !texts->shapes_known) /* they are this model's */
                config->lowering.shapes_known = true;
        return result;
}

static int compare_descending(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x < y) - (x > y);
}

/* The ladder of plans has powers of two, up to batch_max: nothing else can be a worker's largest batch. NULL: it is one. */
static const char *batch_size_wrong(uint32_t size, uint32_t batch_max)
{
        if (size > batch_max)
                return "above";
        return size & (size - 1) && size != batch_max ? "neither a power of two nor" : NULL;
}

static int check_batch_size(const struct reading *reading, uint32_t size, uint32_t batch_max)
{
        const char *wrong = batch_size_wrong(size, batch_max);

        return wrong ? bad(reading, "batch_sizes", "%u is %s batch_max, %u", size, wrong, batch_max) : 0;
}

/* Sources: multi-granularity workers, E2bird, section 6. */
static int apply_batch_sizes(const struct reading *reading, const struct sl_model_texts *texts, struct sl_model_config *config)
{
        char wish[SL_WISH_BYTES];
        int result = 0;

        if (!texts->batch_sizes) { /* those of the defaults fit what the model says */
                config->n_batch_sizes = texts->instances ? 0 : config->n_batch_sizes;
                for (uint32_t i = 0; i < config->n_batch_sizes && result == 0 && !config->is_ensemble; i++)
                        result = check_batch_size(reading, config->batch_sizes[i], config->lowering.batch_max);
                return result;
        }
        if (!texts->batch_sizes_count) { /* as if the defaults had none */
                config->instances = config->n_batch_sizes && !texts->instances ? 1 : config->instances;
                config->n_batch_sizes = 0;
                return 0;
        }
        if (texts->instances)
                return bad(reading, "batch_sizes", "says how many workers there are, and so does instances");
        if (texts->batch_sizes_count > SL_WORKERS_MAX)
                return bad(reading, "batch_sizes", "%u workers, a model has 1 to %u", texts->batch_sizes_count, SL_WORKERS_MAX);
        for (uint32_t i = 0; i < texts->batch_sizes_count && result == 0; i++) {
                uint64_t size;

                if (sl_value_number(texts->batch_sizes[i], 1, UINT32_MAX, &size, wish) < 0)
                        return bad(reading, "batch_sizes", "\"%s\" is %s", texts->batch_sizes[i], wish);
                config->batch_sizes[i] = (uint32_t)size;
                result = check_batch_size(reading, (uint32_t)size, config->lowering.batch_max);
        }
        config->instances = config->n_batch_sizes = texts->batch_sizes_count;
        qsort(config->batch_sizes, config->n_batch_sizes, sizeof(config->batch_sizes[0]), compare_descending);
        return result;
}

static int apply_prepared(const struct reading *reading, const struct sl_model_texts *texts, struct sl_model_config *config)
{
        struct sl_error cause;

        if (texts->prepared_shapes_count > SL_PREPARED_MAX || texts->prepared_shapes_count > config->shapes_max)
                return bad(reading, "prepared_shapes", "%u combinations, the limit is %u, and shapes_max is %u",
                        texts->prepared_shapes_count, SL_PREPARED_MAX, config->shapes_max);
        for (uint32_t i = 0; i < texts->prepared_shapes_count; i++)
                if (sl_dim_sizes_parse(texts->prepared_shapes[i], &config->prepared[i], &cause) < 0)
                        return bad(reading, "prepared_shapes", "%s", cause.text);
        if (texts->prepared_shapes) {
                config->n_prepared = texts->prepared_shapes_count;
                config->prepared_known = !*reading->prefix;
        }
        if (config->n_prepared > config->shapes_max)
                return bad(reading, "shapes_max", "%u, and the defaults prepare %u combinations", config->shapes_max,
                        config->n_prepared);
        return 0;
}

static int apply_sizes(const struct reading *reading, const struct sl_model_texts *texts, struct sl_batching *batching)
{
        char wish[SL_WISH_BYTES];

        if (texts->batching_sizes_count > SL_BATCHING_SIZES_MAX)
                return bad(
                        reading, "batching_sizes", "%u sizes, the limit is %u", texts->batching_sizes_count, SL_BATCHING_SIZES_MAX);
        for (uint32_t i = 0; i < texts->batching_sizes_count; i++) {
                uint64_t size;

                if (sl_value_number(texts->batching_sizes[i], 1, 65536, &size, wish) < 0)
                        return bad(reading, "batching_sizes", "\"%s\" is %s", texts->batching_sizes[i], wish);
                batching->sizes[i] = (uint32_t)size;
        }
        if (texts->batching_sizes)
                batching->n_sizes = texts->batching_sizes_count;
        return 0;
}

/* "0,0,2,1": workers of 1, 2, 4, 8; those of what is left out are none. */
static int read_row(const struct reading *reading, const char *text, struct sl_ebird_configuration *ret_row)
{
        const char *at = text;

        for (uint32_t i = 0; i < SL_EBIRD_SIZES; i++, at++) {
                char *end;
                unsigned long workers = strtoul(at, &end, 10);

                if (*at < '0' || *at > '9' || workers > 32)
                        break;
                ret_row->workers[i] = (uint32_t)workers;
                at = end;
                if (!*at)
                        return 0;
                if (*at != ',')
                        break;
        }
        return bad(reading, "batching_rows", "\"%s\" is not up to %u numbers of at most 32 with commas between them", text,
                SL_EBIRD_SIZES);
}

static int apply_rows(const struct reading *reading, const struct sl_model_texts *texts, struct sl_batching *batching)
{
        struct sl_ebird_engine engine = {0};
        int result = 0;

        if (!texts->batching_rows)
                return 0;
        if (texts->batching_rows_count && texts->batching_rows_count != SL_EBIRD_ROWS)
                return bad(reading, "batching_rows", "%u rows, e_ebird has %u", texts->batching_rows_count, SL_EBIRD_ROWS);
        for (uint32_t i = 0; i < texts->batching_rows_count && result == 0; i++)
                result = read_row(reading, texts->batching_rows[i], &engine.rows[i]);
        if (result == 0)
                batching->engine = engine;
        return result;
}

static uint32_t count_workers(const struct sl_model_config *config, uint32_t size)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < config->n_batch_sizes; i++)
                n += config->batch_sizes[i] == size;
        return n;
}

/* What runs batches beside each other has workers for them. Of defaults it is not known which ones a model has. */
static int check_workers(const struct reading *reading, const struct sl_model_config *config)
{
        struct sl_ebird_configuration wanted = sl_ebird_workers(&config->batching.engine);
        const char *policy = policies[config->batching.policy];

        if (*reading->prefix || (config->batching.policy != SL_POLICY_n_ebird && config->batching.policy != SL_POLICY_e_ebird))
                return 0;
        if (!config->n_batch_sizes)
                return bad(
                        reading, "batching", "%s wants workers of several sizes, such as batch_sizes: [1, 1, 2, 4, 8, 16]", policy);
        for (uint32_t i = 0; i < SL_EBIRD_SIZES && config->batching.policy == SL_POLICY_e_ebird; i++)
                if (count_workers(config, 1u << i) < wanted.workers[i])
                        return bad(reading, "batching", "%s: batching_rows want %u workers of %u, batch_sizes has %u", policy,
                                wanted.workers[i], 1u << i, count_workers(config, 1u << i));
        return 0;
}

static int apply_batching(const struct reading *reading, const struct sl_model_texts *texts, struct sl_batching *batching)
{
        int result = apply_sizes(reading, texts, batching);
        const char *wrong;

        if (result == 0)
                result = apply_rows(reading, texts, batching);
        if (result == 0 && (wrong = sl_batching_wrong(batching)))
                result = bad(reading, "batching", "%s: %s", policies[batching->policy], wrong);
        return result;
}

/* A batch that is preferred and never comes. */
static int check_sizes(const struct reading *reading, const struct sl_model_texts *texts, const struct sl_model_config *config)
{
        const struct sl_batching *batching = &config->batching;

        for (uint32_t i = 0; i < batching->n_sizes && !texts->ensemble; i++)
                if (batching->sizes[i] > config->lowering.batch_max)
                        return bad(reading, "batching_sizes", "%u is above batch_max, %u", batching->sizes[i],
                                config->lowering.batch_max);
        return 0;
}

static int apply_specific(const struct reading *reading, const struct sl_version_texts *texts, struct sl_version_policy *policy)
{
        char wish[SL_WISH_BYTES];

        if (texts->specific_count > SL_SPECIFIC_MAX)
                return bad(
                        reading, "version_policy.specific", "%u versions, the limit is %u", texts->specific_count, SL_SPECIFIC_MAX);
        for (uint32_t i = 0; i < texts->specific_count; i++) {
                uint64_t version;

                if (sl_value_number(texts->specific[i], 1, INT64_MAX, &version, wish) < 0)
                        return bad(reading, "version_policy.specific", "\"%s\" is %s", texts->specific[i], wish);
                policy->specific[policy->n_specific++] = (int64_t)version;
        }
        return 0;
}

static int apply_versions(const struct reading *reading, const struct sl_version_texts *texts, struct sl_model_config *config)
{
        struct sl_version_policy policy = {.kind = SL_VERSIONS_LATEST};
        char wish[SL_WISH_BYTES];
        uint64_t latest = 0;
        int result = 0;

        if (!texts)
                return 0;
        if (!!texts->latest + !!texts->all + !!texts->specific_count != 1)
                return bad(reading, "version_policy", "wants exactly one of latest, all, specific");
        if (texts->latest) {
                if (sl_value_number(texts->latest, 1, SL_LATEST_MAX, &latest, wish) < 0)
                        return bad(reading, "version_policy.latest", "\"%s\" is %s", texts->latest, wish);
                policy.latest = (uint32_t)latest;
        } else if (texts->all) {
                if (strcmp(texts->all, "true") != 0)
                        return bad(reading, "version_policy.all", "\"%s\" is not true", texts->all);
                policy.kind = SL_VERSIONS_ALL;
        } else {
                policy.kind = SL_VERSIONS_SPECIFIC;
                result = apply_specific(reading, texts, &policy);
        }
        if (result == 0)
                config->version_policy = policy;
        return result;
}

/* In the place of those that the defaults had. */
static int take_names(const struct reading *reading, const char *key, char *const *names, uint32_t n, struct sl_name_list **list)
{
        sl_name_list_release(*list);
        *list = NULL;
        if (sl_name_list_new((const char *const *)names, n, list) == 0)
                return 0;
        return sl_error_set(reading->error, ENOMEM, "%s: no memory for %u names", key, n);
}

static int apply_name(const struct reading *reading, char *name, struct sl_model_config *config)
{
        char wish[SL_WISH_BYTES];

        if (!name)
                return 0;
        if (sl_value_model_name(name, wish) < 0)
                return bad(reading, "name", "\"%s\" is %s", name, wish);
        return take_names(reading, "name", &name, 1, &config->name);
}

/* What several GPUs have is a worker on each for every one that there would be on one. */
static int check_gpus(const struct reading *reading, const struct sl_model_config *config)
{
        if (!config->on_gpu || config->instances * config->n_gpus <= SL_WORKERS_MAX)
                return 0;
        return bad(reading, "device", "%u workers on each of %u GPUs, a model has at most %u in all", config->instances,
                config->n_gpus, SL_WORKERS_MAX);
}

static int apply_device(const struct reading *reading, const struct sl_model_texts *texts, struct sl_model_config *config)
{
        struct sl_error cause;

        if (!texts->device)
                return check_gpus(reading, config);
        config->on_gpu = texts->device_count > 1 || (texts->device_count && strcmp(texts->device[0], "cpu") != 0);
        if (!config->on_gpu)
                return 0;
        for (uint32_t i = 0; i < texts->device_count; i++) {
                if (strcmp(texts->device[i], "cpu") == 0)
                        return bad(reading, "device", "\"cpu\" stands by itself, not beside GPUs");
                if (!sl_gpu_let_is_meant(texts->device[i]))
                        return bad(reading, "device", "\"%s\" is not cpu, gpu:NUMBER, gpu:NUMBER/PERCENT%%, or gpu:* for all",
                                texts->device[i]);
        }
        if (sl_gpu_lets_parse(texts->device, texts->device_count, config->gpus, &cause) < 0)
                return bad(reading, "device", "%s", cause.text);
        config->n_gpus = texts->device_count;
        return check_gpus(reading, config);
}

/* never, auto, or the names of others. */
static int apply_fuse(const struct reading *reading, const struct sl_model_texts *texts, struct sl_model_config *config)
{
        char wish[SL_WISH_BYTES];
        uint64_t choice;

        if (!texts->fuse)
                return 0;
        config->fuse_names = sl_name_list_release(config->fuse_names);
        if (!texts->fuse_count) {
                config->fuse = SL_SHARING_NEVER;
                return 0;
        }
        if (texts->fuse_count == 1 && sl_value_choice(texts->fuse[0], fuses, 2, &choice, wish) == 0) {
                config->fuse = (uint32_t)choice;
                return 0;
        }
        if (texts->fuse_count > SL_FUSE_NAMES_MAX)
                return bad(reading, "fuse", "%u names, 1 to %u models share workers; or never, auto", texts->fuse_count,
                        SL_FUSE_NAMES_MAX);
        for (uint32_t i = 0; i < texts->fuse_count; i++) {
                if (sl_value_model_version(texts->fuse[i], wish) < 0)
                        return bad(reading, "fuse", "\"%s\" is %s", texts->fuse[i], wish);
                if (sl_value_choice(texts->fuse[i], fuses, 2, &choice, wish) == 0)
                        return bad(reading, "fuse", "\"%s\" stands by itself, not among names", texts->fuse[i]);
        }
        config->fuse = SL_SHARING_AUTO;
        return take_names(reading, "fuse", texts->fuse, texts->fuse_count, &config->fuse_names);
}

/* Nothing else of a task's configuration would be heeded. */
static int apply_task(const struct reading *reading, const struct sl_model_texts *texts, struct sl_model_config *config)
{
        if (!texts->task)
                return 0;
        if (texts->ensemble)
                return bad(reading, "task", "a task stands by itself, not beside ensemble");
        return sl_task_config_new(reading->file, texts->task, &config->task, reading->error);
}

/* Of defaults it is not known which models have processes. */
static const char *find_unused(
        const struct reading *reading, const struct sl_model_texts *texts, const struct sl_model_config *config)
{
        if (*reading->prefix || config->is_ensemble || config->on_gpu || config->worker.isolation == SL_ISOLATION_PROCESS)
                return NULL;
        return texts->on_crash ? "on_crash" : texts->hang_ms ? "hang_ms" : NULL;
}

int sl_model_config_apply(const struct sl_yaml_file *file, const char *prefix, const struct sl_model_texts *texts,
        struct sl_model_config *config, struct sl_error *error)
{
        struct reading reading = {.file = file, .prefix = prefix, .error = error};
        int result = sl_settings_apply(file, prefix, settings, sizeof(settings) / sizeof(*settings), texts, config, error);

        if (result == 0)
                result = apply_lowering(&reading, texts, config);
        config->batch_given = config->batch_given || texts->batch_max;
        config->workers_given = config->workers_given || texts->instances || texts->batch_sizes;
        config->load_given = config->load_given || texts->load;
        if (result == 0)
                result = apply_batch_sizes(&reading, texts, config);
        if (result == 0)
                result = apply_prepared(&reading, texts, config);
        if (result == 0)
                result = apply_batching(&reading, texts, &config->batching);
        if (result == 0)
                result = check_sizes(&reading, texts, config);
        if (result == 0)
                result = check_workers(&reading, config);
        if (result == 0)
                result = apply_versions(&reading, texts->version_policy, config);
        if (result == 0)
                result = apply_fuse(&reading, texts, config);
        if (result == 0)
                result = apply_device(&reading, texts, config);
        if (result == 0)
                result = apply_name(&reading, texts->name, config);
        if (result == 0)
                result = texts->ensemble ? sl_ensemble_config_apply(file, texts->ensemble, config, error) : 0;
        if (result == 0)
                result = apply_task(&reading, texts, config);
        config->unused = find_unused(&reading, texts, config);
        if (result == 0 && !config->is_ensemble && config->segment_samples < config->lowering.batch_max)
                result = bad(&reading, texts->segment_samples ? "segment_samples" : "batch_max",
                        "segment_samples is %u, which is below batch_max, %u", config->segment_samples, config->lowering.batch_max);
        return result;
}

void sl_model_config_hold(struct sl_model_config *config)
{
        sl_name_list_hold(config->name);
        sl_name_list_hold(config->fuse_names);
        sl_name_list_hold(config->members);
        sl_task_config_hold(config->task);
        sl_combining_hold(config->combining);
}

void sl_model_config_deinit(struct sl_model_config *config)
{
        config->name = sl_name_list_release(config->name);
        config->fuse_names = sl_name_list_release(config->fuse_names);
        config->members = sl_name_list_release(config->members);
        config->task = sl_task_config_release(config->task);
        config->combining = sl_combining_release(config->combining);
}

int sl_model_config_read(
        const char *path, const struct sl_model_config *defaults, struct sl_model_config *ret_config, struct sl_error *error)
{
        struct sl_model_config config = *defaults;
        struct sl_yaml_file *file;
        int result = sl_yaml_file_open(path, &model_schema, &file, error);

        if (result < 0)
                return result;
        sl_model_config_hold(&config);
        if (sl_yaml_file_data(file))
                result = sl_model_config_apply(file, "", sl_yaml_file_data(file), &config, error);
        sl_yaml_file_free(file);
        if (result == 0)
                *ret_config = config;
        else
                sl_model_config_deinit(&config);
        return result;
}

int sl_model_config_check(const struct sl_model_config *config, struct sl_error *error)
{
        uint32_t batch_max = config->lowering.batch_max;

        if (config->segment_samples < batch_max)
                return sl_error_set(
                        error, EINVAL, "batch_max is %u, which is above segment_samples, %u", batch_max, config->segment_samples);
        for (uint32_t i = 0; i < config->n_batch_sizes; i++) {
                const char *wrong = batch_size_wrong(config->batch_sizes[i], batch_max);

                if (wrong)
                        return sl_error_set(error, EINVAL, "batch_sizes of model_defaults: %u is %s batch_max, %u",
                                config->batch_sizes[i], wrong, batch_max);
        }
        return 0;
}
