/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of oneDNN that can be computed in parts: a primitive for each. Whoever runs a part has its own primitive to itself. Owned
 * by the kernel of the call; made and divided at load time.
 */
#pragma once

#include "cpu/onednn/cut.h"

#include <stddef.h>

struct sl_divided_call;
struct sl_kernel_source;
struct sl_packed;

/* More members than that gain little over what is left on oneDNN, and each part takes time to be made. */
#define SL_DIVIDED_PARTS_MAX 4

/* @packed: the form of the weights, or NULL. NULL: no memory, or it cannot be cut. */
struct sl_divided_call *sl_divided_call_new(const struct sl_primitive_spec *spec, const struct sl_packed *packed);
struct sl_divided_call *sl_divided_call_free(struct sl_divided_call *call);

int64_t sl_divided_call_units(const struct sl_divided_call *call);

/* Parts instead of those that there are. @scratch_bytes: what each has. Return: 0; -ENOTSUP; -ENOMEM. */
int sl_divided_call_divide(struct sl_divided_call *call, uint32_t count, size_t scratch_bytes);

/* One part of them, on the calling thread; @pointers: those of the whole, but for scratch. Return: as sl_primitive_run(). */
int sl_divided_call_run(struct sl_divided_call *call, const struct sl_part *part, void *const pointers[SL_ARGUMENT_COUNT]);
