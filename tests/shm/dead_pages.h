/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stats pages of runtimes that tests started, and that nobody removes since the test was killed: the next test does.
 */
#pragma once

/* Removes /dev/shm/starling.PREFIX* that no process writes, and that are older than any test takes. */
void dead_pages_remove(const char *prefix);
