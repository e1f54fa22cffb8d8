/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LSTM of float32 with its ordinary functions. The inputs of all steps are multiplied at once; then each step adds the product of
 * the state before it. Both matrices are packed (gemm.h) where they are constant and the processor has AVX2; plain ones are
 * taken row by row. A sample never depends on the others, and has the same bits in any batch.
 *
 * It goes in stages: of each direction one for the inputs, and one for each step. A part has the cells of some panels, their four
 * gates, and their state; a step reads the whole state before it, and leaves the one after it elsewhere.
 */
#include "cpu/base/isa.h"
#include "cpu/base/narrow.h"
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
        bool is_packed[2];  /* W, R */
        uint32_t narrow[2]; /* of packed ones: SL_DTYPE_F16, SL_DTYPE_BF16; NONE: float32 */
        /* Of scratch, in floats; the gates of all steps lie in front. Two of h, which steps write in turns. */
        int64_t bias_offset, h_offset, c_offset;
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

static int64_t packed_elements(const struct sl_node_desc *node, uint32_t index)
{
        const int64_t *dims = node->inputs[index].shape.dims;

        return dims[0] * sl_gemm_packed_floats(dims[2], dims[1]);
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
        for (uint32_t i = 0; i < 2; i++)
                l->narrow[i] = sl_narrow_dtype(node, SL_RNN_W + i, packed_elements(node, SL_RNN_W + i));
        l->bias_offset = l->steps * l->batch * GATES * l->hidden;
        l->h_offset = l->bias_offset + GATES * l->hidden;
        l->c_offset = l->h_offset + 2 * l->batch * l->hidden;
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
        const uint16_t *narrow; /* instead of it, if packed so */
        uint32_t narrow_dtype;
        bool is_packed;
        int64_t depth;
};

/* Cells of a part: whole panels of each gate, or all of them. */
struct cells {
        int64_t first, n;
};

static void multiply_packed(const struct lstm *l, const struct factor *f, const float *a, int64_t rows, const float *bias,
        float *gates, struct sl_part columns)
{
        struct sl_gemm gemm = {.a = a,
                .b = f->narrow ? NULL : f->matrix + columns.first * f->depth,
                .narrow = f->narrow ? f->narrow + columns.first * f->depth : NULL,
                .narrow_dtype = f->narrow_dtype,
                .c = gates + columns.first,
                .rows = rows,
                .depth = f->depth,
                .columns = columns.end - columns.first,
                .a_stride = f->depth,
                .c_stride = GATES * l->hidden,
                .bias = bias ? bias + columns.first : NULL,
                .residual = bias ? NULL : gates + columns.first,
                .residual_stride = GATES * l->hidden,
                .streams = bias != NULL};

        sl_gemm_run(&gemm);
}

static void multiply_plainly(const struct lstm *l, const struct factor *f, const float *a, int64_t rows, const float *bias,
        float *gates, struct sl_part columns)
{
        for (int64_t row = 0; row < rows; row++)
                for (int64_t n = columns.first; n < columns.end; n++) {
                        float sum = sl_row_product(f->depth, a + row * f->depth, f->matrix + n * f->depth),
                              *to = gates + row * GATES * l->hidden + n;

                        *to = sum + (bias ? bias[n] : *to);
                }
}

/* The four gates of some cells. All cells are one product. */
static void multiply(const struct lstm *l, const struct factor *f, const float *a, int64_t rows, const float *bias, float *gates,
        struct cells cells)
{
        int64_t products = cells.n == l->hidden ? 1 : GATES, width = products == 1 ? GATES * l->hidden : cells.n;

        for (int64_t gate = 0; gate < products; gate++) {
                int64_t first = gate * l->hidden + cells.first;
                struct sl_part columns = {.first = first, .end = first + width};

                (f->is_packed ? multiply_packed : multiply_plainly)(l, f, a, rows, bias, gates, columns);
        }
}

SL_CPU_CLONES static void step_plainly(int64_t apart, int64_t n, const float *restrict gates, float *restrict c, float *restrict h)
{
        for (int64_t i = 0; i < n; i++) {
                float in = sl_sigmoid(gates[i]), out = sl_sigmoid(gates[apart + i]), forget = sl_sigmoid(gates[2 * apart + i]);
                float cell = __builtin_fmaf(forget, c[i], in * sl_tanh(gates[3 * apart + i]));

                c[i] = cell;
                h[i] = out * sl_tanh(cell);
        }
}

typedef void cells_function(int64_t apart, int64_t n, const float *gates, float *c, float *h);

static struct factor factor_of(const struct lstm *l, const struct sl_binding *binding, uint32_t input, uint32_t direction)
{
        uint32_t index = input - SL_RNN_W;
        struct factor f = {.is_packed = l->is_packed[index], .depth = input == SL_RNN_W ? l->inputs : l->hidden};
        int64_t columns = GATES * l->hidden;
        int64_t at = direction * (f.is_packed ? sl_gemm_packed_floats(f.depth, columns) : columns * f.depth);

        if (f.is_packed && l->narrow[index]) {
                f.narrow = (const uint16_t *)binding->inputs[input] + at;
                f.narrow_dtype = l->narrow[index];
        } else {
                f.matrix = (const float *)binding->inputs[input] + at;
        }
        return f;
}

/* @to: the state of all samples, of which the cells are filled. NULL: nobody wants it. */
static void copy_cells(const struct lstm *l, const float *from, float *to, struct cells cells)
{
        for (int64_t sample = 0; to && sample < l->batch; sample++) {
                float *at = to + sample * l->hidden + cells.first;

                if (from)
                        memcpy(at, from + sample * l->hidden + cells.first, (size_t)cells.n * sizeof(*at));
                else
                        memset(at, 0, (size_t)cells.n * sizeof(*at));
        }
}

static void add_biases(const struct lstm *l, const float *both, float *bias, struct cells cells)
{
        for (int64_t gate = 0; gate < GATES; gate++)
                for (int64_t i = gate * l->hidden + cells.first, end = i + cells.n; i < end; i++)
                        bias[i] = both ? both[i] + both[GATES * l->hidden + i] : 0.0f;
}

/* What the inputs add to the gates of all steps, and the state before the first. */
static void run_inputs(const struct lstm *l, const struct sl_binding *binding, uint32_t direction, struct cells cells)
{
        const float *const *in = (const float *const *)binding->inputs;
        float *gates = binding->scratch, *bias = gates + l->bias_offset;
        struct factor w = factor_of(l, binding, SL_RNN_W, direction);
        int64_t state_floats = l->batch * l->hidden;

        add_biases(l, l->has_bias ? in[SL_RNN_B] + direction * 2 * GATES * l->hidden : NULL, bias, cells);
        multiply(l, &w, in[SL_RNN_X], l->steps * l->batch, bias, gates, cells);
        copy_cells(l, l->has_h ? in[SL_RNN_H] + direction * state_floats : NULL, gates + l->h_offset, cells);
        copy_cells(l, l->has_c ? in[SL_RNN_C] + direction * state_floats : NULL, gates + l->c_offset, cells);
}

/* Step @i in the order of the direction. */
static void run_step(const struct lstm *l, const struct sl_binding *binding, uint32_t direction, int64_t i, struct cells cells)
{
        float *const *out = (float *const *)binding->outputs;
        int64_t state_floats = l->batch * l->hidden, step = direction || l->backward ? l->steps - 1 - i : i;
        float *gates = binding->scratch, *c = gates + l->c_offset, *now = gates + step * l->batch * GATES * l->hidden;
        const float *before = gates + l->h_offset + i % 2 * state_floats;
        float *h = gates + l->h_offset + (i + 1) % 2 * state_floats;
        struct factor r = factor_of(l, binding, SL_RNN_R, direction);
        cells_function *step_cells = sl_cpu_has_avx2() ? sl_lstm_cells : step_plainly;

        multiply(l, &r, before, l->batch, NULL, now, cells);
        for (int64_t sample = 0; sample < l->batch; sample++) {
                int64_t at = sample * l->hidden + cells.first;

                step_cells(l->hidden, cells.n, now + sample * GATES * l->hidden + cells.first, c + at, h + at);
        }
        copy_cells(l, h, out[0] ? out[0] + (step * l->directions + direction) * state_floats : NULL, cells);
        for (uint32_t k = 1; k < l->n_outputs && i + 1 == l->steps; k++)
                copy_cells(l, k == 1 ? h : c, out[k] ? out[k] + direction * state_floats : NULL, cells);
}

static int64_t lstm_stages(const void *state)
{
        const struct lstm *l = state;

        return l->directions * (1 + l->steps);
}

/* Cells of which each gate begins with a panel. */
static int64_t lstm_units(const void *state, uint32_t axis)
{
        const struct lstm *l = state;

        return axis == SL_AXIS_COLUMNS && l->hidden % SL_GEMM_PANEL == 0 ? l->hidden / SL_GEMM_PANEL : 0;
}

static void run_stage(const struct lstm *l, const struct sl_binding *binding, int64_t stage, struct cells cells)
{
        uint32_t direction = (uint32_t)(stage / (1 + l->steps));
        int64_t step = stage % (1 + l->steps) - 1;

        if (step < 0)
                run_inputs(l, binding, direction, cells);
        else
                run_step(l, binding, direction, step, cells);
}

static int lstm_run(const void *state, const struct sl_binding *binding)
{
        const struct lstm *l = state;
        const struct sl_part *part = binding->part;

        if (part)
                run_stage(l, binding, part->stage,
                        (struct cells){part->first * SL_GEMM_PANEL, (part->end - part->first) * SL_GEMM_PANEL});
        for (int64_t stage = 0; !part && stage < lstm_stages(l); stage++)
                run_stage(l, binding, stage, (struct cells){0, l->hidden});
        return 0;
}

static bool is_matrix(uint32_t index)
{
        return index == SL_RNN_W || index == SL_RNN_R;
}

static bool lstm_form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        const int64_t *dims = node->inputs[index].shape.dims;
        int64_t elements = is_matrix(index) ? packed_elements(node, index) : 0;

        if (!is_matrix(index) || !sl_cpu_has_avx2())
                return false;
        sl_cpu_form_narrow(ret_packed, "recurrent", (int64_t[]){dims[0], dims[1], dims[2], 0}, elements,
                sl_narrow_dtype(node, index, elements));
        return true;
}

static int lstm_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        const int64_t *dims = node->inputs[index].shape.dims, packed = sl_gemm_packed_floats(dims[2], dims[1]);
        uint32_t narrow = sl_narrow_dtype(node, index, packed_elements(node, index));
        int r = 0;

        for (int64_t d = 0; d < dims[0] && r == 0; d++) {
                const char *from = (const char *)plain + d * dims[1] * dims[2] * (int64_t)sizeof(float);

                if (narrow)
                        r = sl_gemm_pack_narrow(from, dims[2], dims[1], 1, dims[2], narrow, (uint16_t *)ret_data + d * packed);
                else
                        sl_gemm_pack(from, dims[2], dims[1], 1, dims[2], (float *)ret_data + d * packed);
        }
        return r;
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
        .units = lstm_units,
        .stages = lstm_stages,
        .form = lstm_form,
        .repack = lstm_repack,
        .reads_anywhere = true,
        .weights = lstm_weights,
        .seconds = lstm_seconds,
        .instead = &sl_cpu_recurrent};
