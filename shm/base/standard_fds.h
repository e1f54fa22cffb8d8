/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors 0 to 2. Whoever starts a program may have closed them, and what it opens then gets their numbers: what is meant for
 * the log would go to a client. Before anything is opened; one thread.
 */
#pragma once

/* Those that are closed become /dev/null. */
void sl_standard_fds_fill(void);
