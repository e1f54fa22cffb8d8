/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How one model is served: the options of NAME/config.yaml, and under "model_defaults" in the runtime's own file. An ensemble is a
 * config.yaml with members and a rule instead of version folders.
 *
 *     name: lenet                   # instead of the folder's; in the model's own file
 *     batch_max: 32                 # largest batch of a worker, and every other option of lower_options.h
 *     batch_bytes_max: 64 MiB       # of a worker's workspace and pool: where batch_max is not given, it is the largest that keeps
 * this instances: 1                  # workers of this model; requests are spread over them batch_sizes: [1, 1, 2, 4, 8]  # instead
 * of instances: a worker for each, which takes batches up to that threads: 1                    # a worker computes with so many
 * cores of its let, each batch with all of them; auto: with all it has segment_samples: 128          # a request is split into
 * pieces of so many samples; at least batch_max slice_ms: 10                  # a worker computes no longer before it looks for
 * what is more urgent, but for a single sample samples_max: 1048576          # of one request queue_requests: 1024          #
 * accepted and not completed; more are refused warmup_ms: 200                # a model is ready after one sample; so long may an
 * idle worker then run larger batches batching: work_conserving     # who takes how many samples when: a policy of
 * serve/decide/batching.h, and what that is told batching_delay_us: 0          # opt_wait, static, triton: what is not full waits
 * so long for more batching_latency_ms: 20       # aimd: of a batch, at most batching_in_order: no         # triton: yes computes
 * one batch at a time, so that answers keep the order of requests batching_sizes: [4, 8]        # triton: preferred batches
 *     batching_rows: ["0,0,1", "0,0,0,1", "0,0,2,1", "0,0,0,2,1"]  # e_ebird: workers of 1, 2, 4, ... at a load of 4, 8, 16, 32
 *     load: at_start                # on_request: when somebody opens it or asks it something; then the least used one that is idle
 *                                   # makes room (limits.models_max_loaded, memory_max); standby: its plan is loaded at the
 *                                   # start and stays, and its workers start when somebody asks it something
 *     idle_unload_s: 0              # such a model is unloaded when nobody has asked for so long, of standby its workers leave;
 *                                   # 0: when it has to make room
 *     idle_standby_s: 0             # its workers leave when nobody has asked for so long, and its plan stays; 0: as above
 *     fuse: never                   # auto: it shares workers with others of its architecture, and what waits for them is computed
 * together; # [lenet-a, lenet-b]: with those alone that name the same models, itself among them or not device: cpu # gpu:0, or a
 * let of it, gpu:0/50%: its workers are in that GPU's process (serve/gpu); several, # [gpu:0, gpu:1], all of which there have to
 * be, or "gpu:*", those that can be used: workers as # above on each of them, which share the model's queue gpu_completions: events
 * # words: a GPU itself writes that a launch has ended, where it can gpu_fallback: refuse          # cpu: what the GPU's backend
 * cannot run of a model makes it one without a device gpu_tune: timed               # at the first load candidates are timed on the
 * GPU, and what was chosen is kept; compiled: among them # engines that are compiled at run time; off: the first ones are taken
 *     gpu_tune_seconds: 20          # of all that is timed for a worker, at most
 *     gpu_results: staging          # arena: a GPU itself writes predictions to the client's memory
 *     isolation: none               # process: each worker in a process of its own, so that a crash of the model ends nobody else
 *     on_crash: fail                # what such a process was computing when it died; rerun: is computed once more, by another one
 *     hang_ms: 120000               # a process that answers nothing for so long, and for longer than ever, is killed; 0: never
 *     predictions: real             # fake: zeros, computed by nobody; all else is as it would be, which shows what it takes
 *     shapes: [sequence=128]        # sizes of open dimensions of its inputs; without them each request brings its own
 *     prepared_shapes: ["sequence=64", "sequence=128"]  # such combinations that are compiled before anybody asks
 *     shapes_max: 16                # of those that requests bring: so many combinations are kept compiled
 *     without_passes: [fuse-bias]   # the one of them that is a list
 *     version_policy: {latest: 1}   # or {all: true}, or {specific: [1, 3]}
 *     ensemble: {members: [a, b]}  # ensemble_config.h
 *     task: {variants: [a, b], accuracy: [0.9, 0.95]}  # alone: which of several models answers, see task_config.h
 *
 * Plain values, but for lists of names: a copy holds them from sl_model_config_hold() to sl_model_config_deinit(). Threads: one at
 * a time.
 */
#pragma once

#include "combining.h"
#include "ensemble_config.h"
#include "gpu_let.h"
#include "lower_options.h"
#include "name_list.h"
#include "spec.h"
#include "task_config.h"

#include <cyaml/cyaml.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_setting;
struct sl_yaml_file;

#define SL_SPECIFIC_MAX   64
#define SL_FUSE_NAMES_MAX 64 /* lanes of a carrier */
#define SL_LATEST_MAX     64

enum sl_version_kind { SL_VERSIONS_LATEST, SL_VERSIONS_ALL, SL_VERSIONS_SPECIFIC };

struct sl_version_policy {
        enum sl_version_kind kind;
        uint32_t latest; /* how many, the highest numbers */
        int64_t specific[SL_SPECIFIC_MAX];
        uint32_t n_specific;
};

struct sl_model_config {
        struct sl_lower_options lowering;
        struct sl_worker_options worker;
        bool batch_given;   /* batch_max is somebody's wish, not the default */
        bool workers_given; /* so is how many workers there are */
        bool load_given;
        uint64_t batch_bytes_max;
        uint32_t instances, segment_samples, slice_ms, samples_max, queue_requests, shapes_max, fuse; /* enum sl_sharing */
        uint32_t load, idle_unload_s, idle_standby_s; /* 1: on_request, 2: standby; 0: never */
        bool on_gpu;
        struct sl_gpu_let gpus[SL_GPUS_MAX]; /* then: each has workers of its own */
        uint32_t n_gpus;
        struct sl_name_list *fuse_names;                     /* that it shares workers with, of AUTO; NULL: with any */
        uint32_t batch_sizes[SL_WORKERS_MAX], n_batch_sizes; /* the largest first; 0: instances of batch_max */
        struct sl_batching batching;
        struct sl_version_policy version_policy;
        uint32_t n_prepared;
        struct sl_dim_sizes prepared[SL_PREPARED_MAX];
        bool prepared_known; /* they are the model's own: each name is one of its open dimensions */

        const char *unused; /* a key of the model's own file that is about processes, which it has none of; NULL */

        struct sl_name_list *name; /* that it is served under, one; NULL: its folder's */

        bool is_ensemble;
        uint32_t rule; /* enum sl_rule; NONE of a model by itself */
        struct sl_name_list *members;
        uint32_t n_members; /* of them: the combiner of rule STACKING comes behind */
        bool has_weights;
        float weights[SL_MEMBERS_MAX];  /* then; unless they are for each class, in: */
        struct sl_combining *combining; /* more of the rule; NULL */

        struct sl_task_config *task; /* a task, and nothing above but the name counts; NULL: none */
};

/* The defaults of the comment above. */
void sl_model_config_init(struct sl_model_config *config);

/* A copy of the struct holds its lists, and lets them go. */
void sl_model_config_hold(struct sl_model_config *config);
void sl_model_config_deinit(struct sl_model_config *config);

/* Defaults that options of the command line have changed. Return: 0; -EINVAL what contradicts what. */
int sl_model_config_check(const struct sl_model_config *config, struct sl_error *error);

/* How the model is compiled: its options, with what its threads make of them. */
struct sl_lower_options sl_model_config_lowering(const struct sl_model_config *config);

/*
 * Reads @path over @defaults. What @ret_config holds is the caller's. Return: 0; -errno with file, line and key.
 */
int sl_model_config_read(
        const char *path, const struct sl_model_config *defaults, struct sl_model_config *ret_config, struct sl_error *error);

/* The same options as a part of another file: its schema (a mapping; the strings are in struct sl_model_texts) and their meaning.
 */
struct sl_version_texts {
        char *latest, *all;
        char **specific;
        uint32_t specific_count;
};

#define SL_LOWER_OPTION_TEXTS_NUMBER(name)    char *name;
#define SL_LOWER_OPTION_TEXTS_BYTES(name)     char *name;
#define SL_LOWER_OPTION_TEXTS_REAL(name)      char *name;
#define SL_LOWER_OPTION_TEXTS_FLAG(name)      char *name;
#define SL_LOWER_OPTION_TEXTS_BACKEND(name)   char *name;
#define SL_LOWER_OPTION_TEXTS_TUNE(name)      char *name;
#define SL_LOWER_OPTION_TEXTS_OPTIONALS(name) char *name;
#define SL_LOWER_OPTION_TEXTS_ANY_SIZE(name)  char *name;
#define SL_LOWER_OPTION_TEXTS_PRECISION(name) char *name;
#define SL_LOWER_OPTION_TEXTS_WEIGHTS(name)   char *name;
#define SL_LOWER_OPTION_TEXTS_PASSES(name)                                                                                         \
        char **name;                                                                                                               \
        uint32_t name##_count;
#define SL_LOWER_OPTION_TEXTS_SHAPES     SL_LOWER_OPTION_TEXTS_PASSES
#define SL_LOWER_OPTION_TEXTS_CORE(name) char *name;
#define SL_LOWER_OPTION_TEXTS_GPU(name)  char *name;

struct sl_model_texts {
#define X(name, kind, text, least, most) SL_LOWER_OPTION_TEXTS_##kind(name)
        SL_LOWER_OPTIONS(X)
#undef X
#define X(name, ...) char *name;
        SL_WORKER_OPTIONS(X, X)
#undef X
        char *batch_bytes_max, *instances, *threads, *segment_samples, *slice_ms, *samples_max, *queue_requests, *shapes_max, *load,
                *idle_unload_s, *idle_standby_s;
        char **device;
        uint32_t device_count;
        char **fuse;
        uint32_t fuse_count;
        char **batch_sizes;
        uint32_t batch_sizes_count;
        char *batching, *batching_delay_us, *batching_latency_ms, *batching_in_order;
        char **batching_sizes, **batching_rows;
        uint32_t batching_sizes_count, batching_rows_count;
        char **prepared_shapes;
        uint32_t prepared_shapes_count;
        struct sl_version_texts *version_policy;
        char *name; /* not among the defaults, as the next */
        struct sl_ensemble_texts *ensemble;
        struct sl_task_texts *task;
};

extern const cyaml_schema_field_t sl_model_default_fields[];

/* The tables that parse config.yaml, for config_keys.h. */
extern const cyaml_schema_field_t sl_model_fields[];
const struct sl_setting *sl_model_config_settings(size_t *ret_n);

int sl_model_config_apply(const struct sl_yaml_file *file, const char *prefix, const struct sl_model_texts *texts,
        struct sl_model_config *config, struct sl_error *error);
