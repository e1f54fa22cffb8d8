/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan file runs: programs, bodies, their steps, and the operands and attributes of each. */
#include "plan_check.h"

#include "plan.h"

#include <stdlib.h>

/* Tensors of one program whose shapes are data-dependent. */
#define SLOTS_MAX (1u << 20)

/* Bodies inside bodies: as deep as a graph may be. */
#define DEPTH_MAX 4

int sl_plan_check_attrs(const struct sl_plan *plan, struct sl_error *error)
{
        for (uint64_t i = 0; i < sl_plan_count(plan, SL_PLAN_SECTION_ATTRS); i++) {
                const struct sl_attr *attr = &plan->attrs[i];

                if (attr->id >= SL_ATTR_COUNT)
                        return sl_plan_damaged(error, "number of an attribute", attr->id, SL_ATTR_COUNT);
                if (attr->type >= SL_ATTR_TYPE_LIMIT)
                        return sl_plan_damaged(error, "type of an attribute", attr->type, SL_ATTR_TYPE_LIMIT);
                if (attr->count > SL_ATTR_INTS_MAX)
                        return sl_plan_damaged(error, "length of an attribute", attr->count, SL_ATTR_INTS_MAX);
        }
        return 0;
}

static bool port_operand_fits(
        const struct sl_plan_operand *operand, const struct sl_port *ports, uint32_t n_ports, const struct sl_plan_program *program)
{
        struct sl_tensor tensor;

        if (operand->index >= n_ports || sl_port_is_open(&ports[operand->index]))
                return false;
        tensor = sl_plan_port_tensor(&ports[operand->index], program->batch);
        return sl_tensor_bytes(&operand->tensor) <= sl_tensor_bytes(&tensor);
}

static bool constant_operand_fits(const struct sl_plan *plan, const struct sl_plan_operand *operand)
{
        const struct sl_plan_constant *constant;

        if (operand->index >= sl_plan_count(plan, SL_PLAN_SECTION_CONSTANTS))
                return false;
        constant = &plan->constants[operand->index];
        return constant->packed || sl_tensor_bytes(&operand->tensor) <= constant->bytes;
}

/* The ports of a body are tensors that its step gives it. */
static bool body_port_fits(const struct sl_plan *plan, const struct sl_plan_operand *operand, const struct sl_plan_program *body)
{
        bool input = operand->place == SL_PLACE_INPUT;
        const struct sl_plan_operand *port;

        if (operand->index >= (input ? body->n_inputs : body->n_outputs))
                return false;
        port = &plan->operands[body->first_operand + (input ? 0 : body->n_inputs) + operand->index];
        return port->place == operand->place && sl_tensor_bytes(&operand->tensor) <= sl_tensor_bytes(&port->tensor);
}

/* A kernel touches no byte outside its tensors; this says that all of those bytes exist. */
static bool operand_fits(
        const struct sl_plan *plan, const struct sl_plan_operand *operand, const struct sl_plan_program *program, bool written)
{
        switch (operand->place) {
        case SL_PLACE_NONE:
                return !written && operand->tensor.dtype == SL_DTYPE_NONE;
        case SL_PLACE_WORKSPACE:
                return operand->offset % SL_LINE_BYTES == 0 &&
                       sl_range_inside(operand->offset, sl_tensor_bytes(&operand->tensor), program->workspace_bytes);
        case SL_PLACE_CONSTANT:
                return !written && constant_operand_fits(plan, operand);
        case SL_PLACE_INPUT:
                if (!program->batch)
                        return !written && body_port_fits(plan, operand, program);
                return !written && port_operand_fits(operand, plan->info->inputs, plan->info->n_inputs, program);
        case SL_PLACE_OUTPUT:
                if (!program->batch)
                        return body_port_fits(plan, operand, program);
                return port_operand_fits(operand, plan->info->outputs, plan->info->n_outputs, program);
        case SL_PLACE_SLOT:
                return operand->index < program->n_slots && operand->offset <= 1;
        default:
                return false;
        }
}

static bool is_open_output(const struct sl_plan *plan, const struct sl_plan_program *program, const struct sl_plan_operand *operand)
{
        return program->batch && operand->place == SL_PLACE_OUTPUT && operand->index < plan->info->n_outputs &&
               sl_port_is_open(&plan->info->outputs[operand->index]);
}

/* A step of the interpreter reads and writes PLAIN tensors as they are. */
static bool dynamic_operand_fits(const struct sl_plan *plan, const struct sl_plan_program *program, const struct sl_plan_step *step,
        const struct sl_plan_operand *operand, bool written)
{
        if (operand->place == SL_PLACE_NONE)
                return !written && operand->tensor.dtype == SL_DTYPE_NONE;
        if (operand->place == SL_PLACE_SLOT)
                return sl_plan_open_tensor_is_sound(&operand->tensor) && operand->index < program->n_slots && operand->offset <= 1;
        if (is_open_output(plan, program, operand))
                return written && step->op == SL_OP_IDENTITY && step->n_inputs == 1;
        if (operand->tensor.layout != SL_LAYOUT_PLAIN || !sl_plan_tensor_is_sound(&operand->tensor))
                return false;
        if (operand->place == SL_PLACE_CONSTANT)
                return operand_fits(plan, operand, program, written) && !plan->constants[operand->index].packed;
        return operand_fits(plan, operand, program, written);
}

static bool static_operand_fits(
        const struct sl_plan *plan, const struct sl_plan_program *program, const struct sl_plan_operand *operand, bool written)
{
        if (operand->place == SL_PLACE_SLOT || is_open_output(plan, program, operand))
                return false;
        return operand_fits(plan, operand, program, written);
}

static int check_operands(
        const struct sl_plan *plan, const struct sl_plan_program *program, const struct sl_plan_step *step, struct sl_error *error)
{
        for (uint32_t i = 0; i < step->n_inputs + step->n_outputs; i++) {
                const struct sl_plan_operand *operand = &plan->operands[step->first_operand + i];
                bool written = i >= step->n_inputs, fits;

                if (!step->dynamic && operand->place != SL_PLACE_NONE && !sl_plan_tensor_is_sound(&operand->tensor))
                        return sl_error_set(error, EBADMSG, "plan file: operand %u of a %s has no sound type or shape", i,
                                sl_op_name(step->op));
                fits = step->dynamic ? dynamic_operand_fits(plan, program, step, operand, written)
                                     : static_operand_fits(plan, program, operand, written);
                if (!fits)
                        return sl_error_set(
                                error, EBADMSG, "plan file: operand %u of a %s lies outside its place", i, sl_op_name(step->op));
        }
        return 0;
}

/* The bodies of a step come behind the program that it is in, so that none runs itself. */
static bool overlaps(uint64_t at, uint64_t bytes, const struct sl_plan_operand *operand)
{
        return operand->place == SL_PLACE_WORKSPACE && at < operand->offset + sl_tensor_bytes(&operand->tensor) &&
               operand->offset < at + bytes;
}

/*
 * A kernel trusts that what it writes stays: its scratch is nobody's, and no two outputs are one. That an output takes the place of
 * an input is up to the operator.
 */
static int check_places(const struct sl_plan *plan, const struct sl_plan_step *step, struct sl_error *error)
{
        const struct sl_plan_operand *operands = &plan->operands[step->first_operand], *outputs = operands + step->n_inputs;

        for (uint32_t i = 0; i < step->n_inputs + step->n_outputs; i++)
                if (overlaps(step->scratch_offset, step->scratch_bytes, &operands[i]))
                        return sl_error_set(
                                error, EBADMSG, "plan file: operand %u of a %s lies in its scratch", i, sl_op_name(step->op));
        for (uint32_t i = 1; i < step->n_outputs; i++)
                for (uint32_t k = 0; k < i; k++)
                        if (outputs[k].place == SL_PLACE_WORKSPACE &&
                                overlaps(outputs[k].offset, sl_tensor_bytes(&outputs[k].tensor), &outputs[i]))
                                return sl_error_set(
                                        error, EBADMSG, "plan file: outputs %u and %u of a %s overlap", k, i, sl_op_name(step->op));
        return 0;
}

static int check_step_bodies(
        const struct sl_plan *plan, const struct sl_plan_program *program, const struct sl_plan_step *step, struct sl_error *error)
{
        uint64_t n_programs = sl_plan_count(plan, SL_PLAN_SECTION_PROGRAMS), at = (uint64_t)(program - plan->programs);
        bool control = sl_op_traits(step->op) & SL_OP_CONTROL;
        uint64_t wanted = !control ? 0 : step->op == SL_OP_IF ? 2 : 1;

        if (step->dynamic > 1 || (control && !step->dynamic))
                return sl_plan_damaged(error, "kind of a step", step->dynamic, 1);
        if (step->n_bodies != wanted)
                return sl_plan_damaged(error, "number of bodies of a step", step->n_bodies, wanted);
        if (!wanted)
                return 0;
        if (step->first_body <= at || step->first_body < plan->info->n_batches ||
                !sl_range_inside(step->first_body, step->n_bodies, n_programs))
                return sl_plan_damaged(error, "first body of a step", step->first_body, n_programs);
        for (uint64_t b = 0; b < step->n_bodies; b++)
                if (plan->programs[step->first_body + b].workspace_bytes > step->scratch_bytes)
                        return sl_plan_damaged(error, "workspace of a body", plan->programs[step->first_body + b].workspace_bytes,
                                step->scratch_bytes);
        return 0;
}

/* Who runs a dynamic step is decided when it runs. */
static int check_step_backend(const struct sl_plan *plan, const struct sl_plan_step *step, struct sl_error *error)
{
        uint64_t n_backends = sl_plan_count(plan, SL_PLAN_SECTION_BACKENDS);

        if (step->dynamic && (step->backend || step->blob != SL_PLAN_NO_BLOB))
                return sl_plan_damaged(error, "backend of a dynamic step", step->backend, 0);
        if (!step->dynamic && step->backend >= n_backends)
                return sl_plan_damaged(error, "number of a backend", step->backend, n_backends);
        if (step->blob != SL_PLAN_NO_BLOB && step->blob >= plan->backends[step->backend].n_blobs)
                return sl_plan_damaged(error, "number of a blob", step->blob, plan->backends[step->backend].n_blobs);
        return 0;
}

/* Whether a kernel can be cut so is seen when there is one. */
static int check_splits(const struct sl_plan_step *step, struct sl_error *error)
{
        for (uint32_t i = 0; i < SL_TEAM_SIZE_COUNT; i++) {
                struct sl_split split = step->splits[i];
                uint32_t size = step->dynamic ? 0 : sl_team_size_at(i), most = split.axis == SL_AXIS_NONE && size ? 1 : size;

                if (split.axis >= SL_AXIS_COUNT || (step->dynamic && split.axis))
                        return sl_plan_damaged(error, "axis of a step's parts", split.axis, SL_AXIS_COUNT);
                if (split.members > most || (split.axis != SL_AXIS_NONE && split.members < 2))
                        return sl_plan_damaged(error, "number of a step's parts", split.members, most);
                if (split.first + split.members > size || (split.first && !split.members))
                        return sl_plan_damaged(error, "first member of a step's parts", split.first, size);
                if (split.begins > (size > 0))
                        return sl_plan_damaged(error, "mark of a step that waits", split.begins, size > 0);
        }
        return 0;
}

static int check_step(
        const struct sl_plan *plan, const struct sl_plan_program *program, const struct sl_plan_step *step, struct sl_error *error)
{
        uint64_t n_operands = sl_plan_count(plan, SL_PLAN_SECTION_OPERANDS);

        if (step->name >= sl_plan_count(plan, SL_PLAN_SECTION_NAMES))
                return sl_plan_damaged(error, "name of a step", step->name, sl_plan_count(plan, SL_PLAN_SECTION_NAMES));
        if (step->choice.reason >= SL_CHOICE_REASON_COUNT)
                return sl_plan_damaged(error, "reason of a step's algorithm", step->choice.reason, SL_CHOICE_REASON_COUNT);
        if (step->op >= SL_OP_COUNT)
                return sl_plan_damaged(error, "number of an operator", step->op, SL_OP_COUNT);
        if (step->n_inputs > SL_NODE_INPUTS_MAX)
                return sl_plan_damaged(error, "number of inputs of a step", step->n_inputs, SL_NODE_INPUTS_MAX);
        if (step->n_outputs > SL_NODE_OUTPUTS_MAX || !step->n_outputs)
                return sl_plan_damaged(error, "number of outputs of a step", step->n_outputs, SL_NODE_OUTPUTS_MAX);
        if (step->n_attrs > SL_NODE_ATTRS_MAX)
                return sl_plan_damaged(error, "number of attributes of a step", step->n_attrs, SL_NODE_ATTRS_MAX);
        if (!sl_range_inside(step->first_operand, step->n_inputs + step->n_outputs, n_operands))
                return sl_plan_damaged(error, "first operand of a step", step->first_operand, n_operands);
        if (!sl_range_inside(step->first_attr, step->n_attrs, sl_plan_count(plan, SL_PLAN_SECTION_ATTRS)))
                return sl_plan_damaged(
                        error, "first attribute of a step", step->first_attr, sl_plan_count(plan, SL_PLAN_SECTION_ATTRS));
        if (step->epilogue.activation > SL_ACT_ELU || step->epilogue.has_residual > 1)
                return sl_plan_damaged(error, "activation of a step", step->epilogue.activation, SL_ACT_ELU);
        if (step->scratch_offset % SL_LINE_BYTES ||
                !sl_range_inside(step->scratch_offset, step->scratch_bytes, program->workspace_bytes))
                return sl_plan_damaged(error, "scratch of a step", step->scratch_bytes, program->workspace_bytes);
        int r = check_step_backend(plan, step, error);

        if (r == 0)
                r = check_splits(step, error);
        if (r == 0)
                r = check_step_bodies(plan, program, step, error);
        if (r == 0)
                r = check_operands(plan, program, step, error);
        return r < 0 ? r : check_places(plan, step, error);
}

static int check_program(const struct sl_plan *plan, const struct sl_plan_program *program, struct sl_error *error)
{
        uint64_t n_steps = sl_plan_count(plan, SL_PLAN_SECTION_STEPS);

        if (!sl_range_inside(program->first_step, program->n_steps, n_steps))
                return sl_plan_damaged(error, "first step of a program", program->first_step, n_steps);
        if (program->workspace_bytes > SL_PLAN_BYTES_MAX)
                return sl_plan_damaged(error, "workspace of a program", program->workspace_bytes, SL_PLAN_BYTES_MAX);
        if (program->n_slots > SLOTS_MAX)
                return sl_plan_damaged(error, "number of slots of a program", program->n_slots, SLOTS_MAX);
        if (program->dynamic_bytes > SL_PLAN_BYTES_MAX)
                return sl_plan_damaged(error, "dynamic memory of a program", program->dynamic_bytes, SL_PLAN_BYTES_MAX);
        for (uint64_t i = 0; i < program->n_steps; i++) {
                int r = check_step(plan, program, &plan->steps[program->first_step + i], error);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* What has a static shape is a port under its own number, PLAIN; the rest is a slot. */
static bool body_port_is_sound(const struct sl_plan *plan, const struct sl_plan_program *program, uint64_t i)
{
        const struct sl_plan_operand *port = &plan->operands[program->first_operand + i];
        bool input = i < program->n_inputs;

        if (port->place == SL_PLACE_SLOT)
                return port->index < program->n_slots && sl_plan_open_tensor_is_sound(&port->tensor);
        return port->place == (input ? SL_PLACE_INPUT : SL_PLACE_OUTPUT) && port->index == (input ? i : i - program->n_inputs) &&
               port->tensor.layout == SL_LAYOUT_PLAIN && sl_plan_tensor_is_sound(&port->tensor);
}

static int check_body(const struct sl_plan *plan, const struct sl_plan_program *program, struct sl_error *error)
{
        uint64_t n_operands = sl_plan_count(plan, SL_PLAN_SECTION_OPERANDS);

        if (program->batch)
                return sl_plan_damaged(error, "batch of a body", program->batch, 0);
        if (program->n_inputs > SL_NODE_INPUTS_MAX || program->n_outputs > SL_NODE_OUTPUTS_MAX + 1)
                return sl_plan_damaged(error, "number of inputs or outputs of a body", program->n_inputs, SL_NODE_INPUTS_MAX);
        if (!sl_range_inside(program->first_operand, program->n_inputs + program->n_outputs, n_operands))
                return sl_plan_damaged(error, "first operand of a body", program->first_operand, n_operands);
        for (uint64_t i = 0; i < program->n_inputs + program->n_outputs; i++)
                if (!body_port_is_sound(plan, program, i))
                        return sl_error_set(error, EBADMSG, "plan file: a body has an input or an output that is none");
        return 0;
}

/* Of a program that is no body: where inputs whose sizes a request says are found, if there are such. */
static int check_inputs(const struct sl_plan *plan, const struct sl_plan_program *program, struct sl_error *error)
{
        const struct sl_plan_info *info = plan->info;
        uint64_t n_operands = sl_plan_count(plan, SL_PLAN_SECTION_OPERANDS);
        uint32_t n_open = 0;

        for (uint32_t i = 0; i < info->n_inputs; i++)
                n_open += sl_port_is_open(&info->inputs[i]);
        if (program->n_inputs != (n_open ? info->n_inputs : 0) || program->n_outputs)
                return sl_plan_damaged(error, "ports of a program that is no body", program->n_inputs, n_open ? info->n_inputs : 0);
        if (!sl_range_inside(program->first_operand, program->n_inputs, n_operands))
                return sl_plan_damaged(error, "first operand of a program", program->first_operand, n_operands);
        for (uint64_t i = 0; i < program->n_inputs; i++) {
                const struct sl_plan_operand *port = &plan->operands[program->first_operand + i];
                bool open = sl_port_is_open(&info->inputs[i]);

                if (!body_port_is_sound(plan, program, i) || (port->place == SL_PLACE_SLOT) != open)
                        return sl_error_set(
                                error, EBADMSG, "plan file: input %llu is not where its shape says", (unsigned long long)i);
        }
        return 0;
}

/* One walk suffices, for a body comes behind whoever runs it. Each is of one step, in whose scratch it works. */
static int check_depth(const struct sl_plan *plan, struct sl_error *error)
{
        uint64_t n_programs = sl_plan_count(plan, SL_PLAN_SECTION_PROGRAMS);
        uint8_t *depths = calloc(n_programs + 1, 1);
        int r = depths ? 0 : sl_error_set(error, ENOMEM, "plan file: no memory for %llu programs", (unsigned long long)n_programs);

        for (uint64_t p = 0; p < n_programs && r == 0; p++)
                for (uint64_t s = 0; s < plan->programs[p].n_steps && r == 0; s++) {
                        const struct sl_plan_step *step = &plan->steps[plan->programs[p].first_step + s];

                        if (step->n_bodies && depths[p] >= DEPTH_MAX)
                                r = sl_plan_damaged(error, "depth of bodies", depths[p] + 1u, DEPTH_MAX);
                        for (uint64_t b = 0; b < step->n_bodies && r == 0; b++) {
                                uint8_t *depth = &depths[step->first_body + b];

                                if (*depth)
                                        r = sl_plan_damaged(error, "number of steps of one body", 2, 1);
                                *depth = (uint8_t)(depths[p] + 1);
                        }
                }
        free(depths);
        return r;
}

int sl_plan_check_programs(const struct sl_plan *plan, struct sl_error *error)
{
        uint64_t n_programs = sl_plan_count(plan, SL_PLAN_SECTION_PROGRAMS);
        int r = 0;

        for (uint64_t i = 0; i < n_programs && r == 0; i++) {
                if (i >= plan->info->n_batches)
                        r = check_body(plan, &plan->programs[i], error);
                else
                        r = check_inputs(plan, &plan->programs[i], error);
                if (r == 0)
                        r = check_program(plan, &plan->programs[i], error);
        }
        return r < 0 ? r : check_depth(plan, error);
}
static void read_input(const struct sl_plan *plan, const struct sl_plan_operand *operand, uint32_t i, struct sl_plan_call *call)
{
        const struct sl_plan_constant *constant;

        call->packed[i].data_bytes = 0;
        call->packed[i].form_bytes = 0;
        call->constants[i] = NULL;
        if (operand->place != SL_PLACE_CONSTANT)
                return;
        constant = &plan->constants[operand->index];
        call->constants[i] = sl_plan_constant_data(plan, constant);
        if (!constant->packed)
                return;
        call->packed[i].data_bytes = constant->bytes;
        call->packed[i].form_bytes = constant->form_bytes;
        memcpy(call->packed[i].form, plan->forms + constant->form_offset, constant->form_bytes);
}

/* The shape rules are run once more: kernels rely on outputs that follow from the inputs. */
static bool outputs_follow(const struct sl_node_desc *node)
{
        struct sl_node_desc inferred = *node;

        if (sl_op_infer(&inferred, NULL) < 0)
                return false;
        for (uint32_t i = 0; i < node->n_outputs; i++) {
                const struct sl_tensor *stored = &node->outputs[i], *made = &inferred.outputs[i];

                if (stored->dtype == SL_DTYPE_NONE)
                        continue;
                if (stored->dtype != made->dtype || !sl_shape_equal(&stored->shape, &made->shape))
                        return false;
        }
        return true;
}

int sl_plan_read_step(const struct sl_plan *plan, const struct sl_plan_step *step, struct sl_plan_call *ret_call)
{
        const struct sl_plan_operand *operands = &plan->operands[step->first_operand];
        struct sl_node_desc *node = &ret_call->node;

        memset(node, 0, sizeof(*node));
        node->op = step->op;
        node->n_inputs = step->n_inputs;
        node->n_outputs = step->n_outputs;
        node->epilogue = step->epilogue;
        node->attrs.count = step->n_attrs;
        memcpy(node->attrs.items, &plan->attrs[step->first_attr], step->n_attrs * sizeof(struct sl_attr));
        for (uint32_t i = 0; i < step->n_inputs; i++) {
                node->inputs[i] = operands[i].tensor;
                read_input(plan, &operands[i], i, ret_call);
        }
        for (uint32_t i = 0; i < step->n_outputs; i++)
                node->outputs[i] = operands[step->n_inputs + i].tensor;
        return outputs_follow(node) ? 0 : -EBADMSG;
}
