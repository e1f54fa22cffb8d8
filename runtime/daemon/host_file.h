/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files in which a host describes itself: /proc, /sys, and whatever else is small and text. Each function takes the folder that
 * stands for the root of the file system, "" for the root itself. Functions without state; any thread.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file below @root whose path @format makes, cut when @bytes do not suffice, without blanks and line ends behind it. False: it
 * cannot be read; @ret_text is "" then. */
bool sl_host_file(const char *root, char *ret_text, size_t bytes, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* What follows "KEY", blanks and colons in the first line of @text that begins so, up to its end. @key "": the first line. False:
 * there is none. */
bool sl_host_field(const char *text, const char *key, char *ret_value, size_t bytes);

/* The number at the beginning of such a value; @other when there is none. */
uint64_t sl_host_number(const char *text, const char *key, uint64_t other);

/* Processors as the kernel lists them, "0-3,8"; what is none is left out. */
void sl_host_cpus(const char *text, cpu_set_t *ret_cpus);
