/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of a runtime whose models may be on a GPU, and the GPU that there is: none of this machine's, unless STARLING_TRY_GPU
 * says so. What fails fails the test.
 */
#pragma once

#include "digits.h"
#include "world.h"

#include <sys/types.h>

/* The runtime to start has a module that computes by ref, on the fake driver. */
void gpu_use_fake(struct world *world);

/* It has the module itself, on a library in the place of NVIDIA's; skips the test where there is none. */
void gpu_use_module(void);

/* Processes of GPUs that the runtime has, one of which is told. */
uint32_t gpu_count_processes(struct world *world, pid_t *ret_pid);

struct gpu_guest {
        struct world *world;
        struct digits_data *data;
        struct starling_client *client;
        struct starling_queue *queue;
        struct digits_job job;
};

/* Both outlive it. */
void gpu_guest_enter(struct gpu_guest *guest, struct world *world, struct digits_data *data);
void gpu_guest_leave(struct gpu_guest *guest);

/* Return: the status of a request, whose answer is right if that is 0; else the text says why. */
int gpu_guest_ask(struct gpu_guest *guest, const char *name, uint32_t samples, char *ret_text, size_t bytes);

/* Asks until the model is back. */
void gpu_guest_expect_back(struct gpu_guest *guest, const char *name);
