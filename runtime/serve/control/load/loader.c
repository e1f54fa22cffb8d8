/* SPDX-License-Identifier: Apache-2.0 */
#include "loader.h"

#include "account.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/value.h"
#include "batch_limit.h"
#include "bundles.h"
#include "compile.h"
#include "compiler_limit.h"
#include "compilers.h"
#include "cores.h"
#include "crew.h"
#include "gpu_asks.h"
#include "inline_executor.h"
#include "job_runner.h"
#include "lets.h"
#include "memory.h"
#include "plan_cache.h"
#include "plan_fetch.h"
#include "precision_cost.h"
#include "process_executor.h"
#include "stats.h"
#include "supervisor.h"
#include "target.h"
#include "tried_sizes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_WARNING 1 /* as sl_runtime_log_fn counts */
#define LOG_DEBUG   3

struct sl_load {
        struct sl_load_options options;
        enum sl_load_state state;
        uint64_t waits_ns;                  /* since when, of one that waits for a process */
        struct sl_plan_fetch *fetch;        /* while SEARCHING, and OPENING */
        struct sl_compile_order *order;     /* while COMPILING: its start; */
        struct sl_compilation *compilation; /* and then that */
        struct sl_model *model;
        struct sl_lower_options lowering;
        uint64_t batch_bytes_max;
        char *path;    /* of the model file */
        bool compiled; /* and not found in the cache */
        struct sl_worker_options worker;
        bool own_process; /* for each worker, or that of a GPU */
        bool on_gpu, fell_back;
        struct sl_gpu_asks asks; /* of the GPUs, from ASKING on */
        bool fuses;              /* with others of its architecture */
        uint64_t circle;         /* and of this circle (spec.h) */
        struct sl_worker_set workers;
        struct sl_tried_sizes tried;
        struct sl_standby standby; /* until its plan is the model's */
        uint64_t need, files;      /* of a compilation, as the search has found */
        uint64_t compiler_limit;   /* of the process that compiles */
        uint64_t compiler_bytes;   /* promised while COMPILING, then for the plan file while OPENING */
        int status;                /* of FAILED */
        struct sl_error why;
        bool keyed; /* there is a cache, and `key` is the plan's in it */
        struct sl_plan_cache_key key;
        struct sl_model_identity file; /* as it was before it was read */
};

static void free_inliner(struct sl_model *model)
{
        struct sl_worker_stats *stats = model->inliner->stats;

        sl_executor_free(model->inliner);
        sl_stats_worker_remove(model->stats, stats);
        sl_memory_give(model->memory, SL_MEMORY_WORKERS, model->inliner_bytes);
}

struct sl_model *sl_model_free(struct sl_model *model)
{
        if (!model)
                return NULL;
        sl_crew_free(model->crew);
        if (model->inliner)
                free_inliner(model);
        if (model->bundle)
                sl_bundle_leave(model->bundle);
        sl_scheduler_deinit(&model->scheduler);
        sl_plan_free(model->plan);
        free(model);
        return NULL;
}

static int model_new(const struct sl_model_spec *spec, const struct sl_load_options *options, struct sl_model **ret_model)
{
        struct sl_model *model = calloc(1, sizeof(*model));

        if (!model)
                return -ENOMEM;
        snprintf(model->name, sizeof(model->name), "%s", spec->name);
        model->version = spec->version;
        model->stamp = spec->stamp;
        model->stats = options->stats;
        model->memory = options->memory;
        model->reruns = spec->worker.on_crash == SL_ON_CRASH_RERUN;
        model->slice_ns = spec->slice_ns;
        model->slice_samples = SL_SLICE_SAMPLES_MAX;
        model->rows_max = spec->batching.policy == SL_POLICY_single ? 1 : spec->lowering.batch_max;
        model->batching = spec->batching;
        model->policy = sl_policies[spec->batching.policy].decide;
        if (sl_scheduler_init(&model->scheduler, options->segments) < 0) {
                sl_model_free(model);
                return -ENOMEM;
        }
        *ret_model = model;
        return 0;
}

static void log_load(const struct sl_load *load, int level, const char *event, const char *text)
{
        struct sl_account *account = load->options.asked ? sl_account_find(load->options.accounts, load->options.uid) : NULL;
        struct sl_fields fields = {0};

        sl_fields_add(&fields, "model", load->model->name);
        sl_fields_add(&fields, "cause", text);
        sl_account_log(load->options.accounts, account, level, event, fields.text);
}

/* Whatever goes wrong with the cache, the model is compiled; one line says so. */
static void end_search(struct sl_load *load)
{
        struct sl_plan_found found;

        sl_plan_fetch_take(load->fetch, &found);
        load->fetch = sl_plan_fetch_free(load->fetch);
        if (found.error.text[0] && found.status != -EFBIG) /* of what is larger than a model may be its compiler says so */
                log_load(load, LOG_WARNING, "cache-ignored", found.error.text);
        sl_plan_free(load->options.base);
        load->options.base = found.base;
        load->model->plan = found.plan;
        load->keyed = found.keyed;
        load->key = found.key;
        load->model->content[0] = found.keyed ? found.key.content.low : 0;
        load->model->content[1] = found.keyed ? found.key.content.high : 0;
        load->file = found.file;
        load->need = found.need;
        load->files = found.files;
        if (found.plan)
                log_load(load, LOG_DEBUG, "cache-used", load->key.name);
}

/* A plan of sizes that stands alone is what the next ones are derived from, whoever asks for those: it is not one user's. */
static void keep_in_cache(struct sl_load *load, int plan_fd)
{
        struct sl_plan_cache *cache = load->options.runtime->cache;
        struct sl_error error = {""};
        int r;

        if (!load->keyed)
                return;
        load->key.asked = load->options.asked && load->options.base;
        load->key.uid = load->options.uid;
        r = sl_plan_cache_store(cache, &load->key, load->path, plan_fd, &error);
        if (r == 0 && load->options.sized && !load->options.base)
                r = sl_plan_cache_keep_base(cache, &load->key, load->model->plan, &error);
        if (r < 0)
                log_load(load, LOG_WARNING, "cache-ignored", error.text);
}

static void say_what_is_shared(const struct sl_load *load)
{
        const struct sl_plan_info *info = load->model->info;
        char text[96];

        if (!info->shared_bytes)
                return;
        snprintf(text, sizeof(text), "weights of %llu bytes are the base's, %llu its own", (unsigned long long)info->shared_bytes,
                (unsigned long long)info->weights_bytes);
        log_load(load, LOG_DEBUG, "plan-derived", text);
}

static int take_plan_memory(struct sl_load *load, struct sl_error *error)
{
        struct sl_memory *memory = load->options.memory;
        struct sl_plan *base = sl_plan_base(load->model->plan);
        int r = base ? sl_memory_take_plan(memory, base, error) : 0;

        if (r == 0)
                r = sl_memory_take_plan(memory, load->model->plan, error);
        return r < 0 ? sl_error_prefix(error, r, "its plan") : 0;
}

/* Nobody is to take zeros for predictions. */
static int tell_fake(const struct sl_load *load, struct sl_error *error)
{
        const struct sl_plan_info *info = load->model->info;

        for (uint32_t i = 0; i < info->n_outputs; i++)
                if (sl_port_is_open(&info->outputs[i]))
                        return sl_error_set(error, EINVAL,
                                "predictions: fake: output \"%s\" says only afterwards how large it is, and zeros of which size is "
                                "not known",
                                info->outputs[i].name);
        log_load(load, LOG_WARNING, "predictions-fake", "its predictions are zeros (predictions: fake)");
        return 0;
}

static bool may_fuse(const struct sl_load *load)
{
        return load->fuses && !load->own_process && load->worker.threads == 1 && !sl_plan_is_dynamic(load->model->plan) &&
               load->model->info->family[0];
}

/* Who has left others that share workers with them is told of: it no longer gains by it. */
static void say_what_is_fused(const struct sl_load *load)
{
        const struct sl_model *replaced = *load->options.replaced;
        const struct sl_bundle *bundle = load->model->bundle;
        char text[96];

        if (replaced && replaced->bundle && replaced->bundle != bundle && sl_bundle_size(replaced->bundle) > 1) {
                bool alike = !memcmp(replaced->info->family, load->model->info->family, sizeof(replaced->info->family));

                if (alike && sl_bundle_size(replaced->bundle) == SL_CARRIER_LANES_MAX)
                        snprintf(text, sizeof(text), "its %u models share workers, and no more can while one of them is replaced",
                                SL_CARRIER_LANES_MAX);
                else
                        snprintf(text, sizeof(text), "%s than that of the %u models that it shared workers with",
                                alike ? "its fuse is another one" : "its architecture is another one",
                                sl_bundle_size(replaced->bundle) - 1);
                log_load(load, LOG_WARNING, "bundle-left", text);
        }
        if (bundle && sl_bundle_size(bundle) > 1) {
                snprintf(text, sizeof(text), "it shares workers with %u models of its architecture", sl_bundle_size(bundle) - 1);
                log_load(load, LOG_DEBUG, "bundle-joined", text);
        }
}

static int join_bundle(struct sl_load *load, struct sl_error *error)
{
        const struct sl_model *replaced = *load->options.replaced;

        if (may_fuse(load) && sl_bundles_join(load->options.bundles, load->model->info, load->circle,
                                      replaced ? replaced->bundle : NULL, &load->model->bundle) < 0)
                return sl_error_set(error, ENOMEM, "no memory to share workers");
        say_what_is_fused(load);
        return 0;
}

static int make_crew(struct sl_load *load, struct sl_error *error)
{
        struct sl_crew_options options = {
                .runtime = load->options.runtime,
                .regions = load->options.regions,
                .accumulator = load->options.accumulator,
                .file = load->file,
                .stats = load->options.stats,
                .memory = load->options.memory,
                .lets = load->options.lets,
                .control = load->options.control,
                .dispatcher = load->options.dispatcher,
                .model = load->model,
                .limit = sl_batch_limit_choose(load->model->plan, load->lowering.batch_max, load->batch_bytes_max),
                .dynamic_bytes = sl_plan_is_dynamic(load->model->plan) ? load->lowering.dynamic_bytes_max : 0,
                .worker = load->worker,
                .first_ns = load->standby.first_ns,
                .own_process = load->own_process,
                .on_gpu = load->on_gpu,
                .fell_back = load->fell_back,
                .asked = load->options.asked && sl_plan_base(load->model->plan),
                .uid = load->options.uid,
                .supervisor = load->options.supervisor,
        };

        if (sl_worker_options_are_fake(&load->worker) && tell_fake(load, error) < 0)
                return -EINVAL;
        options.n_gpus = sl_gpu_asks_usable(&load->asks, options.gpus);
        int r = join_bundle(load, error);
        if (r < 0)
                return r;
        if (sl_crew_new(&options, &load->model->crew) < 0)
                return sl_error_set(error, ENOMEM, "no memory for its workers");
        const struct sl_model *replaced = *load->options.replaced;
        r = sl_crew_start(load->model->crew, &load->workers, replaced ? replaced->crew : NULL, load->options.background, error);
        load->model->crew->options.first_ns = 0;
        return r;
}

/* The plan is there. What has open dimensions has nothing to run before they have sizes. */
static int start(struct sl_load *load, struct sl_error *error)
{
        int r = take_plan_memory(load, error);

        load->model->info = sl_plan_info(load->model->plan);
        say_what_is_shared(load);
        load->state = SL_LOAD_STARTING;
        load->waits_ns = sl_clock_ns();
        return r < 0 || load->options.plan_only || !load->model->info->n_batches ? r : make_crew(load, error);
}

static void give_compiler_memory(struct sl_load *load)
{
        sl_memory_give(load->options.memory, SL_MEMORY_COMPILERS, load->compiler_bytes);
        load->compiler_bytes = 0;
}

static int take_compiler_memory(struct sl_load *load, uint64_t bytes, struct sl_error *error)
{
        int r;

        give_compiler_memory(load);
        r = sl_memory_take(load->options.memory, SL_MEMORY_COMPILERS, bytes, error);
        if (r < 0)
                return sl_error_prefix(error, r, "compiling it");
        load->compiler_bytes = bytes;
        return 0;
}

static int start_compilation(struct sl_load *load, struct sl_error *error)
{
        const struct sl_runtime_options *runtime = load->options.runtime;
        struct sl_compile_options options = {
                .program = runtime->compile_program,
                .data_folders = runtime->data_folders,
                .model_path = load->path,
                .lowering = &load->lowering,
                .tried = &load->tried,
                .zygote = runtime->zygote,
                .background = load->options.background,
                .base_fd = load->options.base ? sl_plan_fd(load->options.base) : 0,
                .base_sum = load->options.base ? sl_plan_identity(load->options.base).checksum : 0,
                .memory_bytes = sl_compiler_limit(runtime, load->options.memory, load->need),
                .seconds = runtime->compile_seconds,
        };
        int r;

        load->compiler_limit = options.memory_bytes;
        load->state = SL_LOAD_COMPILING;
        load->compiled = true;
        r = take_compiler_memory(load, sl_compile_takes(options.memory_bytes), error);
        return r < 0 ? r : sl_compilers_start(load->options.compilers, &options, &load->order, error);
}

/* Of the search: what a compilation may take. */
static uint64_t search_seconds(const struct sl_load *load)
{
        uint64_t seconds = load->options.runtime->compile_seconds;

        return seconds && seconds < load->lowering.plan_seconds ? seconds : load->lowering.plan_seconds;
}

/* @plan_fd: of what has been compiled, taken in any case; -1: there is none yet. */
static int start_fetch(struct sl_load *load, enum sl_load_state state, int plan_fd, struct sl_error *error)
{
        struct sl_plan_fetch_options options = {
                .cache = load->options.runtime->cache,
                .path = load->path,
                .compile_program = load->options.runtime->compile_program,
                .lowering = &load->lowering,
                .seconds = search_seconds(load),
                .background = load->options.background,
                .cores = sl_lets_start_cores(load->options.lets, NULL, load->options.background),
                .sized = load->options.sized,
                .base = load->options.base,
                .plan_fd = plan_fd,
        };
        int r = sl_plan_fetch_new(&options, &load->fetch);

        load->state = state;
        return r < 0 ? sl_error_set(error, -r, "its plan cannot be fetched: %s", strerror(-r)) : 0;
}

/* What a core of this host reaches becomes part of what the plan depends on; given figures stand, and so do typical ones without a
 * cache. */
static void fill_core(const struct sl_load_options *options, struct sl_lower_options *lowering)
{
        struct sl_target target;

        if (!lowering->core_measured || sl_lower_options_have_core(lowering) || !options->runtime->cache ||
                sl_plan_cache_target(options->runtime->cache, sl_lower_options_backend(lowering), &target) < 0)
                return;
        lowering->core = target.core;
}

static void set_device(struct sl_load *load, bool on_gpu)
{
        load->on_gpu = on_gpu;
        load->own_process = on_gpu || load->worker.isolation == SL_ISOLATION_PROCESS;
}

static struct sl_load *load_new(const struct sl_model_spec *spec, const struct sl_load_options *options)
{
        struct sl_load *load = calloc(1, sizeof(*load));

        if (!load)
                return NULL;
        load->options = *options;
        load->options.base = sl_plan_hold(options->base);
        if (options->tried)
                load->tried = *options->tried;
        load->options.tried = NULL;
        if (options->standby)
                load->standby = sl_standby_hold(options->standby);
        load->options.standby = NULL;
        load->lowering = spec->lowering;
        fill_core(options, &load->lowering);
        load->batch_bytes_max = spec->batch_bytes_max;
        load->workers = spec->workers;
        load->worker = spec->worker;
        set_device(load, spec->on_gpu);
        load->circle = spec->fuse_circle;
        load->fuses = spec->fuse == SL_SHARING_AUTO;
        load->path = strdup(spec->path);
        if (load->path && model_new(spec, options, &load->model) == 0)
                return load;
        return sl_load_free(load);
}

/* Without a GPU nothing is compiled for it. */
static int ask_gpus(struct sl_load *load, struct sl_error *error)
{
        load->state = SL_LOAD_ASKING;
        load->waits_ns = sl_clock_ns();
        return sl_gpu_asks_begin(&load->asks, sl_supervisor_gpu_hosts(load->options.supervisor),
                load->options.runtime->compile_program, &load->workers,
                SL_PROCESS_START_HANGS * sl_worker_options_hang_ns(&load->worker), error);
}

static int find_plan(struct sl_load *load, struct sl_error *error)
{
        if (load->standby.plan) {
                load->model->plan = sl_take(load->standby.plan);
                load->file = load->standby.file;
                return start(load, error);
        }
        if (load->options.is_base) {
                load->model->plan = sl_plan_hold(load->options.base);
                return start(load, error);
        }
        load->waits_ns = sl_clock_ns();
        return start_fetch(load, SL_LOAD_SEARCHING, -1, error);
}

/* It begins where the one that made the plan has ended. */
static void follow_standby(struct sl_load *load)
{
        load->fell_back = load->standby.fell_back;
        set_device(load, load->on_gpu && !load->fell_back);
}

static int begin(struct sl_load *load, struct sl_error *error)
{
        if (load->standby.plan)
                follow_standby(load);
        return load->on_gpu ? ask_gpus(load, error) : find_plan(load, error);
}

/* Of all that there are these are left out. */
static void say_what_is_left_out(const struct sl_load *load)
{
        for (uint32_t i = 0; i < load->asks.n; i++)
                if (load->asks.list[i].fault.text[0])
                        log_load(load, LOG_WARNING, "gpu-left-out", load->asks.list[i].fault.text);
}

static int advance_asking(struct sl_load *load, struct sl_error *error)
{
        int r = sl_gpu_asks_advance(&load->asks, error);

        if (r <= 0)
                return r;
        say_what_is_left_out(load);
        if (!sl_lower_options_have_gpu(&load->lowering))
                load->lowering.gpu = sl_gpu_asks_figures(&load->asks);
        return find_plan(load, error);
}

/* Sizes that contradict each other, or are more than a limit allows, are the doing of whoever asked for them. */
static int status_of(const struct sl_load *load, int r)
{
        if (r == -ENOMEM)
                return r;
        return load->options.sized && (r == -ERANGE || r == -E2BIG) ? -EINVAL : -EIO;
}

static void fail(struct sl_load *load, int r)
{
        load->status = status_of(load, r);
        load->state = SL_LOAD_FAILED;
}

int sl_load_new(
        const struct sl_model_spec *spec, const struct sl_load_options *options, struct sl_load **ret_load, struct sl_error *error)
{
        struct sl_load *load = load_new(spec, options);
        int r;

        if (!load)
                return sl_error_set(error, ENOMEM, "no memory to load \"%s\"", spec->name);
        r = begin(load, &load->why);
        if (r < 0)
                fail(load, r);
        *ret_load = load;
        return 0;
}

/* Until it is gone it has what it was promised. */
static void end_compiler(struct sl_load *load)
{
        if (!load->order && !load->compilation)
                return;
        sl_compile_order_cancel(load->order, load->compiler_bytes);
        sl_compilers_end(load->options.compilers, load->compilation, load->compiler_bytes);
        load->compiler_bytes = 0;
}

struct sl_load *sl_load_free(struct sl_load *load)
{
        if (!load)
                return NULL;
        sl_plan_fetch_free(load->fetch);
        sl_gpu_asks_end(&load->asks);
        end_compiler(load);
        give_compiler_memory(load);
        sl_plan_free(load->options.base);
        sl_standby_end(&load->standby);
        free(load->path);
        sl_model_free(load->model);
        free(load);
        return NULL;
}

int sl_load_fd(const struct sl_load *load)
{
        if (sl_gpu_asks_fd(&load->asks) >= 0)
                return sl_gpu_asks_fd(&load->asks);
        if (load->fetch)
                return sl_plan_fetch_fd(load->fetch);
        if (load->order)
                return sl_compile_order_fd(load->order);
        return load->compilation ? sl_compile_fd(load->compilation) : -1;
}

/* Said once for each load, also of a plan from the cache: it holds for this core, as far as that was measured or given. */
static void say_if_slower(const struct sl_load *load)
{
        struct sl_precision_cost cost;
        char text[SL_PRECISION_TEXT_BYTES];

        if (sl_precision_cost(load->model->plan, &load->lowering.core, &cost) == 0 && sl_precision_is_slower(&cost, text))
                log_load(load, LOG_WARNING, "variant-slower", text);
}

static int end_opening(struct sl_load *load, struct sl_error *error)
{
        struct sl_plan_found found;

        sl_plan_fetch_take(load->fetch, &found);
        load->fetch = sl_plan_fetch_free(load->fetch);
        sl_plan_free(found.base);
        load->model->plan = found.plan;
        if (found.status < 0) {
                sl_cleanup_fd(&found.plan_fd);
                *error = found.error;
                return found.status;
        }
        keep_in_cache(load, found.plan_fd);
        close(found.plan_fd);
        give_compiler_memory(load);
        say_if_slower(load);
        return start(load, error);
}

/* The model begins once more, as one without a device. */
static int fall_back(struct sl_load *load, const struct sl_error *cause, struct sl_error *error)
{
        char wish[SL_WISH_BYTES];

        log_load(load, LOG_WARNING, "gpu-fallback", cause->text);
        set_device(load, false);
        load->fell_back = true;
        sl_gpu_asks_end(&load->asks);
        sl_plan_free(sl_take(load->options.base)); /* of the GPU too */
        give_compiler_memory(load);
        if (sl_lower_options_set(&load->lowering, SL_LOWER_OPTION_backend, "cpu", wish) < 0)
                return sl_error_set(error, EINVAL, "its backend is %s", wish);
        fill_core(&load->options, &load->lowering);
        return find_plan(load, error);
}

/* Of what the child was promised, its plan file is left. */
static int end_compilation(struct sl_load *load, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_fd) int plan_fd = -1;
        struct sl_error warning = {""};
        int r = sl_compile_finish_unsealed(sl_take(load->compilation), &plan_fd, NULL, &warning);
        struct stat status;

        if (r == -ENOTSUP && load->on_gpu && load->worker.gpu_fallback)
                return fall_back(load, &warning, error);
        if (r == -ENOMEM)
                (void)sl_compiler_limit_passed(load->options.runtime, load->options.memory,
                        &(struct sl_compiler_share){load->need, load->files, load->compiler_limit, load->compiler_bytes}, &warning);
        if (r < 0)
                return sl_error_set(error, -r, "%s", warning.text);
        if (warning.text[0])
                log_load(load, LOG_WARNING, "sandbox-incomplete", warning.text);
        if (fstat(plan_fd, &status) < 0)
                return sl_error_set(error, errno, "its plan: %s", strerror(errno));
        r = take_compiler_memory(load, (uint64_t)status.st_size, error);
        return r < 0 ? r : start_fetch(load, SL_LOAD_OPENING, sl_take_fd(&plan_fd), error);
}

/* As far as the start of the workers. */
static int advance_plan(struct sl_load *load, struct sl_error *error)
{
        switch (load->state) {
        case SL_LOAD_ASKING:
                return advance_asking(load, error);
        case SL_LOAD_SEARCHING:
                end_search(load);
                if (load->model->plan)
                        say_if_slower(load);
                return load->model->plan ? start(load, error) : start_compilation(load, error);
        case SL_LOAD_COMPILING:
                if (load->order)
                        return sl_compile_order_take(sl_take(load->order), &load->compilation, error);
                return end_compilation(load, error);
        case SL_LOAD_OPENING:
                return end_opening(load, error);
        default:
                return 0;
        }
}

/* The first requests are cut by what a worker's first sample took, which was cold: later jobs correct it. */
static void learn_first_sample(struct sl_model *model)
{
        for (uint32_t i = 0; i < model->crew->n; i++)
                if (model->crew->workers[i].executor->first_ns)
                        sl_model_learn(model, 1, model->crew->workers[i].executor->first_ns);
}

static struct sl_worker_stats *show_inliner(const struct sl_load *load, uint32_t samples)
{
        const struct sl_runtime_options *runtime = load->options.runtime;
        struct sl_seats seats = {
                .stats = load->options.stats,
                .model = load->model->name,
                .executor = "inline",
                .batch_max = samples,
                .with_histograms = runtime->worker_histograms,
        };
        struct sl_worker_stats *seat = sl_seats_take(&seats, NULL, sl_first_core(&runtime->dispatcher_cpus));

        sl_seat_show(seat, SL_STATS_WORKER_SERVING);
        return seat;
}

/* What a job may be expected to take at most: it counts from there on, so that one takes up to twice as long. */
static uint64_t inline_bound_ns(const struct sl_runtime_options *runtime)
{
        if (runtime->inline_bound_ns)
                return runtime->inline_bound_ns;
        return runtime->inline_ns > SL_INLINE_ALONE_NS ? runtime->inline_ns : SL_INLINE_ALONE_NS;
}

/* Where there is no memory for it the model is served without. */
static void make_inliner(struct sl_load *load)
{
        const struct sl_runtime_options *runtime = load->options.runtime;
        struct sl_model *model = load->model;
        struct sl_inline_trial trial = sl_crew_take_trial(model->crew);
        struct sl_worker_stats *stats;

        if (!trial.runner)
                return;
        if (sl_memory_take(load->options.memory, SL_MEMORY_WORKERS, trial.bytes, NULL) < 0) {
                sl_job_runner_free(trial.runner);
                return;
        }
        model->inliner_bytes = trial.bytes;
        stats = show_inliner(load, trial.samples);
        if (sl_inline_executor_new(
                    &trial, model->plan, inline_bound_ns(runtime), load->options.accumulator, stats, &model->inliner) < 0) {
                sl_stats_worker_remove(load->options.stats, stats);
                sl_memory_give(load->options.memory, SL_MEMORY_WORKERS, trial.bytes);
                return;
        }
        sl_inline_gauge_init(&model->gauge, trial.sample_ns);
        struct sl_carrier *carrier = model->bundle ? sl_bundle_inliner(model->bundle) : NULL;
        if (carrier)
                (void)sl_inline_executor_join(model->inliner, carrier); /* else it computes by itself */
        model->inliner->histograms = sl_stats_worker_histograms(load->options.stats, stats);
}

/* What the ensemble paper has special messages for (section II.C.2): one that cannot start ends the load, when all are ready it is
 * done. */
static int advance_workers(struct sl_load *load, struct sl_error *error)
{
        struct sl_model *model = load->model;
        int starting = model->crew ? sl_crew_starting(model->crew, error) : 0;

        if (starting)
                return starting < 0 ? starting : 0;
        if (model->crew) {
                learn_first_sample(model);
                make_inliner(load);
                sl_crew_enlist(model->crew, &model->workers);
        }
        load->state = SL_LOAD_READY;
        return 0;
}

uint64_t sl_load_due_ns(const struct sl_load *load)
{
        if (load->state == SL_LOAD_ASKING)
                return sl_gpu_asks_due_ns(&load->asks);
        return load->state == SL_LOAD_STARTING && load->model->crew ? load->model->crew->starting_due_ns : UINT64_MAX;
}

bool sl_load_has_no_plan(const struct sl_load *load)
{
        return load->state == SL_LOAD_ASKING || load->state == SL_LOAD_SEARCHING;
}

bool sl_load_may_be_given_up(const struct sl_load *load)
{
        return sl_load_has_no_plan(load) || load->state == SL_LOAD_COMPILING;
}

uint64_t sl_load_waits_since(const struct sl_load *load)
{
        bool starts = load->state == SL_LOAD_STARTING && load->own_process;

        return starts || sl_load_has_no_plan(load) ? load->waits_ns : UINT64_MAX;
}

enum sl_load_state sl_load_advance(struct sl_load *load)
{
        int r = advance_plan(load, &load->why);

        if (load->state == SL_LOAD_STARTING && r == 0)
                r = advance_workers(load, &load->why);
        if (r < 0)
                fail(load, r);
        return load->state;
}

enum sl_load_state sl_load_state(const struct sl_load *load)
{
        return load->state;
}

int sl_load_why(const struct sl_load *load, struct sl_error *error)
{
        *error = load->why;
        return load->status;
}

void sl_load_fail(struct sl_load *load, int status, const char *text)
{
        load->state = SL_LOAD_FAILED;
        load->status = status;
        sl_error_set(&load->why, -status, "%s", text);
}

bool sl_load_compiled(const struct sl_load *load)
{
        return load->compiled;
}

bool sl_load_has_workers(const struct sl_load *load)
{
        return load->state == SL_LOAD_READY && load->model && load->model->crew;
}

struct sl_model *sl_load_take(struct sl_load *load)
{
        return sl_take(load->model);
}

struct sl_standby sl_load_standby(const struct sl_load *load)
{
        return (struct sl_standby){.plan = sl_plan_hold(load->model->plan), .file = load->file, .fell_back = load->fell_back};
}
