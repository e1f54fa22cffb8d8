/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of a core that are shares and operations: kernels are run, and each figure is what makes their estimate
 * (sl_algorithm_list()) as long as they took. A row says which node is run by which algorithm for which figure. Some tens of
 * milliseconds; it allocates.
 */
#pragma once

struct sl_core_figures;
struct sl_node_desc;
struct sl_target;

/*
 * @figures: the rates are measured, everything else is typical; becomes what was measured, three digits each: two algorithms
 * often differ by a few hundredths. What cannot be run
 * here stays typical, and nothing leaves a factor of four around that. Return: 0; -ENOMEM.
 */
int sl_cpu_calibrate(struct sl_core_figures *figures);

/*
 * Median seconds of a run of @node, planned for @target (NULL: a typical one), whose constant inputs are packed as they are in a
 * plan; its tensors hold small numbers, and what a node of bytes wants of scales is there. 0: this processor has no kernel for it,
 * or there is no memory.
 */
double sl_cpu_time_node(const struct sl_node_desc *node, const struct sl_target *target);

/* Two digits: what a second measurement would say too. */
double sl_cpu_two_digits(double value);
