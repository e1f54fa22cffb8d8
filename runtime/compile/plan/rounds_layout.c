/* SPDX-License-Identifier: Apache-2.0 */
#include "rounds_layout.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "op.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Inputs of the node, and of its body, that are no carried values. */
static uint32_t leading(uint32_t op)
{
        return op == SL_OP_LOOP ? 2 : op == SL_OP_IF ? 1 : 0;
}

static bool is_settled(const struct sl_tensor *tensor)
{
        return tensor->dtype != SL_DTYPE_NONE && tensor->layout == SL_LAYOUT_PLAIN && sl_shape_is_static(&tensor->shape) &&
               sl_tensor_bytes(tensor) <= SL_PLAN_BYTES_MAX;
}

static bool same_tensor(const struct sl_tensor *a, const struct sl_tensor *b)
{
        return is_settled(a) && is_settled(b) && a->dtype == b->dtype && sl_shape_equal(&a->shape, &b->shape);
}

static bool is_scalar(const struct sl_tensor *tensor, uint32_t dtype)
{
        return is_settled(tensor) && tensor->dtype == dtype && sl_shape_elements(&tensor->shape) == 1;
}

static bool branch_is_settled(const struct sl_node_desc *node, const struct sl_rounds_body *body)
{
        bool settled = is_scalar(&node->inputs[0], SL_DTYPE_BOOL);

        for (uint32_t i = 0; i < body->n_inputs; i++)
                settled = settled && same_tensor(&node->inputs[i + 1], &body->inputs[i]);
        for (uint32_t i = 0; i < body->n_outputs; i++)
                settled = settled && same_tensor(&node->outputs[i], &body->outputs[i]);
        return settled;
}

/* Is @whole made of rows like @row along an axis? Then says how. */
static bool split_rows(
        const struct sl_tensor *whole, const struct sl_tensor *row, int64_t axis, bool backwards, struct sl_rounds_rows *ret_rows)
{
        struct sl_rounds_rows rows = {.outer = 1, .backwards = backwards, .at = SL_ROUNDS_NOWHERE};
        uint32_t rank = whole->shape.rank;

        if (!is_settled(whole) || !is_settled(row) || whole->dtype != row->dtype || rank != row->shape.rank + 1)
                return false;
        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank)
                return false;
        rows.count = whole->shape.dims[axis];
        rows.inner = sl_dtype_bytes(whole->dtype);
        for (uint32_t i = 0; i < rank; i++) {
                if (i == axis)
                        continue;
                if (whole->shape.dims[i] != row->shape.dims[i < axis ? i : i - 1])
                        return false;
                if (i < axis)
                        rows.outer *= (uint64_t)whole->shape.dims[i];
                else
                        rows.inner *= (uint64_t)whole->shape.dims[i];
        }
        /* The other dimensions of an empty row may have any product. */
        if (!sl_tensor_bytes(row)) {
                rows.outer = 1;
                rows.inner = 0;
        }
        *ret_rows = rows;
        return true;
}

static bool carried_are_settled(const struct sl_node_desc *node, const struct sl_rounds_body *body, struct sl_rounds_layout *layout)
{
        uint32_t first = node->op == SL_OP_LOOP ? 2 : 0, made = node->op == SL_OP_LOOP ? 1 : 0;
        bool settled = true;

        for (uint32_t i = 0; i < layout->n_carried; i++)
                settled = settled && same_tensor(&node->inputs[first + i], &body->inputs[first + i]) &&
                          same_tensor(&node->inputs[first + i], &body->outputs[made + i]) &&
                          same_tensor(&node->inputs[first + i], &node->outputs[i]);
        for (uint32_t i = first + layout->n_carried + layout->n_scanned; i < node->n_inputs; i++)
                settled = settled && same_tensor(&node->inputs[i], &body->inputs[i]);
        for (uint32_t i = 0; i < layout->n_grown && settled; i++)
                settled = split_rows(&node->outputs[layout->n_carried + i], &body->outputs[made + layout->n_carried + i],
                                  sl_attrs_ints(&node->attrs, SL_ATTR_SCAN_OUTPUT_AXES, i, 0),
                                  sl_attrs_ints(&node->attrs, SL_ATTR_SCAN_OUTPUT_DIRECTIONS, i, 0) != 0, &layout->rows[i]) &&
                          layout->rows[i].count == layout->rows[0].count;
        return settled;
}

/* A trip count or a condition may be absent. */
static bool loop_is_settled(const struct sl_node_desc *node, const struct sl_rounds_body *body, struct sl_rounds_layout *layout)
{
        if (node->inputs[0].dtype != SL_DTYPE_NONE && !is_scalar(&node->inputs[0], SL_DTYPE_I64))
                return false;
        if (node->inputs[1].dtype != SL_DTYPE_NONE && !is_scalar(&node->inputs[1], SL_DTYPE_BOOL))
                return false;
        return is_scalar(&body->inputs[0], SL_DTYPE_I64) && is_scalar(&body->inputs[1], SL_DTYPE_BOOL) &&
               is_scalar(&body->outputs[0], SL_DTYPE_BOOL) && carried_are_settled(node, body, layout);
}

static bool scan_is_settled(const struct sl_node_desc *node, const struct sl_rounds_body *body, struct sl_rounds_layout *layout)
{
        for (uint32_t i = 0; i < layout->n_scanned; i++) {
                uint32_t at = layout->n_carried + i;

                if (!split_rows(&node->inputs[at], &body->inputs[at], sl_attrs_ints(&node->attrs, SL_ATTR_SCAN_INPUT_AXES, i, 0),
                            sl_attrs_ints(&node->attrs, SL_ATTR_SCAN_INPUT_DIRECTIONS, i, 0) != 0, &layout->slices[i]) ||
                        layout->slices[i].count != layout->slices[0].count)
                        return false;
        }
        if (!layout->n_scanned || !carried_are_settled(node, body, layout))
                return false;
        return !layout->n_grown || layout->rows[0].count == layout->slices[0].count;
}

static uint64_t take_room(struct sl_rounds_layout *layout, uint64_t bytes)
{
        uint64_t at = layout->bytes;

        layout->bytes += sl_align_up(bytes, SL_LINE_BYTES);
        return at;
}

/* Rows that do not lie whole in their tensor are gathered, or made, beside it. */
static void take_row(struct sl_rounds_layout *layout, struct sl_rounds_rows *rows)
{
        if (rows->outer > 1)
                rows->at = take_room(layout, rows->outer * rows->inner);
}

/* No tensor is larger than SL_PLAN_BYTES_MAX, and there are few: the sum fits. */
static void lay_out_rounds(const struct sl_node_desc *node, struct sl_rounds_layout *layout)
{
        uint32_t first = node->op == SL_OP_LOOP ? 2 : 0;

        layout->condition_at = take_room(layout, sizeof(uint64_t));
        layout->iteration_at = take_room(layout, sizeof(int64_t));
        for (uint32_t i = 0; i < layout->n_carried; i++)
                for (uint32_t k = 0; k < 2; k++)
                        layout->carried_at[i][k] = take_room(layout, sl_tensor_bytes(&node->inputs[first + i]));
        for (uint32_t i = 0; i < layout->n_grown; i++)
                take_row(layout, &layout->rows[i]);
        for (uint32_t i = 0; i < layout->n_scanned; i++)
                take_row(layout, &layout->slices[i]);
}

static int count_ports(const struct sl_node_desc *node, const struct sl_rounds_body *body, struct sl_rounds_layout *layout)
{
        int64_t n_carried = sl_attrs_int(&node->attrs, SL_ATTR_CARRIED, 0);
        int64_t n_scanned = node->op == SL_OP_SCAN ? sl_attrs_int(&node->attrs, SL_ATTR_NUM_SCAN_INPUTS, 0) : 0;
        uint32_t first = leading(node->op);

        if (node->n_inputs < first || body->n_inputs != (node->op == SL_OP_IF ? node->n_inputs - 1 : node->n_inputs) ||
                body->n_outputs != node->n_outputs + (node->op == SL_OP_LOOP))
                return -EINVAL;
        if (node->op == SL_OP_IF)
                return 0;
        if (n_carried < 0 || n_carried > node->n_outputs || n_carried > node->n_inputs - first)
                return -EINVAL;
        if (n_scanned < 0 || n_scanned > node->n_inputs - first - n_carried)
                return -EINVAL;
        layout->n_carried = (uint32_t)n_carried;
        layout->n_scanned = (uint32_t)n_scanned;
        layout->n_grown = node->n_outputs - layout->n_carried;
        return 0;
}

int sl_rounds_layout(const struct sl_node_desc *node, const struct sl_rounds_body *bodies, uint32_t n_bodies,
        struct sl_rounds_layout *ret_layout)
{
        struct sl_rounds_layout *layout = ret_layout;
        uint64_t workspace_bytes = 0;

        memset(layout, 0, sizeof(*layout));
        layout->settled = true;
        for (uint32_t b = 0; b < n_bodies; b++) {
                int r = count_ports(node, &bodies[b], layout);

                if (r < 0)
                        return r;
                if (bodies[b].workspace_bytes > SL_PLAN_BYTES_MAX)
                        return -EOVERFLOW;
                if (bodies[b].workspace_bytes > workspace_bytes)
                        workspace_bytes = bodies[b].workspace_bytes;
                if (node->op == SL_OP_IF)
                        layout->settled = layout->settled && branch_is_settled(node, &bodies[b]);
                else if (node->op == SL_OP_LOOP)
                        layout->settled = loop_is_settled(node, &bodies[b], layout);
                else
                        layout->settled = scan_is_settled(node, &bodies[b], layout);
        }
        layout->bytes = sl_align_up(workspace_bytes, SL_LINE_BYTES);
        if (layout->settled && node->op != SL_OP_IF)
                lay_out_rounds(node, layout);
        return layout->bytes > SL_PLAN_BYTES_MAX ? -EOVERFLOW : 0;
}

/* The tensors of a program's ports, which are the caller's to free. */
static struct sl_tensor *read_ports(const struct sl_plan *plan, const struct sl_plan_program *program)
{
        struct sl_tensor *tensors = calloc(program->n_inputs + program->n_outputs + 1, sizeof(*tensors));

        for (uint64_t i = 0; tensors && i < program->n_inputs + program->n_outputs; i++)
                tensors[i] = plan->operands[program->first_operand + i].tensor;
        return tensors;
}

static void describe_step(const struct sl_plan *plan, const struct sl_plan_step *step, struct sl_node_desc *node)
{
        node->op = step->op;
        node->n_inputs = step->n_inputs;
        node->n_outputs = step->n_outputs;
        node->attrs.count = step->n_attrs;
        memcpy(node->attrs.items, &plan->attrs[step->first_attr], step->n_attrs * sizeof(struct sl_attr));
        for (uint32_t i = 0; i < step->n_inputs; i++)
                node->inputs[i] = plan->operands[step->first_operand + i].tensor;
        for (uint32_t i = 0; i < step->n_outputs; i++)
                node->outputs[i] = plan->operands[step->first_operand + step->n_inputs + i].tensor;
}

/* What lies in a slot may have a shape that only looks known. */
static bool holds_slots(const struct sl_plan *plan, const struct sl_plan_step *step)
{
        for (uint32_t i = 0; i < step->n_inputs + step->n_outputs; i++)
                if (plan->operands[step->first_operand + i].place == SL_PLACE_SLOT)
                        return true;
        for (uint64_t b = 0; b < step->n_bodies; b++) {
                const struct sl_plan_program *body = &plan->programs[step->first_body + b];

                for (uint64_t i = 0; i < body->n_inputs + body->n_outputs; i++)
                        if (plan->operands[body->first_operand + i].place == SL_PLACE_SLOT)
                                return true;
        }
        return false;
}

int sl_rounds_of_step(const struct sl_plan *plan, const struct sl_plan_step *step, struct sl_rounds_layout *ret_layout)
{
        SL_CLEANUP(sl_cleanup_free) struct sl_node_desc *node = calloc(1, sizeof(*node));
        struct sl_tensor *ports[SL_STEP_BODIES_MAX] = {NULL};
        struct sl_rounds_body bodies[SL_STEP_BODIES_MAX];
        int r = node ? 0 : -ENOMEM;

        for (uint32_t b = 0; b < step->n_bodies && r == 0; b++) {
                const struct sl_plan_program *program = &plan->programs[step->first_body + b];

                ports[b] = read_ports(plan, program);
                r = ports[b] ? 0 : -ENOMEM;
                bodies[b] = (struct sl_rounds_body){.n_inputs = (uint32_t)program->n_inputs,
                        .n_outputs = (uint32_t)program->n_outputs,
                        .inputs = ports[b],
                        .outputs = ports[b] ? ports[b] + program->n_inputs : NULL,
                        .workspace_bytes = program->workspace_bytes};
        }
        if (r == 0) {
                describe_step(plan, step, node);
                r = sl_rounds_layout(node, bodies, (uint32_t)step->n_bodies, ret_layout);
        }
        for (uint32_t b = 0; b < SL_STEP_BODIES_MAX; b++)
                free(ports[b]);
        if (r == 0 && ret_layout->settled && holds_slots(plan, step))
                r = -EBADMSG;
        return r == -EINVAL || r == -EOVERFLOW ? -EBADMSG : r;
}
