/* SPDX-License-Identifier: Apache-2.0 */
#include "ensemble.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/utf8.h"
#include "ensemble_rule.h"
#include "model.h"
#include "places.h"
#include "shapes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SL_DEFINE_CLEANUP(struct sl_ensemble *, sl_ensemble_free)

static bool same_labels(const struct sl_port *a, const struct sl_port *b)
{
        return !strcmp(a->labels ? a->labels : "", b->labels ? b->labels : "");
}

static bool same_port(const struct sl_port *a, const struct sl_port *b)
{
        return same_labels(a, b) && a->dtype == b->dtype && a->batch_axis == b->batch_axis &&
               sl_shape_equal(&a->shape, &b->shape) && !a->fallback == !b->fallback;
}

/* Clients find a port by its name when they open a model, and say its number from then on. */
static bool same_named_port(const struct sl_port *a, const struct sl_port *b)
{
        return same_port(a, b) && !strcmp(a->name, b->name);
}

static int port_differs(const struct sl_ensemble_options *options, const struct sl_model *first, const struct sl_model *other,
        const char *kind, const struct sl_port *a, const struct sl_port *b, struct sl_error *error)
{
        char first_shape[SL_SHAPE_TEXT_BYTES], other_shape[SL_SHAPE_TEXT_BYTES];

        if (!same_labels(a, b))
                return sl_error_set(error, EINVAL, "ensemble \"%s\": %s of member \"%s\" has other labels than of member \"%s\"",
                        options->name, kind, first->name, other->name);
        return sl_error_set(error, EINVAL, "ensemble \"%s\": %s of member \"%s\" is %s %s, of member \"%s\" %s %s", options->name,
                kind, first->name, sl_dtype_name(a->dtype), sl_shape_print(&a->shape, first_shape), other->name,
                sl_dtype_name(b->dtype), sl_shape_print(&b->shape, other_shape));
}

static int check_member(const struct sl_ensemble_options *options, const struct sl_model *first, const struct sl_model *member,
        struct sl_error *error)
{
        const struct sl_plan_info *a = first->info, *b = member->info;

        if (a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs || a->batchable != b->batchable)
                return sl_error_set(error, EINVAL,
                        "ensemble \"%s\": member \"%s\" has %u inputs and %u outputs%s, member \"%s\" %u and %u%s", options->name,
                        first->name, a->n_inputs, a->n_outputs, a->batchable ? "" : " without a batch", member->name, b->n_inputs,
                        b->n_outputs, b->batchable ? "" : " without a batch");
        for (uint32_t i = 0; i < a->n_inputs; i++)
                if (!same_port(&a->inputs[i], &b->inputs[i]))
                        return port_differs(options, first, member, "an input", &a->inputs[i], &b->inputs[i], error);
        if (options->rule == SL_RULE_NONE || options->rule == SL_RULE_STACKING || sl_rule_is_of_boxes(options->rule))
                return 0;
        for (uint32_t i = 0; i < a->n_outputs; i++)
                if (!same_port(&a->outputs[i], &b->outputs[i]))
                        return port_differs(options, first, member, "an output", &a->outputs[i], &b->outputs[i], error);
        return 0;
}

/* A model by itself has none. */
static enum sl_rule rule_of(const struct sl_ensemble_options *options)
{
        return options->is_single ? SL_RULE_NONE : options->rule;
}

/* A model's queue has room for each segment once. "lenet" and "lenet:2" may be one model. */
static int check_twice(
        const struct sl_ensemble_options *options, struct sl_model *const *members, uint32_t m, struct sl_error *error)
{
        for (uint32_t i = 0; i < m; i++)
                if (members[i] == members[m])
                        return sl_error_set(error, EINVAL,
                                "ensemble \"%s\": model \"%s\" is a member twice, under one name or two: give it a weight",
                                options->name, members[m]->name);
        return 0;
}

/* What its ports are is not known before they have sizes. */
static int check_open(const struct sl_ensemble_options *options, const struct sl_model *member, struct sl_error *error)
{
        if (member->info->n_batches || options->is_single)
                return 0;
        return sl_error_set(error, ENOTSUP,
                "ensemble \"%s\": dimension \"%s\" of member \"%s\" is open: give it a size with the member's option shapes",
                options->name, member->info->symbols[0], member->name);
}

static int check_members(
        const struct sl_ensemble_options *options, struct sl_model *const *members, uint32_t n, struct sl_error *error)
{
        int r = 0;

        for (uint32_t m = 0; m < n && r == 0; m++) {
                bool is_combiner = rule_of(options) == SL_RULE_STACKING && m == n - 1;

                r = check_open(options, members[m], error);
                if (r == 0 && m > 0 && !is_combiner)
                        r = check_member(options, members[0], members[m], error);
                if (r == 0)
                        r = check_twice(options, members, m, error);
        }
        return r;
}

/* Of an open ensemble, what has a symbol has no size yet. */
static int init_port(const struct sl_ensemble *ensemble, const struct sl_port *from, const char *name, struct sl_served_port *port)
{
        struct sl_port shown = *from;
        int r;

        for (uint32_t i = 0; i < shown.shape.rank && ensemble->open; i++)
                if (shown.symbols[i] != SL_PORT_NO_SYMBOL)
                        shown.shape.dims[i] = SL_DIM_UNKNOWN;
        if (ensemble->open && sl_port_has_open_rank(&shown))
                shown.shape = (struct sl_shape){.dims[0] = SL_DIM_UNKNOWN};
        shown.name = name;
        shown.labels = strdup(from->labels ? from->labels : "");
        if (!shown.labels)
                return -ENOMEM;
        r = sl_served_port_init(port, &shown);
        if (r < 0)
                free((char *)shown.labels);
        return r;
}

/* The port of a member under a name of the ensemble's own. -EOVERFLOW, -ENOMEM. */
static int own_port(const struct sl_ensemble *ensemble, const struct sl_port *from, char *name, struct sl_served_port *port)
{
        int r = name ? init_port(ensemble, from, name, port) : -ENOMEM;

        if (r < 0)
                free(name);
        return r;
}

/* "MEMBER.OUTPUT" of an ensemble whose members' outputs are side by side. NULL: no memory. */
static char *name_output(const struct sl_model *member, const struct sl_port *output, bool name_member)
{
        char *name;

        if (!name_member)
                return strdup(output->name);
        return asprintf(&name, "%s.%s", member->name, output->name) < 0 ? NULL : name;
}

/* It owns @name. */
static int refuse_name(const struct sl_ensemble *ensemble, char *name, struct sl_error *error)
{
        size_t bytes = strlen(name);
        char shown[48];

        sl_utf8_clean(name, shown, sizeof(shown));
        free(name);
        return sl_error_set(error, ENAMETOOLONG, "ensemble \"%s\": output \"%s...\" is MEMBER.OUTPUT of %zu bytes, the limit is %d",
                ensemble->name, shown, bytes, SL_NAME_MAX);
}

static int add_outputs(struct sl_ensemble *ensemble, const struct sl_model *member, bool name_member, struct sl_error *error)
{
        struct sl_assembly *assembly = &ensemble->assembly;

        for (uint32_t i = 0; i < member->info->n_outputs; i++) {
                const struct sl_port *output = &member->info->outputs[i];
                char *name;
                int r;

                name = name_output(member, output, name_member);
                if (name && strlen(name) > SL_NAME_MAX)
                        return refuse_name(ensemble, name, error);
                assembly->open_outputs |= !ensemble->open && sl_port_is_open(output);
                r = own_port(ensemble, output, name, &assembly->outputs[assembly->n_outputs]);
                if (r < 0)
                        return r;
                assembly->n_outputs++;
        }
        return 0;
}

/* Room for the inputs, and for the outputs of so many members. Return: 0; -E2BIG; -ENOMEM. */
static int make_ports(struct sl_ensemble *ensemble, uint32_t n_members, struct sl_error *error)
{
        uint32_t n_inputs = ensemble->members[0]->info->n_inputs + ensemble->n_optionals, n_outputs = 0;

        for (uint32_t m = 0; m < n_members; m++)
                n_outputs += ensemble->members[ensemble->assembly.is_stacked ? ensemble->assembly.n_members : m]->info->n_outputs;
        if (n_inputs + n_outputs > SL_MODEL_TENSORS_MAX)
                return sl_error_set(error, E2BIG, "ensemble \"%s\" has %u inputs and %u outputs, %u together, the limit is %u",
                        ensemble->name, n_inputs, n_outputs, n_inputs + n_outputs, SL_MODEL_TENSORS_MAX);
        ensemble->inputs = calloc((size_t)n_inputs + 1, sizeof(*ensemble->inputs));
        ensemble->assembly.outputs = calloc((size_t)n_outputs + 1, sizeof(*ensemble->assembly.outputs));
        return ensemble->inputs && ensemble->assembly.outputs ? 0 : -ENOMEM;
}

static int init_ports(struct sl_ensemble *ensemble, struct sl_error *error)
{
        const struct sl_plan_info *info = ensemble->members[0]->info;
        struct sl_assembly *assembly = &ensemble->assembly;
        bool side_by_side = assembly->rule == SL_RULE_NONE && assembly->n_members > 1;
        int r = 0;

        ensemble->batchable = info->batchable || ensemble->open; /* of an open one: its sizes decide */
        assembly->member_outputs = info->n_outputs;
        r = make_ports(ensemble, side_by_side ? assembly->n_members : 1, error);
        for (uint32_t i = 0; i < info->n_inputs && r == 0; i++)
                r = own_port(ensemble, &info->inputs[i], strdup(info->inputs[i].name), &ensemble->inputs[ensemble->n_inputs++]);
        for (uint32_t i = 0; i < info->n_inputs && !ensemble->open; i++)
                assembly->open_inputs |= sl_port_is_open(&info->inputs[i]);
        for (uint32_t i = info->n_inputs; i < info->n_inputs + ensemble->n_optionals && r == 0; i++)
                r = own_port(ensemble, &info->inputs[i], strdup(info->inputs[i].name), &ensemble->inputs[i]);
        for (uint32_t m = 0; m < (side_by_side ? assembly->n_members : 1) && r == 0; m++)
                r = add_outputs(ensemble, ensemble->members[assembly->is_stacked ? assembly->n_members : m], side_by_side, error);
        if (r == -ENOMEM)
                return sl_error_set(error, ENOMEM, "ensemble \"%s\": no memory for the names of its ports", ensemble->name);
        if (r == -EOVERFLOW)
                return sl_error_set(error, -r, "ensemble \"%s\": a sample's tensors do not fit %u bits", ensemble->name, 40u);
        return r;
}

/* One plan computes whatever requests bring. */
static bool is_any_size(const struct sl_plan_info *info)
{
        bool open = false;

        for (uint32_t i = 0; i < info->n_inputs; i++)
                open |= sl_port_is_open(&info->inputs[i]);
        return open && info->n_batches;
}

int sl_ensemble_new(const struct sl_ensemble_options *options, struct sl_model *const *members, uint32_t n_members,
        struct sl_ensemble **ret_ensemble, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_ensemble_free) struct sl_ensemble *ensemble = calloc(1, sizeof(*ensemble));
        int r;

        if (!ensemble)
                return sl_error_set(error, ENOMEM, "no memory for ensemble \"%s\"", options->name);
        snprintf(ensemble->name, sizeof(ensemble->name), "%s", options->name);
        ensemble->version = options->version;
        ensemble->assembly.rule = rule_of(options);
        ensemble->assembly.direct = ensemble->assembly.rule == SL_RULE_NONE;
        ensemble->assembly.is_stacked = ensemble->assembly.rule == SL_RULE_STACKING;
        ensemble->assembly.n_members = n_members - ensemble->assembly.is_stacked;
        ensemble->open = options->is_single && !options->sized && members[0]->info->n_symbols && !is_any_size(members[0]->info);
        if (options->is_single && !options->sized && members[0]->info->n_symbols < SL_SYMBOLS_MAX)
                ensemble->n_optionals = members[0]->info->n_optionals;
        memcpy(ensemble->members, members, n_members * sizeof(*members));
        r = check_members(options, members, n_members, error);
        if (r == 0)
                r = sl_ensemble_check_rule(ensemble, options, error);
        if (r == 0)
                r = init_ports(ensemble, error);
        if (r == 0)
                r = sl_ensemble_init_rule(ensemble, options, error);
        if (r < 0)
                return r;
        ensemble->segment_samples = ensemble->batchable ? options->segment_samples : 1;
        ensemble->samples_max = ensemble->batchable ? options->samples_max : 1;
        ensemble->queue_requests = options->queue_requests;
        ensemble->broadcasts.is_staged = !ensemble->assembly.direct;
        if (sl_fair_new(options->clients_max, &ensemble->broadcasts.waiting) < 0 ||
                sl_places_new(options->clients_max, &ensemble->places) < 0)
                return sl_error_set(
                        error, ENOMEM, "no memory for the queue of \"%s\" with %u clients", options->name, options->clients_max);
        uint32_t shapes_max = ensemble->open ? options->shapes_max : 1;

        if ((ensemble->open || ensemble->n_optionals) &&
                sl_shapes_new(members[0]->info->n_symbols, shapes_max, options->clients_max, &ensemble->shapes) < 0)
                return sl_error_set(error, ENOMEM, "no memory for %u shapes of \"%s\"", shapes_max, options->name);
        *ret_ensemble = sl_take(ensemble);
        return 0;
}

static int copy_port(const struct sl_served_port *from, struct sl_served_port *to)
{
        *to = *from;
        to->port.name = strdup(from->port.name);
        to->port.labels = from->port.labels ? strdup(from->port.labels) : NULL;
        return to->port.name && (to->port.labels || !from->port.labels) ? 0 : -ENOMEM;
}

static int copy_ports(struct sl_ensemble *ensemble, const struct sl_ensemble *from)
{
        uint32_t n_inputs = from->n_inputs + from->n_optionals, n_outputs = from->assembly.n_outputs;
        int r = 0;

        ensemble->inputs = calloc((size_t)n_inputs + 1, sizeof(*ensemble->inputs));
        ensemble->assembly.outputs = calloc((size_t)n_outputs + 1, sizeof(*ensemble->assembly.outputs));
        if (!ensemble->inputs || !ensemble->assembly.outputs)
                return -ENOMEM;
        for (uint32_t i = 0; i < n_inputs && r == 0; i++)
                r = copy_port(&from->inputs[i], &ensemble->inputs[i]);
        for (uint32_t i = 0; i < n_outputs && r == 0; i++)
                r = copy_port(&from->assembly.outputs[i], &ensemble->assembly.outputs[i]);
        return r;
}

int sl_ensemble_rest(
        const struct sl_ensemble *from, uint32_t clients_max, struct sl_ensemble **ret_ensemble, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_sl_ensemble_free) struct sl_ensemble *ensemble = calloc(1, sizeof(*ensemble));

        if (!ensemble)
                return sl_error_set(error, ENOMEM, "no memory for what rests of \"%s\"", from->name);
        snprintf(ensemble->name, sizeof(ensemble->name), "%s", from->name);
        ensemble->index = from->index;
        ensemble->generation = from->generation;
        ensemble->version = from->version;
        ensemble->batchable = from->batchable;
        ensemble->rests = true;
        ensemble->segment_samples = from->segment_samples;
        ensemble->samples_max = from->samples_max;
        ensemble->queue_requests = from->queue_requests;
        ensemble->n_inputs = from->n_inputs;
        ensemble->n_optionals = from->n_optionals;
        ensemble->assembly.n_outputs = from->assembly.n_outputs;
        ensemble->assembly.rule = from->assembly.rule;
        ensemble->assembly.direct = from->assembly.direct;
        if (copy_ports(ensemble, from) < 0 || sl_places_new(clients_max, &ensemble->places) < 0 ||
                sl_shapes_new(0, 1, clients_max, &ensemble->shapes) < 0)
                return sl_error_set(error, ENOMEM, "no memory for what rests of \"%s\"", from->name);
        *ret_ensemble = sl_take(ensemble);
        return 0;
}

static void free_texts(struct sl_served_port *port)
{
        free((char *)port->port.name);
        free((char *)port->port.labels);
}

struct sl_ensemble *sl_ensemble_free(struct sl_ensemble *ensemble)
{
        if (!ensemble)
                return NULL;
        sl_fair_free(ensemble->broadcasts.waiting);
        sl_places_free(ensemble->places);
        sl_shapes_free(ensemble->shapes);
        for (uint32_t i = 0; ensemble->inputs && i < ensemble->n_inputs + ensemble->n_optionals; i++)
                free_texts(&ensemble->inputs[i]);
        for (uint32_t i = 0; ensemble->assembly.outputs && i < ensemble->assembly.n_outputs; i++)
                free_texts(&ensemble->assembly.outputs[i]);
        free(ensemble->inputs);
        free(ensemble->assembly.outputs);
        sl_ensemble_deinit_rule(ensemble);
        free(ensemble);
        return NULL;
}

bool sl_ensemble_same_ports(const struct sl_ensemble *a, const struct sl_ensemble *b)
{
        if (a->n_inputs != b->n_inputs || a->n_optionals != b->n_optionals || a->assembly.n_outputs != b->assembly.n_outputs ||
                a->samples_max != b->samples_max)
                return false;
        for (uint32_t i = 0; i < a->n_inputs + a->n_optionals; i++)
                if (!same_named_port(&a->inputs[i].port, &b->inputs[i].port))
                        return false;
        for (uint32_t i = 0; i < a->assembly.n_outputs; i++)
                if (!same_named_port(&a->assembly.outputs[i].port, &b->assembly.outputs[i].port))
                        return false;
        return true;
}
