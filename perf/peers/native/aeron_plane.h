/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aeron's IPC between two processes, through the C library of a build that the user has: nothing of Aeron is needed to compile
 * this.
 */
#pragma once

#include "latencies.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Starts the media driver of @build (binaries/aeronmd) with its files in a folder of its own below /dev/shm, asks @warm_up +
 * @rounds times over two streams of "aeron:ipc" with messages of a line, both sides spinning on @cpus, and ends the driver. Adds
 * ticks. Return: 0; a negative errno value, with the reason in @reason.
 */
int sl_aeron_plane_measure(const char *build, const int cpus[2], uint32_t warm_up, uint32_t rounds, struct sl_latencies *samples,
        char *reason, size_t reason_bytes);
