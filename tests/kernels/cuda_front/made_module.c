/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA module with nothing behind its table; without MADE_RELEASE it has no table. */
#include "cuda_front/module.h"

#ifdef MADE_RELEASE
#ifndef MADE_VERSION
#define MADE_VERSION SL_CUDA_MODULE_VERSION
#endif
__attribute__((visibility("default")))
const struct sl_cuda_module starling_cuda_module = {.version = MADE_VERSION, .release = MADE_RELEASE};
#else
__attribute__((visibility("default"))) extern const int nothing_of_it;
const int nothing_of_it = 1;
#endif
