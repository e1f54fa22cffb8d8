/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime in this process that serves "open", a model whose inputs have open dimensions beside the batch, and one client of it.
 */
#pragma once

#include "service.h"

#include <stdbool.h>
#include <stdint.h>

#define DEPTH 3 /* the last dimension of "open" */

struct scene {
        struct service service;
        char model[96], program[96];
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *open;
        struct starling_tensor input, output;
};

void scene_write_file(const char *path, const void *bytes, size_t n, mode_t mode);
void write_model(struct scene *s);
void write_easy_model(struct scene *s);
void write_scaling_model(struct scene *s, float scale);
void write_doubling_model(struct scene *s);
void scene_begin(struct scene *s, void (*write_it)(struct scene *));
void scene_start(struct scene *s);
void scene_end(struct scene *s);
uint32_t scene_count_logged(struct scene *s, const char *text);
bool scene_has_logged(struct scene *s, const char *text);
struct starling_request scene_request(struct scene *s, uint32_t samples, uint32_t size);
int scene_infer(struct scene *s, uint32_t samples, uint32_t size, struct starling_completion *done);
void expect_sum(struct scene *s, uint32_t samples, uint32_t size);
void expect_scaled(struct scene *s, uint32_t samples, uint32_t size, float scale);
