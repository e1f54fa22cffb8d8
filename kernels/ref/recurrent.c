/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LSTM, GRU and RNN, sample by sample and step by step. The state of one sample lies in scratch, as doubles: h, c, and the gates
 * of the step.
 */
#include "shape/recurrent.h"

#include "element.h"
#include "kernels.h"

#include <errno.h>
#include <string.h>

/* One sample in one direction. */
struct cell {
        const struct sl_recurrence *form;
        const struct sl_binding *binding;
        uint32_t dtype, direction, op;
        int64_t sample;
        double *h, *c, *gates, *rest; /* hidden, hidden, gates * hidden, hidden */
};

size_t sl_ref_scratch_recurrent(const struct sl_node_desc *node)
{
        struct sl_recurrence form = {.gates = 0};

        sl_recurrence_read(node, &form, NULL);
        return (size_t)form.hidden * (form.gates + 3) * sizeof(double);
}

static double gate(const struct cell *cell, uint32_t i, double x)
{
        double alpha = cell->form->function[cell->direction][i].alpha, beta = cell->form->function[cell->direction][i].beta;
        double clip = cell->form->clip;

        if (clip > 0)
                x = x > clip ? clip : x < -clip ? -clip : x;
        switch (cell->form->function[cell->direction][i].kind) {
        case SL_GATE_RELU:
                return x < 0 ? 0 : x;
        case SL_GATE_TANH:
                return tanh(x);
        case SL_GATE_SIGMOID:
                return 1 / (1 + exp(-x));
        case SL_GATE_AFFINE:
                return alpha * x + beta;
        case SL_GATE_LEAKY_RELU:
                return x < 0 ? alpha * x : x;
        case SL_GATE_THRESHOLDED_RELU:
                return x > alpha ? x : 0;
        case SL_GATE_SCALED_TANH:
                return alpha * tanh(beta * x);
        case SL_GATE_HARD_SIGMOID:
                x = alpha * x + beta;
                return x < 0 ? 0 : x > 1 ? 1 : x;
        case SL_GATE_ELU:
                return x < 0 ? alpha * expm1(x) : x;
        case SL_GATE_SOFTSIGN:
                return x / (1 + fabs(x));
        default:
                return fmax(x, 0) + log1p(exp(-fabs(x)));
        }
}

/* Row @row of a direction's weights (of @columns columns) times @x. */
static double dot(const struct cell *cell, uint32_t input, int64_t row, int64_t columns, const double *x)
{
        int64_t at = ((int64_t)(cell->direction * cell->form->gates) * cell->form->hidden + row) * columns;
        double sum = 0;

        for (int64_t i = 0; i < columns && sl_pace_on(cell->binding->pace, 1); i++)
                sum += sl_ref_load(cell->binding->inputs[input], at + i, cell->dtype) * x[i];
        return sum;
}

static double dot_input(const struct cell *cell, int64_t row, int64_t x_at)
{
        int64_t inputs = cell->form->inputs;
        int64_t at = ((int64_t)(cell->direction * cell->form->gates) * cell->form->hidden + row) * inputs;
        double sum = 0;

        for (int64_t i = 0; i < inputs && sl_pace_on(cell->binding->pace, 1); i++)
                sum += sl_ref_load(cell->binding->inputs[SL_RNN_W], at + i, cell->dtype) *
                       sl_ref_load(cell->binding->inputs[SL_RNN_X], x_at + i, cell->dtype);
        return sum;
}

static const void *optional(const struct cell *cell, const struct sl_node_desc *node, uint32_t index)
{
        bool there = index < node->n_inputs && node->inputs[index].dtype != SL_DTYPE_NONE;

        return there ? cell->binding->inputs[index] : NULL;
}

/* Element @row of the bias: of the input's half, or of the recurrent one. */
static double bias(const struct cell *cell, const void *b, bool recurrent, int64_t row)
{
        int64_t rows = cell->form->gates * cell->form->hidden;

        return b ? sl_ref_load(b, (2 * (int64_t)cell->direction + recurrent) * rows + row, cell->dtype) : 0;
}

static double peephole(const struct cell *cell, const void *p, int64_t which, int64_t i)
{
        int64_t hidden = cell->form->hidden;

        return p ? sl_ref_load(p, (3 * (int64_t)cell->direction + which) * hidden + i, cell->dtype) * cell->c[i] : 0;
}

/* What every gate adds up before its function; the recurrent part of the last gate of a GRU comes later. */
static void add_up(struct cell *cell, const void *b, int64_t x_at)
{
        int64_t hidden = cell->form->hidden, rows = cell->form->gates * hidden;

        for (int64_t row = 0; row < rows && sl_pace_on(cell->binding->pace, 1); row++) {
                bool later = cell->op == SL_OP_GRU && row >= 2 * hidden;

                cell->gates[row] = dot_input(cell, row, x_at) + bias(cell, b, false, row);
                if (!later)
                        cell->gates[row] += dot(cell, SL_RNN_R, row, hidden, cell->h) + bias(cell, b, true, row);
        }
}

static void step_lstm(struct cell *cell, const void *p)
{
        int64_t hidden = cell->form->hidden;

        for (int64_t i = 0; i < hidden && sl_pace_on(cell->binding->pace, 1); i++) {
                double in = gate(cell, 0, cell->gates[i] + peephole(cell, p, 0, i));
                double forget = gate(cell, 0, cell->gates[2 * hidden + i] + peephole(cell, p, 2, i));

                if (cell->form->input_forget)
                        forget = 1 - in;
                cell->c[i] = forget * cell->c[i] + in * gate(cell, 1, cell->gates[3 * hidden + i]);
                cell->h[i] = gate(cell, 0, cell->gates[hidden + i] + peephole(cell, p, 1, i)) * gate(cell, 2, cell->c[i]);
        }
}

static void step_gru(struct cell *cell, const void *b)
{
        int64_t hidden = cell->form->hidden;
        const double *update = cell->gates;
        double *reset = cell->gates + hidden, *out = cell->gates + 2 * hidden;

        for (int64_t i = 0; i < 2 * hidden; i++)
                cell->gates[i] = gate(cell, 0, cell->gates[i]);
        for (int64_t i = 0; i < hidden; i++)
                cell->rest[i] = reset[i] * cell->h[i];
        for (int64_t i = 0; i < hidden && sl_pace_on(cell->binding->pace, 1); i++) {
                double shift = bias(cell, b, true, 2 * hidden + i);

                if (cell->form->linear_before_reset)
                        out[i] += reset[i] * (dot(cell, SL_RNN_R, 2 * hidden + i, hidden, cell->h) + shift);
                else
                        out[i] += dot(cell, SL_RNN_R, 2 * hidden + i, hidden, cell->rest) + shift;
        }
        for (int64_t i = 0; i < hidden; i++)
                cell->h[i] = (1 - update[i]) * gate(cell, 1, out[i]) + update[i] * cell->h[i];
}

static void step(struct cell *cell, const struct sl_node_desc *node, int64_t x_at)
{
        const void *b = optional(cell, node, SL_RNN_B);

        add_up(cell, b, x_at);
        if (cell->op == SL_OP_LSTM)
                step_lstm(cell, optional(cell, node, SL_RNN_P));
        else if (cell->op == SL_OP_GRU)
                step_gru(cell, b);
        else
                for (int64_t i = 0; i < cell->form->hidden; i++)
                        cell->h[i] = gate(cell, 0, cell->gates[i]);
}

/* Where the cell's row of a state tensor starts. */
static int64_t state_at(const struct cell *cell)
{
        const struct sl_recurrence *form = cell->form;

        if (form->batch_first)
                return (cell->sample * form->directions + cell->direction) * form->hidden;
        return (cell->direction * form->batch + cell->sample) * form->hidden;
}

static void load_state(struct cell *cell, const void *initial, double *state)
{
        for (int64_t i = 0; i < cell->form->hidden && sl_pace_on(cell->binding->pace, 1); i++)
                state[i] = initial ? sl_ref_load(initial, state_at(cell) + i, cell->dtype) : 0;
}

static void store_state(const struct cell *cell, void *out, int64_t at, const double *state)
{
        for (int64_t i = 0; i < cell->form->hidden && out && sl_pace_on(cell->binding->pace, 1); i++)
                sl_ref_store(out, at + i, cell->dtype, state ? state[i] : 0);
}

static void run_cell(struct cell *cell, const struct sl_node_desc *node, int64_t length)
{
        const struct sl_recurrence *form = cell->form;
        bool backward = cell->direction ? true : form->backward != 0;

        load_state(cell, optional(cell, node, SL_RNN_H), cell->h);
        load_state(cell, optional(cell, node, SL_RNN_C), cell->c);
        for (int64_t k = 0; k < form->steps && sl_pace_on(cell->binding->pace, (uint64_t)form->hidden); k++) {
                int64_t t = backward && k < length ? length - 1 - k : k;
                int64_t row = form->batch_first ? cell->sample * form->steps + t : t * form->batch + cell->sample;
                int64_t y_at = form->batch_first ? row * form->directions + cell->direction
                                                 : (t * form->directions + cell->direction) * form->batch + cell->sample;

                if (k < length)
                        step(cell, node, row * form->inputs);
                store_state(cell, cell->binding->outputs[0], y_at * form->hidden, k < length ? cell->h : NULL);
        }
        if (node->n_outputs > 1)
                store_state(cell, cell->binding->outputs[1], state_at(cell), cell->h);
        if (node->n_outputs > 2)
                store_state(cell, cell->binding->outputs[2], state_at(cell), cell->c);
}

int sl_ref_recurrent(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        struct sl_recurrence form = {.gates = 0};
        struct cell cell = {.form = &form, .binding = binding, .dtype = node->inputs[0].dtype, .op = node->op};
        const int32_t *lengths;

        sl_recurrence_read(node, &form, NULL);
        cell.h = binding->scratch;
        cell.c = cell.h + form.hidden;
        cell.rest = cell.c + form.hidden;
        cell.gates = cell.rest + form.hidden;
        lengths = optional(&cell, node, SL_RNN_LENGTHS);
        for (cell.direction = 0; cell.direction < form.directions; cell.direction++)
                for (cell.sample = 0; cell.sample < form.batch && sl_pace_on(binding->pace, 1); cell.sample++) {
                        int64_t length = lengths ? lengths[cell.sample] : form.steps;

                        if (length < 0 || length > form.steps)
                                return -ERANGE;
                        run_cell(&cell, node, length);
                }
        return 0;
}
