#include "loader.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "compile.h"
#include "cores.h"
#include "plan_cache.h"
#include "plan_fetch.h"
#include "stats.h"
#include "worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_WARNING 1 /* as sl_runtime_log_fn counts */
#define LOG_DEBUG   3

struct sl_load {
        struct sl_load_options options;
        enum sl_load_state state;
        struct sl_plan_fetch *fetch;        /* while SEARCHING, and OPENING */
        int plan_fd;                        /* while OPENING: of what has been compiled; else -1 */
        struct sl_compilation *compilation; /* while COMPILING */
        struct sl_model *model;
        struct sl_lower_options lowering;
        char *path; /* of the model file */
        uint32_t workers, warmup_ms;
        uint32_t answers; /* workers that have said "ready" */
        bool keyed;       /* there is a cache, and `key` is the plan's in it */
        struct sl_plan_cache_key key;
};

struct sl_model *sl_model_free(struct sl_model *model)
{
        if (!model)
                return NULL;
        for (uint32_t i = 0; i < model->n_workers; i++) {
                struct sl_worker_stats *stats = model->workers[i]->options.stats;

                sl_worker_free(model->workers[i]);
                sl_stats_worker_remove(model->stats, stats);
        }
        free(model->workers);
        sl_scheduler_deinit(&model->scheduler);
        sl_plan_free(model->plan);
        free(model);
        return NULL;
}

static int model_new(const struct sl_model_spec *spec, uint32_t segments, struct sl_stats *stats, struct sl_model **ret_model)
{
        struct sl_model *model = calloc(1, sizeof(*model));

        if (!model)
                return -ENOMEM;
        snprintf(model->name, sizeof(model->name), "%s", spec->name);
        model->version = spec->version;
        model->stamp = spec->stamp;
        model->stats = stats;
        model->workers = calloc(spec->workers, sizeof(*model->workers));
        if (!model->workers || sl_scheduler_init(&model->scheduler, segments) < 0) {
                sl_model_free(model);
                return -ENOMEM;
        }
        *ret_model = model;
        return 0;
}

static void say(const struct sl_load *load, int level, const char *event, const char *text)
{
        char fields[SL_ERROR_TEXT_BYTES + 128];

        snprintf(fields, sizeof(fields), "model=%s text=\"%s\"", load->model->name, text);
        if (load->options.runtime->log)
                load->options.runtime->log(load->options.runtime->context, level, event, fields);
}

/* Whatever goes wrong with the cache, the model is compiled; one line says so. */
static void end_search(struct sl_load *load)
{
        struct sl_plan_found found;

        sl_plan_fetch_take(load->fetch, &found);
        load->fetch = sl_plan_fetch_free(load->fetch);
        if (found.error.text[0])
                say(load, LOG_WARNING, "cache-ignored", found.error.text);
        sl_plan_free(load->options.base);
        load->options.base = found.base;
        load->model->plan = found.plan;
        load->keyed = found.keyed;
        load->key = found.key;
        if (found.plan)
                say(load, LOG_DEBUG, "cache-used", load->key.name);
}

/* A plan of sizes that stands alone is what the next ones are derived from. */
static void keep_in_cache(struct sl_load *load, int plan_fd)
{
        struct sl_plan_cache *cache = load->options.runtime->cache;
        struct sl_error error = {""};
        int r;

        if (!load->keyed)
                return;
        r = sl_plan_cache_store(cache, &load->key, load->path, plan_fd, &error);
        if (r == 0 && load->options.sized && !load->options.base)
                r = sl_plan_cache_keep_base(cache, &load->key, load->model->plan, &error);
        if (r < 0)
                say(load, LOG_WARNING, "cache-ignored", error.text);
}

/* The @n-th core of the set, counting round. */
static void pick_core(const cpu_set_t *set, uint32_t n, cpu_set_t *ret_core)
{
        uint32_t skip = n % (uint32_t)CPU_COUNT(set);

        CPU_ZERO(ret_core);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET(cpu, set) && skip-- == 0) {
                        CPU_SET(cpu, ret_core);
                        return;
                }
}

static int start_worker(struct sl_load *load, uint32_t number, struct sl_error *error)
{
        const struct sl_runtime_options *runtime = load->options.runtime;
        char name[16];
        struct sl_worker_options options = {
                .plan = load->model->plan,
                .accumulator = load->options.accumulator,
                .batch_max = load->lowering.batch_max,
                .warmup_ns = load->warmup_ms * SL_NS_PER_MS,
                .cpus = runtime->worker_cpus,
                .spin_ns = runtime->spin_ns,
                .wait = runtime->wait,
                .name = name,
                .starter = load->options.control,
                .dispatcher = load->options.dispatcher,
        };

        snprintf(name, sizeof(name), "sl-%.10s-%u", load->model->name, number % 10);
        if (CPU_COUNT(&load->options.own_cores))
                pick_core(&load->options.own_cores, load->options.first_core + number, &options.cpus);
        else
                options.spin_ns = 0;
        sl_stats_worker_add(
                load->options.stats, load->model->name, sl_first_core(&options.cpus), load->lowering.batch_max, &options.stats);
        int r = sl_worker_new(&options, &load->model->workers[number], error);
        if (r < 0)
                sl_stats_worker_remove(load->options.stats, options.stats);
        return r;
}

static int start_workers(struct sl_load *load, struct sl_error *error)
{
        int r = 0;

        for (uint32_t i = 0; i < load->workers && r == 0; i++) {
                r = start_worker(load, i, error);
                if (r == 0)
                        load->model->n_workers++;
        }
        return r;
}

static void say_what_is_shared(const struct sl_load *load)
{
        const struct sl_plan_info *info = load->model->info;
        char text[96];

        if (!info->shared_bytes)
                return;
        snprintf(text, sizeof(text), "weights of %llu bytes are the base's, %llu its own", (unsigned long long)info->shared_bytes,
                (unsigned long long)info->weights_bytes);
        say(load, LOG_DEBUG, "plan-derived", text);
}

/* The plan is there. */
static int start(struct sl_load *load, struct sl_error *error)
{
        load->model->info = sl_plan_info(load->model->plan);
        say_what_is_shared(load);
        if (load->model->info->n_symbols)
                load->workers = 0; /* there is nothing to run before its open dimensions have sizes */
        load->state = SL_LOAD_STARTING;
        return start_workers(load, error);
}

static int start_compilation(struct sl_load *load, struct sl_error *error)
{
        const struct sl_runtime_options *runtime = load->options.runtime;
        struct sl_compile_options options = {
                .program = runtime->compile_program,
                .model_path = load->path,
                .lowering = &load->lowering,
                .base_fd = load->options.base ? sl_plan_fd(load->options.base) : 0,
                .memory_bytes = runtime->compile_memory_bytes,
                .seconds = runtime->compile_seconds,
        };

        load->state = SL_LOAD_COMPILING;
        return sl_compile_start(&options, &load->compilation, error);
}

static int start_fetch(struct sl_load *load, enum sl_load_state state, struct sl_error *error)
{
        struct sl_plan_fetch_options options = {
                .cache = load->options.runtime->cache,
                .path = load->path,
                .compile_program = load->options.runtime->compile_program,
                .lowering = &load->lowering,
                .sized = load->options.sized,
                .base = load->options.base,
                .plan_fd = load->plan_fd,
        };
        int r = sl_plan_fetch_new(&options, &load->fetch);

        load->state = state;
        return r < 0 ? sl_error_set(error, -r, "its plan cannot be fetched: %s", strerror(-r)) : 0;
}

static struct sl_load *load_new(const struct sl_model_spec *spec, const struct sl_load_options *options)
{
        struct sl_load *load = calloc(1, sizeof(*load));

        if (!load)
                return NULL;
        load->options = *options;
        load->options.base = sl_plan_hold(options->base);
        load->plan_fd = -1;
        load->lowering = spec->lowering;
        load->workers = spec->workers;
        load->warmup_ms = spec->warmup_ms;
        load->path = strdup(spec->path);
        if (load->path && model_new(spec, options->segments, options->stats, &load->model) == 0)
                return load;
        return sl_load_free(load);
}

static int begin(struct sl_load *load, struct sl_error *error)
{
        if (load->options.is_base) {
                load->model->plan = sl_plan_hold(load->options.base);
                return start(load, error);
        }
        return load->options.runtime->cache ? start_fetch(load, SL_LOAD_SEARCHING, error) : start_compilation(load, error);
}

int sl_load_new(
        const struct sl_model_spec *spec, const struct sl_load_options *options, struct sl_load **ret_load, struct sl_error *error)
{
        struct sl_load *load = load_new(spec, options);
        int r;

        if (!load)
                return sl_error_set(error, ENOMEM, "no memory to load \"%s\"", spec->name);
        r = begin(load, error);
        if (r < 0) {
                sl_load_free(load);
                return r;
        }
        *ret_load = load;
        return 0;
}

struct sl_load *sl_load_free(struct sl_load *load)
{
        if (!load)
                return NULL;
        sl_plan_fetch_free(load->fetch);
        sl_cleanup_fd(&load->plan_fd);
        sl_compile_cancel(load->compilation);
        sl_plan_free(load->options.base);
        free(load->path);
        sl_model_free(load->model);
        free(load);
        return NULL;
}

int sl_load_fd(const struct sl_load *load)
{
        if (load->fetch)
                return sl_plan_fetch_fd(load->fetch);
        return load->compilation ? sl_compile_fd(load->compilation) : -1;
}

static int end_compilation(struct sl_load *load, struct sl_error *error)
{
        struct sl_error warning = {""};
        int r = sl_compile_finish(sl_take(load->compilation), &load->plan_fd, &warning);

        if (r < 0)
                return sl_error_set(error, -r, "%s", warning.text);
        if (warning.text[0])
                say(load, LOG_WARNING, "sandbox-incomplete", warning.text);
        return start_fetch(load, SL_LOAD_OPENING, error);
}

static int end_opening(struct sl_load *load, struct sl_error *error)
{
        struct sl_plan_found found;

        sl_plan_fetch_take(load->fetch, &found);
        load->fetch = sl_plan_fetch_free(load->fetch);
        sl_plan_free(found.base);
        load->model->plan = found.plan;
        if (found.status < 0) {
                *error = found.error;
                return found.status;
        }
        keep_in_cache(load, load->plan_fd);
        close(sl_take_fd(&load->plan_fd));
        return start(load, error);
}

/* As far as the start of the workers. */
static int advance_plan(struct sl_load *load, struct sl_error *error)
{
        switch (load->state) {
        case SL_LOAD_SEARCHING:
                end_search(load);
                return load->model->plan ? start(load, error) : start_compilation(load, error);
        case SL_LOAD_COMPILING:
                return end_compilation(load, error);
        case SL_LOAD_OPENING:
                return end_opening(load, error);
        default:
                return 0;
        }
}

/* The special messages of the ensemble paper, section II.C.2: {-1, None, None} ends the start, {-2, None, None} counts. */
static int hear_workers(struct sl_load *load, struct sl_error *error)
{
        for (uint32_t i = 0; i < load->model->n_workers; i++) {
                struct sl_prediction message;

                if (!sl_mailbox_take(load->model->workers[i]->outbox, &message))
                        continue;
                if (message.segment == SL_PREDICTION_NO_MEMORY)
                        return sl_error_set(error, message.status == -ENOMEM ? ENOMEM : EIO,
                                "worker %u of %u cannot start: %s; an instance of batch %u needs %llu bytes", i, load->workers,
                                strerror(-message.status), load->lowering.batch_max,
                                (unsigned long long)sl_instance_bytes(load->model->plan, load->lowering.batch_max));
                load->answers++;
        }
        return 0;
}

enum sl_load_state sl_load_advance(struct sl_load *load, struct sl_error *error)
{
        int r = advance_plan(load, error);

        if (load->state == SL_LOAD_STARTING && r == 0)
                r = hear_workers(load, error);
        if (r < 0)
                load->state = SL_LOAD_FAILED;
        else if (load->state == SL_LOAD_STARTING && load->answers == load->workers)
                load->state = SL_LOAD_READY;
        return load->state;
}

struct sl_model *sl_load_take(struct sl_load *load)
{
        return sl_take(load->model);
}
