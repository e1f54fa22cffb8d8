/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control groups that this process is in, version 1 or 2, each up to the root of its hierarchy: a limit of any of them holds.
 * Reads files; without state. Any thread.
 */
#pragma once

/* @version: 1 or 2, by which the files in @folder have other names. */
typedef void sl_control_group_fn(void *context, int version, const char *folder);

/*
 * Visits the groups of a controller ("memory", "cpu"), from the process's own upwards. In a container the path may be the host's,
 * while what is mounted is the own group as the root: a folder need not be there.
 * @root: "", or the folder that stands for the root of the file system; @folder comes without it.
 */
void sl_control_groups_visit(const char *root, const char *controller, sl_control_group_fn *visit, void *context);
