/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's stats page: where it lies, who may read it, and what the log hears of that. Control thread.
 */
#pragma once

struct sl_error;
struct sl_runtime_options;
struct sl_stats;

/*
 * Makes the page of the runtime @options in /dev/shm, or beside @socket_path where somebody else's file has that name. What a dead
 * runtime left behind, the page or the socket, is said in one line. Return: as sl_stats_create().
 */
int sl_stats_page_make(const struct sl_runtime_options *options, const char *socket_path, const char *wait_name,
        struct sl_stats **ret_stats, struct sl_error *error);
