/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks, as `starling tasks` and the list of models show them. One thread. */
#pragma once

struct starling_client;

/* A line for each, behind the models. */
void tasks_print_lines(const struct starling_client *client);
