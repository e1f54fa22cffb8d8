/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of a GPU, from its start on: opens the CUDA module and becomes what that has (gpu_process.h). Without the module it
 * stays, and says why to each worker that comes.
 */
#pragma once

/* Return: the exit status: 0; 1 it was started wrongly; what the module says. */
int sl_gpu_main(int argc, char **argv);
