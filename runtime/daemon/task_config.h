/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task in its config.yaml, which has nothing else:
 *
 *     task:
 *       variants: [mlp, lenet, resnet]    # models or ensembles that answer the same question
 *       accuracy: [0.93, 0.981, 0.987]    # of each, 0 to 1
 *       cost: [1, 2.5, 20]                # of each, in any unit; without it, the time that it computes
 *       latency_ms: [0.02, 0.1, 0.8]      # of each for one sample, until it has been measured
 *       batches_ms: ["0.02 0.03", "", ""] # likewise, of batches of 1, 2, 4 ... 64
 *       processor: "AMD EPYC 9354, ..."   # on which latencies were measured: on another one they do not count
 *       version: "1.2.0"                  # by which; likewise
 *       files: ["0f...", "", ""]          # of each the digest of the model file that was measured: another one is left out
 *       load: accurate                    # at the start: the most accurate alone; all: each
 *       choice: starling                  # infaas, cheapest, accurate: a policy of shm/choice.h
 *
 * A block that configurations which are copied share: it lives as long as one of them holds it, and never changes. Threads: one at
 * a time.
 */
#pragma once

#include <cyaml/cyaml.h>
#include <stdint.h>

struct sl_error;
struct sl_yaml_file;

struct sl_task_texts {
        char **variants, **accuracy, **cost, **latency_ms, **batches_ms, **files;
        uint32_t variants_count, accuracy_count, cost_count, latency_ms_count, batches_ms_count, files_count;
        char *load, *choice, *processor, *version;
};

extern const cyaml_schema_field_t sl_task_fields[];

enum sl_task_load { SL_TASK_LOAD_ACCURATE, SL_TASK_LOAD_ALL };

struct sl_task_config {
        uint32_t holders, n, policy;
        enum sl_task_load load;
        const char **variants, **files;
        const char *processor, *version;
        double *accuracies, *costs, *latencies_ms, *batches_ms; /* files, costs, latencies_ms, batches_ms: NULL: none */
};

/* Held once. Return: 0; -EINVAL with file, line and key; -ENOMEM. */
int sl_task_config_new(const struct sl_yaml_file *file, const struct sl_task_texts *texts, struct sl_task_config **ret_config,
        struct sl_error *error);

/* NULL is fine. hold returns @config, release NULL. */
struct sl_task_config *sl_task_config_hold(struct sl_task_config *config);
struct sl_task_config *sl_task_config_release(struct sl_task_config *config);
