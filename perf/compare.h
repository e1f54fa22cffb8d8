/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two results of `starling bench load`, point by point and figure by figure: the ratio B over A with its interval, and whether that
 * is a difference. Pure.
 */
#pragma once

struct json_t;
struct sl_error;

#define SL_COMPARISON_SCHEMA "starling-comparison/1"

/*
 * Points are matched by their label. {"schema", "warnings": [...], "points": [{"label", "figures": {KEY: {"a", "b", "ratio", "low",
 * "high", "verdict"}}}], "only_a", "only_b"}; a verdict is "noise", "better", "worse", "different", or "unknown" where there are
 * too few repeats. The caller's reference. Return: 0; -EINVAL: no such result, the text says which.
 */
int sl_compare(const struct json_t *a, const struct json_t *b, struct json_t **ret_comparison, struct sl_error *error);
