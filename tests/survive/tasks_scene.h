/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime of its own with the digits networks and a task "read" of them, and a client that asks it. One thread.
 *
 *     tasks_begin() -> models, configuration -> tasks_start() -> queries -> tasks_end()
 */
#pragma once

#include "digits.h"
#include "world.h"

#define VARIANTS 4u

/* mlp, lenet, densenet, and their mean with two others, digits: as accurate as client/examples/digits/README.md says. */
extern const char *const tasks_variants[VARIANTS];

struct scene {
        struct world world;
        struct starling_client *client;
        struct starling_queue *queue;
        struct digits_data data[VARIANTS]; /* what each predicts */
        struct digits_job job;
};

/* @task: the lines of read/config.yaml; NULL: there is no task yet. */
void tasks_begin(struct scene *s, const char *task);
void tasks_start(struct scene *s);
void tasks_end(struct scene *s);

struct starling_model *tasks_query(struct scene *s, struct starling_query query);

/* The answer is the variant's that is told, bit for bit as far as the expected ones go. Return: which it was. */
uint32_t tasks_expect_answer(struct scene *s, struct starling_model *model, uint32_t samples, struct starling_answer *answer);

/* Such a query is answered by @variant, at the first try. */
void tasks_expect_variant(struct scene *s, struct starling_query query, const char *variant, enum starling_met met);
