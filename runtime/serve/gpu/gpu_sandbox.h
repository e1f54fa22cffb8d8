/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process of a GPU gives up once its device is open. It can open for reading what lies in the system's folders and beside
 * cuDNN and cuBLASLt, for these and the driver load code late, and anew the device nodes, which NVIDIA's driver does, as its kernel
 * module has one mapping for each open node; it can name its threads, as a driver does. Of calls those are refused that no driver wants
 * (gpu_calls.h).
 */
#pragma once

/*
 * Of the calling thread and those that it makes; calls, of all. @devices: the folder of the device nodes, /dev. Return: which
 * layers this host has not, in words; NULL: all are there, or the environment's STARLING_GPU_OPEN says that nobody wants them.
 */
const char *sl_gpu_sandbox_enter(const char *devices);
