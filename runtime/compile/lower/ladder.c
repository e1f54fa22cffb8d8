/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a model can be batched is found out, not read from names: it is specialised for several sizes, and all ports must
 * lead with exactly that size and agree in everything else, and no node may mix the samples. Exporters write shapes that promise a
 * batch and nodes that break it.
 */
#include "ladder.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/utf8.h"
#include "graph.h"
#include "independence.h"

#include <stdbool.h>
#include <string.h>

SL_DEFINE_CLEANUP(struct sl_graph *, sl_graph_free)

static bool leads_with(const struct sl_shape *shape, int64_t batch)
{
        return shape->rank && shape->dims[0] == batch;
}

static bool ports_lead_with(const struct sl_graph *graph, const uint32_t *values, uint32_t n_values, int64_t batch)
{
        for (uint32_t i = 0; i < n_values; i++) {
                if (!leads_with(&graph->values[values[i]].tensor.shape, batch))
                        return false;
        }
        return true;
}

static uint32_t count_required(const struct sl_graph *graph)
{
        uint32_t n = graph->n_inputs;

        while (n && graph->values[graph->inputs[n - 1]].data)
                n--;
        return n;
}

/* Inputs that have an initializer, which are the last, are the same for all samples. */
static bool all_lead_with(const struct sl_graph *graph, int64_t batch)
{
        return ports_lead_with(graph, graph->inputs, count_required(graph), batch) &&
               ports_lead_with(graph, graph->outputs, graph->n_outputs, batch);
}

/* True when the two shapes differ in the leading dimension at most. */
static bool rest_agrees(const struct sl_shape *a, const struct sl_shape *b)
{
        return a->rank == b->rank && (a->rank < 2 || !memcmp(a->dims + 1, b->dims + 1, (a->rank - 1) * sizeof(a->dims[0])));
}

static bool ports_agree(const struct sl_graph *a, const struct sl_graph *b)
{
        for (uint32_t i = 0; i < a->n_inputs; i++) {
                if (!rest_agrees(&a->values[a->inputs[i]].tensor.shape, &b->values[b->inputs[i]].tensor.shape))
                        return false;
        }
        for (uint32_t i = 0; i < a->n_outputs; i++) {
                if (!rest_agrees(&a->values[a->outputs[i]].tensor.shape, &b->values[b->outputs[i]].tensor.shape))
                        return false;
        }
        return true;
}

static bool works_at(const struct sl_graph *graph, const struct sl_graph *single, uint32_t batch)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *batched = NULL;

        return sl_graph_specialise(graph, batch, &batched, NULL) == 0 && all_lead_with(batched, batch) &&
               ports_agree(single, batched) && sl_samples_are_independent(single, batched, batch);
}

/* The size behind @batch in the ladder. */
static uint32_t next_size(uint32_t batch, uint32_t batch_max)
{
        return batch > batch_max / 2 ? batch_max : 2 * batch;
}

/* Arithmetic on the number of samples may come to something else at any size: all that are run are tried, and three. */
static bool is_batchable(const struct sl_graph *graph, const struct sl_graph *single, uint32_t batch_max)
{
        if (!sl_graph_has_batch(graph) || !sl_graph_is_static(single) || !all_lead_with(single, 1) || !works_at(graph, single, 2) ||
                !works_at(graph, single, 3))
                return false;
        for (uint32_t batch = 2; batch < batch_max;) {
                batch = next_size(batch, batch_max);
                if (!works_at(graph, single, batch))
                        return false;
        }
        return true;
}

static int fill_batches(struct sl_plan_info *info, uint32_t batch_max, struct sl_error *error)
{
        for (uint64_t batch = 1;; batch *= 2) {
                if (info->n_batches == SL_PLAN_BATCHES_MAX)
                        return sl_error_set(error, E2BIG, "batch %u: a plan has at most %d sizes, the largest is %u", batch_max,
                                SL_PLAN_BATCHES_MAX, 1u << (SL_PLAN_BATCHES_MAX - 1));
                info->batches[info->n_batches++] = batch < batch_max ? (uint32_t)batch : batch_max;
                if (batch >= batch_max)
                        return 0;
        }
}

/* An integer may end up as an index, whatever lies between: better one copy too many than an index that changes under a check. */
static int fill_port(const struct sl_graph *graph, struct sl_port *port, const struct sl_value *named,
        const struct sl_value *shaped, bool has_axis, bool input)
{
        int r = sl_plan_info_set(&port->labels, sl_graph_labels_of(graph, named->name));

        port->dtype = shaped->tensor.dtype;
        port->indexes = input && !sl_dtype_is_float(shaped->tensor.dtype);
        port->fallback = named->kind == SL_VALUE_INPUT && named->data ? SL_PORT_FALLBACK_ELSEWHERE : 0;
        has_axis &= !port->fallback;
        port->batch_axis = has_axis ? 0 : SL_PORT_NO_BATCH;
        memset(port->symbols, SL_PORT_NO_SYMBOL, sizeof(port->symbols));
        port->shape.rank = shaped->tensor.shape.rank;
        for (uint32_t i = 0; i < port->shape.rank; i++)
                port->shape.dims[i] = has_axis && i == 0 ? SL_DIM_BATCH : shaped->tensor.shape.dims[i];
        return r < 0 ? r : sl_plan_info_set(&port->name, named->name);
}

static int fill_optional(struct sl_port *port, const struct sl_graph_optional *optional)
{
        port->dtype = optional->tensor.dtype;
        port->indexes = !sl_dtype_is_float(port->dtype);
        port->batch_axis = SL_PORT_NO_BATCH;
        port->fallback = SL_PORT_FALLBACK_ELSEWHERE;
        port->shape = optional->tensor.shape;
        memset(port->symbols, SL_PORT_NO_SYMBOL, sizeof(port->symbols));
        return sl_plan_info_set(&port->name, optional->name);
}

static int fill_ports(const struct sl_graph *graph, const struct sl_graph *single, bool has_axis, struct sl_plan_info *info,
        struct sl_error *error)
{
        int r = sl_plan_info_set(&info->name, graph->name);

        for (uint32_t i = 0; i < graph->n_inputs && r == 0; i++)
                r = fill_port(graph, &info->inputs[i], &graph->values[graph->inputs[i]], &single->values[single->inputs[i]],
                        has_axis, true);
        for (uint32_t i = 0; i < graph->n_optionals && r == 0; i++)
                r = fill_optional(&info->inputs[graph->n_inputs + i], &graph->optionals[i]);
        for (uint32_t i = 0; i < graph->n_outputs && r == 0; i++)
                r = fill_port(graph, &info->outputs[i], &graph->values[graph->outputs[i]], &single->values[single->outputs[i]],
                        has_axis, false);
        return r < 0 ? sl_error_set(
                               error, -r, "no memory for the names of %u inputs and %u outputs", graph->n_inputs, graph->n_outputs)
                     : 0;
}

static int init_info(const struct sl_graph *graph, struct sl_plan_info *info, struct sl_error *error)
{
        if (graph->n_inputs > SL_PLAN_PORTS_MAX || graph->n_outputs > SL_PLAN_PORTS_MAX)
                return sl_error_set(error, E2BIG, "%u inputs and %u outputs, a model has at most %d of each", graph->n_inputs,
                        graph->n_outputs, SL_PLAN_PORTS_MAX);
        if (sl_plan_info_init(info, graph->n_inputs, graph->n_optionals, graph->n_outputs) < 0)
                return sl_error_set(error, ENOMEM, "no memory for %u inputs and %u outputs", graph->n_inputs, graph->n_outputs);
        return 0;
}

int sl_ladder_describe(const struct sl_graph *graph, struct sl_plan_info *ret_info, struct sl_error *error)
{
        struct sl_plan_info info;
        int r = init_info(graph, &info, error);

        if (r < 0)
                return r;
        r = fill_ports(graph, graph, false, &info, error);
        if (r < 0)
                sl_plan_info_deinit(&info);
        else
                *ret_info = info;
        return r;
}

static int choose(const struct sl_graph *graph, const struct sl_graph *single, uint32_t batch_max, struct sl_plan_info *info,
        struct sl_error *error)
{
        int r;

        info->batchable = is_batchable(graph, single, batch_max);
        r = fill_batches(info, info->batchable ? batch_max : 1, error);
        return r < 0 ? r : fill_ports(graph, single, info->batchable, info, error);
}

int sl_ladder_choose(const struct sl_graph *graph, uint32_t batch_max, struct sl_plan_info *ret_info, struct sl_graph **ret_single,
        struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_graph_free) struct sl_graph *single = NULL;
        struct sl_plan_info info;
        int r = sl_graph_specialise(graph, 1, &single, error);

        if (r == 0)
                r = init_info(graph, &info, error);
        if (r < 0)
                return r;
        r = choose(graph, single, batch_max, &info, error);
        if (r < 0) {
                sl_plan_info_deinit(&info);
                return r;
        }
        *ret_info = info;
        *ret_single = sl_take(single);
        return 0;
}

static bool port_holds(const struct sl_port *port, const struct sl_shape *shape, uint32_t batch)
{
        struct sl_shape promised = port->shape;

        if (port->batch_axis == 0)
                promised.dims[0] = batch;
        return sl_shape_equal(&promised, shape);
}

int sl_ladder_confirm(const struct sl_graph *graph, uint32_t batch, const struct sl_plan_info *info, struct sl_error *error)
{
        for (uint32_t i = 0; i < graph->n_inputs; i++) {
                if (!port_holds(&info->inputs[i], &graph->values[graph->inputs[i]].tensor.shape, batch))
                        return sl_error_set(
                                error, ENOTSUP, "input \"%s\" has another shape at batch %u", info->inputs[i].name, batch);
        }
        for (uint32_t i = 0; i < graph->n_outputs; i++) {
                if (!port_holds(&info->outputs[i], &graph->values[graph->outputs[i]].tensor.shape, batch))
                        return sl_error_set(
                                error, ENOTSUP, "output \"%s\" has another shape at batch %u", info->outputs[i].name, batch);
        }
        return 0;
}
