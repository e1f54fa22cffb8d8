/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators on two elements: arithmetic, comparisons, logic; and those that reduce many inputs by one of them. Operands broadcast
 * and may lie in any layout: all of that is in the strides of a walk. Where its rows are short, several that lie one behind the
 * other in the result are joined: an operand that does not lie so is laid out in pieces of as many whole rows.
 */
#include "cpu/base/walk.h"
#include "cpu/elementwise/loops.h"
#include "cpu/elementwise/narrow_piece.h"
#include "cpu/elementwise/pair_rows.h"
#include "cpu/elementwise/short_rows.h"

#include <stddef.h>
#include <string.h>

struct pairs {
        sl_pair_row *function;
        int64_t bytes, result_bytes;
        uint32_t narrow; /* the type of 16 bits that is computed in float32, or SL_DTYPE_NONE */
        bool narrow_result;
};

/* float16 and bfloat16 are rounded once from float32, which of a sum, product or quotient gives the bits that double gives. */
static bool pairs_plan(const struct sl_node_desc *node, struct pairs *pairs)
{
        uint32_t dtype = node->inputs[0].dtype, result = node->outputs[0].dtype;

        pairs->bytes = (int64_t)sl_dtype_bytes(dtype);
        pairs->result_bytes = (int64_t)sl_dtype_bytes(result);
        pairs->function = sl_pair_row_of(node, dtype);
        if (!pairs->function && (dtype == SL_DTYPE_F16 || dtype == SL_DTYPE_BF16)) {
                pairs->narrow = dtype;
                pairs->narrow_result = result == dtype;
                pairs->function = sl_pair_row_of(node, SL_DTYPE_F32);
        }
        return pairs->function;
}

/* A row of 16 bits, in pieces that lie in float32. */
static void run_narrow(
        const struct pairs *p, int64_t n, char *result, const char *left, int64_t left_step, const char *right, int64_t right_step)
{
        float l[SL_NARROW_PIECE], r[SL_NARROW_PIECE], y[SL_NARROW_PIECE];

        for (int64_t at = 0, m; at < n; at += m) {
                char *to = result + at * p->result_bytes;

                m = n - at < SL_NARROW_PIECE ? n - at : SL_NARROW_PIECE;
                sl_narrow_piece_load(p->narrow, left_step ? m : 1, l, left + at * left_step * p->bytes, left_step);
                sl_narrow_piece_load(p->narrow, right_step ? m : 1, r, right + at * right_step * p->bytes, right_step);
                p->function(m, p->narrow_result ? (void *)y : to, l, left_step != 0, r, right_step != 0);
                if (p->narrow_result)
                        sl_narrow_piece_store(p->narrow, m, to, y);
        }
}

static void run_row(
        const struct pairs *p, int64_t n, char *result, const char *left, int64_t left_step, const char *right, int64_t right_step)
{
        if (p->narrow)
                run_narrow(p, n, result, left, left_step, right, right_step);
        else
                p->function(n, result, left, left_step, right, right_step);
}

/* Short rows, from @row on. */
static void walk_pieces(const struct sl_walk *walk, struct sl_walk_row *row, const struct pairs *p, char *result, const char *left,
        const char *right)
{
        struct sl_short_rows l = {.walk = walk, .tensor = 1, .bytes = p->bytes}, r = {.walk = walk, .tensor = 2, .bytes = p->bytes};
        int64_t rows = walk->sizes[walk->rank - 2], n = sl_walk_row_length(walk), piece = sl_short_rows_of_piece(walk);

        do {
                char *y = result + row->offset[0] * p->result_bytes;

                for (int64_t at = 0, taken; at < rows; at += taken) {
                        taken = rows - at < piece ? rows - at : piece;
                        sl_short_rows_lay(&l, left + row->offset[1] * p->bytes, at, taken);
                        sl_short_rows_lay(&r, right + row->offset[2] * p->bytes, at, taken);
                        run_row(p, taken * n, y + at * n * p->result_bytes, l.data, l.step, r.data, r.step);
                }
        } while (sl_walk_next(walk, row, 2));
}

/* What @part has of them. */
static void walk_rows(const struct sl_walk *all, const struct sl_part *part, const struct pairs *p, char *result, const char *left,
        const char *right)
{
        struct sl_walk room;
        struct sl_walk_row row;
        const struct sl_walk *walk = sl_walk_take(all, part, &room, &row);
        int64_t n = sl_walk_row_length(walk), left_step = sl_walk_row_stride(walk, 1), right_step = sl_walk_row_stride(walk, 2);

        if (sl_walk_is_empty(walk))
                return;
        if (sl_rows_are_short(walk)) {
                walk_pieces(walk, &row, p, result, left, right);
                return;
        }
        do
                run_row(p, n, result + row.offset[0] * p->result_bytes, left + row.offset[1] * p->bytes, left_step,
                        right + row.offset[2] * p->bytes, right_step);
        while (sl_walk_next(walk, &row, 1));
}

struct binary {
        struct pairs pairs;
        struct sl_walk walk;
};

static bool binary_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct binary *binary = state;

        (void)sizes;
        if (node->n_inputs != 2 || node->inputs[0].dtype != node->inputs[1].dtype)
                return false;
        return pairs_plan(node, &binary->pairs) && sl_walk_elements(&binary->walk, &node->outputs[0], node->inputs, 2);
}

static int binary_run(const void *state, const struct sl_binding *binding)
{
        const struct binary *b = state;

        walk_rows(&b->walk, binding->part, &b->pairs, binding->outputs[0], binding->inputs[0], binding->inputs[1]);
        return 0;
}

static int64_t binary_units(const void *state, uint32_t axis)
{
        const struct binary *b = state;

        return sl_walk_units(&b->walk, axis);
}

static bool binary_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct binary *b = state;
        bool result = operand == SL_REACH_OUTPUT;

        return sl_walk_reach(&b->walk, part, result ? 0 : operand + 1, result ? b->pairs.result_bytes : b->pairs.bytes, ret_reach);
}

const struct sl_cpu_loop sl_cpu_binary = {
        .state_bytes = sizeof(struct binary), .plan = binary_plan, .run = binary_run, .units = binary_units, .reach = binary_reach};

/* The first step joins inputs 0 and 1; each later one joins the output so far and one more input. */
struct variadic {
        struct pairs pairs;
        int64_t elements;
        sl_pair_row *divide; /* a Mean's result by the number of inputs; NULL: no Mean */
        double divisor;      /* of the type of the result */
        uint32_t n_steps;
        struct sl_walk steps[SL_NODE_INPUTS_MAX];
};

static void plan_divisor(const struct sl_node_desc *node, struct variadic *variadic)
{
        struct sl_node_desc division = {.op = SL_OP_DIV};
        float narrow = (float)node->n_inputs;

        if (node->op != SL_OP_MEAN)
                return;
        variadic->divide = sl_pair_row_of(&division, node->inputs[0].dtype);
        variadic->divisor = node->n_inputs;
        if (node->inputs[0].dtype == SL_DTYPE_F32)
                memcpy(&variadic->divisor, &narrow, sizeof(narrow));
}

static bool variadic_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *y = &node->outputs[0];
        struct variadic *variadic = state;

        bool rounds_once = node->op == SL_OP_MIN || node->op == SL_OP_MAX || (node->op == SL_OP_SUM && node->n_inputs == 2);

        /* A sum of 16 bits would be rounded at each step, and a mean twice. */
        if (!pairs_plan(node, &variadic->pairs) || node->n_inputs < 2 || (variadic->pairs.narrow && !rounds_once))
                return false;
        for (uint32_t i = 1; i < node->n_inputs; i++) {
                struct sl_tensor operands[2] = {i == 1 ? node->inputs[0] : *y, node->inputs[i]};

                if (node->inputs[i].dtype != node->inputs[0].dtype)
                        return false;
                if (!sl_walk_elements(&variadic->steps[variadic->n_steps++], y, operands, 2))
                        return false;
        }
        variadic->elements = (int64_t)sl_shape_elements(&y->shape);
        plan_divisor(node, variadic);
        sizes->state_bytes = offsetof(struct variadic, steps) + variadic->n_steps * sizeof(struct sl_walk);
        return true;
}

static int variadic_run(const void *state, const struct sl_binding *binding)
{
        const struct variadic *variadic = state;
        void *y = binding->outputs[0];

        for (uint32_t i = 0; i < variadic->n_steps; i++)
                walk_rows(&variadic->steps[i], NULL, &variadic->pairs, y, i ? y : binding->inputs[0], binding->inputs[i + 1]);
        if (variadic->divide)
                variadic->divide(variadic->elements, y, y, 1, &variadic->divisor, 0);
        return 0;
}

const struct sl_cpu_loop sl_cpu_variadic = {.state_bytes = sizeof(struct variadic), .plan = variadic_plan, .run = variadic_run};
