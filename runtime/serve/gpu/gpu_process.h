/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of a GPU: what is behind all process executors on it (execute/gpu_host.h). It opens the driver and the device before
 * its sandbox closes, takes workers as they come, each with mailboxes of its own (execute/process_link.h), and drives all of their
 * streams from one thread, until the runtime is gone. Where there is no device it stays, and says why to each worker that comes.
 */
#pragma once

#include <stdint.h>

/* Return: the exit status: 0; 1 no memory; 2 the device is lost. */
int sl_gpu_serve(uint32_t gpu);
