/* SPDX-License-Identifier: Apache-2.0 */
/* When what `cpu` computed is what `ref` did: floats to an error, all else to the bit. Pure. */
#pragma once

#include "case.h"

/* Of output @output, of which both lie as @tensor says; a difference fails the test that runs. */
void case_compare(const struct test_case *test, uint32_t output, const struct sl_tensor *tensor, const void *got, const void *want);
