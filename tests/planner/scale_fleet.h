/* SPDX-License-Identifier: Apache-2.0 */
/* Fleets for the tests of scaling, random ones out of a seed. */
#pragma once

#include "scale.h"

#define KINDS_MOST 64u

struct scale_fleet {
        struct sl_scale_need needs[8];
        struct sl_scale_kind kinds[KINDS_MOST];
        struct sl_scale_problem problem;
};

/* Without bounds, slack 1. */
struct sl_scale_problem scale_problem(const struct sl_scale_need *needs, uint32_t n_needs, const struct sl_scale_kind *kinds);

/* @n_kinds for each of @n_needs, with at most @n_most instances; what runs at first is within the resources. */
void scale_fleet(uint64_t seed, uint32_t n_needs, uint32_t n_kinds, uint32_t n_most, struct scale_fleet *ret_fleet);

/* Draws in [0, n), and between two numbers above 0. */
uint32_t scale_draw(uint64_t *seed, uint32_t n);
double scale_between(uint64_t *seed, double least, double most);
