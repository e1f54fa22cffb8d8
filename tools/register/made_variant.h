/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A candidate is made and its accuracy measured, in a process without rights (confined.h) that reads model, samples and labels.
 * One thread.
 */
#pragma once

#include "registration.h"
#include "score.h"

struct sl_error;

struct making {
        const char *source;            /* the file that is read */
        const char *data, *label_file; /* label_file: NULL: none, or @labels are in its place */
        const int32_t *labels;         /* [n_labels]; NULL: none */
        uint64_t n_labels;
        const struct sl_task_ports *task; /* NULL: @source sets what the task's inputs and outputs are */
        bool probabilities;               /* the task's outputs are */
        struct sl_adapter_wish adapter;   /* of float32 alone: what is made of it has it already */
        struct sl_lower_options lowering;
        uint64_t calibration; /* the first samples, which are not measured on; 0: a quarter, 256 at most */
        double max_loss;
        bool writes;      /* a file is wanted even if nothing is adapted */
        uint64_t seconds; /* of the process's time, at most */
};

struct made {
        struct sl_task_ports ports;
        struct sl_score score;
        char adapter[SL_ADAPTER_TEXT];
        uint64_t count, calibration;
        uint32_t n_products, n_float;          /* of int8 */
        int32_t classes[REGISTER_SAMPLES_MAX]; /* of float32: of each sample behind the calibration */
};

/*
 * *ret_fd: the file, in memory; -1 where nothing was written, since @source is it. Return: 0; -ETIME over the seconds; -EINVAL and
 * others with the text of adapter, dataset, score or quantizer.
 */
int make_variant(const struct making *making, struct made *ret_made, int *ret_fd, struct sl_error *error);
