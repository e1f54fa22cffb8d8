/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of `starling profile`: the command line, read and checked. Strings are the command line's, the devices are its own.
 */
#pragma once

#include "data_folders.h"
#include "device_let.h"
#include "lower_options.h"
#include "thread_list.h"
#include "worker_round.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_error;

#define WISH_DEVICES_MAX    ((uint32_t)CPU_SETSIZE)
#define WISH_BATCHES_MAX    11u /* 1 to 1024 */
#define WISH_PRECISIONS_MAX 3u

struct wish {
        char **names; /* behind the options: models, files */
        int n_names;
        struct sl_device_let *devices; /* at most WISH_DEVICES_MAX */
        uint32_t n_devices;
        uint32_t batches[WISH_BATCHES_MAX]; /* ascending */
        uint32_t n_batches;
        struct thread_list threads;               /* of a worker's team; none is more than a device has cores */
        uint32_t precisions[WISH_PRECISIONS_MAX]; /* enum sl_precision; none: what the model's configuration says */
        uint32_t n_precisions;
        uint32_t n_beside; /* workers of the largest combination; 1: each alone */
        bool mixed, again, disturbed, json, elastic;
        bool devices_given, batches_given; /* not the defaults */
        double width, seconds;
        char store[PATH_MAX];
        bool store_named;          /* by --store; else it is the user's own */
        const char *output;        /* NULL: stdout */
        const char *lowerings[64]; /* KEY=VALUE */
        uint32_t n_lowerings;
        struct data_folders folders;
        struct sl_data_folders given; /* them; of this struct, which is not copied */
};

/* @argv[0] is not looked at. Return: 0; -EINVAL with a text, or without one after getopt has complained; -ENOMEM. Deinit it in
 * either case. */
int wish_parse(int argc, char **argv, struct wish *ret_wish, struct sl_error *error);
void wish_deinit(struct wish *wish);

/* Gives the options of the command line to @lowering. Return: 0; -EINVAL with the text. */
int wish_lower(const struct wish *wish, struct sl_lower_options *lowering, struct sl_error *error);
