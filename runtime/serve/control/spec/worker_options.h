/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model's configuration says of its workers, whole from there to the crew that starts them. A row here is a key of the
 * configuration, its limits and its default; a member of the record; and a part of the model's stamp. Whoever needs its value reads
 * the record. Plain values, any thread.
 */
#pragma once

#include "base/clock.h"
#include "gpu_tuning.h"

#include <stdbool.h>
#include <stdint.h>

enum sl_isolation { SL_ISOLATION_NONE, SL_ISOLATION_PROCESS };
enum sl_predictions { SL_PREDICTIONS_REAL, SL_PREDICTIONS_FAKE };
enum sl_on_crash { SL_ON_CRASH_FAIL, SL_ON_CRASH_RERUN };

/*
 * NUMBER(key, default, least, most), CHOICE(key, default, a word for each value, from 0 on):
 *
 * warmup_ms         how long an instance may run larger batches than one before its first request
 * hang_ms           that a process may have a job and answer nothing, at least; 0: any time
 * isolation         whether each worker has a process of its own
 * on_crash          what becomes of what such a process has died with
 * predictions       fake: zeros, all else is real
 * gpu_completions   words: the GPU writes itself that a launch has ended
 * gpu_fallback      cpu: what the GPU's backend cannot run is served by the CPU
 * gpu_tune          what is timed there: enum sl_gpu_tune
 * gpu_tune_seconds  so long, at most
 * gpu_results       arena: the GPU writes predictions to clients' memory
 */
#define SL_WORKER_OPTIONS(NUMBER, CHOICE)                                                                                          \
        NUMBER(warmup_ms, 200, 0, 60000)                                                                                           \
        CHOICE(gpu_completions, 0, "events", "words")                                                                              \
        CHOICE(gpu_tune, SL_GPU_TUNE_TIMED, "timed", "compiled", "off")                                                            \
        NUMBER(gpu_tune_seconds, 20, 1, 3600)                                                                                      \
        CHOICE(gpu_results, 0, "staging", "arena")                                                                                 \
        CHOICE(gpu_fallback, 0, "refuse", "cpu")                                                                                   \
        CHOICE(isolation, SL_ISOLATION_NONE, "none", "process")                                                                    \
        CHOICE(on_crash, SL_ON_CRASH_FAIL, "fail", "rerun")                                                                        \
        NUMBER(hang_ms, 120000, 0, 86400000)                                                                                       \
        CHOICE(predictions, SL_PREDICTIONS_REAL, "real", "fake")

/* Without padding, so that it can be compared and mixed as bytes. */
struct sl_worker_options {
        uint32_t threads; /* that a worker computes a batch with, of the cores of its let; 0: all */
#define X(key, ...) uint32_t key;
        SL_WORKER_OPTIONS(X, X)
#undef X
};

static inline bool sl_worker_options_are_fake(const struct sl_worker_options *options)
{
        return options->predictions == SL_PREDICTIONS_FAKE;
}

static inline uint64_t sl_worker_options_hang_ns(const struct sl_worker_options *options)
{
        return options->hang_ms * SL_NS_PER_MS;
}
