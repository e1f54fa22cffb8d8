/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GRU, RNN, and LSTM with lengths, peepholes and other extras, in float32: the products with the inputs of all steps at once, then
 * step by step the product with the state and the functions of the gates. Weights are packed at each launch, in scratch, which
 * costs about as much as one step. Only with AVX2, only with the usual functions (sigmoid, tanh, relu); everything else is the
 * reference's.
 */
#include "shape/recurrent.h"
#include "cpu/base/isa.h"
#include "cpu/base/vector_math.h"
#include "cpu/gemm/gemm.h"
#include "cpu/rnn/loops.h"

#include <errno.h>
#include <string.h>

struct recurrent {
        struct sl_recurrence form;
        uint32_t op, n_inputs, n_outputs;
        bool has[SL_RNN_P + 1];
        size_t packed_w, packed_r, packed_n; /* floats; packed_n: the candidate's part of a GRU */
};

/* One direction of one launch. */
struct run {
        const struct recurrent *s;
        const struct sl_binding *binding;
        uint32_t direction;
        bool backward;
        float *packed_w, *packed_r, *packed_n, *bias, *inputs, *gates, *h, *c, *rest;
};

static int64_t rows_of(const struct recurrent *s)
{
        return (int64_t)s->form.gates * s->form.hidden;
}

/* Rows of R that are multiplied with the state as it is: those of the candidate of a GRU come later. */
static int64_t early_rows(const struct recurrent *s)
{
        return s->op == SL_OP_GRU ? 2 * s->form.hidden : rows_of(s);
}

static bool is_usual(const struct sl_recurrence *form)
{
        for (uint32_t d = 0; d < form->directions; d++)
                for (uint32_t i = 0; i < form->functions; i++)
                        if (form->function[d][i].kind > SL_GATE_SIGMOID)
                                return false;
        return !form->input_forget;
}

static bool recurrent_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct recurrent *s = state;
        int64_t rows, hidden;

        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (i != SL_RNN_LENGTHS && node->inputs[i].dtype != SL_DTYPE_NONE && !sl_cpu_is_f32(&node->inputs[i]))
                        return false;
        if (!sl_cpu_has_avx2() || node->n_inputs < 3 || sl_recurrence_read(node, &s->form, NULL) || !is_usual(&s->form))
                return false;
        rows = rows_of(s);
        hidden = s->form.hidden;
        if (s->form.steps < 1 || s->form.batch < 1 || hidden < 1 || s->form.inputs < 1)
                return false;
        s->op = node->op;
        s->n_inputs = node->n_inputs;
        s->n_outputs = node->n_outputs;
        rows = rows_of(s);
        for (uint32_t i = 0; i <= SL_RNN_P; i++)
                s->has[i] = i < node->n_inputs && node->inputs[i].dtype != SL_DTYPE_NONE;
        s->packed_w = (size_t)sl_gemm_packed_floats(s->form.inputs, rows);
        s->packed_r = (size_t)sl_gemm_packed_floats(hidden, early_rows(s));
        s->packed_n = s->op == SL_OP_GRU ? (size_t)sl_gemm_packed_floats(hidden, hidden) : 0;
        sizes->scratch_bytes = sizeof(float) * (s->packed_w + s->packed_r + s->packed_n + (size_t)(rows + hidden) +
                                                       (size_t)(s->form.steps * s->form.batch * rows) +
                                                       (size_t)(s->form.batch * (rows + 3 * hidden)) + 8 * 16);
        return true;
}

/* @floats of scratch, on a line of their own. */
static float *take_scratch(char **scratch, size_t floats)
{
        float *taken = (float *)*scratch;

        *scratch += (floats * sizeof(float) + 63) & ~(size_t)63;
        return taken;
}

static const float *input_of(const struct run *r, uint32_t index)
{
        return r->s->has[index] ? r->binding->inputs[index] : NULL;
}

/* Both halves of the bias, but for the candidate of a GRU that is reset behind its product: that one's lies behind the others. */
static void add_biases(struct run *r)
{
        int64_t rows = rows_of(r->s), hidden = r->s->form.hidden;
        const float *b = input_of(r, SL_RNN_B);
        bool apart = r->s->op == SL_OP_GRU && r->s->form.linear_before_reset;

        memset(r->bias, 0, (size_t)(rows + hidden) * sizeof(float));
        if (!b)
                return;
        b += (int64_t)r->direction * 2 * rows;
        for (int64_t i = 0; i < rows; i++)
                r->bias[i] = b[i] + (apart && i >= 2 * hidden ? 0 : b[rows + i]);
        for (int64_t i = 0; i < hidden && apart; i++)
                r->bias[rows + i] = b[rows + 2 * hidden + i];
}

static void prepare(struct run *r)
{
        const struct sl_recurrence *form = &r->s->form;
        int64_t rows = rows_of(r->s), hidden = form->hidden, early = early_rows(r->s);
        const float *w = (const float *)r->binding->inputs[SL_RNN_W] + r->direction * rows * form->inputs;
        const float *recurrent = (const float *)r->binding->inputs[SL_RNN_R] + r->direction * rows * hidden;
        struct sl_gemm inputs = {.a = r->binding->inputs[SL_RNN_X],
                .b = r->packed_w,
                .c = r->inputs,
                .rows = form->steps * form->batch,
                .depth = form->inputs,
                .columns = rows,
                .a_stride = form->inputs,
                .c_stride = rows,
                .bias = r->bias};

        add_biases(r);
        sl_gemm_pack(w, form->inputs, rows, 1, form->inputs, r->packed_w);
        sl_gemm_pack(recurrent, hidden, early, 1, hidden, r->packed_r);
        if (r->packed_n)
                sl_gemm_pack(recurrent + early * hidden, hidden, hidden, 1, hidden, r->packed_n);
        sl_gemm_run(&inputs);
}

SL_CPU_CLONES static void apply(uint32_t kind, float clip, float *x, int64_t n)
{
        for (int64_t i = 0; i < n && clip > 0; i++)
                x[i] = x[i] > clip ? clip : x[i] < -clip ? -clip : x[i];
        if (kind == SL_GATE_SIGMOID)
                for (int64_t i = 0; i < n; i++)
                        x[i] = sl_sigmoid(x[i]);
        else if (kind == SL_GATE_TANH)
                for (int64_t i = 0; i < n; i++)
                        x[i] = sl_tanh(x[i]);
        else
                for (int64_t i = 0; i < n; i++)
                        x[i] = x[i] < 0 ? 0 : x[i];
}

static void gate(const struct run *r, uint32_t i, float *x, int64_t n)
{
        apply(r->s->form.function[r->direction][i].kind, (float)r->s->form.clip, x, n);
}

SL_CPU_CLONES static void add_product(float *restrict sum, const float *restrict a, const float *restrict b, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                sum[i] += a[i] * b[i];
}

SL_CPU_CLONES static void multiply(float *restrict out, const float *restrict a, const float *restrict b, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                out[i] = a[i] * b[i];
}

SL_CPU_CLONES static void scale(float *restrict x, const float *restrict factor, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                x[i] *= factor[i];
}

/* new = forget * old + in * candidate */
SL_CPU_CLONES static void blend(
        float *restrict state, const float *restrict forget, const float *restrict in, const float *restrict candidate, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                state[i] = forget[i] * state[i] + in[i] * candidate[i];
}

static void finish_lstm(const struct run *r, float *gates, float *h, float *c)
{
        int64_t n = r->s->form.hidden;
        const float *p = input_of(r, SL_RNN_P);
        float *in = gates, *out = gates + n, *forget = gates + 2 * n, *candidate = gates + 3 * n;

        if (p) {
                p += (int64_t)r->direction * 3 * n;
                add_product(in, p, c, n);
                add_product(forget, p + 2 * n, c, n);
        }
        gate(r, 0, in, n);
        gate(r, 0, forget, n);
        gate(r, 1, candidate, n);
        blend(c, forget, in, candidate, n);
        if (p)
                add_product(out, p + n, c, n);
        gate(r, 0, out, n);
        memcpy(candidate, c, (size_t)n * sizeof(float));
        gate(r, 2, candidate, n);
        multiply(h, out, candidate, n);
}

/* h = (1 - update) * candidate + update * h */
SL_CPU_CLONES static void mix(float *restrict h, const float *restrict update, const float *restrict candidate, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                h[i] = (1 - update[i]) * candidate[i] + update[i] * h[i];
}

/* @b samples from @first on, whose inputs lie in rows from @inputs on, @stride apart. */
static void multiply_state(const struct run *r, int64_t first, int64_t b, const float *inputs, int64_t stride)
{
        int64_t rows = rows_of(r->s), hidden = r->s->form.hidden;
        struct sl_gemm early = {.a = r->h + first * hidden,
                .b = r->packed_r,
                .c = r->gates + first * rows,
                .rows = b,
                .depth = hidden,
                .columns = early_rows(r->s),
                .a_stride = hidden,
                .c_stride = rows,
                .residual = inputs,
                .residual_stride = stride};

        sl_gemm_run(&early);
}

/* The candidate of a GRU: the state is reset before its product, or the product behind it. */
static void multiply_candidate(const struct run *r, int64_t sample, const float *inputs)
{
        int64_t rows = rows_of(r->s), n = r->s->form.hidden;
        float *gates = r->gates + sample * rows, *h = r->h + sample * n, *rest = r->rest + sample * n;
        bool behind = r->s->form.linear_before_reset;
        struct sl_gemm late = {.a = behind ? h : rest,
                .b = r->packed_n,
                .c = gates + 2 * n,
                .rows = 1,
                .depth = n,
                .columns = n,
                .a_stride = n,
                .c_stride = rows,
                .bias = behind ? r->bias + rows : NULL};

        if (!behind)
                multiply(rest, gates + n, h, n);
        sl_gemm_run(&late);
        if (behind)
                scale(gates + 2 * n, gates + n, n);
        for (int64_t i = 0; i < n; i++)
                gates[2 * n + i] += inputs[2 * n + i];
}

static void finish_sample(const struct run *r, int64_t sample, const float *inputs)
{
        int64_t n = r->s->form.hidden;
        float *gates = r->gates + sample * rows_of(r->s), *h = r->h + sample * n;

        if (r->s->op == SL_OP_LSTM) {
                finish_lstm(r, gates, h, r->c + sample * n);
        } else if (r->s->op == SL_OP_GRU) {
                gate(r, 0, gates, 2 * n);
                multiply_candidate(r, sample, inputs);
                gate(r, 1, gates + 2 * n, n);
                mix(h, gates, gates + 2 * n, n);
        } else {
                gate(r, 0, gates, n);
                memcpy(h, gates, (size_t)n * sizeof(float));
        }
}

static int64_t length_of(const struct run *r, int64_t sample)
{
        const int32_t *lengths = r->s->has[SL_RNN_LENGTHS] ? r->binding->inputs[SL_RNN_LENGTHS] : NULL;

        return lengths ? lengths[sample] : r->s->form.steps;
}

/* The place in time of a sample's step @k, and the row of the inputs that belongs to it. */
static int64_t time_of(const struct run *r, int64_t sample, int64_t k)
{
        int64_t length = length_of(r, sample);

        return r->backward && k < length ? length - 1 - k : k;
}

static const float *inputs_at(const struct run *r, int64_t sample, int64_t t)
{
        const struct sl_recurrence *form = &r->s->form;

        return r->inputs + (form->batch_first ? sample * form->steps + t : t * form->batch + sample) * rows_of(r->s);
}

static float *output_at(const struct run *r, int64_t sample, int64_t t)
{
        const struct sl_recurrence *form = &r->s->form;
        int64_t row = form->batch_first ? (sample * form->steps + t) * form->directions + r->direction
                                        : (t * form->directions + r->direction) * form->batch + sample;

        return (float *)r->binding->outputs[0] + row * form->hidden;
}

static void step(const struct run *r, int64_t k)
{
        const struct sl_recurrence *form = &r->s->form;
        int64_t rows = rows_of(r->s), stride = form->batch_first ? form->steps * rows : rows;

        /* Without lengths all samples are at the same place, and their rows are evenly spaced. */
        if (!r->s->has[SL_RNN_LENGTHS])
                multiply_state(r, 0, form->batch, inputs_at(r, 0, time_of(r, 0, k)), stride);
        for (int64_t b = 0; b < form->batch; b++) {
                int64_t t = time_of(r, b, k);
                float *y = output_at(r, b, t);

                if (k >= length_of(r, b)) {
                        memset(y, 0, (size_t)form->hidden * sizeof(float));
                        continue;
                }
                if (r->s->has[SL_RNN_LENGTHS])
                        multiply_state(r, b, 1, inputs_at(r, b, t), rows);
                finish_sample(r, b, inputs_at(r, b, t));
                memcpy(y, r->h + b * form->hidden, (size_t)form->hidden * sizeof(float));
        }
}

/* Between [batch, hidden] and the places of the direction in a tensor of states. */
static void move_state(const struct run *r, float *tensor, float *state, bool store)
{
        const struct sl_recurrence *form = &r->s->form;

        for (int64_t b = 0; b < form->batch; b++) {
                int64_t row = form->batch_first ? b * form->directions + r->direction : r->direction * form->batch + b;
                size_t bytes = (size_t)form->hidden * sizeof(float);

                if (store)
                        memcpy(tensor + row * form->hidden, state + b * form->hidden, bytes);
                else
                        memcpy(state + b * form->hidden, tensor + row * form->hidden, bytes);
        }
}

static void run_direction(struct run *r)
{
        const struct sl_recurrence *form = &r->s->form;
        size_t bytes = (size_t)(form->batch * form->hidden) * sizeof(float);

        prepare(r);
        memset(r->h, 0, bytes);
        memset(r->c, 0, bytes);
        if (r->s->has[SL_RNN_H])
                move_state(r, (float *)r->binding->inputs[SL_RNN_H], r->h, false);
        if (r->s->has[SL_RNN_C])
                move_state(r, (float *)r->binding->inputs[SL_RNN_C], r->c, false);
        for (int64_t k = 0; k < form->steps; k++)
                step(r, k);
        if (r->s->n_outputs > 1)
                move_state(r, r->binding->outputs[1], r->h, true);
        if (r->s->n_outputs > 2)
                move_state(r, r->binding->outputs[2], r->c, true);
}

static int recurrent_run(const void *state, const struct sl_binding *binding)
{
        const struct recurrent *s = state;
        const struct sl_recurrence *form = &s->form;
        struct run r = {.s = s, .binding = binding};
        size_t states = (size_t)(form->batch * form->hidden), rows = (size_t)rows_of(s);
        char *scratch = binding->scratch;

        for (int64_t b = 0; b < form->batch; b++)
                if (length_of(&r, b) < 0 || length_of(&r, b) > form->steps)
                        return -ERANGE;
        r.packed_w = take_scratch(&scratch, s->packed_w);
        r.packed_r = take_scratch(&scratch, s->packed_r);
        r.packed_n = s->packed_n ? take_scratch(&scratch, s->packed_n) : NULL;
        r.bias = take_scratch(&scratch, rows + (size_t)form->hidden);
        r.h = take_scratch(&scratch, states);
        r.c = take_scratch(&scratch, states);
        r.rest = take_scratch(&scratch, states);
        r.gates = take_scratch(&scratch, (size_t)form->batch * rows);
        r.inputs = take_scratch(&scratch, (size_t)(form->steps * form->batch) * rows);
        for (r.direction = 0; r.direction < form->directions; r.direction++) {
                r.backward = r.direction ? true : form->backward != 0;
                run_direction(&r);
        }
        return 0;
}

const struct sl_cpu_loop sl_cpu_recurrent = {.state_bytes = sizeof(struct recurrent), .plan = recurrent_plan, .run = recurrent_run};
