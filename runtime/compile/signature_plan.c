/* SPDX-License-Identifier: Apache-2.0 */
#include "signature_plan.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "lower.h"
#include "signature.h"

#include <assert.h>

#include <stdlib.h>
#include <string.h>

static_assert(SL_SIGNATURE_PORTS_MAX == SL_PLAN_PORTS_MAX, "a plan has room for all ports of a signature");
static_assert(SL_SIGNATURE_NAME_BYTES == SL_PORT_NAME_BYTES, "and for their names");

/* The numbers that the symbols without a size have in the plan. */
struct numbering {
        uint8_t of[SL_SYMBOLS_MAX];
};

static struct numbering number_symbols(
        const struct sl_signature *signature, const struct sl_dim_sizes *sizes, struct sl_plan_info *info)
{
        struct numbering numbering;

        for (uint32_t i = 0; i < signature->n_symbols; i++) {
                bool open = !sl_dim_sizes_find(sizes, signature->symbols[i]);

                numbering.of[i] = open ? (uint8_t)info->n_symbols : SL_PORT_NO_SYMBOL;
                if (open)
                        memcpy(info->symbols[info->n_symbols++], signature->symbols[i], SL_SYMBOL_BYTES);
        }
        return numbering;
}

static void fill_dim(const struct sl_signature *signature, const struct sl_dim_sizes *sizes, const struct numbering *numbering,
        const struct sl_signature_port *from, uint32_t axis, struct sl_port *port)
{
        uint8_t symbol = from->symbols[axis];

        port->shape.dims[axis] = from->tensor.shape.dims[axis];
        port->symbols[axis] = SL_PORT_NO_SYMBOL;
        if (symbol == SL_SYMBOL_NONE)
                return;
        port->symbols[axis] = numbering->of[symbol];
        if (port->symbols[axis] == SL_PORT_NO_SYMBOL)
                port->shape.dims[axis] = sl_dim_sizes_find(sizes, signature->symbols[symbol]);
}

static void fill_port(const struct sl_signature *signature, const struct sl_dim_sizes *sizes, const struct numbering *numbering,
        const struct sl_signature_port *from, bool input, struct sl_port *port)
{
        memcpy(port->name, from->name, sizeof(port->name));
        port->dtype = from->tensor.dtype;
        port->indexes = input && !sl_dtype_is_float(port->dtype);
        port->shape.rank = from->tensor.shape.rank;
        memset(port->symbols, SL_PORT_NO_SYMBOL, sizeof(port->symbols));
        for (uint32_t i = 0; i < port->shape.rank; i++)
                fill_dim(signature, sizes, numbering, from, i, port);
        port->batch_axis = port->shape.rank && port->shape.dims[0] == SL_DIM_BATCH ? 0 : SL_PORT_NO_BATCH;
}

static void fill_info(const struct sl_signature *signature, const struct sl_lower_options *options, struct sl_plan_info *info)
{
        struct numbering numbering = number_symbols(signature, &options->shapes, info);
        const char *backend = sl_lower_options_backend(options);

        memcpy(info->name, signature->name, sizeof(info->name));
        memcpy(info->backend, backend, strlen(backend));
        info->n_inputs = signature->n_inputs;
        info->n_outputs = signature->n_outputs;
        for (uint32_t i = 0; i < info->n_inputs; i++)
                fill_port(signature, &options->shapes, &numbering, &signature->inputs[i], true, &info->inputs[i]);
        for (uint32_t i = 0; i < info->n_outputs; i++)
                fill_port(signature, &options->shapes, &numbering, &signature->outputs[i], false, &info->outputs[i]);
}

int sl_signature_write(const struct sl_model_file *model, const struct sl_lower_options *options, int fd)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_lowered *lowered = calloc(1, sizeof(*lowered));
        struct sl_graph_limits limits = sl_lower_graph_limits(options);
        struct sl_signature signature;
        int r = lowered ? sl_import_signature(model, &limits, &signature, NULL) : -ENOMEM;

        if (r < 0)
                return r;
        lowered->options = *options;
        fill_info(&signature, options, &lowered->info);
        return lowered->info.n_symbols ? sl_lowered_write(lowered, fd, NULL) : -ENOTSUP;
}
