/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes for the open dimensions of a model's inputs, by the names that its file gives them. The batch needs none: it stays open in
 * the graph. Plain values; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_error;

#define SL_SYMBOLS_MAX        8                  /* open dimensions of different names in one model, the batch apart */
#define SL_NAME_MAX           1024               /* bytes of the name of a tensor, a model or a dimension, without its end */
#define SL_SYMBOL_BYTES       (SL_NAME_MAX + 12) /* of a name, terminated: that of an input and an axis */
#define SL_DIM_NAMES_BYTES    4096               /* of the names that have sizes at a time, each terminated */
#define SL_DIM_SIZE_MAX       (1ll << 31)
#define SL_SIZES_TEXT_MAX     (SL_SYMBOLS_MAX * 11 + 1) /* "[480x640]" behind the name of a model */
#define SL_VERSION_TEXT_MAX   20                        /* ":2" there */
#define SL_DIM_SIZES_TEXT_MAX (SL_DIM_NAMES_BYTES + SL_SYMBOLS_MAX * 12)

/* Equal sizes in the same order are equal bytes: what is not used is zero. */
struct sl_dim_sizes {
        uint32_t n;
        uint32_t text_bytes; /* of @text in use */
        int64_t sizes[SL_SYMBOLS_MAX];
        uint16_t names[SL_SYMBOLS_MAX]; /* where in @text each begins */
        char text[SL_DIM_NAMES_BYTES];  /* "sequence"; "INPUT:AXIS" for a dimension that the file leaves without a name */
};

/* Name @i, below n. */
static inline const char *sl_dim_sizes_name(const struct sl_dim_sizes *sizes, uint32_t i)
{
        return sizes->text + sizes->names[i];
}

/* Reads "sequence=128,height=224"; "" is none. Return: 0; -EINVAL, -E2BIG, -ENOSPC with a text that names the part and the limit.
 */
int sl_dim_sizes_parse(const char *text, struct sl_dim_sizes *ret_sizes, struct sl_error *error);

/* The reverse. @text: SL_DIM_SIZES_TEXT_MAX bytes. Returns @text. */
const char *sl_dim_sizes_print(const struct sl_dim_sizes *sizes, char *text);

/*
 * -EINVAL an empty or too long name, or a size below 0 or above SL_DIM_SIZE_MAX; -E2BIG there are SL_SYMBOLS_MAX; -ENOSPC all names
 * together are too long; -EEXIST the name is there.
 */
int sl_dim_sizes_add(struct sl_dim_sizes *sizes, const char *name, size_t n_name, int64_t size);

/* The size of that name, 0 or more; SL_DIM_SIZE_NONE. NULL binds nothing. */
#define SL_DIM_SIZE_NONE (-1)
#define SL_DIM_SIZE_ANY  (-2) /* in a list of sizes: that of a plan of any size */
int64_t sl_dim_sizes_find(const struct sl_dim_sizes *sizes, const char *name);

/*
 * The name under which a dimension is bound: @parameter, or "INPUT:AXIS" where that is empty. The importer has refused what is
 * longer than SL_NAME_MAX. Returns @name.
 */
const char *sl_symbol_name(const char *parameter, const char *input, uint32_t axis, char name[SL_SYMBOL_BYTES]);
