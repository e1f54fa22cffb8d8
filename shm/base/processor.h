/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processor of this host, as every figure names it: clouds call different ones by the same name, which its family and model
 * tell apart. No state; any thread.
 */
#pragma once

#include <stddef.h>

#define SL_PROCESSOR_BYTES 128

/* "AMD EPYC 9354, family 25, model 17"; what the system does not say is left out, and "unknown" stands for a processor without a
 * name. */
void sl_processor_name(char ret_name[SL_PROCESSOR_BYTES]);

/* The same out of the text of /proc/cpuinfo, of the first processor in it. */
void sl_processor_name_in(const char *cpuinfo, char ret_name[SL_PROCESSOR_BYTES]);
