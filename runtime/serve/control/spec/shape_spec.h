/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The specification of a model for sizes of its open dimensions, from that of the open model. Pure; any thread.
 */
#pragma once

#include "layout.h"
#include "spec.h"

struct sl_error;
struct sl_plan_info;

/* Behind the sizes of the symbols: a request gives optional inputs. */
bool sl_shape_is_given(const struct sl_plan_info *info, const int64_t sizes[SL_SYMBOLS_MAX]);

/* No sizes: those of the plan that computes any. */
static inline bool sl_shape_is_any(const int64_t sizes[SL_SYMBOLS_MAX])
{
        return sizes[0] == SL_DIM_SIZE_ANY;
}

/*
 * @info: the signature, or a model with optional inputs. @sizes: in the order of its symbols. The specification has a name of its
 * own, "bert[128]" or "detector[480x640]", "bert[any]", or with "given" in it, which is written to @name, and a stamp of its own;
 * what it points to otherwise is @open's. Return: 0; -ENAMETOOLONG; -E2BIG more sizes than a model may have, those of the option
 * shapes included.
 */
int sl_shape_spec(const struct sl_model_spec *open, const struct sl_plan_info *info, const int64_t sizes[SL_SYMBOLS_MAX],
        char name[SL_MODEL_NAME_BYTES], struct sl_model_spec *ret_spec, struct sl_error *error);

/* Is each of the names an open dimension? Return: 0; -EINVAL names the one that is none, and those that are open. */
int sl_shape_known(const struct sl_plan_info *info, const struct sl_dim_sizes *named, struct sl_error *error);

/* Named sizes in the order of the symbols, 0 behind them. Return: 0; -EINVAL a symbol has no size. */
int sl_shape_sizes(const struct sl_plan_info *info, const struct sl_dim_sizes *named, int64_t ret_sizes[SL_SYMBOLS_MAX],
        struct sl_error *error);

/*
 * Bytes of the inputs of one sample at these sizes, which any instance for them has to hold: known before anything is compiled.
 * UINT64_MAX when they cannot be counted.
 */
uint64_t sl_shape_input_bytes(const struct sl_plan_info *info, const int64_t sizes[SL_SYMBOLS_MAX]);
