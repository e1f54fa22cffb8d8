/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indices that count the samples: masks of attention are written so by exporters, mask[b, k] with b = 0, 1, ... for the samples.
 * Who gathers by them reads of each sample what belongs to it. Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_value;

/*
 * @one, @many: constant indices of a Gather (@width 1) or a GatherND (@width: the length of an index) for one sample and for
 * @samples, which lie along @axis. @extent: elements of one sample along dimension 0 of the data. True when sample s has the
 * indices of the first sample, and s extents more in dimension 0 of the data, each within that sample.
 */
bool sl_sample_index_is_own(
        const struct sl_value *one, const struct sl_value *many, int axis, int64_t samples, uint64_t width, int64_t extent);
