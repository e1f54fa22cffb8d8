/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ensemble in its config.yaml: the rule by which its members' predictions become one, and what that is told.
 *
 *     ensemble:
 *       members: [lenet, resnet:2]     # names of models: the newest served version, or NAME:VERSION
 *       rule: weighted_mean            # a rule of serve/execute/rule.h
 *       weights: [0.4, 0.6]            # one per member; of weighted_mean also one row per member, a weight for each class:
 *       weights: ["1,0,0.5", "0,1,0.5"]
 *       detection:                     # of rules of boxes: which outputs are what, and limits
 *         boxes: detection_boxes
 *         overlap: 0.55
 *       combiner: blend                # of stacking: the model over the predictions side by side
 *       until: {agree: 3}              # or {margin: 0.4}: members are asked in their order, until a sample is settled
 *       quorum: 2                      # so many members have to answer by the deadline
 *
 * Threads: one at a time.
 */
#pragma once

#include <cyaml/cyaml.h>
#include <stdint.h>

struct sl_error;
struct sl_model_config;
struct sl_yaml_file;

struct sl_detection_texts {
        char *boxes, *scores, *labels, *count, *overlap, *score_min, *sigma;
};

struct sl_until_texts {
        char *agree, *margin;
};

struct sl_ensemble_texts {
        char **members;
        uint32_t members_count;
        char *rule, *combiner;
        char **weights;
        uint32_t weights_count;
        struct sl_detection_texts *detection;
        struct sl_until_texts *until;
        char *quorum;
};

extern const cyaml_schema_field_t sl_ensemble_fields[];

/* Over what @config has: that is an ensemble then. Return: 0; -EINVAL with file, line and key; -ENOMEM. */
int sl_ensemble_config_apply(const struct sl_yaml_file *file, const struct sl_ensemble_texts *texts, struct sl_model_config *config,
        struct sl_error *error);
