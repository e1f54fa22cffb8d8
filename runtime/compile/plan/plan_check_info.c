/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan file says of its model: ports, symbols, batches, names, and the constants of inputs that may be left out. */
#include "base/labels.h"
#include "plan_check.h"

#include "plan.h"

#include <stdlib.h>

/* Of a plan of any size: what a request says is told by names. */
static bool open_input_is_sound(const struct sl_port *port, const struct sl_plan_info *info)
{
        for (uint32_t i = 0; i < port->shape.rank; i++)
                if (port->shape.dims[i] == SL_DIM_UNKNOWN && port->symbols[i] == SL_PORT_NO_SYMBOL)
                        return false;
        return info->n_batches == 1 && !port->fallback;
}

/* Samples are gathered port by port: a model that takes several has a place for them in each. */
static bool port_is_sound(const struct sl_port *port, const struct sl_plan_info *info, bool input)
{
        struct sl_tensor tensor;

        if (port->shape.rank > SL_RANK_MAX || port->indexes > 1)
                return false;
        if (port->batch_axis != SL_PORT_NO_BATCH && port->batch_axis != 0)
                return false;
        if (port->batch_axis == 0 && (!port->shape.rank || port->shape.dims[0] != SL_DIM_BATCH))
                return false;
        if (info->batchable && (port->batch_axis != 0) != (port->fallback != 0))
                return false;
        for (uint32_t i = 0; i < port->shape.rank; i++) {
                if (port->symbols[i] != SL_PORT_NO_SYMBOL && port->symbols[i] >= info->n_symbols)
                        return false;
        }
        tensor = sl_plan_port_tensor(port, info->batches[info->n_batches - 1]);
        return sl_port_is_open(port)
                       ? sl_plan_open_tensor_is_sound(&tensor) && !info->batchable && (!input || open_input_is_sound(port, info))
                       : sl_plan_tensor_is_sound(&tensor);
}

/* Of a signature: the batch first, unknown dimensions anywhere, and a symbol only where an input's dimension is unknown. */
static bool open_port_is_sound(const struct sl_port *port, const struct sl_plan_info *info, bool input)
{
        if (port->shape.rank > SL_RANK_MAX || port->indexes > 1 || !sl_dtype_bytes(port->dtype))
                return false;
        for (uint32_t i = 0; i < port->shape.rank; i++) {
                int64_t dim = port->shape.dims[i];
                bool named = port->symbols[i] != SL_PORT_NO_SYMBOL;

                if (named && (!input || dim != SL_DIM_UNKNOWN || port->symbols[i] >= info->n_symbols))
                        return false;
                if (dim < 0 && dim != SL_DIM_UNKNOWN && (i > 0 || dim != SL_DIM_BATCH))
                        return false;
                if (input && dim == SL_DIM_UNKNOWN && !named)
                        return false;
        }
        return port->batch_axis == (port->shape.rank && port->shape.dims[0] == SL_DIM_BATCH ? 0 : SL_PORT_NO_BATCH);
}

/* Constants are looked at later: here only that inputs which may be left out are the last. */
static bool fallbacks_are_sound(const struct sl_plan_info *info)
{
        for (uint32_t i = 0; i < info->n_inputs; i++) {
                uint32_t fallback = info->inputs[i].fallback;

                if (i > 0 && info->inputs[i - 1].fallback && !fallback)
                        return false;
                if (fallback && (fallback == SL_PORT_FALLBACK_ELSEWHERE) != !info->n_batches)
                        return false;
        }
        for (uint32_t i = 0; i < info->n_outputs; i++)
                if (info->outputs[i].fallback)
                        return false;
        return true;
}

static bool described_well(const struct sl_port *port, const struct sl_plan_info *info, bool input)
{
        return info->n_batches ? port_is_sound(port, info, input) : open_port_is_sound(port, info, input);
}

/* What a request could give is a whole tensor of known size. */
static bool optional_is_sound(const struct sl_port *port)
{
        struct sl_tensor tensor = {.dtype = port->dtype, .shape = port->shape};

        if (port->fallback != SL_PORT_FALLBACK_ELSEWHERE || port->batch_axis != SL_PORT_NO_BATCH || port->indexes > 1 ||
                port->shape.rank > SL_RANK_MAX)
                return false;
        for (uint32_t i = 0; i < port->shape.rank; i++)
                if (port->symbols[i] != SL_PORT_NO_SYMBOL || port->shape.dims[i] <= 0)
                        return false;
        return sl_plan_tensor_is_sound(&tensor);
}

static int check_ports(const struct sl_plan_info *info, struct sl_error *error)
{
        if (!fallbacks_are_sound(info))
                return sl_error_set(error, EBADMSG, "plan file: inputs that may be left out are described wrongly");
        for (uint32_t i = 0; i < info->n_inputs; i++) {
                if (!described_well(&info->inputs[i], info, true))
                        return sl_error_set(error, EBADMSG, "plan file: input %u is described wrongly", i);
        }
        for (uint32_t i = info->n_inputs; i < info->n_inputs + info->n_optionals; i++) {
                if (!optional_is_sound(&info->inputs[i]))
                        return sl_error_set(error, EBADMSG, "plan file: optional input %u is described wrongly", i);
        }
        for (uint32_t i = 0; i < info->n_outputs; i++) {
                if (!described_well(&info->outputs[i], info, false))
                        return sl_error_set(error, EBADMSG, "plan file: output %u is described wrongly", i);
        }
        return 0;
}

static int check_symbols(const struct sl_plan_info *info, struct sl_error *error)
{
        if (info->n_symbols > SL_SYMBOLS_MAX)
                return sl_plan_damaged(error, "number of open dimensions", info->n_symbols, SL_SYMBOLS_MAX);
        if (info->n_symbols && (info->batchable || info->n_batches > 1))
                return sl_plan_damaged(error, "number of batch sizes beside open dimensions", info->n_batches, 1);
        return 0;
}

/* It promises nothing that could be run. */
static int check_signature(const struct sl_plan *plan, struct sl_error *error)
{
        if (sl_plan_count(plan, SL_PLAN_SECTION_PROGRAMS))
                return sl_plan_damaged(
                        error, "number of programs of a signature", sl_plan_count(plan, SL_PLAN_SECTION_PROGRAMS), 0);
        return 0;
}

/* NULL: it is not there, whole. */
static const char *text_at(const struct sl_plan *plan, uint64_t at)
{
        return at < sl_plan_count(plan, SL_PLAN_SECTION_NAMES) ? plan->names + at : NULL;
}

/* The ports behind @info, which has room for them. */
static int point_ports(const struct sl_plan *plan, struct sl_plan_info *info, struct sl_error *error)
{
        const struct sl_plan_port *ports = sl_plan_section_at(plan, SL_PLAN_SECTION_PORTS);

        info->inputs = (struct sl_port *)(info + 1);
        info->outputs = info->inputs + info->n_inputs + info->n_optionals;
        for (uint32_t i = 0; i < sl_plan_info_ports(info); i++) {
                info->inputs[i] = ports[i].port;
                info->inputs[i].name = text_at(plan, ports[i].name);
                info->inputs[i].labels = text_at(plan, ports[i].labels);
                if (!info->inputs[i].name)
                        return sl_plan_damaged(error, "name of a port", ports[i].name, sl_plan_count(plan, SL_PLAN_SECTION_NAMES));
                if (!info->inputs[i].labels)
                        return sl_plan_damaged(
                                error, "labels of a port", ports[i].labels, sl_plan_count(plan, SL_PLAN_SECTION_NAMES));
                if (strlen(info->inputs[i].labels) > SL_LABELS_BYTES_MAX)
                        return sl_plan_damaged(error, "labels of a port", strlen(info->inputs[i].labels), SL_LABELS_BYTES_MAX);
        }
        return 0;
}

static int point_texts(
        const struct sl_plan *plan, const struct sl_plan_description *from, struct sl_plan_info *info, struct sl_error *error)
{
        info->name = text_at(plan, from->name);
        if (!info->name)
                return sl_plan_damaged(error, "name of the graph", from->name, sl_plan_count(plan, SL_PLAN_SECTION_NAMES));
        for (uint32_t i = 0; i < SL_SYMBOLS_MAX; i++) {
                info->symbols[i] = text_at(plan, from->symbols[i]);
                if (!info->symbols[i])
                        return sl_plan_damaged(
                                error, "name of an open dimension", from->symbols[i], sl_plan_count(plan, SL_PLAN_SECTION_NAMES));
        }
        return 0;
}

/* NAMES ends with a terminator, so that every text in it does. */
int sl_plan_point_info(struct sl_plan *plan, struct sl_error *error)
{
        const struct sl_plan_description *from = sl_plan_section_at(plan, SL_PLAN_SECTION_INFO);
        uint64_t n_ports = sl_plan_count(plan, SL_PLAN_SECTION_PORTS), bytes = sl_plan_count(plan, SL_PLAN_SECTION_NAMES);
        int r;

        if (from->info.n_inputs > SL_PLAN_PORTS_MAX)
                return sl_plan_damaged(error, "number of inputs", from->info.n_inputs, SL_PLAN_PORTS_MAX);
        if (from->info.n_outputs > SL_PLAN_PORTS_MAX)
                return sl_plan_damaged(error, "number of outputs", from->info.n_outputs, SL_PLAN_PORTS_MAX);
        if (from->info.n_optionals > SL_PLAN_PORTS_MAX)
                return sl_plan_damaged(error, "number of optional inputs", from->info.n_optionals, SL_PLAN_PORTS_MAX);
        if (n_ports != sl_plan_info_ports(&from->info))
                return sl_plan_damaged(error, "number of ports", n_ports, sl_plan_info_ports(&from->info));
        if (!bytes || plan->names[bytes - 1])
                return sl_error_set(error, EBADMSG, "plan file: a name has no end");
        plan->info = malloc(sizeof(*plan->info) + n_ports * sizeof(struct sl_port));
        if (!plan->info)
                return sl_error_set(error, ENOMEM, "plan: no memory for %llu ports", (unsigned long long)n_ports);
        *plan->info = from->info;
        r = point_texts(plan, from, plan->info, error);
        return r < 0 ? r : point_ports(plan, plan->info, error);
}

static int check_batches(const struct sl_plan *plan, struct sl_error *error)
{
        const struct sl_plan_info *info = plan->info;

        int r = check_symbols(info, error);

        if (r < 0)
                return r;
        if (info->n_symbols && !info->n_batches)
                return check_signature(plan, error);
        if (!info->n_batches || info->n_batches > SL_PLAN_BATCHES_MAX)
                return sl_plan_damaged(error, "number of batch sizes", info->n_batches, SL_PLAN_BATCHES_MAX);
        if (sl_plan_count(plan, SL_PLAN_SECTION_PROGRAMS) < info->n_batches)
                return sl_plan_damaged(error, "number of programs", sl_plan_count(plan, SL_PLAN_SECTION_PROGRAMS), info->n_batches);
        for (uint32_t i = 0; i < info->n_batches; i++) {
                if (info->batches[i] <= (i ? info->batches[i - 1] : 0))
                        return sl_plan_damaged(
                                error, "a batch size that is not above the one before it", info->batches[i], UINT32_MAX);
                if (info->batches[i] != plan->programs[i].batch)
                        return sl_plan_damaged(error, "batch size of a program", plan->programs[i].batch, info->batches[i]);
                if (info->workspace_bytes[i] != plan->programs[i].workspace_bytes)
                        return sl_plan_damaged(
                                error, "workspace of a program", plan->programs[i].workspace_bytes, SL_PLAN_BYTES_MAX);
        }
        if (info->n_lanes > SL_PLAN_LANES_MAX)
                return sl_plan_damaged(error, "number of lanes", info->n_lanes, SL_PLAN_LANES_MAX);
        if (info->batchable > 1 || (info->batchable && info->batches[0] != 1))
                return sl_plan_damaged(error, "smallest batch", info->batches[0], 1);
        return 0;
}

int sl_plan_check_info(const struct sl_plan *plan, struct sl_error *error)
{
        const struct sl_plan_info *info = plan->info;
        int r;

        if (!sl_plan_text_ends(info->backend, sizeof(info->backend)))
                return sl_error_set(error, EBADMSG, "plan file: the name of its backend has no end");
        if (!sl_backend_find(info->backend))
                return sl_error_set(error, EBADMSG, "plan file: there is no backend \"%s\"", info->backend);
        r = check_batches(plan, error);
        if (r < 0)
                return r;
        return check_ports(info, error);
}
/* An input that is left out is a plain constant of its own bytes. */
int sl_plan_check_fallbacks(const struct sl_plan *plan, struct sl_error *error)
{
        uint64_t n = sl_plan_count(plan, SL_PLAN_SECTION_CONSTANTS);

        for (uint32_t i = 0; i < plan->info->n_inputs && plan->info->n_batches; i++) {
                const struct sl_port *port = &plan->info->inputs[i];
                struct sl_tensor tensor = {.dtype = port->dtype, .shape = port->shape};
                const struct sl_plan_constant *constant;

                if (!port->fallback)
                        continue;
                if (port->fallback - 1 >= n)
                        return sl_plan_damaged(error, "constant of an input", port->fallback - 1, n);
                constant = &plan->constants[port->fallback - 1];
                if (constant->packed || port->batch_axis != SL_PORT_NO_BATCH || constant->bytes != sl_tensor_bytes(&tensor))
                        return sl_plan_damaged(
                                error, "bytes of the constant of an input", constant->bytes, sl_tensor_bytes(&tensor));
        }
        return 0;
}
