/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was found out about a plan on a GPU: by which plan of cuDNN and which algorithms of cuBLASLt its nodes are computed, as a
 * file. The process of the GPU makes and reads it (cuda/chooser.h); the runtime keeps it beside the plan, and knows of it what is
 * here. Either may get it from the other, or from a disk: nothing in it is believed before it was checked.
 *
 *     header: magic, version, checksum, whom it is of, counts | a row for each node or product | texts
 *
 * Functions without state; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_error;

#define SL_GPU_CHOICES_BYTES_MAX    (64ull << 20)
#define SL_GPU_CHOICES_MAX          65536u
#define SL_GPU_CHOICE_WORKSPACE_MAX (1ull << 40)
#define SL_GPU_ALGORITHM_BYTES      64u

/* On what choices depend beside the plan. Texts are terminated, and zero behind their end. */
struct sl_gpu_identity {
        char device[96], driver[32]; /* the driver's release; "": it does not say */
        uint32_t capability;         /* 900: 9.0 */
        uint32_t n_processors;
        uint32_t percent; /* of them, which the plan's workers may use; 0: all */
        uint32_t cuda_version, cudnn_version, cublaslt_version;
};

/* What the file says of itself. */
struct sl_gpu_choices_facts {
        struct sl_gpu_identity identity;
        uint64_t plan[2];      /* the plan's checksum and bytes */
        uint32_t n_choices;    /* nodes and products that differ */
        uint32_t n_timed;      /* of them, those that have been timed */
        uint32_t n_candidates; /* that were timed, of all of those */
        uint32_t reserved;     /* 0 */
        uint64_t timed_ns;     /* what that took */
};

/* How a node, or a product of matrices within one, is computed. */
struct sl_gpu_choice {
        uint64_t key[2];          /* a digest of it, and of what there was to choose from */
        uint32_t way;             /* of a node: enum sl_cuda_way; 0: it is a product */
        uint32_t has_algorithm;   /* 1: cuBLASLt's, in `algorithm`; else it is the first that its heuristics name */
        uint64_t workspace_bytes; /* that the text, or the algorithm, wants */
        uint64_t ns;              /* what it takes; 0: it was not timed */
        const char *text;         /* a finished plan of cuDNN, terminated; NULL: none */
        uint64_t text_bytes;
        uint8_t algorithm[SL_GPU_ALGORITHM_BYTES];
};

/* @facts: its n_choices are those of @choices. Return: 0, the data are malloc()ed; -E2BIG more than a file holds; -ENOMEM. */
int sl_gpu_choices_write(
        const struct sl_gpu_choices_facts *facts, const struct sl_gpu_choice *choices, void **ret_data, uint64_t *ret_bytes);

/*
 * Reads all of it, at an address that is a multiple of 8. Return: 0, and sl_gpu_choices_at() gives the rows; -EBADMSG, the text
 * says what is wrong.
 */
int sl_gpu_choices_check(const void *data, uint64_t bytes, struct sl_gpu_choices_facts *ret_facts, struct sl_error *error);

/* Row @index of a file that was checked, whose text lies in it. */
void sl_gpu_choices_at(const void *data, uint32_t index, struct sl_gpu_choice *ret_choice);

/*
 * Are they of the same device, driver, libraries and plan? Return: 0; -ESTALE, the text says what is not, and how.
 * Pure.
 */
int sl_gpu_choices_fit(const struct sl_gpu_choices_facts *found, const struct sl_gpu_choices_facts *wanted, struct sl_error *error);
