/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which unknown dimensions of a graph are equal whatever the sizes, and which numbers of shape arithmetic they are. Of a graph of
 * any size (graph.h, symbols); in every other one nothing but numbers is equal. What is said follows from the operators' rules for
 * all sizes, 0 and 1 among them, as long as dimensions of one name have one size. Private to this folder; read-only, one owner.
 *
 * An unknown dimension has a *class*. Two of one class are equal; of those of two classes nothing is known.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_graph;
struct sl_open_dims;

/* Of @graph as it is: values that are added later have no classes. Return: 0; -ENOMEM. */
int sl_open_dims_new(const struct sl_graph *graph, struct sl_open_dims **ret_dims);
struct sl_open_dims *sl_open_dims_free(struct sl_open_dims *dims);

/* Dimension @i of value @a and dimension @k of value @b are known to be equal. */
bool sl_open_dims_same(const struct sl_open_dims *dims, uint32_t a, uint32_t i, uint32_t b, uint32_t k);

/* The class of dimension @i of @value, from 1; 0: it has none. At most sl_open_dims_classes(). */
uint32_t sl_open_dims_class(const struct sl_open_dims *dims, uint32_t value, uint32_t i);
uint32_t sl_open_dims_classes(const struct sl_open_dims *dims);

/* Both have the same rank, and all dimensions are. */
bool sl_open_dims_same_shape(const struct sl_open_dims *dims, uint32_t a, uint32_t b);

/*
 * The shape that a Reshape of @data by the numbers in @shape makes, said without those: numbers, and 0 where a dimension is that of
 * @data at the same place. Return: how many they are; 0: it cannot be said so.
 */
uint32_t sl_open_dims_list(const struct sl_open_dims *dims, uint32_t data, uint32_t shape, int64_t *ret_list);
