/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model is, apart from its weights: operators, attributes, epilogues, wiring, types and shapes. Pure; the graph's owner.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_graph;

/* Two numbers that tell where to look for models that merge; whether they do is for sl_match_new() to say. */
struct sl_architecture {
        uint64_t digest[2]; /* equal for graphs that differ in names and in the values of constants alone */
        uint64_t family[2]; /* equal also where sizes differ: a common backbone whose heads have other widths */
};

/* @graph: with the portable passes behind it. Takes time in proportion to the nodes. Return: 0, -ENOMEM. */
int sl_architecture_of(const struct sl_graph *graph, struct sl_architecture *ret_architecture);

/* A node by itself: equal numbers for nodes that agree. Bodies count by their digest. Return: 0, -ENOMEM. */
int sl_architecture_node(const struct sl_graph *graph, uint32_t node, uint64_t *ret_signature);

/*
 * Whether the nodes agree in everything but the values of constants and where their inputs come from; @ret_why (of @room bytes)
 * says what differs, the first as "here", the second as "there".
 */
bool sl_architecture_agrees(
        const struct sl_graph *here, uint32_t a, const struct sl_graph *there, uint32_t b, char *ret_why, size_t room);
