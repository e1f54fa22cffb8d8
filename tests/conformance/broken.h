/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A case as a model that cannot be served: dimensions of its inputs are open, as exporters leave them, and one of its nodes has an
 * operator that nobody knows. What its outputs are the file still says. One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define BROKEN_OPERATOR "Unheard"

enum broken_form {
        BROKEN_BATCH, /* what leads each input is open, and the same */
        BROKEN_ALL,   /* every dimension is open, and another one */
        BROKEN_EVEN,  /* those with an even index */
        BROKEN_ODD,
        BROKEN_ALIKE, /* every dimension is open; those of one size are the same */
        N_BROKEN_FORMS,
};

#define BROKEN_NOWHERE UINT32_MAX

/* @at: which of its nodes, counted around, or BROKEN_NOWHERE. Return: the file, which the caller frees; NULL: no model there, or
 * nothing to open. */
uint8_t *broken_case(const char *folder, enum broken_form form, uint32_t at, size_t *ret_bytes);
