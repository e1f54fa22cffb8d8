/*
 * The forms in which backends want constant inputs. A form is chosen once per node and input, at the largest batch size, and kept
 * for all others, so that one copy of the weights serves them all; an input that some size cannot take in that form stays plain
 * everywhere. Built by the compiler, sizes from the largest down. One owner thread.
 */
#pragma once

#include "backend.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_error;
struct sl_placement;
struct sl_packing;
struct sl_schedule;

/* @n_nodes: of the source graph, whose indices the placements' origins are. Return: 0, -ENOMEM. */
int sl_packing_new(uint32_t n_nodes, struct sl_packing **ret_packing);
struct sl_packing *sl_packing_free(struct sl_packing *packing);

/*
 * Compiles every step once, as the serving process will: chooses forms where there are none yet, fills the steps' scratch_bytes.
 * *ret_again becomes true when a form chosen earlier had to be given up: then all sizes must be walked again, from the largest.
 * The placements stay alive as long as the packing. Return: 0; -ENOMEM; what a backend says (the text names the node).
 */
int sl_packing_walk(struct sl_packing *packing, const struct sl_placement *placement, struct sl_schedule *schedule, bool *ret_again,
        struct sl_error *error);

/* The form and the data of constant input @input of source node @origin; NULL when it stays plain. */
const struct sl_packed *sl_packing_find(const struct sl_packing *packing, uint32_t origin, uint32_t input, const void **ret_data);
