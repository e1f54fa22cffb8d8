/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LSTM, GRU and RNN, turn by turn. A warp has a unit with all its gates and some samples: its lanes share the columns of the gates'
 * rows, each element of which is read once for all samples, and each of the first lanes ends a sample. The grid has units, samples
 * and directions. Where a block has all units it goes through all turns; else a launch is a turn.
 */
#include "group.cuh"

#include "shape/recurrent.h"

#define S SL_OWN_SAMPLES

/* Between 0 and 1; a NaN stays. */
static __device__ float bounded(float x)
{
        return x < 0 ? 0 : x > 1 ? 1 : x;
}

static __device__ float gate(const sl_own_recurrent &a, const sl_own_gate &f, float x)
{
        if (a.clip > 0)
                x = x > a.clip ? a.clip : x < -a.clip ? -a.clip : x;
        switch (f.kind) {
        case SL_GATE_RELU:
                return x < 0 ? 0 : x;
        case SL_GATE_TANH:
                return tanhf(x);
        case SL_GATE_SIGMOID:
                return 1 / (1 + expf(-x));
        case SL_GATE_AFFINE:
                return f.alpha * x + f.beta;
        case SL_GATE_LEAKY_RELU:
                return x < 0 ? f.alpha * x : x;
        case SL_GATE_THRESHOLDED_RELU:
                return x > f.alpha ? x : 0;
        case SL_GATE_SCALED_TANH:
                return f.alpha * tanhf(f.beta * x);
        case SL_GATE_HARD_SIGMOID:
                return bounded(f.alpha * x + f.beta);
        case SL_GATE_ELU:
                return x < 0 ? expm1f(x) * f.alpha : x;
        case SL_GATE_SOFTSIGN:
                return x / (1 + fabsf(x));
        default:
                return fmaxf(x, 0) + log1pf(expf(-fabsf(x)));
        }
}

static __device__ float *state(const sl_own_recurrent &a, uint32_t which)
{
        return a.states + (uint64_t)which * a.directions * a.batch * a.units;
}

static __device__ uint32_t length_of(const sl_own_recurrent &a, uint32_t sample)
{
        int32_t length = a.lengths ? a.lengths[sample] : (int32_t)a.steps;

        return length < 0 ? 0 : length > (int32_t)a.steps ? a.steps : (uint32_t)length;
}

static __device__ void check_lengths(const sl_own_recurrent &a)
{
        for (uint32_t i = thread_first(); a.lengths && i < a.batch; i += thread_step())
                if (a.lengths[i] < 0 || a.lengths[i] > (int32_t)a.steps)
                        atomicExch(a.error, 1u);
}

/* Where a state of the node lies, whose states are in the order of the batch or of the directions. */
static __device__ uint32_t node_state_at(const sl_own_recurrent &a, uint32_t direction, uint32_t sample, uint32_t unit)
{
        uint32_t row = a.batch_first ? sample * a.directions + direction : direction * a.batch + sample;

        return row * a.units + unit;
}

SL_KERNEL(recurrent_begin, sl_own_recurrent)
{
        uint32_t n = a.directions * a.batch * a.units;

        check_lengths(a);
        for (uint32_t i = thread_first(); i < n; i += thread_step()) {
                uint32_t unit = i % a.units, sample = i / a.units % a.batch, direction = i / a.units / a.batch;
                uint32_t from = node_state_at(a, direction, sample, unit);

                state(a, SL_OWN_HIDDEN)[i] = a.first_hidden ? load_float(a.first_hidden, from, a.dtype) : 0;
                if (a.cell == SL_OWN_LSTM)
                        state(a, SL_OWN_CELL)[i] = a.first_cell ? load_float(a.first_cell, from, a.dtype) : 0;
        }
}

/* One sample in one direction at one step. */
struct moment {
        uint32_t direction, step, sample, row; /* of X */
        bool active;                           /* its sequence has not ended */
};

static __device__ moment moment_of(const sl_own_recurrent &a, uint32_t direction, uint32_t step, uint32_t sample)
{
        uint32_t length = length_of(a, sample), t = step;
        bool active = step < length;

        if (active && (direction || a.backward))
                t = length - 1 - step;
        return {direction, step, sample, a.batch_first ? sample * a.steps + t : t * a.batch + sample, active};
}

static __device__ uint32_t state_at(const sl_own_recurrent &a, const moment &m, uint32_t unit)
{
        return (m.direction * a.batch + m.sample) * a.units + unit;
}

/* Rows of G gates, @apart elements from one to the next, times the vectors of the samples. */
template <int G, typename W, typename V>
static __device__ void multiply_rows(const W *rows, uint32_t apart, const V *const vectors[S], uint32_t n, float sums[G][S])
{
        for (uint32_t k = threadIdx.x % 32; k < n; k += 32) {
                float v[S];

#pragma unroll
                for (int s = 0; s < S; s++)
                        v[s] = widen(vectors[s][k]);
#pragma unroll
                for (int g = 0; g < G; g++) {
                        float w = widen(rows[g * apart + k]);

#pragma unroll
                        for (int s = 0; s < S; s++)
                                sums[g][s] += w * v[s];
                }
        }
}

/* What all lanes have added up, of the sample that is this lane's. */
template <int G> static __device__ void share_sums(const float sums[G][S], float mine[G])
{
#pragma unroll
        for (int g = 0; g < G; g++)
#pragma unroll
                for (int s = 0; s < S; s++) {
                        float sum = combine<32>(sums[g][s], add_up());

                        mine[g] = threadIdx.x % 32 == s || s == 0 ? sum : mine[g];
                }
}

static __device__ float peephole(const sl_own_recurrent &a, const moment &m, uint32_t which, uint32_t unit, float cell)
{
        return a.peephole ? load_float(a.peephole, (3 * m.direction + which) * a.units + unit, a.dtype) * cell : 0;
}

static __device__ float bias_of(const sl_own_recurrent &a, const moment &m, bool recurrent, uint32_t row)
{
        return a.bias ? load_float(a.bias, (2 * m.direction + recurrent) * a.gates * a.units + row, a.dtype) : 0;
}

static __device__ void end_step(const sl_own_recurrent &a, const moment &m, uint32_t unit, float hidden)
{
        uint32_t at = state_at(a, m, unit), to = node_state_at(a, m.direction, m.sample, unit);
        float next = m.active ? hidden : state(a, SL_OWN_HIDDEN + m.step % 2)[at];

        state(a, SL_OWN_HIDDEN + (m.step + 1) % 2)[at] = next;
        if (a.out) {
                uint32_t row = a.batch_first ? m.row * a.directions + m.direction
                                             : (m.row / a.batch * a.directions + m.direction) * a.batch + m.sample;

                store_float(a.out, row * a.units + unit, a.dtype, m.active ? hidden : 0);
        }
        if (m.step + 1 < a.steps)
                return;
        if (a.last_hidden)
                store_float(a.last_hidden, to, a.dtype, next);
        if (a.last_cell)
                store_float(a.last_cell, to, a.dtype, state(a, SL_OWN_CELL)[at]);
}

/* Gates in the order of ONNX: input, output, forget, cell. */
static __device__ void end_lstm(const sl_own_recurrent &a, const moment &m, uint32_t unit, const float in[4], const float rec[4])
{
        const sl_own_gate *f = a.function[m.direction];
        float *at = &state(a, SL_OWN_CELL)[state_at(a, m, unit)], before = *at, cell;
        float take = gate(a, f[0], in[0] + rec[0] + peephole(a, m, 0, unit, before));
        float keep = a.input_forget ? 1 - take : gate(a, f[0], in[2] + rec[2] + peephole(a, m, 2, unit, before));

        cell = keep * before + take * gate(a, f[1], in[3] + rec[3]);
        if (m.active)
                *at = cell;
        end_step(a, m, unit, gate(a, f[0], in[1] + rec[1] + peephole(a, m, 1, unit, cell)) * gate(a, f[2], cell));
}

static __device__ void end_gru(const sl_own_recurrent &a, const moment &m, uint32_t unit, float update, float sum)
{
        float before = state(a, SL_OWN_HIDDEN + m.step % 2)[state_at(a, m, unit)];

        end_step(a, m, unit, (1 - update) * gate(a, a.function[m.direction][1], sum) + update * before);
}

/* The first turn of a GRU that resets before its product. */
static __device__ void end_reset(const sl_own_recurrent &a, const moment &m, uint32_t unit, const float in[2], const float rec[2])
{
        uint32_t at = state_at(a, m, unit);
        const sl_own_gate &f = a.function[m.direction][0];

        state(a, SL_OWN_UPDATE)[at] = gate(a, f, in[0] + rec[0]);
        state(a, SL_OWN_RESET)[at] = gate(a, f, in[1] + rec[1]) * state(a, SL_OWN_HIDDEN + m.step % 2)[at];
}

/* @in: of the inputs, @rec: of the hidden state, with their biases; gates [first, first + G). */
template <int G> static __device__ void end_unit(const sl_own_recurrent &a, const moment &m, uint32_t unit, float *in, float *rec)
{
        const sl_own_gate *f = a.function[m.direction];

        if constexpr (G == 4) {
                end_lstm(a, m, unit, in, rec);
        } else if constexpr (G == 3) {
                end_gru(a, m, unit, gate(a, f[0], in[0] + rec[0]), in[2] + gate(a, f[0], in[1] + rec[1]) * rec[2]);
        } else if constexpr (G == 2) {
                end_reset(a, m, unit, in, rec);
        } else if (a.cell == SL_OWN_GRU) {
                end_gru(a, m, unit, state(a, SL_OWN_UPDATE)[state_at(a, m, unit)], in[0] + rec[0]);
        } else {
                end_step(a, m, unit, gate(a, f[0], in[0] + rec[0]));
        }
}

/* Gates [@first, @first + G) of a unit, for the samples from @sample on, over the hidden states in @from. */
template <typename T, int G>
static __device__ void run_unit(
        const sl_own_recurrent &a, uint32_t direction, uint32_t step, uint32_t sample, uint32_t unit, uint32_t first, uint32_t from)
{
        uint32_t row = (direction * a.gates + first) * a.units + unit, lane = threadIdx.x % 32;
        float in[G][S] = {}, rec[G][S] = {}, in_mine[G] = {}, rec_mine[G] = {};
        const float *vectors[S];
        const T *inputs[S];
        moment m;

        for (uint32_t s = 0; s < S; s++) {
                uint32_t at = sample + s < a.batch ? sample + s : a.batch - 1;
                moment other = moment_of(a, direction, step, at);

                vectors[s] = state(a, from) + state_at(a, other, 0);
                inputs[s] = static_cast<const T *>(a.x) + (uint64_t)other.row * a.inputs;
        }
        if (a.w) {
                multiply_rows<G>(static_cast<const T *>(a.w) + (uint64_t)row * a.inputs, a.units * a.inputs, inputs, a.inputs, in);
                share_sums<G>(in, in_mine);
        }
        multiply_rows<G>(static_cast<const T *>(a.r) + (uint64_t)row * a.units, a.units * a.units, vectors, a.units, rec);
        share_sums<G>(rec, rec_mine);
        if (lane >= S || sample + lane >= a.batch)
                return;
        m = moment_of(a, direction, step, sample + lane);
        for (uint32_t g = 0; g < G; g++) {
                uint32_t gate_row = (first + g) * a.units + unit;

                if (!a.w)
                        in_mine[g] = static_cast<const float *>(
                                a.x)[((uint64_t)m.row * a.directions + direction) * a.gates * a.units + gate_row];
                in_mine[g] += bias_of(a, m, false, gate_row);
                rec_mine[g] += bias_of(a, m, true, gate_row);
        }
        end_unit<G>(a, m, unit, in_mine, rec_mine);
}

template <typename T>
static __device__ void run_turn(const sl_own_recurrent &a, uint32_t turn, uint32_t direction, uint32_t sample, uint32_t unit)
{
        uint32_t step = turn / a.turns_per_step, hidden = SL_OWN_HIDDEN + step % 2;

        if (a.cell == SL_OWN_LSTM)
                run_unit<T, 4>(a, direction, step, sample, unit, 0, hidden);
        else if (a.cell == SL_OWN_RNN)
                run_unit<T, 1>(a, direction, step, sample, unit, 0, hidden);
        else if (a.turns_per_step == 1)
                run_unit<T, 3>(a, direction, step, sample, unit, 0, hidden);
        else if (turn % 2 == 0)
                run_unit<T, 2>(a, direction, step, sample, unit, 0, hidden);
        else
                run_unit<T, 1>(a, direction, step, sample, unit, 2, SL_OWN_RESET);
}

template <typename T> static __device__ void run_recurrent(const sl_own_recurrent &a)
{
        uint32_t warps = blockDim.x / 32, first = blockIdx.x * warps + threadIdx.x / 32;

        for (uint32_t turn = a.turn; turn < a.turn + a.n_turns; turn++) {
                for (uint32_t sample = blockIdx.y * S; sample < a.batch; sample += gridDim.y * S)
                        for (uint32_t unit = first; unit < a.units; unit += gridDim.x * warps)
                                run_turn<T>(a, turn, blockIdx.z, sample, unit);
                __syncthreads();
        }
}

SL_KERNEL(recurrent_f32, sl_own_recurrent)
{
        run_recurrent<float>(a);
}

SL_KERNEL(recurrent_f16, sl_own_recurrent)
{
        run_recurrent<half_t>(a);
}

SL_KERNEL(recurrent_bf16, sl_own_recurrent)
{
        run_recurrent<bfloat_t>(a);
}
