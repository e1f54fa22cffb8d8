/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory among pages that nobody may touch: about each second piece begins where the page before it is such a one, the others end,
 * up to the next 64 bytes, where the page behind is. What else there is in its pages may not be written either.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Of @bytes, at a multiple of 64. guarded_free(NULL) is fine. */
void *guarded_alloc(uint64_t bytes);
void guarded_free(void *data);

/* Nothing has been written beside the @bytes. */
bool guarded_stands(const void *data, uint64_t bytes);
