/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Landlock domain in which nothing can be opened, connected to or signalled. What is open stays so.
 */
#pragma once

/*
 * For the calling thread and what it starts, which has no new privileges. @readable_folder: files below it may be read; NULL: none.
 * Return: 0; -ENOSYS the kernel lacks it, has it switched off, or denies it; -errno.
 */
int sl_landlock_enter(const char *readable_folder);
