/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Landlock domain in which nothing can be opened but below folders that are named, and nothing connected to or signalled. What is
 * open stays so.
 */
#pragma once

#include <stddef.h>

/* What the kernel knows of it: 1 and more; 0: it lacks it, has it switched off, or denies it. */
int sl_landlock_version(void);

/*
 * For the calling thread and what it starts, which has no new privileges. Files below the folders, which are there or not, may be
 * read, and what the build needs (sandbox_additions.h). Return: 0; -ENOSYS the kernel lacks it, has it switched off, or denies it;
 * -errno.
 */
int sl_landlock_enter(const char *const *readable_folders, size_t n);
