/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of a compiler's process: this one's, with settings of its own. Private to runtime/compile.
 */
#pragma once

/* The strings are borrowed, from this process's environment and from constants; the list is free()d. NULL without memory. */
char **sl_child_environment(void);
