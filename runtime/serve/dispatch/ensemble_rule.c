/* SPDX-License-Identifier: Apache-2.0 */
#include "ensemble_rule.h"

#include "base/bytes.h"
#include "base/error.h"
#include "boxes.h"
#include "ensemble.h"
#include "model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- before there are ports ---- */

static int check_dtypes(const struct sl_ensemble *ensemble, const struct sl_plan_info *first, struct sl_error *error)
{
        bool any = sl_rule_is_of_boxes(ensemble->assembly.rule) || ensemble->assembly.is_stacked;

        for (uint32_t i = 0; i < first->n_outputs && !any; i++)
                if (first->outputs[i].dtype != SL_DTYPE_F32)
                        return sl_error_set(error, EINVAL,
                                "ensemble \"%s\": rule %s combines float32, output \"%s\" is %s: rule none serves any type side by "
                                "side",
                                ensemble->name, sl_rule_name(ensemble->assembly.rule), first->outputs[i].name,
                                sl_dtype_name(first->outputs[i].dtype));
        return 0;
}

int sl_ensemble_check_rule(const struct sl_ensemble *ensemble, const struct sl_ensemble_options *options, struct sl_error *error)
{
        const struct sl_plan_info *first = ensemble->members[0]->info;

        (void)options;
        if (ensemble->assembly.rule == SL_RULE_NONE)
                return 0;
        for (uint32_t m = 0; m < sl_ensemble_models(ensemble); m++) {
                const struct sl_plan_info *info = ensemble->members[m]->info;

                for (uint32_t i = 0; i < info->n_outputs; i++)
                        if (sl_port_is_open(&info->outputs[i]))
                                return sl_error_set(error, EINVAL,
                                        "ensemble \"%s\": rule %s wants shapes that are known, that of output \"%s\" of member "
                                        "\"%s\" depends on the data",
                                        ensemble->name, sl_rule_name(ensemble->assembly.rule), info->outputs[i].name,
                                        ensemble->members[m]->name);
        }
        return check_dtypes(ensemble, first, error);
}

/* ---- weights ---- */

static int init_weighted_mean(struct sl_assembly *assembly, const struct sl_ensemble_options *options, struct sl_error *error)
{
        double sum = 0;

        for (uint32_t m = 0; m < assembly->n_members; m++)
                sum += options->weights[m];
        if (!(sum > 0))
                return sl_error_set(error, EINVAL, "ensemble \"%s\": weights sum to %g, more than 0 is needed", options->name, sum);
        for (uint32_t m = 0; m < assembly->n_members; m++)
                assembly->weights[m] = (float)(options->weights[m] / sum);
        return 0;
}

static int check_classes(const struct sl_ensemble *ensemble, uint32_t n_classes, struct sl_error *error)
{
        for (uint32_t i = 0; i < ensemble->assembly.n_outputs; i++) {
                const struct sl_port *port = &ensemble->assembly.outputs[i].port;
                uint32_t rank = port->shape.rank;
                int64_t classes = rank > (port->batch_axis == SL_PORT_NO_BATCH ? 0 : 1) ? port->shape.dims[rank - 1] : 1;

                if (classes != n_classes)
                        return sl_error_set(error, EINVAL,
                                "ensemble \"%s\": weights are of %u classes, output \"%s\" has %lld in its last dimension",
                                ensemble->name, n_classes, port->name, (long long)classes);
        }
        return 0;
}

static int init_class_weights(struct sl_ensemble *ensemble, const struct sl_combining *from, struct sl_error *error)
{
        struct sl_assembly *assembly = &ensemble->assembly;
        struct sl_combining *own = sl_combining_copy(from);
        uint32_t n = from->n_classes;

        if (!own)
                return sl_error_set(error, ENOMEM, "ensemble \"%s\": no memory for its weights", ensemble->name);
        assembly->combining = own;
        assembly->class_weights = own->class_weights;
        assembly->on_host = true;
        for (uint32_t class = 0; class < n; class ++) {
                double sum = 0;

                for (uint32_t m = 0; m < assembly->n_members; m++)
                        sum += (double)from->class_weights[m * n + class];
                if (!(sum > 0))
                        return sl_error_set(error, EINVAL,
                                "ensemble \"%s\": the weights of class %u sum to %g, more than 0 is needed", ensemble->name, class,
                                sum);
                for (uint32_t m = 0; m < assembly->n_members; m++)
                        own->class_weights[m * n + class] = (float)((double)from->class_weights[m * n + class] / sum);
        }
        return check_classes(ensemble, n, error);
}

/* ---- stacking ---- */

/* Of each member its own. */
static int init_staged(struct sl_ensemble *ensemble, struct sl_error *error)
{
        struct sl_assembly *assembly = &ensemble->assembly;
        uint32_t n = assembly->n_members * assembly->member_outputs;

        assembly->staged = calloc((size_t)n + 1, sizeof(*assembly->staged));
        if (!assembly->staged)
                return sl_error_set(error, ENOMEM, "ensemble \"%s\": no memory for its members' ports", ensemble->name);
        for (uint32_t i = 0; i < n; i++) {
                const struct sl_plan_info *info = ensemble->members[i / assembly->member_outputs]->info;

                if (sl_served_port_init(&assembly->staged[i], &info->outputs[i % assembly->member_outputs]) < 0)
                        return sl_error_set(
                                error, EOVERFLOW, "ensemble \"%s\": a sample's tensors do not fit %u bits", ensemble->name, 40u);
        }
        return 0;
}

/* An input for each output of each member, in their order. */
static int check_each_input(const struct sl_ensemble *ensemble, const struct sl_model *combiner, struct sl_error *error)
{
        const struct sl_assembly *assembly = &ensemble->assembly;
        uint32_t n = assembly->n_members * assembly->member_outputs;
        char wanted[SL_SHAPE_TEXT_BYTES], got[SL_SHAPE_TEXT_BYTES];

        if (combiner->info->n_inputs != n)
                return sl_error_set(error, EINVAL,
                        "ensemble \"%s\": combiner \"%s\" has %u inputs, it takes 1, all predictions side by side, or %u, one for "
                        "each "
                        "output of each member",
                        ensemble->name, combiner->name, combiner->info->n_inputs, n);
        for (uint32_t i = 0; i < n; i++) {
                const struct sl_port *input = &combiner->info->inputs[i], *output = &assembly->staged[i].port;

                if (input->dtype == output->dtype && input->batch_axis == output->batch_axis &&
                        sl_shape_equal(&input->shape, &output->shape))
                        continue;
                return sl_error_set(error, EINVAL,
                        "ensemble \"%s\": input \"%s\" of combiner \"%s\" is %s %s, output \"%s\" of member \"%s\" is %s %s",
                        ensemble->name, input->name, combiner->name, sl_dtype_name(input->dtype),
                        sl_shape_print(&input->shape, got), output->name, ensemble->members[i / assembly->member_outputs]->name,
                        sl_dtype_name(output->dtype), sl_shape_print(&output->shape, wanted));
        }
        return 0;
}

/* A row of all predictions of a sample. */
static int check_row_input(struct sl_ensemble *ensemble, const struct sl_model *combiner, struct sl_error *error)
{
        struct sl_assembly *assembly = &ensemble->assembly;
        const struct sl_port *input = &combiner->info->inputs[0];
        uint32_t n = assembly->n_members * assembly->member_outputs;
        struct sl_served_port served;
        char shape[SL_SHAPE_TEXT_BYTES];
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < n; i++) {
                if (assembly->staged[i].port.dtype != input->dtype)
                        return sl_error_set(error, EINVAL,
                                "ensemble \"%s\": combiner \"%s\" takes %s, output \"%s\" of member \"%s\" is %s", ensemble->name,
                                combiner->name, sl_dtype_name(input->dtype), assembly->staged[i].port.name,
                                ensemble->members[i / assembly->member_outputs]->name,
                                sl_dtype_name(assembly->staged[i].port.dtype));
                bytes += assembly->staged[i].sample_bytes;
        }
        if (sl_served_port_init(&served, input) < 0 || served.sample_bytes != bytes)
                return sl_error_set(error, EINVAL,
                        "ensemble \"%s\": input \"%s\" of combiner \"%s\" is %s, the members' predictions side by side are %llu "
                        "elements of a sample",
                        ensemble->name, input->name, combiner->name, sl_shape_print(&input->shape, shape),
                        (unsigned long long)(bytes / sl_dtype_bytes(input->dtype)));
        assembly->stacked_bytes = bytes;
        return 0;
}

static int init_stacking(struct sl_ensemble *ensemble, struct sl_error *error)
{
        struct sl_assembly *assembly = &ensemble->assembly;
        const struct sl_model *combiner = ensemble->members[assembly->n_members];
        int r = init_staged(ensemble, error);

        assembly->on_host = true;
        if (r < 0)
                return r;
        if (combiner->info->batchable != ensemble->members[0]->info->batchable)
                return sl_error_set(error, EINVAL, "ensemble \"%s\": combiner \"%s\" is %s a batch, member \"%s\" is %s one",
                        ensemble->name, combiner->name, combiner->info->batchable ? "with" : "without", ensemble->members[0]->name,
                        combiner->info->batchable ? "without" : "with");
        if (combiner->info->n_inputs == 1 && assembly->n_members * assembly->member_outputs > 1)
                return check_row_input(ensemble, combiner, error);
        return check_each_input(ensemble, combiner, error);
}

/* ---- boxes ---- */

static uint32_t find_output(const struct sl_assembly *assembly, const char *name)
{
        for (uint32_t i = 0; i < assembly->n_outputs; i++)
                if (strcmp(assembly->outputs[i].port.name, name) == 0)
                        return i;
        return SL_NO_OUTPUT;
}

static int find_box_outputs(struct sl_ensemble *ensemble, const struct sl_combining *combining, struct sl_error *error)
{
        struct sl_assembly *assembly = &ensemble->assembly;
        uint32_t n = 0;

        for (uint32_t i = 0; i < SL_BOX_OUTPUT_COUNT; i++) {
                const char *part = sl_box_output_name((enum sl_box_output)i), *own = combining->outputs[i];
                bool is_needed = *own || i == SL_BOX_BOXES || i == SL_BOX_SCORES;

                assembly->box_outputs[i] = find_output(assembly, *own ? own : part);
                if (assembly->box_outputs[i] == SL_NO_OUTPUT && is_needed)
                        return sl_error_set(error, EINVAL,
                                "ensemble \"%s\": rule %s: member \"%s\" has no output \"%s\": ensemble.detection.%s says which "
                                "one "
                                "the %s are",
                                ensemble->name, sl_rule_name(assembly->rule), ensemble->members[0]->name, *own ? own : part, part,
                                part);
                n += assembly->box_outputs[i] != SL_NO_OUTPUT;
                for (uint32_t k = 0; k < i; k++)
                        if (assembly->box_outputs[k] == assembly->box_outputs[i] && assembly->box_outputs[i] != SL_NO_OUTPUT)
                                return sl_error_set(error, EINVAL, "ensemble \"%s\": output \"%s\" cannot be both %s and %s",
                                        ensemble->name, *own ? own : part, sl_box_output_name((enum sl_box_output)k), part);
        }
        if (n < assembly->n_outputs)
                return sl_error_set(error, EINVAL,
                        "ensemble \"%s\": rule %s takes boxes, scores, labels and count, member \"%s\" has %u outputs of which %u "
                        "are that",
                        ensemble->name, sl_rule_name(assembly->rule), ensemble->members[0]->name, assembly->n_outputs, n);
        return 0;
}

static bool is_box_dtype(enum sl_box_output part, uint32_t dtype)
{
        if (part == SL_BOX_BOXES || part == SL_BOX_SCORES)
                return dtype == SL_DTYPE_F32;
        return dtype == SL_DTYPE_F32 || dtype == SL_DTYPE_I32 || dtype == SL_DTYPE_I64;
}

static uint64_t elements_of(const struct sl_served_port *port)
{
        return port->sample_bytes / sl_dtype_bytes(port->port.dtype);
}

static int check_box_port(const struct sl_ensemble *ensemble, uint32_t m, enum sl_box_output part, uint64_t places,
        const struct sl_served_port *port, struct sl_error *error)
{
        const struct sl_port *first = &ensemble->assembly.outputs[ensemble->assembly.box_outputs[part]].port;
        uint64_t wanted = part == SL_BOX_BOXES ? 4 * places : part == SL_BOX_COUNT ? 1 : places;
        const struct sl_shape *shape = &port->port.shape;
        char text[SL_SHAPE_TEXT_BYTES];

        if (!is_box_dtype(part, port->port.dtype) || port->port.dtype != first->dtype)
                return sl_error_set(error, EINVAL,
                        "ensemble \"%s\": output \"%s\" of member \"%s\" is %s: boxes and scores are float32, labels and count "
                        "float32, int32 or int64, of all members the same",
                        ensemble->name, port->port.name, ensemble->members[m]->name, sl_dtype_name(port->port.dtype));
        if (elements_of(port) != wanted || port->port.batch_axis != first->batch_axis ||
                (part == SL_BOX_BOXES && (!shape->rank || shape->dims[shape->rank - 1] != 4)))
                return sl_error_set(error, EINVAL,
                        "ensemble \"%s\": output \"%s\" of member \"%s\" is %s: a sample's boxes are [places,4], its scores and "
                        "labels [places], its count one number",
                        ensemble->name, port->port.name, ensemble->members[m]->name, sl_shape_print(shape, text));
        return 0;
}

/* Members may have different numbers of places. */
static int init_box_ports(struct sl_ensemble *ensemble, struct sl_error *error)
{
        struct sl_assembly *assembly = &ensemble->assembly;
        uint64_t all = 0;
        int r = init_staged(ensemble, error);

        for (uint32_t m = 0; m < assembly->n_members && r == 0; m++) {
                const struct sl_served_port *ports = &assembly->staged[m * assembly->member_outputs];
                uint64_t places = elements_of(&ports[assembly->box_outputs[SL_BOX_SCORES]]);

                for (uint32_t part = 0; part < SL_BOX_OUTPUT_COUNT && r == 0; part++)
                        if (assembly->box_outputs[part] != SL_NO_OUTPUT)
                                r = check_box_port(
                                        ensemble, m, (enum sl_box_output)part, places, &ports[assembly->box_outputs[part]], error);
                all += places;
        }
        if (r < 0)
                return r;
        if (all > SL_BOXES_MAX)
                return sl_error_set(error, EINVAL,
                        "ensemble \"%s\": rule %s takes at most %u boxes of a sample from all members, they have places for %llu",
                        ensemble->name, sl_rule_name(assembly->rule), SL_BOXES_MAX, (unsigned long long)all);
        assembly->scratch_bytes = sl_box_scratch_bytes(all);
        return 0;
}

static void init_box_weights(struct sl_assembly *assembly, const float *weights)
{
        double sum = 0, largest = 0;

        for (uint32_t m = 0; m < assembly->n_members; m++) {
                double weight = weights ? (double)weights[m] : 1;

                sum += weight;
                largest = weight > largest ? weight : largest;
        }
        for (uint32_t m = 0; m < assembly->n_members; m++) {
                double weight = weights ? (double)weights[m] : 1;

                assembly->weights[m] =
                        (float)(assembly->rule == SL_RULE_WEIGHTED_BOXES ? weight / sum * assembly->n_members : weight / largest);
        }
}

static int init_boxes(struct sl_ensemble *ensemble, const struct sl_ensemble_options *options, struct sl_error *error)
{
        struct sl_assembly *assembly = &ensemble->assembly;
        int r = find_box_outputs(ensemble, options->combining, error);

        if (r == 0)
                r = init_box_ports(ensemble, error);
        if (r < 0)
                return r;
        init_box_weights(assembly, options->weights);
        assembly->on_host = true;
        assembly->combining = sl_combining_copy(options->combining);
        return assembly->combining ? 0 : sl_error_set(error, ENOMEM, "ensemble \"%s\": no memory for its rule", ensemble->name);
}

/* ---- members that may be missing ---- */

static int check_until(const struct sl_ensemble *ensemble, struct sl_error *error)
{
        const struct sl_port *port = &ensemble->assembly.outputs[0].port;
        uint32_t rank = port->shape.rank, batch = port->batch_axis == SL_PORT_NO_BATCH ? 0 : 1;
        char shape[SL_SHAPE_TEXT_BYTES];

        if (rank == batch + 1 && port->shape.dims[batch] >= 2)
                return 0;
        return sl_error_set(error, EINVAL,
                "ensemble \"%s\": until looks at a row of 2 or more classes of each sample, output \"%s\" is %s", ensemble->name,
                port->name, sl_shape_print(&port->shape, shape));
}

static int init_partial(struct sl_ensemble *ensemble, const struct sl_combining *combining, struct sl_error *error)
{
        struct sl_assembly *assembly = &ensemble->assembly;
        uint32_t n = assembly->n_members;

        assembly->n_first = combining->agree ? combining->agree : combining->margin > 0 ? 1 : n;
        assembly->agree = combining->agree;
        assembly->margin = combining->margin;
        assembly->quorum = combining->quorum ? combining->quorum : n;
        assembly->is_partial = assembly->n_first < n || assembly->quorum < n;
        assembly->on_host |= assembly->is_partial;
        if (assembly->n_first == n)
                return 0;
        if (combining->margin > 0)
                assembly->scratch_bytes = sl_align_up(assembly->outputs[0].sample_bytes, SL_LINE_BYTES);
        return check_until(ensemble, error);
}

static int init_weights(struct sl_ensemble *ensemble, const struct sl_ensemble_options *options, struct sl_error *error)
{
        enum sl_rule rule = ensemble->assembly.rule;

        if (sl_rule_is_of_boxes(rule))
                return init_boxes(ensemble, options, error);
        if (ensemble->assembly.is_stacked)
                return init_stacking(ensemble, error);
        if (rule != SL_RULE_WEIGHTED_MEAN)
                return 0;
        if (options->combining && options->combining->n_classes)
                return init_class_weights(ensemble, options->combining, error);
        return init_weighted_mean(&ensemble->assembly, options, error);
}

int sl_ensemble_init_rule(struct sl_ensemble *ensemble, const struct sl_ensemble_options *options, struct sl_error *error)
{
        int r = init_weights(ensemble, options, error);

        if (r < 0 || ensemble->assembly.rule == SL_RULE_NONE || !options->combining)
                return r;
        return init_partial(ensemble, options->combining, error);
}

void sl_ensemble_deinit_rule(struct sl_ensemble *ensemble)
{
        free(ensemble->assembly.staged);
        sl_combining_release((struct sl_combining *)ensemble->assembly.combining);
}
