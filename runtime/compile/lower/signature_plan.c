/* SPDX-License-Identifier: Apache-2.0 */
#include "signature_plan.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "graph.h"
#include "import.h"
#include "lower.h"
#include "open_sizes.h"
#include "signature.h"

#include <assert.h>

#include <stdlib.h>
#include <string.h>

SL_DEFINE_CLEANUP(struct sl_graph *, sl_graph_free)
SL_DEFINE_CLEANUP(struct sl_lowered *, sl_lowered_free)

static_assert(SL_SIGNATURE_PORTS_MAX == SL_PLAN_PORTS_MAX, "a plan has room for all ports of a signature");

/* The numbers that the symbols without a size have in the plan. */
struct numbering {
        uint8_t of[SL_SYMBOLS_MAX];
};

static int number_symbols(const struct sl_signature *signature, const struct sl_dim_sizes *sizes, struct sl_plan_info *info,
        struct numbering *ret_numbering)
{
        int r = 0;

        for (uint32_t i = 0; i < signature->n_symbols && r == 0; i++) {
                bool open = sl_dim_sizes_find(sizes, signature->symbols[i]) == SL_DIM_SIZE_NONE;

                ret_numbering->of[i] = open ? (uint8_t)info->n_symbols : SL_PORT_NO_SYMBOL;
                if (open)
                        r = sl_plan_info_add_symbol(info, signature->symbols[i]);
        }
        return r;
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

static int fill_port(const struct sl_signature *signature, const struct sl_dim_sizes *sizes, const struct numbering *numbering,
        const struct sl_signature_port *from, bool input, struct sl_port *port)
{
        port->dtype = from->tensor.dtype;
        port->indexes = input && !sl_dtype_is_float(port->dtype);
        port->fallback = from->optional ? SL_PORT_FALLBACK_ELSEWHERE : 0;
        port->shape.rank = from->tensor.shape.rank;
        memset(port->symbols, SL_PORT_NO_SYMBOL, sizeof(port->symbols));
        for (uint32_t i = 0; i < port->shape.rank; i++)
                fill_dim(signature, sizes, numbering, from, i, port);
        port->batch_axis = port->shape.rank && port->shape.dims[0] == SL_DIM_BATCH ? 0 : SL_PORT_NO_BATCH;
        return sl_plan_info_set(&port->name, from->name);
}

/* The type and the rank are those that are computed, and so is every size that does not follow the open ones. */
static int correct_output(const struct sl_port *computed, struct sl_port *port)
{
        bool agrees = port->dtype && port->shape.rank == computed->shape.rank;

        port->dtype = computed->dtype;
        port->shape.rank = computed->shape.rank;
        for (uint32_t i = 0; i < port->shape.rank; i++)
                if (!agrees || port->shape.dims[i] != computed->shape.dims[i])
                        port->shape.dims[i] = SL_DIM_UNKNOWN;
        if (port->batch_axis == SL_PORT_NO_BATCH && computed->batch_axis == 0) {
                port->batch_axis = 0;
                port->shape.dims[0] = SL_DIM_BATCH;
        }
        return computed->labels ? sl_plan_info_set(&port->labels, computed->labels) : 0;
}

static int fill_info(const struct sl_signature *signature, const struct sl_lower_options *options, struct sl_plan_info *info)
{
        const char *backend = sl_lower_options_backend(options);
        struct numbering numbering;
        int r = sl_plan_info_init(info, signature->n_inputs, signature->n_optionals, signature->n_outputs);

        if (r < 0)
                return r;
        memcpy(info->backend, backend, strlen(backend));
        r = number_symbols(signature, &options->shapes, info, &numbering);
        if (r == 0)
                r = sl_plan_info_set(&info->name, signature->name);
        for (uint32_t i = 0; i < info->n_inputs + info->n_optionals && r == 0; i++)
                r = fill_port(signature, &options->shapes, &numbering, &signature->inputs[i], true, &info->inputs[i]);
        for (uint32_t i = 0; i < info->n_outputs && r == 0; i++)
                r = fill_port(signature, &options->shapes, &numbering, &signature->outputs[i], false, &info->outputs[i]);
        return r;
}

static bool describes_outputs(const struct sl_signature *signature)
{
        for (uint32_t i = 0; i < signature->n_outputs; i++)
                if (!signature->outputs[i].described)
                        return false;
        return true;
}

/* What the sizes that are tried tell goes before what the file declares. */
static int describe(const struct sl_model_file *model, const struct sl_lower_options *options, struct sl_signature *signature,
        const struct sl_tried_sizes *further, struct sl_plan_info *info, struct sl_error *why)
{
        SL_CLEANUP(sl_plan_info_deinit) struct sl_plan_info tried = {0};
        struct sl_error batch_why = {.text = ""};
        int known = signature->has_batch ? sl_sizes_try(model, options, signature, NULL, &tried, &batch_why)
                                         : sl_sizes_try(model, options, signature, further, &tried, why),
            r = 0;

        if (signature->has_batch && (known < 0 || !tried.batchable)) {
                r = sl_signature_open_batch(signature, NULL);
                known = r == 0 && known < 0 ? sl_sizes_try(model, options, signature, further, &tried, why) : known;
        }
        if (r == 0 && known < 0 && (known != -ERANGE || !describes_outputs(signature)))
                r = known;
        if (r == 0 && known == 0 && tried.n_outputs != signature->n_outputs)
                r = sl_error_set(why, ENOTSUP, "%u outputs where the file lists %u", tried.n_outputs, signature->n_outputs);
        if (r == 0)
                r = fill_info(signature, options, info);
        for (uint32_t i = 0; i < info->n_inputs && known == 0 && r == 0; i++)
                r = sl_plan_info_set(&info->inputs[i].labels, tried.inputs[i].labels);
        for (uint32_t i = 0; i < info->n_outputs && known == 0 && r == 0; i++)
                r = correct_output(&tried.outputs[i], &info->outputs[i]);
        return r;
}

/* As sizes_taken in a plan: all where the file has too many dimensions to number. What leads the inputs is a symbol from then on.
 */
static uint32_t find_taken(const struct sl_dim_sizes *sizes, struct sl_signature *signature)
{
        uint32_t taken = 0;

        if (signature->has_batch && sl_signature_open_batch(signature, NULL) < 0)
                return UINT32_MAX;
        for (uint32_t i = 0; i < sizes->n; i++)
                for (uint32_t k = 0; k < signature->n_symbols; k++)
                        if (!strcmp(sl_dim_sizes_name(sizes, i), signature->symbols[k]))
                                taken |= 1u << i;
        return taken;
}

int sl_signature_write(const struct sl_model_file *model, const struct sl_lower_options *options, const struct sl_open_wish *wish,
        int fd, struct sl_error *why)
{
        SL_CLEANUP(sl_cleanup_sl_lowered_free) struct sl_lowered *lowered = calloc(1, sizeof(*lowered));
        SL_CLEANUP(sl_signature_deinit) struct sl_signature signature = {0};
        struct sl_graph_limits limits = sl_lower_graph_limits(options);
        int r = lowered ? sl_import_signature(model, &limits, &signature, NULL) : -ENOMEM;

        if (r == 0 && signature.has_batch && !wish->batch)
                r = sl_signature_open_batch(&signature, NULL);
        if (r == 0)
                r = describe(model, options, &signature, wish->tried, &lowered->info, why);
        if (r < 0)
                return r;
        lowered->info.sizes_taken = find_taken(&options->shapes, &signature);
        lowered->options = *options;
        return lowered->info.n_symbols ? sl_lowered_write(lowered, fd, NULL) : -ENOTSUP;
}

/* Every output dimension that is another at another size follows the symbols. */
static void mark_outputs(const struct sl_graph *other, struct sl_plan_info *info)
{
        for (uint32_t i = 0; i < info->n_outputs; i++) {
                const struct sl_shape *shape = &other->values[other->outputs[i]].tensor.shape;
                struct sl_port *port = &info->outputs[i];

                if (shape->rank != port->shape.rank)
                        memset(port->symbols, 0, sizeof(port->symbols));
                for (uint32_t k = 0; k < port->shape.rank; k++)
                        if (port->symbols[k] == SL_PORT_NO_SYMBOL && shape->dims[k] != port->shape.dims[k])
                                port->symbols[k] = 0;
        }
}

static void mark_inputs(const struct sl_signature *signature, const struct numbering *numbering, struct sl_plan_info *info)
{
        for (uint32_t i = 0; i < info->n_inputs; i++)
                for (uint32_t k = 0; k < info->inputs[i].shape.rank; k++)
                        if (signature->inputs[i].symbols[k] != SL_SYMBOL_NONE)
                                info->inputs[i].symbols[k] = numbering->of[signature->inputs[i].symbols[k]];
}

/* Its ports, with what leads the inputs among the symbols. */
static int import_open(const struct sl_model_file *model, const struct sl_lower_options *options, struct sl_signature *signature)
{
        struct sl_graph_limits limits = sl_lower_graph_limits(options);
        int r = sl_import_signature(model, &limits, signature, NULL);

        return r == 0 && signature->has_batch ? sl_signature_open_batch(signature, NULL) : r;
}

int sl_signature_bind(const struct sl_model_file *model, int64_t size, struct sl_lower_options *options)
{
        SL_CLEANUP(sl_signature_deinit) struct sl_signature signature = {0};
        int r = import_open(model, options, &signature);

        return r < 0 ? r : sl_sizes_bind(&signature, size, &options->shapes);
}

/* The file leaves it open, and the plan says by which name. */
static bool is_named(const struct sl_port *port)
{
        for (uint32_t k = 0; k < port->shape.rank; k++)
                if (port->shape.dims[k] == SL_DIM_UNKNOWN && port->symbols[k] == SL_PORT_NO_SYMBOL)
                        return false;
        return true;
}

int sl_signature_name_open(const struct sl_model_file *model, const struct sl_lower_options *options, struct sl_plan_info *info,
        struct sl_error *error)
{
        SL_CLEANUP(sl_signature_deinit) struct sl_signature signature = {0};
        struct numbering numbering;
        int r = import_open(model, options, &signature);

        if (r == 0)
                r = number_symbols(&signature, &options->shapes, info, &numbering);
        if (r < 0)
                return sl_error_set(error, -r, "its open dimensions cannot be numbered");
        mark_inputs(&signature, &numbering, info);
        for (uint32_t i = 0; i < info->n_inputs; i++)
                if (!is_named(&info->inputs[i]))
                        return sl_error_set(error, ENOTSUP, "an open dimension of input \"%s\" has no name", info->inputs[i].name);
        return 0;
}

/* @graph at another size of what is open: as far as it goes with an open batch, from that, else from the file. */
static int make_other(const struct sl_model_file *model, const struct sl_lower_options *options, const struct sl_graph *graph,
        int64_t size, struct sl_graph **ret_other)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *bound = NULL;
        struct sl_graph_limits limits = sl_lower_graph_limits(options);
        struct sl_lower_options other = *options;
        int r = 0;

        if (sl_graph_has_batch(graph))
                return sl_graph_specialise(graph, size, ret_other, NULL);
        r = sl_signature_bind(model, size, &other);
        if (r == 0)
                r = sl_import_onnx_file(model, &limits, &other.shapes, &bound, NULL);
        return r < 0 ? r : sl_graph_specialise(bound, 1, ret_other, NULL);
}

int sl_signature_complete(const struct sl_model_file *model, const struct sl_lower_options *options, const struct sl_graph *graph,
        struct sl_plan_info *info)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *other = NULL;
        SL_CLEANUP(sl_signature_deinit) struct sl_signature signature = {0};
        struct numbering numbering;
        int r = info->batchable && !options->shapes.n ? 0 : import_open(model, options, &signature);

        if (options->shapes.n)
                info->sizes_taken = r < 0 ? UINT32_MAX : find_taken(&options->shapes, &signature);
        if (info->batchable)
                return 0;
        if (r < 0)
                return r == -ENOTSUP || r == -E2BIG ? 0 : r;
        r = number_symbols(&signature, &options->shapes, info, &numbering);
        if (r < 0 || !info->n_symbols)
                return r;
        if ((make_other(model, options, graph, 2, &other) < 0 && make_other(model, options, graph, 3, &other) < 0) ||
                other->n_outputs != info->n_outputs) {
                sl_plan_info_drop_symbols(info);
                return 0;
        }
        mark_inputs(&signature, &numbering, info);
        mark_outputs(other, info);
        return 0;
}
