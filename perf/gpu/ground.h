/* SPDX-License-Identifier: Apache-2.0 */
/* What each measurement starts from: the device, opened, and one model's plan on it. One thread. */
#pragma once

#include "cuda/chooser.h"
#include "gpu_worker.h"
#include "host_region.h"

#include <stdbool.h>

struct sl_lower_options;

struct ground {
        struct sl_cuda_driver driver;
        struct sl_cuda_device device;
        struct sl_gpu gpu;
        struct sl_greens greens;
        bool can_cut;      /* into green contexts */
        uint32_t n_tokens; /* integers of inputs are below this */
        bool reads_only;   /* inputs of requests are mapped read-only, as clients' memory is in the process of a GPU */
        struct sl_cuda_chooser *chooser; /* NULL: first candidates are taken */
        CUdeviceptr lent;                /* for what is timed */
};

/* Return: 0; what sl_cuda_device_open() says. */
int ground_open(struct ground *ground, struct sl_error *error);
void ground_close(struct ground *ground);

/* With the options of a backend, a GPU's figures and a batch. Prints what is wrong. Return: the plan; NULL. */
struct sl_plan *ground_plan(const char *skeleton, const struct sl_lower_options *options, struct sl_error *error);

/*
 * Who times the candidates of a plan while its kernels are made, for so many seconds at most, as serve/gpu does. Return: 0;
 * -ENOMEM; what the libraries say. ground_close() frees it.
 */
int ground_tune(struct ground *ground, const struct sl_plan *plan, double seconds, struct sl_error *error);

/* A request of a model: its samples and room for what comes out, in memory that the device reaches. */
struct request {
        struct ground *ground;
        const struct sl_plan_info *info;
        uint32_t samples, n_pieces;
        struct sl_host_region region, view; /* all of it; once more, where inputs are read */
        const void *inputs[SL_PLAN_PORTS_MAX];
        void *outputs[SL_PLAN_PORTS_MAX];
        struct sl_gpu_piece *pieces;
        const void **piece_inputs;
        void **piece_outputs;
        uint32_t *piece_samples;
        int32_t *statuses;
        struct sl_gpu_job job;
};

/* @n_pieces parts of as many samples. Return: 0; -ENOMEM; -ENOTSUP a port whose size is not known. */
int request_init(struct request *request, struct ground *ground, const struct sl_plan *plan, uint32_t samples, uint32_t n_pieces);
void request_deinit(struct request *request);

/* As if it had not been given yet. */
void request_reset(struct request *request);
