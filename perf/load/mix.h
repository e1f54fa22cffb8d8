/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which model a request is for: picks from weights, each in constant time. Pure; immutable once made, so that any thread may pick
 * with random numbers of its own.
 *
 * Sources: A. Walker, "An efficient method for generating discrete random variables with general distributions", 1977; M. Vose, "A
 * linear algorithm for generating random numbers with a given distribution", 1991 (the alias method).
 */
#pragma once

#include "random.h"

struct sl_mix;

/* @weights: @n of them, none below 0, together more than 0. Return: 0; -EINVAL such weights are no mix; -ENOMEM. */
int sl_mix_new(const double *weights, uint32_t n, struct sl_mix **ret_mix);
struct sl_mix *sl_mix_free(struct sl_mix *mix);

/* A number below @n, as often as its weight is of all. */
uint32_t sl_mix_pick(const struct sl_mix *mix, struct sl_random *random);

/* Zipf's weights: the k-th of @n is 1/k^exponent, so that the first is the most popular. */
void sl_mix_zipf(double exponent, uint32_t n, double *ret_weights);
