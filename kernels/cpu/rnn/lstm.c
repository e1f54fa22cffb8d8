/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LSTM of float32 with its ordinary functions. The inputs of all steps are multiplied at once; then each step adds the product of
 * the state before it. Both matrices are packed (gemm.h) where they are constant and the processor has AVX2; plain ones are
 * taken row by row. A sample never depends on the others, and has the same bits in any batch.
 */
#include "cpu/base/isa.h"
#include "cpu/base/rows.h"
#include "cpu/base/vector_math.h"
#include "cpu/gemm/gemm.h"
#include "cpu/rnn/loops.h"
#include "cpu/rnn/lstm_tile.h"
#include "shape/recurrent.h"

#include <string.h>

#define GATES 4 /* input, output, forget, cell */

struct lstm {
        int64_t steps, batch, inputs, hidden;
        uint32_t directions, backward, n_outputs;
        bool has_bias, has_h, has_c;
        bool is_packed[2];                       /* W, R */
        int64_t bias_offset, h_offset, c_offset; /* of scratch, in floats; the gates of all steps lie in front */
};

static bool is_ordinary(const struct sl_recurrence *r)
{
        for (uint32_t d = 0; d < r->directions; d++)
                if (r->function[d][0].kind != SL_GATE_SIGMOID || r->function[d][1].kind != SL_GATE_TANH ||
                        r->function[d][2].kind != SL_GATE_TANH)
                        return false;
        return !r->batch_first && !r->input_forget && r->clip == 0;
}

static bool is_there(const struct sl_node_desc *node, uint32_t index)
{
        return index < node->n_inputs && node->inputs[index].dtype != SL_DTYPE_NONE;
}

static bool lstm_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct sl_recurrence r = {.gates = 0};
        struct lstm *l = state;

        if (sl_recurrence_read(node, &r, NULL) || !is_ordinary(&r) || is_there(node, SL_RNN_LENGTHS) || is_there(node, SL_RNN_P))
                return false;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (is_there(node, i) && (!sl_cpu_is_f32(&node->inputs[i]) || node->inputs[i].layout != SL_LAYOUT_PLAIN))
                        return false;
        for (uint32_t i = 0; i < node->n_outputs; i++)
                if (node->outputs[i].dtype != SL_DTYPE_NONE && node->outputs[i].layout != SL_LAYOUT_PLAIN)
                        return false;
        if (r.steps < 1 || r.batch < 1 || r.inputs < 1 || r.hidden < 1)
                return false;
        *l = (struct lstm){.steps = r.steps,
                .batch = r.batch,
                .inputs = r.inputs,
                .hidden = r.hidden,
                .directions = r.directions,
                .backward = r.backward,
                .n_outputs = node->n_outputs,
                .has_bias = is_there(node, SL_RNN_B),
                .has_h = is_there(node, SL_RNN_H),
                .has_c = is_there(node, SL_RNN_C)};
        l->bias_offset = l->steps * l->batch * GATES * l->hidden;
        l->h_offset = l->bias_offset + GATES * l->hidden;
        l->c_offset = l->h_offset + l->batch * l->hidden;
        sizes->scratch_bytes = (size_t)(l->c_offset + l->batch * l->hidden) * sizeof(float);
        return true;
}

static void lstm_weights(void *state, const struct sl_packed *packed)
{
        struct lstm *l = state;

        for (uint32_t i = 0; i < 2; i++)
                l->is_packed[i] = packed && packed[SL_RNN_W + i].data_bytes;
}

/* A product of the rows of @a with one direction's matrix of @depth; @bias for each gate, or NULL: added to what is there. */
struct factor {
        const float *matrix;
        bool is_packed;
        int64_t depth;
};

static void multiply(const struct lstm *l, const struct factor *f, const float *a, int64_t rows, const float *bias, float *gates)
{
        int64_t columns = GATES * l->hidden;
        struct sl_gemm gemm = {.a = a,
                .b = f->matrix,
                .c = gates,
                .rows = rows,
                .depth = f->depth,
                .columns = columns,
                .a_stride = f->depth,
                .c_stride = columns,
                .bias = bias,
                .residual = bias ? NULL : gates,
                .residual_stride = columns,
                .streams = bias != NULL};

        if (f->is_packed) {
                sl_gemm_run(&gemm);
                return;
        }
        for (int64_t row = 0; row < rows; row++)
                for (int64_t n = 0; n < columns; n++) {
                        float sum = sl_row_product(f->depth, a + row * f->depth, f->matrix + n * f->depth),
                              *to = gates + row * columns + n;

                        *to = sum + (bias ? bias[n] : *to);
                }
}

SL_CPU_CLONES static void step_plainly(int64_t n, const float *restrict gates, float *restrict c, float *restrict h)
{
        for (int64_t i = 0; i < n; i++) {
                float in = sl_sigmoid(gates[i]), out = sl_sigmoid(gates[n + i]), forget = sl_sigmoid(gates[2 * n + i]);
                float cell = __builtin_fmaf(forget, c[i], in * sl_tanh(gates[3 * n + i]));

                c[i] = cell;
                h[i] = out * sl_tanh(cell);
        }
}

typedef void cells_function(int64_t n, const float *gates, float *c, float *h);

static struct factor factor_of(const struct lstm *l, const struct sl_binding *binding, uint32_t input, uint32_t direction)
{
        struct factor f = {.is_packed = l->is_packed[input - SL_RNN_W], .depth = input == SL_RNN_W ? l->inputs : l->hidden};
        int64_t plain = GATES * l->hidden * f.depth;

        f.matrix = (const float *)binding->inputs[input] +
                   direction * (f.is_packed ? sl_gemm_packed_floats(f.depth, GATES * l->hidden) : plain);
        return f;
}

static void start_state(const struct lstm *l, const float *initial, uint32_t direction, float *state)
{
        int64_t n = l->batch * l->hidden;

        if (initial)
                memcpy(state, initial + direction * n, (size_t)n * sizeof(*state));
        else
                memset(state, 0, (size_t)n * sizeof(*state));
}

static void add_biases(const struct lstm *l, const float *both, float *bias)
{
        for (int64_t i = 0; i < GATES * l->hidden; i++)
                bias[i] = both ? both[i] + both[GATES * l->hidden + i] : 0.0f;
}

static void copy_state(const struct lstm *l, const float *state, float *to)
{
        if (to)
                memcpy(to, state, (size_t)(l->batch * l->hidden) * sizeof(*to));
}

static void run_direction(const struct lstm *l, const struct sl_binding *binding, uint32_t direction)
{
        const float *const *in = (const float *const *)binding->inputs;
        float *const *out = (float *const *)binding->outputs;
        float *gates = binding->scratch, *h = gates + l->h_offset, *c = gates + l->c_offset, *bias = gates + l->bias_offset;
        struct factor w = factor_of(l, binding, SL_RNN_W, direction), r = factor_of(l, binding, SL_RNN_R, direction);
        int64_t state_floats = l->batch * l->hidden;
        bool backward = direction || l->backward;
        cells_function *step_cells = sl_cpu_has_avx2() ? sl_lstm_cells : step_plainly;

        add_biases(l, l->has_bias ? in[SL_RNN_B] + direction * 2 * GATES * l->hidden : NULL, bias);
        multiply(l, &w, in[SL_RNN_X], l->steps * l->batch, bias, gates);
        start_state(l, l->has_h ? in[SL_RNN_H] : NULL, direction, h);
        start_state(l, l->has_c ? in[SL_RNN_C] : NULL, direction, c);
        for (int64_t i = 0; i < l->steps; i++) {
                int64_t step = backward ? l->steps - 1 - i : i;
                float *now = gates + step * l->batch * GATES * l->hidden;

                multiply(l, &r, h, l->batch, NULL, now);
                for (int64_t sample = 0; sample < l->batch; sample++)
                        step_cells(l->hidden, now + sample * GATES * l->hidden, c + sample * l->hidden, h + sample * l->hidden);
                copy_state(l, h, out[0] ? out[0] + (step * l->directions + direction) * state_floats : NULL);
        }
}

static int lstm_run(const void *state, const struct sl_binding *binding)
{
        const struct lstm *l = state;
        int64_t state_floats = l->batch * l->hidden;

        for (uint32_t direction = 0; direction < l->directions; direction++) {
                run_direction(l, binding, direction);
                for (uint32_t i = 0; i < 2; i++) {
                        float *to = l->n_outputs > 1 + i ? binding->outputs[1 + i] : NULL;

                        copy_state(l, (float *)binding->scratch + (i ? l->c_offset : l->h_offset),
                                to ? to + direction * state_floats : NULL);
                }
        }
        return 0;
}

static bool is_matrix(uint32_t index)
{
        return index == SL_RNN_W || index == SL_RNN_R;
}

static bool lstm_form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        const int64_t *dims = node->inputs[index].shape.dims;

        if (!is_matrix(index) || !sl_cpu_has_avx2())
                return false;
        sl_cpu_form(ret_packed, "recurrent", (int64_t[]){dims[0], dims[1], dims[2], 0},
                dims[0] * sl_gemm_packed_floats(dims[2], dims[1]));
        return true;
}

static int lstm_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        const int64_t *dims = node->inputs[index].shape.dims;

        for (int64_t d = 0; d < dims[0]; d++)
                sl_gemm_pack((const float *)plain + d * dims[1] * dims[2], dims[2], dims[1], 1, dims[2],
                        (float *)ret_data + d * sl_gemm_packed_floats(dims[2], dims[1]));
        return 0;
}

/* The only other way is the same loop over plain matrices, which is always slower. */
static double lstm_seconds(const struct sl_core_figures *core, const void *state)
{
        (void)core;
        (void)state;
        return 0;
}

const struct sl_cpu_loop sl_cpu_lstm = {.state_bytes = sizeof(struct lstm),
        .plan = lstm_plan,
        .run = lstm_run,
        .form = lstm_form,
        .repack = lstm_repack,
        .weights = lstm_weights,
        .seconds = lstm_seconds,
        .instead = &sl_cpu_recurrent};
