/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options that decide what a plan looks like, and what a model may ask of the compiler: one table, from which come the fields
 * of the struct, the keys of config.yaml, KEY=VALUE of the command line and the arguments of the compiler's process. A new option
 * is one row. Plain values, no ownership; any thread.
 */
#pragma once

#include "base/dim_sizes.h"
#include "target.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_error;

/*
 * name, kind, default, least, most. A kind is a type: NUMBER uint32_t, BYTES uint64_t ("64 MiB"), REAL double, FLAG bool,
 * BACKEND, TUNE, PRECISION, WEIGHTS, OPTIONALS and ANY_SIZE uint32_t (one of the names below), PASSES uint32_t (bits of enum
 * sl_pass; a list in YAML, names with commas between them elsewhere), SHAPES struct sl_dim_sizes, CORE struct sl_core_figures
 * (kernels/target.h), GPU struct sl_cuda_figures.
 */
#define SL_LOWER_OPTIONS(X)                                                                                                        \
        X(backend, BACKEND, "cpu", 0, 0)                   /* cpu (what it lacks, ref runs), ref, cuda */                          \
        X(batch_max, NUMBER, "32", 1, 1024)                /* the ladder is 1, 2, 4, ... batch_max */                              \
        X(without_passes, PASSES, "", 0, 0)                /* graph passes that are left out */                                    \
        X(precision, PRECISION, "fp32", 0, 0)              /* of weights and activations */                                        \
        X(weights, WEIGHTS, "fp32", 0, 0)                  /* what they lie in, where a kernel can widen them */                   \
        X(tune, TUNE, "off", 0, 0)                         /* whether algorithms and layouts are timed */                          \
        X(tune_seconds, NUMBER, "30", 1, 3600)             /* most that the timing may take */                                     \
        X(merge_seconds, REAL, "2", 0, 3600)               /* for timing nodes when models are merged; 0: Algorithm 1 decides */   \
        X(merge_copies, REAL, "0.1", 0, 1000)              /* share of weights that merged models may have in a second form */     \
        X(winograd, FLAG, "true", 0, 0)                    /* whether approximate algorithms may be taken */                       \
        X(max_relative_error, REAL, "1e-4", 0, 1)          /* of an approximate algorithm, of the output's range */                \
        X(random_seed, NUMBER, "0", 0, 4294967295u)        /* of nodes that draw and have none; 0: each request draws anew */      \
        X(optional_inputs, OPTIONALS, "auto", 0, 0)        /* inputs with an initializer may be given by requests */               \
        X(any_size, ANY_SIZE, "auto", 0, 0)                /* one plan computes requests of sizes that have none of their own */   \
        X(batch_invariant, FLAG, "false", 0, 0)            /* the same bits for a sample in any batch: one at a time */            \
        X(nodes_max, NUMBER, "100000", 1, 10000000)        /* of a model; values: twice as many */                                 \
        X(model_bytes_max, BYTES, "8 GiB", 1, 1ull << 44)  /* of the file, and of all its constants */                             \
        X(tensor_bytes_max, BYTES, "4 GiB", 1, 1ull << 44) /* of one tensor */                                                     \
        X(plan_seconds, NUMBER, "120", 1, 86400)           /* processor time of a compilation; its tuning comes on top */          \
        X(plan_bytes_max, BYTES, "16 GiB", 1, 1ull << 44)  /* of the plan file */                                                  \
        X(workspace_bytes_max, BYTES, "16 GiB", 1, 1ull << 44) /* of an instance at the largest batch */                           \
        X(dynamic_bytes_max, BYTES, "256 MiB", 1, 1ull << 44)  /* of what one run makes of data-dependent shapes */                \
        X(work_max, REAL, "1e13", 1, 1e18)                     /* elementary steps of one run: see below */                        \
        X(dynamic_steps_max, NUMBER, "1000000", 1, 4000000000) /* nodes and rounds of loops that one run may take */               \
        X(teams, FLAG, "true", 0, 0) /* whether steps are cut for teams of cores; serve asks for it where threads is above 1 */    \
        X(team_size, NUMBER, "0", 0, 64)     /* of the team for which the tuner times parts; 0: as many as there are CPUs */       \
        X(laned, FLAG, "false", 0, 0)        /* products are packed as merged plans have them; what says `fuse` asks for it */     \
        X(core_measured, FLAG, "true", 0, 0) /* whether serve measures what a core reaches, where the next says nothing */         \
        X(core, CORE, "", 0, 0)              /* figures of a core: flops=1.2e11,far=3e10; what is left out is typical */           \
        X(gpu, GPU, "auto", 0, 0)    /* that backend cuda plans for: auto (the model's, else h100), h100, h200, a file (JSON) */   \
        X(tf32, FLAG, "false", 0, 0) /* whether backend cuda may round factors of float32 products to 10 bits */                   \
        X(shapes, SHAPES, "", 0, 0)  /* of open dimensions: sequence=128,height=224 */                                             \
        X(shapes_known, FLAG, "false", 0, 0) /* whether each of these has to be a dimension of the model */

/*
 * work_max bounds how long one run of the largest batch may take, in elementary steps (kernels/op.h) by what each counts on its
 * backend (step_weight of kernels/backend.h). A core that computes 32 multiply-adds at once, 3 thousand million times a second,
 * does 1e13 in two minutes; a model that is as dear as 10 TFLOP a sample passes (5e12), ResNet-152 is 1.2e10, and the largest of
 * the digits 3e6. A model whose smallest batch takes more is refused, sizes of the ladder that take more are left out, and what is
 * known only while a model runs fails there.
 */
enum sl_tune { SL_TUNE_OFF, SL_TUNE_QUICK, SL_TUNE_FULL };

/*
 * Of inputs that have an initializer. AUTO: the plan has the initializers as constants and names the inputs; another plan, which is
 * GIVEN, computes requests that give any. GIVEN: they are inputs of the plan, which has what they are when left out. OFF:
 * constants.
 */
enum sl_optionals { SL_OPTIONALS_AUTO, SL_OPTIONALS_GIVEN, SL_OPTIONALS_OFF };

/*
 * Of open dimensions. AUTO: beside the plans of single sizes there is one of any size, where the model allows it. ONLY: that is the
 * one to be compiled. OFF: each size has a plan of its own.
 */
enum sl_any_size { SL_ANY_SIZE_AUTO, SL_ANY_SIZE_ONLY, SL_ANY_SIZE_OFF };

enum sl_precision { SL_PRECISION_FP32, SL_PRECISION_BF16, SL_PRECISION_INT8 };

/* Of weights that a merged plan may have of each model in a second form, however few these have (merge_copies above 0). */
#define SL_MERGE_LANE_BYTES 8192u

/* All arithmetic stays float32. */
enum sl_weights { SL_WEIGHTS_FP32, SL_WEIGHTS_F16, SL_WEIGHTS_BF16 };

#define SL_LOWER_OPTION_TYPE_NUMBER    uint32_t
#define SL_LOWER_OPTION_TYPE_BYTES     uint64_t
#define SL_LOWER_OPTION_TYPE_REAL      double
#define SL_LOWER_OPTION_TYPE_FLAG      bool
#define SL_LOWER_OPTION_TYPE_BACKEND   uint32_t
#define SL_LOWER_OPTION_TYPE_TUNE      uint32_t
#define SL_LOWER_OPTION_TYPE_OPTIONALS uint32_t
#define SL_LOWER_OPTION_TYPE_ANY_SIZE  uint32_t
#define SL_LOWER_OPTION_TYPE_PRECISION uint32_t
#define SL_LOWER_OPTION_TYPE_WEIGHTS   uint32_t
#define SL_LOWER_OPTION_TYPE_PASSES    uint32_t
#define SL_LOWER_OPTION_TYPE_SHAPES    struct sl_dim_sizes
#define SL_LOWER_OPTION_TYPE_CORE      struct sl_core_figures
#define SL_LOWER_OPTION_TYPE_GPU       struct sl_cuda_figures

struct sl_lower_options {
#define X(name, kind, text, least, most) SL_LOWER_OPTION_TYPE_##kind name;
        SL_LOWER_OPTIONS(X)
#undef X
};

enum sl_lower_option {
#define X(name, kind, text, least, most) SL_LOWER_OPTION_##name,
        SL_LOWER_OPTIONS(X)
#undef X
                SL_LOWER_OPTION_COUNT,
};

#define SL_LOWER_OPTION_TEXT_BYTES 4352

/* The defaults of the table. */
void sl_lower_options_init(struct sl_lower_options *options);

/*
 * What workers of so many threads make of them, 0: of as many as there are CPUs. For one nothing is cut; else parts are timed for
 * that many. What was set stays.
 */
void sl_lower_options_use_threads(struct sl_lower_options *options, uint32_t threads);

/* Members of the team that they plan for: team_size, else as many as the process has CPUs; 1: none. */
uint32_t sl_lower_options_team(const struct sl_lower_options *options);

/* "batch_max"; the option of that name, or SL_LOWER_OPTION_COUNT. */
const char *sl_lower_option_name(enum sl_lower_option option);
enum sl_lower_option sl_lower_option_find(const char *name);

/* Gives one option its value. Return: 0; -EINVAL after writing what it wanted to @ret_wish (as base/value.h does). */
int sl_lower_options_set(struct sl_lower_options *options, enum sl_lower_option option, const char *text, char *ret_wish);

/* "KEY=VALUE". Return: 0; -EINVAL, the text names key, value and what was wanted. */
int sl_lower_options_parse(struct sl_lower_options *options, const char *assignment, struct sl_error *error);

/* The value as sl_lower_options_set() reads it: the same value, always the same text. */
void sl_lower_options_text(
        const struct sl_lower_options *options, enum sl_lower_option option, char ret_text[SL_LOWER_OPTION_TEXT_BYTES]);

/* "cpu", "ref", "cuda". */
const char *sl_lower_options_backend(const struct sl_lower_options *options);

/* Does option `core` say anything? */
bool sl_lower_options_have_core(const struct sl_lower_options *options);

/* Is there a GPU that it is planned for? */
bool sl_lower_options_have_gpu(const struct sl_lower_options *options);

/* What is planned for: what the options say of the core, and what is typical where they say nothing. */
struct sl_target sl_lower_options_target(const struct sl_lower_options *options);
