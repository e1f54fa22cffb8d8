/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a string of a configuration, or of a command line, means. Each function returns 0, or -EINVAL after writing what it wanted
 * into @ret_wish (at least SL_WISH_BYTES), for the second half of a message: `"many" is not a number from 1 to 64`. Pure; any
 * thread.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_WISH_BYTES      456 /* all names of the longest choice, the passes */
#define SL_WISH_FULL_BYTES 400 /* names that take more stand without blanks, so that an error has room for them */

/* A whole number from @min to @max. */
int sl_value_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number, char *ret_wish);

/* A number of bytes: "4096", "64 MiB", "1GiB". K, M, G, T are powers of 1024, with or without "iB". */
int sl_value_bytes(const char *text, uint64_t min, uint64_t max, uint64_t *ret_bytes, char *ret_wish);

/* One of @n names; its index. The wish names them all, or as many as there is room for. */
int sl_value_choice(const char *text, const char *const *names, uint32_t n, uint64_t *ret_index, char *ret_wish);

/* Processors: "3" or "2-5". They are added to @set. */
int sl_value_cores(const char *text, cpu_set_t *set, char *ret_wish);

/* A name of a runtime: 1 to 63 of letters, digits, "-", "_" and ".", not starting with a dot. */
int sl_value_name(const char *text, char *ret_wish);

/*
 * A name of a model: 1 to SL_NAME_MAX bytes of UTF-8. Of ASCII as above; of all else what is seen: no control characters, blanks of
 * other widths, and nothing that hides or turns what stands around it.
 */
int sl_value_model_name(const char *text, char *ret_wish);

/* The same, and ":VERSION" behind it or not. */
int sl_value_model_version(const char *text, char *ret_wish);

/* A finite number of at least 0. */
int sl_value_weight(const char *text, float *ret_weight, char *ret_wish);

/* A finite number from @min to @max. */
int sl_value_real(const char *text, double min, double max, double *ret_real, char *ret_wish);

/* "true" or "false". */
int sl_value_flag(const char *text, bool *ret_flag, char *ret_wish);
