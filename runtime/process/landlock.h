/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Landlock domain in which nothing can be opened but below paths that are named, and nothing connected to or signalled. What is
 * open stays so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What the kernel knows of it: 1 and more; 0: it lacks it, has it switched off, or denies it. */
int sl_landlock_version(void);

struct sl_landlock_path {
        const char *name; /* a file, or a folder with all below it; it is there or not */
        bool written;     /* it may be written to and controlled (ioctl), not only read */
};

/*
 * For the calling thread and what it starts, which has no new privileges. Beside the paths what the build needs is open
 * (sandbox_additions.h). Return: 0; -ENOSYS the kernel lacks it, has it switched off, or denies it; -errno.
 */
int sl_landlock_enter(const struct sl_landlock_path *paths, size_t n);
