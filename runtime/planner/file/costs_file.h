/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Costs out of a YAML file:
 *
 *     # where each figure comes from
 *     batches: [8, 16, 32]
 *     classes:
 *       - {name: V100, kind: gpu, units: 80, copy_engines: 2, beside: 2}     beside: one other worker's slow-down [2]
 *       - {name: T4, kind: gpu, units: 40, sizes: [8, 16, 24],              units of lets, below the whole device's
 *          interference: [0.1, 0.2, 0.3, 0.1, 0.9]}                         c1 to c5 of costs.h
 *     devices:
 *       - {name: gpu, class: V100, memory: 16GiB, count: 4}                  gpu1 to gpu4; without a count one, called as it is
 *       - {name: let1, class: core, memory_of: cpu}                          draws on another one's memory
 *     models:
 *       - {name: resnet50, weights: 98MiB}
 *     costs:                                                               an entry of each list for each batch size
 *       - {model: resnet50, class: V100, source: derived, latency_ns: [...], transfer_ns: [...], workspace: [...]}
 *       - {model: resnet50, class: T4, size: 8, source: derived, latency_ns: [...]}           of a let; else of the whole device
 *     uses:                                                                  shares of the whole device's L2 cache and bandwidth
 *       - {model: resnet50, class: T4, l2: [...], memory: [...]}
 *     pairs:
 *       - {model: resnet50, beside: vgg19, class: V100, slowdown: 1.8}
 *
 * source is measured, published or derived; latency_ns 0 is not known. transfer_ns and workspace may be left out, and so may
 * sizes, interference and uses, which files of earlier versions do not have.
 */
#pragma once

#include <stdio.h>

struct sl_costs;
struct sl_error;

/* Checked. Return: 0; -EINVAL, -E2BIG with file, line and key, or of sl_costs_check(); -ENOENT, ...; -ENOMEM. */
int sl_costs_file_read(const char *path, struct sl_costs **ret_costs, struct sl_error *error);

/* Costs that were checked, so that they read back as they are; where batch sizes of a model differ in their source, the one that
 * is known least well is that of all. Return: 0; -EIO. */
int sl_costs_file_write(FILE *stream, const struct sl_costs *costs);
