/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between lanes apart and lanes in one value: Concat, and Split in as few nodes as their outputs allow. Private to this folder.
 */
#pragma once

#include <stdint.h>

struct sl_weave;

/* The lanes of a joint value, which are there apart, in one value. Return: as sl_weave_add(). */
int sl_weave_join(struct sl_weave *weave, uint32_t joint, uint32_t form, uint32_t *ret_value);

/* What @value holds in @form, apart. */
int sl_weave_part(struct sl_weave *weave, uint32_t joint, uint32_t form, uint32_t value);
