/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has been chosen for a plan on a GPU (gpu_choices.h), while its kernels are made: from a file, and where nothing is known, by
 * the clock (trial.h). What was chosen once stays, so that whoever has the file computes the same again. One thread, with the
 * device's context.
 */
#pragma once

#include "cuda/driver/device.h"
#include "gpu_choices.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_cuda_chooser;
struct sl_cuda_libraries;

struct sl_cuda_chooser_options {
        struct sl_gpu_identity identity;
        uint64_t plan[2];  /* its checksum and bytes */
        bool times;        /* what is not known is timed; else it is the first candidate, and that is not noted */
        bool compiles;     /* among the candidates are engines that are compiled at run time */
        uint64_t bound_ns; /* of all that is timed; what is left then is the first candidate */

        /*
         * Memory of the device for what is timed, which stays until the next call; it is the caller's. Return: 0; -ENOMEM: what
         * wants it is not timed.
         */
        int (*room)(void *context, uint64_t bytes, CUdeviceptr *ret_address);

        /* Between runs: who has other work does a little of it. NULL: nobody. */
        void (*breathe)(void *context);
        void *context;
};

/* Return: 0; -ENOMEM. */
int sl_cuda_chooser_new(const struct sl_cuda_chooser_options *options, struct sl_cuda_chooser **ret_chooser);
/* NULL is fine. Returns NULL. */
struct sl_cuda_chooser *sl_cuda_chooser_free(struct sl_cuda_chooser *chooser);

/* What choices of this device, driver and these libraries are known by. @percent: 0: all of the device. */
void sl_cuda_chooser_identify(const struct sl_cuda_device *device, const struct sl_cuda_libraries *libraries, uint32_t percent,
        struct sl_gpu_identity *ret_identity);

/*
 * Knows what a file says; what was not timed, as there was no memory or not enough time for it, only where all that was timed took
 * its bound by now: else that is timed after all. Before anything else. Return: 0; -EBADMSG, -ESTALE with text: nothing of it;
 * -ENOMEM.
 */
int sl_cuda_chooser_read(struct sl_cuda_chooser *chooser, const void *data, uint64_t bytes, struct sl_error *error);

/* All that it knows, as a file. Return: as sl_gpu_choices_write(). */
int sl_cuda_chooser_write(const struct sl_cuda_chooser *chooser, void **ret_data, uint64_t *ret_bytes);

/* It knows more than it has read, and than when it was written last. */
bool sl_cuda_chooser_has_news(const struct sl_cuda_chooser *chooser);
void sl_cuda_chooser_told(struct sl_cuda_chooser *chooser);

/* ---- for the backend ---- */

const struct sl_cuda_chooser_options *sl_cuda_chooser_options(const struct sl_cuda_chooser *chooser);

/* NULL: nothing is known. Valid until the next is kept or forgotten. */
const struct sl_gpu_choice *sl_cuda_chooser_find(const struct sl_cuda_chooser *chooser, const uint64_t key[2]);

/* What it has noted as taken, in this process. */
uint64_t sl_cuda_chooser_spent_ns(const struct sl_cuda_chooser *chooser);

/* Has it time for another? */
bool sl_cuda_chooser_has_time(const struct sl_cuda_chooser *chooser);

/*
 * Keeps a copy. @n_candidates: that were timed for it in @taken_ns; 0: it is the first one. What there is no memory for is not
 * known later, no more.
 */
void sl_cuda_chooser_keep(
        struct sl_cuda_chooser *chooser, const struct sl_gpu_choice *choice, uint32_t n_candidates, uint64_t taken_ns);

/* The library does not take it. */
void sl_cuda_chooser_forget(struct sl_cuda_chooser *chooser, const uint64_t key[2]);
