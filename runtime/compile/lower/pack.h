/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forms in which backends want constant inputs. A form is chosen once per node and input, at the largest batch size, and kept
 * for all others, so that one copy of the weights serves them all; an input that some size cannot take in that form stays plain
 * everywhere. Built by the compiler, sizes from the largest down. One owner thread.
 */
#pragma once

#include "backend.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_base_plan;
struct sl_error;
struct sl_packing;
struct sl_program;

/* What was packed for one input. Borrowed. */
struct sl_packed_constant {
        const struct sl_packed *packed;
        const void *data;
        uint64_t hash;   /* sl_constants_hash() */
        uint64_t offset; /* in DATA, when it was made in the plan file */
        bool in_place;
};

struct sl_packing_options {
        uint32_t n_nodes;                /* of the source graph, bodies included */
        int fd;                          /* of the plan file to come, where large constants are made, or -1 */
        struct sl_target target;         /* what is planned for */
        const struct sl_base_plan *base; /* whose constants are not made again, or NULL; borrowed until the packing is freed */
        bool uncut;                      /* no team will compute it: no step has splits */
};

/* Return: 0, -ENOMEM. */
int sl_packing_new(const struct sl_packing_options *options, struct sl_packing **ret_packing);
struct sl_packing *sl_packing_free(struct sl_packing *packing);

/*
 * Has the planner of every step say its last word: chooses forms where there are none yet, fills the steps' scratch_bytes.
 * *ret_again becomes true when a form chosen earlier had to be given up: then all sizes must be walked again, from the largest.
 * The steps of bodies are not walked. The placement stays alive as long as the packing. Return: 0; -ENOMEM; what a backend says
 * (the text names the node).
 */
int sl_packing_walk(struct sl_packing *packing, const struct sl_program *program, bool *ret_again, struct sl_error *error);

/* Constant input @input of source node @origin, whose number is behind those of the graphs around it; false when it stays plain. */
bool sl_packing_find(const struct sl_packing *packing, uint32_t origin, uint32_t input, struct sl_packed_constant *ret_constant);

/* How many bytes of DATA are made already. NULL is fine. */
uint64_t sl_packing_placed_bytes(const struct sl_packing *packing);
