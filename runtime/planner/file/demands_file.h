/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wanted of the models of a costs file, out of a YAML file:
 *
 *     models:
 *       - {name: resnet50, rate: 120, objective_ms: 50}      requests a second, and milliseconds from arrival to answer
 *
 * A model that is not named is not wanted.
 */
#pragma once

struct sl_costs;
struct sl_error;
struct sl_partition_demand;

/* @ret_demands: of each model of the costs. Return: 0; -EINVAL with file, line and key; -ENOENT, ...; -ENOMEM. */
int sl_demands_file_read(
        const char *path, const struct sl_costs *costs, struct sl_partition_demand *ret_demands, struct sl_error *error);
