/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GRU, RNN, and LSTM with lengths, peepholes and other extras, in float32: the products with the inputs of all steps at once, then
 * step by step the product with the state and the functions of the gates. Weights that are no constants are packed at each launch,
 * in scratch, which costs about as much as one step. Only with AVX2, only with the usual functions (sigmoid, tanh, relu);
 * everything else is the reference's.
 *
 * It goes in stages: of each direction one for the inputs, and two for each step. The first multiplies the whole state, the second
 * makes the next one of it. A part has the cells of some panels, their gates and their state; with lengths, or weights that are
 * packed at each launch, there are no parts.
 */
#include "shape/recurrent.h"
#include "cpu/base/isa.h"
#include "cpu/base/narrow.h"
#include "cpu/base/vector_math.h"
#include "cpu/gemm/gemm.h"
#include "cpu/rnn/loops.h"

#include <errno.h>
#include <string.h>

struct recurrent {
        struct sl_recurrence form;
        uint32_t op, n_inputs, n_outputs;
        bool has[SL_RNN_P + 1];
        bool is_packed[2];                   /* W, R: by the planner */
        uint32_t narrow[2];                  /* what they lie in then: SL_DTYPE_F16, SL_DTYPE_BF16; NONE: float32 */
        size_t packed_w, packed_r, packed_n; /* elements; packed_n: the candidate's part of a GRU */
};

/* A packed matrix, in float32 or in halves. */
struct matrix {
        const float *wide;
        const uint16_t *narrow;
        uint32_t narrow_dtype;
};

/* One direction of one launch, or of a part of it. */
struct run {
        const struct recurrent *s;
        const struct sl_binding *binding;
        uint32_t direction;
        bool backward;
        int64_t first, n; /* its cells */
        struct matrix w, r, candidate;
        float *packed, *bias, *inputs, *gates, *h, *c, *rest;
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

/* Of all directions. */
static int64_t packed_elements(const struct recurrent *s, uint32_t index)
{
        return (int64_t)s->form.directions * (int64_t)(index == SL_RNN_W ? s->packed_w : s->packed_r + s->packed_n);
}

static size_t packed_here(const struct recurrent *s)
{
        return (s->is_packed[0] ? 0 : s->packed_w) + (s->is_packed[1] ? 0 : s->packed_r + s->packed_n);
}

static size_t recurrent_scratch(const void *state)
{
        const struct recurrent *s = state;
        int64_t rows = rows_of(s), hidden = s->form.hidden;

        return sizeof(float) * (packed_here(s) + (size_t)(rows + hidden) + (size_t)(s->form.steps * s->form.batch * rows) +
                                       (size_t)(s->form.batch * (rows + 3 * hidden)) + 8 * 16);
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
        for (uint32_t i = 0; i < 2; i++)
                s->narrow[i] = sl_narrow_dtype(node, SL_RNN_W + i, packed_elements(s, SL_RNN_W + i));
        sizes->scratch_bytes = recurrent_scratch(s);
        return true;
}

static void recurrent_weights(void *state, const struct sl_packed *packed)
{
        struct recurrent *s = state;

        for (uint32_t i = 0; i < 2; i++)
                s->is_packed[i] = packed && packed[SL_RNN_W + i].data_bytes;
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
static void add_biases(const struct run *r)
{
        int64_t rows = rows_of(r->s), hidden = r->s->form.hidden;
        const float *b = input_of(r, SL_RNN_B);
        bool apart = r->s->op == SL_OP_GRU && r->s->form.linear_before_reset;

        b = b ? b + (int64_t)r->direction * 2 * rows : NULL;
        for (int64_t gate = 0; gate < r->s->form.gates; gate++)
                for (int64_t i = gate * hidden + r->first, end = i + r->n; i < end; i++)
                        r->bias[i] = b ? b[i] + (apart && gate == 2 ? 0 : b[rows + i]) : 0;
        for (int64_t i = r->first; i < r->first + r->n; i++)
                r->bias[rows + i] = b && apart ? b[rows + 2 * hidden + i] : 0;
}

/* Into the packed form, one matrix of one direction behind the other: W, or what is multiplied with the state early and late. */
static void pack_direction(const struct recurrent *s, uint32_t index, const float *plain, float *to)
{
        int64_t hidden = s->form.hidden, early = early_rows(s);

        if (index == SL_RNN_W) {
                sl_gemm_pack(plain, s->form.inputs, rows_of(s), 1, s->form.inputs, to);
                return;
        }
        sl_gemm_pack(plain, hidden, early, 1, hidden, to);
        if (s->packed_n)
                sl_gemm_pack(plain + early * hidden, hidden, hidden, 1, hidden, to + s->packed_r);
}

static int pack_direction_narrow(const struct recurrent *s, uint32_t index, const float *plain, uint32_t dtype, uint16_t *to)
{
        int64_t hidden = s->form.hidden, early = early_rows(s);
        int r;

        if (index == SL_RNN_W)
                return sl_gemm_pack_narrow(plain, s->form.inputs, rows_of(s), 1, s->form.inputs, dtype, to);
        r = sl_gemm_pack_narrow(plain, hidden, early, 1, hidden, dtype, to);
        if (r == 0 && s->packed_n)
                r = sl_gemm_pack_narrow(plain + early * hidden, hidden, hidden, 1, hidden, dtype, to + s->packed_r);
        return r;
}

/* What lies @at elements behind the start of a packed input. */
static struct matrix packed_at(const struct run *r, uint32_t index, size_t at)
{
        uint32_t narrow = r->s->narrow[index - SL_RNN_W];
        const void *data = r->binding->inputs[index];

        if (narrow)
                return (struct matrix){.narrow = (const uint16_t *)data + at, .narrow_dtype = narrow};
        return (struct matrix){.wide = (const float *)data + at};
}

/* @begins: the direction does; what is not packed is packed then, and stays in scratch. */
static void find_w(struct run *r, bool begins)
{
        int64_t rows = rows_of(r->s) * (int64_t)r->direction;

        if (r->s->is_packed[0]) {
                r->w = packed_at(r, SL_RNN_W, r->direction * r->s->packed_w);
        } else if (begins) {
                pack_direction(r->s, SL_RNN_W, (const float *)r->binding->inputs[SL_RNN_W] + rows * r->s->form.inputs, r->packed);
                r->w = (struct matrix){.wide = r->packed};
        }
}

static void find_r(struct run *r, bool begins)
{
        int64_t rows = rows_of(r->s) * (int64_t)r->direction;
        size_t at = r->direction * (r->s->packed_r + r->s->packed_n);
        float *here = r->packed + (r->s->is_packed[0] ? 0 : r->s->packed_w);

        if (r->s->is_packed[1]) {
                r->r = packed_at(r, SL_RNN_R, at);
                r->candidate = packed_at(r, SL_RNN_R, at + r->s->packed_r);
        } else if (begins) {
                pack_direction(r->s, SL_RNN_R, (const float *)r->binding->inputs[SL_RNN_R] + rows * r->s->form.hidden, here);
                r->r = (struct matrix){.wide = here};
                r->candidate = (struct matrix){.wide = here + r->s->packed_r};
        }
}

/* The columns from @first on of a product as it is for all columns. */
static void multiply_columns(struct sl_gemm gemm, const struct matrix *matrix, int64_t first, int64_t columns)
{
        gemm.b = matrix->wide ? matrix->wide + first * gemm.depth : NULL;
        gemm.narrow = matrix->narrow ? matrix->narrow + first * gemm.depth : NULL;
        gemm.narrow_dtype = matrix->narrow_dtype;
        gemm.c += first;
        gemm.bias = gemm.bias ? gemm.bias + first : NULL;
        gemm.residual = gemm.residual ? gemm.residual + first : NULL;
        gemm.columns = columns;
        sl_gemm_run(&gemm);
}

/* The run's cells of the first @gates gates; all cells are one product. */
static void multiply_gates(const struct run *r, const struct sl_gemm *gemm, const struct matrix *matrix, int64_t gates)
{
        int64_t hidden = r->s->form.hidden;

        if (r->n == hidden)
                multiply_columns(*gemm, matrix, 0, gates * hidden);
        else
                for (int64_t gate = 0; gate < gates; gate++)
                        multiply_columns(*gemm, matrix, gate * hidden + r->first, r->n);
}

static void multiply_inputs(const struct run *r)
{
        const struct sl_recurrence *form = &r->s->form;
        struct sl_gemm inputs = {.a = r->binding->inputs[SL_RNN_X],
                .c = r->inputs,
                .rows = form->steps * form->batch,
                .depth = form->inputs,
                .a_stride = form->inputs,
                .c_stride = rows_of(r->s),
                .bias = r->bias,
                .streams = true};

        multiply_gates(r, &inputs, &r->w, form->gates);
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

/* @gates, @h, @c: from the run's first cell on. */
static void finish_lstm(const struct run *r, float *gates, float *h, float *c)
{
        int64_t hidden = r->s->form.hidden, n = r->n;
        const float *p = input_of(r, SL_RNN_P);
        float *in = gates, *out = gates + hidden, *forget = gates + 2 * hidden, *candidate = gates + 3 * hidden;

        if (p) {
                p += (int64_t)r->direction * 3 * hidden + r->first;
                add_product(in, p, c, n);
                add_product(forget, p + 2 * hidden, c, n);
        }
        gate(r, 0, in, n);
        gate(r, 0, forget, n);
        gate(r, 1, candidate, n);
        blend(c, forget, in, candidate, n);
        if (p)
                add_product(out, p + hidden, c, n);
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
                .c = r->gates + first * rows,
                .rows = b,
                .depth = hidden,
                .a_stride = hidden,
                .c_stride = rows,
                .residual = inputs,
                .residual_stride = stride};

        multiply_gates(r, &early, &r->r, early_rows(r->s) / hidden);
}

/* The candidate of a GRU, of the state @a. */
static void multiply_candidate(const struct run *r, int64_t sample, const float *a)
{
        int64_t rows = rows_of(r->s), n = r->s->form.hidden;
        struct sl_gemm late = {.a = a + sample * n,
                .c = r->gates + sample * rows + 2 * n,
                .rows = 1,
                .depth = n,
                .a_stride = n,
                .c_stride = rows,
                .bias = r->s->form.linear_before_reset ? r->bias + rows : NULL};

        multiply_columns(late, &r->candidate, r->first, r->n);
}

/* While all of the state is as it was: gates of a GRU, and the product that is reset behind it or the reset state before it. */
static void begin_sample(const struct run *r, int64_t sample)
{
        int64_t hidden = r->s->form.hidden;
        float *gates = r->gates + sample * rows_of(r->s) + r->first, *reset = gates + hidden;
        float *h = r->h + sample * hidden + r->first, *rest = r->rest + sample * hidden + r->first;

        if (r->s->op != SL_OP_GRU)
                return;
        gate(r, 0, gates, r->n);
        gate(r, 0, reset, r->n);
        if (r->s->form.linear_before_reset)
                multiply_candidate(r, sample, r->h);
        else
                multiply(rest, reset, h, r->n);
}

static void finish_gru(const struct run *r, int64_t sample, float *gates, float *h, const float *inputs)
{
        int64_t hidden = r->s->form.hidden;
        float *reset = gates + hidden, *candidate = gates + 2 * hidden;

        if (r->s->form.linear_before_reset)
                scale(candidate, reset, r->n);
        else
                multiply_candidate(r, sample, r->rest);
        for (int64_t i = 0; i < r->n; i++)
                candidate[i] += inputs[2 * hidden + r->first + i];
        gate(r, 1, candidate, r->n);
        mix(h, gates, candidate, r->n);
}

static void finish_sample(const struct run *r, int64_t sample, const float *inputs)
{
        int64_t hidden = r->s->form.hidden;
        float *gates = r->gates + sample * rows_of(r->s) + r->first, *h = r->h + sample * hidden + r->first;

        if (r->s->op == SL_OP_LSTM) {
                finish_lstm(r, gates, h, r->c + sample * hidden + r->first);
        } else if (r->s->op == SL_OP_GRU) {
                finish_gru(r, sample, gates, h, inputs);
        } else {
                gate(r, 0, gates, r->n);
                memcpy(h, gates, (size_t)r->n * sizeof(float));
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

/* The products with the state of step @k. Without lengths all samples are at the same place, and their rows are evenly spaced. */
static void begin_step(const struct run *r, int64_t k)
{
        const struct sl_recurrence *form = &r->s->form;
        int64_t rows = rows_of(r->s), stride = form->batch_first ? form->steps * rows : rows;
        bool has_lengths = r->s->has[SL_RNN_LENGTHS];

        if (!has_lengths)
                multiply_state(r, 0, form->batch, inputs_at(r, 0, time_of(r, 0, k)), stride);
        for (int64_t b = 0; b < form->batch; b++) {
                if (k >= length_of(r, b))
                        continue;
                if (has_lengths)
                        multiply_state(r, b, 1, inputs_at(r, b, time_of(r, b, k)), rows);
                begin_sample(r, b);
        }
}

/* Between the cells of [batch, hidden] and the places of the direction in a tensor of states. */
static void move_state(const struct run *r, float *tensor, float *state, bool store)
{
        const struct sl_recurrence *form = &r->s->form;

        for (int64_t b = 0; b < form->batch; b++) {
                int64_t row = form->batch_first ? b * form->directions + r->direction : r->direction * form->batch + b;
                float *outside = tensor + row * form->hidden + r->first, *inside = state + b * form->hidden + r->first;

                memcpy(store ? outside : inside, store ? inside : outside, (size_t)r->n * sizeof(float));
        }
}

/* The state behind step @k, and behind the last one what it is in the end. */
static void finish_step(const struct run *r, int64_t k)
{
        const struct sl_recurrence *form = &r->s->form;
        size_t bytes = (size_t)r->n * sizeof(float);

        for (int64_t b = 0; b < form->batch; b++) {
                int64_t t = time_of(r, b, k);
                float *y = output_at(r, b, t) + r->first;

                if (k >= length_of(r, b)) {
                        memset(y, 0, bytes);
                        continue;
                }
                finish_sample(r, b, inputs_at(r, b, t));
                memcpy(y, r->h + b * form->hidden + r->first, bytes);
        }
        if (k + 1 == form->steps && r->s->n_outputs > 1)
                move_state(r, r->binding->outputs[1], r->h, true);
        if (k + 1 == form->steps && r->s->n_outputs > 2)
                move_state(r, r->binding->outputs[2], r->c, true);
}

static void begin_state(const struct run *r, uint32_t input, float *state)
{
        const struct sl_recurrence *form = &r->s->form;

        for (int64_t b = 0; b < form->batch; b++)
                memset(state + b * form->hidden + r->first, 0, (size_t)r->n * sizeof(float));
        if (r->s->has[input])
                move_state(r, (float *)r->binding->inputs[input], state, false);
}

static int64_t stages_of_direction(const struct recurrent *s)
{
        return 1 + 2 * s->form.steps;
}

static void run_stage(struct run *r, int64_t stage)
{
        int64_t step = stage % stages_of_direction(r->s) - 1;

        r->direction = (uint32_t)(stage / stages_of_direction(r->s));
        r->backward = r->direction ? true : r->s->form.backward != 0;
        find_w(r, step < 0);
        find_r(r, step < 0);
        if (step < 0) {
                add_biases(r);
                multiply_inputs(r);
                begin_state(r, SL_RNN_H, r->h);
                begin_state(r, SL_RNN_C, r->c);
        } else if (step % 2 == 0) {
                begin_step(r, step / 2);
        } else {
                finish_step(r, step / 2);
        }
}

static int64_t recurrent_stages(const void *state)
{
        const struct recurrent *s = state;

        return s->form.directions * stages_of_direction(s);
}

/* Cells of which each gate begins with a panel. */
static int64_t recurrent_units(const void *state, uint32_t axis)
{
        const struct recurrent *s = state;
        bool cuts = axis == SL_AXIS_COLUMNS && !packed_here(s) && !s->has[SL_RNN_LENGTHS] && s->form.hidden % SL_GEMM_PANEL == 0;

        return cuts ? s->form.hidden / SL_GEMM_PANEL : 0;
}

static void find_scratch(struct run *r)
{
        const struct recurrent *s = r->s;
        const struct sl_recurrence *form = &s->form;
        size_t states = (size_t)(form->batch * form->hidden), rows = (size_t)rows_of(s);
        char *scratch = r->binding->scratch;

        r->packed = take_scratch(&scratch, packed_here(s));
        r->bias = take_scratch(&scratch, rows + (size_t)form->hidden);
        r->h = take_scratch(&scratch, states);
        r->c = take_scratch(&scratch, states);
        r->rest = take_scratch(&scratch, states);
        r->gates = take_scratch(&scratch, (size_t)form->batch * rows);
        r->inputs = take_scratch(&scratch, (size_t)(form->steps * form->batch) * rows);
}

static int recurrent_run(const void *state, const struct sl_binding *binding)
{
        const struct recurrent *s = state;
        const struct sl_part *part = binding->part;
        struct run r = {.s = s, .binding = binding, .n = s->form.hidden};

        for (int64_t b = 0; b < s->form.batch; b++)
                if (length_of(&r, b) < 0 || length_of(&r, b) > s->form.steps)
                        return -ERANGE;
        find_scratch(&r);
        if (part) {
                r.first = part->first * SL_GEMM_PANEL;
                r.n = (part->end - part->first) * SL_GEMM_PANEL;
                run_stage(&r, part->stage);
        }
        for (int64_t stage = 0; !part && stage < recurrent_stages(s); stage++)
                run_stage(&r, stage);
        return 0;
}

static bool recurrent_form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        struct recurrent s = {.op = SL_OP_COUNT};
        struct sl_cpu_sizes sizes;
        int64_t elements;

        if ((index != SL_RNN_W && index != SL_RNN_R) || !recurrent_plan(node, &s, &sizes))
                return false;
        elements = packed_elements(&s, index);
        sl_cpu_form_narrow(ret_packed, index == SL_RNN_W ? "inputs of gates" : "state of gates",
                (int64_t[]){s.form.directions, rows_of(&s), index == SL_RNN_W ? s.form.inputs : s.form.hidden, early_rows(&s)},
                elements, sl_narrow_dtype(node, index, elements));
        return true;
}

static int recurrent_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        struct recurrent s = {.op = SL_OP_COUNT};
        struct sl_cpu_sizes sizes;
        int64_t depth, each;
        uint32_t narrow;
        int r = 0;

        if (!recurrent_plan(node, &s, &sizes))
                return -ENOTSUP;
        depth = index == SL_RNN_W ? s.form.inputs : s.form.hidden;
        each = packed_elements(&s, index) / s.form.directions;
        narrow = s.narrow[index - SL_RNN_W];
        for (int64_t d = 0; d < s.form.directions && r == 0; d++) {
                const float *from = (const float *)plain + d * rows_of(&s) * depth;

                if (narrow)
                        r = pack_direction_narrow(&s, index, from, narrow, (uint16_t *)ret_data + d * each);
                else
                        pack_direction(&s, index, from, (float *)ret_data + d * each);
        }
        return r;
}

/* There is no other way. */
static double recurrent_seconds(const struct sl_core_figures *core, const void *state)
{
        (void)core;
        (void)state;
        return 0;
}

const struct sl_cpu_loop sl_cpu_recurrent = {.state_bytes = sizeof(struct recurrent),
        .plan = recurrent_plan,
        .run = recurrent_run,
        .units = recurrent_units,
        .stages = recurrent_stages,
        .form = recurrent_form,
        .repack = recurrent_repack,
        .weights = recurrent_weights,
        .scratch = recurrent_scratch,
        .seconds = recurrent_seconds};
