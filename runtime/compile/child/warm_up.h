/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles a network of a few weights that is built here, so that what the compiler's process sets up once (oneDNN, its tables,
 * pages of code and heap) is there before a model comes.
 */
#pragma once

/* Nothing depends on its success. */
void sl_compile_warm_up(void);
