/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of one model with weights of their own, for benchmarks: a file (MODEL.onnx), products with a bias and a Relu
 * (mlp:64,128,10), or eight convolutions of 3x3 (conv:CHANNELS,SIDE). What fails ends the program with one line.
 */
#pragma once

#include "plan_info.h"

#include <stdint.h>

#define COPIES_MAX 64

struct sl_graph;

_Noreturn void copies_die(const char *what, const char *why);

/* From -1 to 1. */
float copies_random(uint64_t *state);

/* Zeros, on a cache line. */
void *copies_bytes_new(uint64_t bytes);

/* Copy @lane, whose weights are a little off the file's, behind the portable passes. @head: its width of output 0; 0: the model's.
 */
struct sl_graph *copies_load(const char *model, uint32_t lane, int64_t head);

/* What a port of @batch samples takes, and some input for it. */
uint64_t copies_port_bytes(const struct sl_port *port, uint32_t batch);
void *copies_input_new(const struct sl_port *port, uint32_t batch, uint64_t *state);
