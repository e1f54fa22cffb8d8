/* SPDX-License-Identifier: Apache-2.0 */
/* What starling-gpu measures: each prints flat JSON, a line for each figure or row. One thread. */
#pragma once

#include "ground.h"
#include "lower_options.h"

struct wish {
        struct sl_lower_options options; /* of the backend cuda */
        uint32_t batch, n_pieces, percent, n_flying, n_tokens;
        double seconds, limit;
        double tune_seconds; /* in which candidates are timed before, at most; 0: the first ones are taken */
        bool words, read_only, wants_help;
        char **models; /* skeletons, or whole files */
        int n_models;
};

/* Return: 0; -errno with the line. */
int command_device(struct ground *ground, const struct wish *wish, struct sl_error *error);
int command_agree(struct ground *ground, const struct wish *wish, struct sl_error *error);
int command_time(struct ground *ground, const struct wish *wish, struct sl_error *error);
int command_launch(struct ground *ground, const struct wish *wish, struct sl_error *error);
int command_lets(struct ground *ground, const struct wish *wish, struct sl_error *error);
int command_memory(struct ground *ground, const struct wish *wish, struct sl_error *error);

/* A model's name out of its path: "resnet50", or of .../NAME/model.onnx the folder's. */
const char *name_of(const char *path, char ret_name[128]);
