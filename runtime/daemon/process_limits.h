/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of this process (ulimit; Limit...= of a systemd unit) below which a runtime cannot do what it says it does: they are
 * looked at before it says so. Soft limits are raised to the hard ones; what is left too low is one error that names limit, value
 * and need.
 */
#pragma once

#include <stdint.h>

struct sl_error;

/*
 * Raises the soft limits, and has SIGXFSZ ignored: a file that would be too large is then an error of whoever writes it. Before the
 * first thread is made; children inherit both.
 */
void sl_process_limits_raise(void);

/* @file_bytes: of the largest file that a runtime has by itself; @file_key: the option that says so. Return: 0; -ERANGE with text.
 */
int sl_process_limits_check(uint64_t file_bytes, const char *file_key, struct sl_error *error);

/* When all that is to be loaded is there: whether descriptors are left for a client. Return: 0; -EMFILE with text. */
int sl_process_limits_check_descriptors(struct sl_error *error);
