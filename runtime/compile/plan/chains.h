/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains: steps one behind the other that a team computes without waiting for each other in between, each member what it has of the
 * first, then of the second. Of a step a member may have a part, all or nothing, so that branches run side by side on parts of the
 * team. That is right as long as no member touches what another one writes meanwhile:
 *
 *     for any two steps a, b of a chain and any two members m, n with m != n:
 *         what m writes of a and what n reads or writes of b have no byte in common, nor what m reads and n writes
 *
 * which is proved here of every chain, by what the kernels say that their parts touch (sl_runner.reach) and by where the plan has
 * put the operands. Nothing in the file is believed; who proves nothing waits. Chains are short, since a run looks for its end
 * between them. Load time.
 */
#pragma once

#include <stdint.h>

struct sl_executable;
struct sl_error;

#define SL_CHAIN_STEPS_MAX 16

/*
 * Fills @chain of each cut of each step (executable.h), of which splits, units and stages are set. In bodies, whose ports may be
 * one and the same memory, all chains are of one step. Return: 0; -ENOMEM.
 */
int sl_chains_find(struct sl_executable *executable, struct sl_error *error);
