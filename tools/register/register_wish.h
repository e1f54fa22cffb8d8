/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of `starling register`: the command line, read and checked. Strings are the command line's. */
#pragma once

#include "registration.h"

struct sl_error;

#define REGISTER_NUMBERS_MAX 4u
#define REGISTER_BATCHES_MAX 11u /* 1 to 1024 */

/* MODEL=X,... */
struct register_numbers {
        char name[REGISTER_NAME_BYTES];
        float values[REGISTER_NUMBERS_MAX];
        uint32_t n;
};

struct register_numbers_list {
        const char *option;
        struct register_numbers items[REGISTER_NETWORKS_MAX];
        uint32_t n;
};

struct register_wish {
        char **models;
        uint32_t n_models;
        const char *task, *data, *labels, *reference, *into, *threads;
        char store[PATH_MAX];
        double budget, seconds, max_loss;
        uint64_t samples; /* 0: the default */
        uint32_t batches[REGISTER_BATCHES_MAX], n_batches;
        struct registered_kind kinds[REGISTER_KINDS_MAX];
        uint32_t n_kinds;
        struct register_numbers_list scales, offsets, published;
};

/* Return: 0; -EINVAL with a text, or without one after getopt has complained; -ENOENT no place for the store. */
int register_wish_parse(int argc, char **argv, struct register_wish *ret_wish, struct sl_error *error);
