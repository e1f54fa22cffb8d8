/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers for people: three digits and a unit, in few columns. Pure; any thread. Each returns @ret_text, which has QUANTITY_BYTES.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define QUANTITY_BYTES 24

/* "0", "7", "0.25", "1.23k", "45.6M" */
const char *quantity_count(double value, char ret_text[QUANTITY_BYTES]);

/* "0", "870ns", "1.23us", "45.6ms", "7.89s"; longer ones as an age */
const char *quantity_time(uint64_t ns, char ret_text[QUANTITY_BYTES]);

/* "45s", "2m05s", "3h04m", "5d06h" */
const char *quantity_age(uint64_t ns, char ret_text[QUANTITY_BYTES]);

/* "512B", "1.50K", "64.0M": powers of 1024 */
const char *quantity_bytes(uint64_t bytes, char ret_text[QUANTITY_BYTES]);

/* "45%" */
const char *quantity_share(double share, char ret_text[QUANTITY_BYTES]);

/* What a terminal would act on, and what is no UTF-8, becomes '?'. Shortened in the middle when @bytes do not suffice. */
const char *quantity_text(const char *text, char *ret_text, size_t bytes);
