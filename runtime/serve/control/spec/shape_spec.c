/* SPDX-License-Identifier: Apache-2.0 */
#include "shape_spec.h"

#include "base/bytes.h"
#include "base/error.h"
#include "plan.h"

#include <stdio.h>
#include <string.h>

bool sl_shape_is_given(const struct sl_plan_info *info, const int64_t sizes[SL_SYMBOLS_MAX])
{
        return info->n_symbols < SL_SYMBOLS_MAX && sizes[info->n_symbols] && !sl_shape_is_any(sizes);
}

/* "bert[128]", "detector[480x640]", "bert[128,given]", "lora[given]". Return: 0; -ENAMETOOLONG. */
static int name_shape(const char *open, const struct sl_plan_info *info, const int64_t *sizes, char *ret_name)
{
        size_t used = (size_t)snprintf(ret_name, SL_MODEL_NAME_BYTES, "%s%s", open, sl_shape_is_any(sizes) ? "[any" : "");

        for (uint32_t i = 0; i < info->n_symbols && used < SL_MODEL_NAME_BYTES && !sl_shape_is_any(sizes); i++)
                used += (size_t)snprintf(ret_name + used, SL_MODEL_NAME_BYTES - used, "%s%lld", i ? "x" : "[", (long long)sizes[i]);
        if (sl_shape_is_given(info, sizes) && used < SL_MODEL_NAME_BYTES)
                used += (size_t)snprintf(ret_name + used, SL_MODEL_NAME_BYTES - used, "%sgiven", info->n_symbols ? "," : "[");
        return used + 1 < SL_MODEL_NAME_BYTES ? (strcat(ret_name, "]"), 0) : -ENAMETOOLONG;
}

int sl_shape_spec(const struct sl_model_spec *open, const struct sl_plan_info *info, const int64_t sizes[SL_SYMBOLS_MAX],
        char name[SL_MODEL_NAME_BYTES], struct sl_model_spec *ret_spec, struct sl_error *error)
{
        int result = name_shape(open->name, info, sizes, name);

        if (result < 0)
                return sl_error_set(
                        error, ENAMETOOLONG, "a name with its sizes is longer than %u characters", SL_MODEL_NAME_BYTES - 1);
        *ret_spec = *open;
        ret_spec->name = name;
        ret_spec->n_prepared = 0;
        ret_spec->sized = true;
        ret_spec->lowering.any_size = sl_shape_is_any(sizes) ? SL_ANY_SIZE_ONLY : SL_ANY_SIZE_OFF;
        if (sl_shape_is_any(sizes)) {
                ret_spec->stamp = ret_spec->stamp * 0x100000001b3u ^ (uint64_t)SL_DIM_SIZE_ANY;
                return 0;
        }
        if (sl_shape_is_given(info, sizes)) {
                ret_spec->lowering.optional_inputs = SL_OPTIONALS_GIVEN;
                ret_spec->stamp = ret_spec->stamp * 0x100000001b3u ^ UINT64_MAX;
        }
        for (uint32_t i = 0; i < info->n_symbols && result == 0; i++) {
                result = sl_dim_sizes_add(&ret_spec->lowering.shapes, info->symbols[i], strlen(info->symbols[i]), sizes[i]);
                ret_spec->stamp = ret_spec->stamp * 0x100000001b3u ^ (uint64_t)sizes[i];
        }
        return result < 0 ? sl_error_set(error, -result,
                                    "dimension sizes beside those of the option shapes: at most %d, with names of at most %d bytes",
                                    SL_SYMBOLS_MAX, SL_DIM_NAMES_BYTES)
                          : 0;
}

static bool has_symbol(const struct sl_plan_info *info, const char *name)
{
        for (uint32_t i = 0; i < info->n_symbols; i++)
                if (!strcmp(info->symbols[i], name))
                        return true;
        return false;
}

int sl_shape_known(const struct sl_plan_info *info, const struct sl_dim_sizes *named, struct sl_error *error)
{
        char open[SL_SYMBOLS_MAX * (SL_SYMBOL_BYTES + 4)] = "";
        size_t used = 0;

        for (uint32_t i = 0; i < info->n_symbols; i++)
                used += (size_t)snprintf(open + used, sizeof(open) - used, "%s\"%s\"", i ? ", " : "", info->symbols[i]);
        for (uint32_t i = 0; i < named->n; i++)
                if (!has_symbol(info, sl_dim_sizes_name(named, i)))
                        return sl_error_set(error, EINVAL, "prepared_shapes: no input has an open dimension \"%s\": %s%s",
                                sl_dim_sizes_name(named, i), used ? "open are " : "none is open", open);
        return 0;
}

int sl_shape_sizes(const struct sl_plan_info *info, const struct sl_dim_sizes *named, int64_t ret_sizes[SL_SYMBOLS_MAX],
        struct sl_error *error)
{
        memset(ret_sizes, 0, SL_SYMBOLS_MAX * sizeof(*ret_sizes));
        for (uint32_t i = 0; i < info->n_symbols; i++) {
                ret_sizes[i] = sl_dim_sizes_find(named, info->symbols[i]);
                if (ret_sizes[i] == SL_DIM_SIZE_NONE)
                        return sl_error_set(error, EINVAL, "prepared_shapes: dimension \"%s\" has no size", info->symbols[i]);
        }
        return 0;
}

static uint64_t port_bytes(const struct sl_port *port, const int64_t *sizes)
{
        struct sl_tensor sample = {.dtype = port->dtype, .shape = port->shape};

        for (uint32_t i = 0; i < sample.shape.rank; i++) {
                if (i == port->batch_axis)
                        sample.shape.dims[i] = 1;
                else if (port->symbols[i] != SL_PORT_NO_SYMBOL)
                        sample.shape.dims[i] = sl_shape_is_any(sizes) ? 0 : sizes[port->symbols[i]];
        }
        return sl_tensor_bytes(&sample);
}

uint64_t sl_shape_input_bytes(const struct sl_plan_info *info, const int64_t sizes[SL_SYMBOLS_MAX])
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < info->n_inputs; i++)
                if (sl_add_overflows(bytes, port_bytes(&info->inputs[i], sizes), &bytes))
                        return UINT64_MAX;
        return bytes;
}
