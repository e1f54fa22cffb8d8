/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a call of oneDNN, each of which is a primitive of its own over a part of the tensors: matrices of a
 * stack, samples, or the scanlines of one image in channels-last with what they see of the input. Pure; any
 * thread.
 */
#pragma once

#include "cpu/onednn/primitive.h"
#include "part.h"

/* Units along the rows (part.h); below 2: it cannot be cut. */
int64_t sl_primitive_units(const struct sl_primitive_spec *spec);

/* @ret_offsets: how far behind those of the whole its tensors begin, in bytes. */
void sl_primitive_cut(const struct sl_primitive_spec *spec, const struct sl_part *part, struct sl_primitive_spec *ret_spec,
        size_t ret_offsets[SL_ARGUMENT_COUNT]);
