/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rows of scores are read as: by shape rules and kernels alike.
 *
 * starling.ClassScores: input 0 [N, K] of F32 or F64, input 1 the labels, I64, without which there is no output 1. By GROUP
 *
 *   PLAIN    K scores go out; the label is that of the largest, or, for K = 1 and two labels, of whether it is above ALPHA
 *   SIGNED   K = 1: -s and s go out; the label as for PLAIN
 *   SHARE    the same, with 1 - s and s
 *
 * A single score that stands for two is transformed by LOGISTIC and PROBIT alone.
 *
 * starling.PairClasses: input 0 [N, C * (C - 1) / 2] of F32, each larger than 0 when the first of two classes (0 and 1, 0 and 2,
 * ..., 1 and 2, ...) beats the second; input 1 the labels, I64 [C]; inputs 2 and 3 the slopes and offsets, F32, of the sigmoids
 * that make probabilities of them. Output 0 has the probability of each class, or its votes where inputs 2 and 3 are absent; output
 * 1 the label with the most votes.
 */
#pragma once

#include "node.h"
#include "op.h"

enum sl_post_transform { SL_POST_NONE, SL_POST_SOFTMAX, SL_POST_LOGISTIC, SL_POST_SOFTMAX_ZERO, SL_POST_PROBIT, SL_POST_LIMIT };
enum sl_score_form { SL_SCORES_PLAIN, SL_SCORES_SIGNED, SL_SCORES_SHARE, SL_SCORES_LIMIT };

#define SL_CLASS_SCORES_MAX (1 << 24)
#define SL_PAIR_CLASSES_MAX 2048

struct sl_class_scores {
        enum sl_post_transform post;
        enum sl_score_form form;
        int64_t rows, scores; /* that come in */
        double threshold; /* of K = 1 */
        bool has_labels;
};

/* -EINVAL. */
int sl_class_scores_read(const struct sl_node_desc *node, struct sl_class_scores *ret_scores, struct sl_error *error);

struct sl_pair_classes {
        int64_t rows, classes, pairs;
        bool has_probabilities;
};

int sl_pair_classes_read(const struct sl_node_desc *node, struct sl_pair_classes *ret_classes, struct sl_error *error);

/* Rounds of the coupling of probabilities, at most. */
int64_t sl_pair_classes_rounds(const struct sl_pair_classes *classes);
