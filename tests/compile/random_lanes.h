/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks at random that merge: several of one architecture with weights of their own, and here and there a node or a head that is
 * one network's alone. The same seed gives the same networks. One thread.
 */
#pragma once

#include "network.h"

#define RANDOM_LANES_MAX 16

struct random_lanes {
        uint32_t n;
        struct network nets[RANDOM_LANES_MAX];
};

void random_lanes_init(struct random_lanes *lanes, uint64_t seed, uint32_t n);
void random_lanes_deinit(struct random_lanes *lanes);
