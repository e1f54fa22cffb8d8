/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/error.h"
#include "base/value.h"
#include "schema.h"
#include "setting.h"
#include "yaml_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define TIB (1ull << 40)

struct quota_texts {
        char *arena_bytes, *in_flight;
};

struct uid_texts {
        char *arena_bytes, *in_flight, *shapes, *log_lines;
};

struct limit_texts {
        char *clients, *memory_max, *models_max_loaded, *load_wait_s, *staging_bytes, *fuse_bytes, *stats_bytes;
        struct quota_texts client;
        struct uid_texts uid;
};

struct thread_texts {
        char **dispatcher_cores, **worker_cores;
        uint32_t dispatcher_cores_count, worker_cores_count;
        char *numa_node, *spin_us, *inline_us;
};

struct compile_texts {
        char *jobs, *memory_bytes, *seconds;
};

struct cache_texts {
        char *directory, *bytes;
};

struct trace_texts {
        char *sampling;
};

struct stats_texts {
        char *worker_histograms;
};

struct price_texts {
        char *core, *gib;
};

struct scaling_texts {
        char *rule, *headroom_percent, *lambda, *idle_least_ms;
        struct price_texts prices;
};

struct access_texts {
        char **allow, **admins, **readers;
        uint32_t allow_count, admins_count, readers_count;
};

struct texts {
        char *name, *socket_dir, *allocation, *autoscale, *grace_seconds, *wait, *log_level, *log_format;
        char **model_repositories, **data_folders, **models;
        uint32_t model_repositories_count, data_folders_count, models_count;
        struct access_texts access;
        struct sl_model_texts model_defaults;
        struct limit_texts limits;
        struct thread_texts threads;
        struct compile_texts compile;
        struct cache_texts cache;
        struct stats_texts stats;
        struct trace_texts trace;
        struct scaling_texts scaling;
};

static const cyaml_schema_field_t quota_fields[] = {
        SL_TEXT_FIELD(struct quota_texts, arena_bytes),
        SL_TEXT_FIELD(struct quota_texts, in_flight),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t uid_fields[] = {
        SL_TEXT_FIELD(struct uid_texts, arena_bytes),
        SL_TEXT_FIELD(struct uid_texts, in_flight),
        SL_TEXT_FIELD(struct uid_texts, shapes),
        SL_TEXT_FIELD(struct uid_texts, log_lines),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t limit_fields[] = {
        SL_TEXT_FIELD(struct limit_texts, clients),
        SL_TEXT_FIELD(struct limit_texts, memory_max),
        SL_TEXT_FIELD(struct limit_texts, models_max_loaded),
        SL_TEXT_FIELD(struct limit_texts, load_wait_s),
        SL_TEXT_FIELD(struct limit_texts, staging_bytes),
        SL_TEXT_FIELD(struct limit_texts, fuse_bytes),
        SL_TEXT_FIELD(struct limit_texts, stats_bytes),
        CYAML_FIELD_MAPPING("client", CYAML_FLAG_OPTIONAL, struct limit_texts, client, quota_fields),
        CYAML_FIELD_MAPPING("uid", CYAML_FLAG_OPTIONAL, struct limit_texts, uid, uid_fields),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t thread_fields[] = {
        SL_LIST_FIELD(struct thread_texts, dispatcher_cores),
        SL_LIST_FIELD(struct thread_texts, worker_cores),
        SL_TEXT_FIELD(struct thread_texts, numa_node),
        SL_TEXT_FIELD(struct thread_texts, spin_us),
        SL_TEXT_FIELD(struct thread_texts, inline_us),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t compile_fields[] = {
        SL_TEXT_FIELD(struct compile_texts, jobs),
        SL_TEXT_FIELD(struct compile_texts, memory_bytes),
        SL_TEXT_FIELD(struct compile_texts, seconds),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t cache_fields[] = {
        SL_TEXT_FIELD(struct cache_texts, directory),
        SL_TEXT_FIELD(struct cache_texts, bytes),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t stats_fields[] = {
        SL_TEXT_FIELD(struct stats_texts, worker_histograms),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t price_fields[] = {
        SL_TEXT_FIELD(struct price_texts, core),
        SL_TEXT_FIELD(struct price_texts, gib),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t scaling_fields[] = {
        SL_TEXT_FIELD(struct scaling_texts, rule),
        SL_TEXT_FIELD(struct scaling_texts, headroom_percent),
        SL_TEXT_FIELD(struct scaling_texts, lambda),
        SL_TEXT_FIELD(struct scaling_texts, idle_least_ms),
        CYAML_FIELD_MAPPING("prices", CYAML_FLAG_OPTIONAL, struct scaling_texts, prices, price_fields),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t trace_fields[] = {
        SL_TEXT_FIELD(struct trace_texts, sampling),
        CYAML_FIELD_END,
};

static const cyaml_schema_field_t access_fields[] = {
        SL_LIST_FIELD(struct access_texts, allow),
        SL_LIST_FIELD(struct access_texts, admins),
        SL_LIST_FIELD(struct access_texts, readers),
        CYAML_FIELD_END,
};

const cyaml_schema_field_t sl_config_fields[] = {
        SL_TEXT_FIELD(struct texts, name),
        SL_TEXT_FIELD(struct texts, socket_dir),
        SL_TEXT_FIELD(struct texts, allocation),
        SL_TEXT_FIELD(struct texts, autoscale),
        SL_TEXT_FIELD(struct texts, grace_seconds),
        SL_TEXT_FIELD(struct texts, wait),
        SL_TEXT_FIELD(struct texts, log_level),
        SL_TEXT_FIELD(struct texts, log_format),
        SL_LIST_FIELD(struct texts, model_repositories),
        SL_LIST_FIELD(struct texts, data_folders),
        SL_LIST_FIELD(struct texts, models),
        CYAML_FIELD_MAPPING("access", CYAML_FLAG_OPTIONAL, struct texts, access, access_fields),
        CYAML_FIELD_MAPPING("model_defaults", CYAML_FLAG_OPTIONAL, struct texts, model_defaults, sl_model_default_fields),
        CYAML_FIELD_MAPPING("limits", CYAML_FLAG_OPTIONAL, struct texts, limits, limit_fields),
        CYAML_FIELD_MAPPING("threads", CYAML_FLAG_OPTIONAL, struct texts, threads, thread_fields),
        CYAML_FIELD_MAPPING("compile", CYAML_FLAG_OPTIONAL, struct texts, compile, compile_fields),
        CYAML_FIELD_MAPPING("cache", CYAML_FLAG_OPTIONAL, struct texts, cache, cache_fields),
        CYAML_FIELD_MAPPING("stats", CYAML_FLAG_OPTIONAL, struct texts, stats, stats_fields),
        CYAML_FIELD_MAPPING("scaling", CYAML_FLAG_OPTIONAL, struct texts, scaling, scaling_fields),
        CYAML_FIELD_MAPPING("trace", CYAML_FLAG_OPTIONAL, struct texts, trace, trace_fields),
        CYAML_FIELD_END,
};

static const cyaml_schema_value_t schema = {CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct texts, sl_config_fields)};

/* In the order of enum sl_wait_kind, enum sl_log_level, enum sl_log_format, enum sl_autoscale_mode and enum sl_scaler. */
static const char *const waits[] = {"auto", "io_uring", "epoll"};
static const char *const levels[] = {"error", "warning", "info", "debug"};
static const char *const formats[] = {"text", "json"};
static const char *const flags[] = {"false", "true"};
static const char *const autoscales[] = {"off", "advise", "on"};
static const char *const scalers[] = {"starling", "infaas"};

/* The schema's path is the key, the configuration is flat. */
#define SETTING(path, member, name, setting_kind, ...)                                                                             \
        {                                                                                                                          \
                .key = (name), .text_offset = offsetof(struct texts, path), .value_offset = offsetof(struct sl_config, member),    \
                .value_bytes = sizeof(((struct sl_config *)NULL)->member), .kind = (setting_kind), __VA_ARGS__                     \
        }
#define NUMBER(path, member, low, high)  SETTING(path, member, #path, SL_SETTING_NUMBER, .min = (low), .max = (high))
#define BYTES(path, member, low, high)   SETTING(path, member, #path, SL_SETTING_BYTES, .min = (low), .max = (high))
#define CHOICE(path, member, choices, n) SETTING(path, member, #path, SL_SETTING_CHOICE, .names = (choices), .n_names = (n))

static const struct sl_setting settings[] = {
        NUMBER(limits.clients, clients_max, 1, 1024),
        BYTES(limits.client.arena_bytes, client_arena_bytes, 64 * KIB, 16 * TIB),
        NUMBER(limits.client.in_flight, client_in_flight, 1, 1u << 16),
        BYTES(limits.uid.arena_bytes, uid_arena_bytes, 64 * KIB, 16 * TIB),
        NUMBER(limits.uid.in_flight, uid_in_flight, 1, 1u << 20),
        NUMBER(limits.uid.shapes, uid_shapes, 1, 1000000),
        NUMBER(limits.uid.log_lines, uid_log_lines, 1, 1000000),
        BYTES(limits.memory_max, memory_max, 16 * MIB, 1024 * TIB),
        NUMBER(limits.models_max_loaded, models_max_loaded, 0, 4096),
        NUMBER(limits.load_wait_s, load_wait_s, 1, 86400),
        BYTES(limits.staging_bytes, staging_bytes, 64 * KIB, TIB),
        BYTES(limits.fuse_bytes, fuse_bytes, 0, TIB),
        BYTES(limits.stats_bytes, stats_bytes, 4 * MIB, GIB),
        NUMBER(threads.numa_node, numa_node, 0, 1023),
        NUMBER(threads.spin_us, spin_us, 0, 1000000),
        NUMBER(threads.inline_us, inline_us, 0, 50),
        NUMBER(grace_seconds, grace_seconds, 0, 3600),
        NUMBER(compile.jobs, compile_jobs, 1, 64),
        BYTES(compile.memory_bytes, compile_memory_bytes, 16 * MIB, TIB),
        NUMBER(compile.seconds, compile_seconds, 1, 86400),
        BYTES(cache.bytes, cache_bytes, 0, 1024 * TIB),
        CHOICE(stats.worker_histograms, worker_histograms, flags, 2),
        SETTING(trace.sampling, sampling, "trace.sampling", SL_SETTING_SHARE, .max = UINT32_MAX),
        CHOICE(autoscale, autoscale, autoscales, 3),
        CHOICE(scaling.rule, scaling_rule, scalers, 2),
        NUMBER(scaling.headroom_percent, scaling_headroom, 0, 400),
        NUMBER(scaling.lambda, scaling_lambda, 0, 1000000),
        NUMBER(scaling.idle_least_ms, scaling_idle_ms, 0, 86400000),
        NUMBER(scaling.prices.core, scaling_core_price, 1, 1000000),
        NUMBER(scaling.prices.gib, scaling_gib_price, 0, 1000000),
        CHOICE(wait, wait, waits, 3),
        CHOICE(log_level, log_level, levels, 4),
        CHOICE(log_format, log_format, formats, 2),
};

const struct sl_setting *sl_config_settings(size_t *ret_n)
{
        *ret_n = sizeof(settings) / sizeof(*settings);
        return settings;
}

static void init(struct sl_config *config)
{
        *config = (struct sl_config){
                .name = "starling",
                .clients_max = 64,
                .client_arena_bytes = GIB,
                .uid_arena_bytes = 4 * GIB,
                .client_in_flight = 4096,
                .uid_in_flight = 16384,
                .uid_shapes = 60,
                .uid_log_lines = 120,
                .load_wait_s = 60,
                .fuse_bytes = 64 * MIB,
                .stats_bytes = 30 * MIB,
                .numa_node = SL_NUMA_ANY,
                .spin_us = 50,
                .inline_us = 20,
                .grace_seconds = 5,
                .compile_jobs = 1,
                .compile_memory_bytes = 8 * GIB,
                .compile_seconds = 120,
                .cache_bytes = 16 * GIB,
                .scaling_headroom = 5,
                .scaling_idle_ms = 1000,
                .scaling_core_price = 1,
                .log_level = 2,
        };
        CPU_ZERO(&config->dispatcher_cores);
        CPU_ZERO(&config->worker_cores);
        sl_model_config_init(&config->model_defaults);
}

static int apply_names(struct sl_config *config, const struct texts *texts, struct sl_error *error)
{
        char wish[SL_WISH_BYTES];

        if (texts->name && sl_value_name(texts->name, wish) < 0)
                return sl_yaml_file_error(config->file, error, "name", "\"%s\" is %s", texts->name, wish);
        if (texts->name)
                config->name = texts->name;
        if (texts->socket_dir && texts->socket_dir[0] != '/')
                return sl_yaml_file_error(config->file, error, "socket_dir", "\"%s\" is not an absolute path", texts->socket_dir);
        config->socket_dir = texts->socket_dir;
        if (texts->allocation && texts->allocation[0] != '/' && strcmp(texts->allocation, "auto") != 0 &&
                strcmp(texts->allocation, "none") != 0)
                return sl_yaml_file_error(config->file, error, "allocation", "\"%s\" is neither auto nor none nor an absolute path",
                        texts->allocation);
        config->allocation = texts->allocation;
        if (texts->cache.directory && texts->cache.directory[0] != '/')
                return sl_yaml_file_error(
                        config->file, error, "cache.directory", "\"%s\" is not an absolute path", texts->cache.directory);
        config->cache_directory = texts->cache.directory;
        for (uint32_t i = 0; i < texts->models_count; i++)
                if (sl_value_model_name(texts->models[i], wish) < 0)
                        return sl_yaml_file_error(config->file, error, "models", "\"%s\" is %s", texts->models[i], wish);
        config->models = (const char *const *)texts->models;
        config->n_models = texts->models_count;
        config->repositories = (const char *const *)texts->model_repositories;
        config->n_repositories = texts->model_repositories_count;
        for (uint32_t i = 0; i < texts->data_folders_count; i++)
                if (texts->data_folders[i][0] != '/')
                        return sl_yaml_file_error(
                                config->file, error, "data_folders", "\"%s\" is not an absolute path", texts->data_folders[i]);
        config->data_folders = (struct sl_data_folders){(const char *const *)texts->data_folders, texts->data_folders_count};
        return 0;
}

static int apply_people(const struct sl_config *config, const char *key, char *const *entries, uint32_t n, struct sl_people *people,
        struct sl_error *error)
{
        for (uint32_t i = 0; i < n; i++) {
                char wish[SL_WISH_BYTES];
                int result = sl_people_add(people, entries[i], wish);

                if (result == -ENOMEM)
                        return sl_error_set(error, ENOMEM, "%s: out of memory", key);
                if (result < 0)
                        return sl_yaml_file_error(config->file, error, key, "\"%s\" is %s", entries[i], wish);
        }
        return 0;
}

static int apply_access(struct sl_config *config, const struct access_texts *texts, struct sl_error *error)
{
        int result = apply_people(config, "access.allow", texts->allow, texts->allow_count, &config->clients, error);

        if (result == 0)
                result = apply_people(config, "access.admins", texts->admins, texts->admins_count, &config->admins, error);
        if (result == 0 && config->admins.everybody)
                result = sl_yaml_file_error(config->file, error, "access.admins", "\"*\" would make everybody an administrator");
        if (result == 0)
                result = apply_people(config, "access.readers", texts->readers, texts->readers_count, &config->readers, error);
        return result;
}

static int apply_cores(
        const struct sl_config *config, const char *key, char *const *entries, uint32_t n, cpu_set_t *set, struct sl_error *error)
{
        char wish[SL_WISH_BYTES];

        for (uint32_t i = 0; i < n; i++)
                if (sl_value_cores(entries[i], set, wish) < 0)
                        return sl_yaml_file_error(config->file, error, key, "\"%s\" is %s", entries[i], wish);
        return 0;
}

static int apply_threads(struct sl_config *config, const struct thread_texts *texts, struct sl_error *error)
{
        int result = apply_cores(config, "threads.dispatcher_cores", texts->dispatcher_cores, texts->dispatcher_cores_count,
                &config->dispatcher_cores, error);

        if (result == 0)
                result = apply_cores(config, "threads.worker_cores", texts->worker_cores, texts->worker_cores_count,
                        &config->worker_cores, error);
        return result;
}

static int check_quotas(const struct sl_config *config, struct sl_error *error)
{
        if (config->uid_arena_bytes < config->client_arena_bytes)
                return sl_yaml_file_error(config->file, error, "limits.uid.arena_bytes",
                        "%llu is below limits.client.arena_bytes, %llu", (unsigned long long)config->uid_arena_bytes,
                        (unsigned long long)config->client_arena_bytes);
        if (config->uid_in_flight < config->client_in_flight)
                return sl_yaml_file_error(config->file, error, "limits.uid.in_flight", "%u is below limits.client.in_flight, %u",
                        config->uid_in_flight, config->client_in_flight);
        if (config->memory_max && config->memory_max <= config->stats_bytes)
                return sl_yaml_file_error(config->file, error, "limits.memory_max",
                        "%llu has no room beside the stats page: limits.stats_bytes is %llu",
                        (unsigned long long)config->memory_max, (unsigned long long)config->stats_bytes);
        return 0;
}

static int apply(struct sl_config *config, const struct texts *texts, struct sl_error *error)
{
        int result = sl_settings_apply(config->file, "", settings, sizeof(settings) / sizeof(*settings), texts, config, error);

        if (result == 0)
                result = apply_names(config, texts, error);
        if (result == 0)
                result = apply_access(config, &texts->access, error);
        if (result == 0)
                result = apply_threads(config, &texts->threads, error);
        if (result == 0)
                result = sl_model_config_apply(
                        config->file, "model_defaults", &texts->model_defaults, &config->model_defaults, error);
        return result == 0 ? check_quotas(config, error) : result;
}

int sl_config_read(const char *path, struct sl_config **ret_config, struct sl_error *error)
{
        struct sl_config *config = calloc(1, sizeof(*config));
        int result = 0;

        if (!config)
                return sl_error_set(error, ENOMEM, "configuration: out of memory");
        init(config);
        if (path)
                result = sl_yaml_file_open(path, &schema, &config->file, error);
        if (result == 0 && config->file && sl_yaml_file_data(config->file))
                result = apply(config, sl_yaml_file_data(config->file), error);
        if (result < 0) {
                sl_config_free(config);
                return result;
        }
        *ret_config = config;
        return 0;
}

struct sl_config *sl_config_free(struct sl_config *config)
{
        if (!config)
                return NULL;
        sl_model_config_deinit(&config->model_defaults);
        sl_people_deinit(&config->clients);
        sl_people_deinit(&config->admins);
        sl_people_deinit(&config->readers);
        sl_yaml_file_free(config->file);
        free(config);
        return NULL;
}
