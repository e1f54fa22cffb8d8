/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/algorithm.h"

#include "cpu/base/narrow.h"
#include "cpu/conv/loops.h"
#include "cpu/gemm/loops.h"
#include "cpu/movement/loops.h"
#include "cpu/onednn/cost.h"
#include "cpu/reduce/loops.h"
#include "cpu/rnn/loops.h"

#include <stdlib.h>
#include <string.h>

/* One row per own loop; several of one algorithm are asked in this order. */
static const struct {
        uint32_t op, algorithm;
        const struct sl_cpu_loop *loop;
} rows[] = {
        {SL_OP_CONV, SL_ALGORITHM_BLOCKED, &sl_cpu_grouped},
        {SL_OP_CONV, SL_ALGORITHM_BLOCKED, &sl_cpu_first_conv},
        {SL_OP_CONV, SL_ALGORITHM_BLOCKED, &sl_cpu_im2col_gemm},
        {SL_OP_LANED_CONV, SL_ALGORITHM_BLOCKED, &sl_cpu_laned_conv},
        {SL_OP_MBCONV, SL_ALGORITHM_BLOCKED, &sl_cpu_mbconv},
        {SL_OP_LSTM, SL_ALGORITHM_BLOCKED, &sl_cpu_lstm},
        {SL_OP_LSTM, SL_ALGORITHM_BLOCKED, &sl_cpu_recurrent},
        {SL_OP_GRU, SL_ALGORITHM_BLOCKED, &sl_cpu_recurrent},
        {SL_OP_RNN, SL_ALGORITHM_BLOCKED, &sl_cpu_recurrent},
        {SL_OP_GATHER, SL_ALGORITHM_BLOCKED, &sl_cpu_narrow_gather},
        {SL_OP_MAX_POOL, SL_ALGORITHM_BLOCKED, &sl_cpu_max_pool},
        {SL_OP_MATMUL, SL_ALGORITHM_BLOCKED, &sl_cpu_product},
        {SL_OP_GEMM, SL_ALGORITHM_BLOCKED, &sl_cpu_product},
        {SL_OP_NIBBLE_MATMUL, SL_ALGORITHM_BLOCKED, &sl_cpu_nibble_product},
        {SL_OP_QUANTIZED_CONV, SL_ALGORITHM_BLOCKED, &sl_cpu_byte_depthwise},
        {SL_OP_QUANTIZED_CONV, SL_ALGORITHM_BLOCKED, &sl_cpu_dot_product},
        {SL_OP_QUANTIZED_MATMUL, SL_ALGORITHM_BLOCKED, &sl_cpu_dot_product},
        {SL_OP_QUANTIZED_CONV, SL_ALGORITHM_BLOCKED, &sl_cpu_byte_product},
        {SL_OP_QUANTIZED_MATMUL, SL_ALGORITHM_BLOCKED, &sl_cpu_byte_product},
        {SL_OP_CONV, SL_ALGORITHM_WINOGRAD_2, &sl_cpu_winograd_2},
        {SL_OP_CONV, SL_ALGORITHM_WINOGRAD_4, &sl_cpu_winograd_4},
        {SL_OP_LANED_CONV, SL_ALGORITHM_WINOGRAD_2, &sl_cpu_laned_winograd},
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

/* @ret_seconds: on that core; NULL: nobody asks. */
static bool fits(
        const struct sl_cpu_loop *loop, const struct sl_node_desc *node, const struct sl_core_figures *core, double *ret_seconds)
{
        struct sl_cpu_sizes sizes = {.state_bytes = loop->state_bytes, .core = core};
        void *state = calloc(1, loop->state_bytes);
        bool fit = state && loop->plan(node, state, &sizes);

        if (fit && ret_seconds)
                *ret_seconds = loop->seconds(core, state);
        free(state);
        return fit;
}

bool sl_algorithm_is_chosen(uint32_t op)
{
        for (size_t i = 0; i < N_ROWS; i++)
                if (rows[i].op == op)
                        return true;
        return false;
}

bool sl_algorithm_takes_exactly(const struct sl_node_desc *node)
{
        for (size_t i = 0; i < N_ROWS; i++)
                if (rows[i].op == node->op && !sl_algorithm_is_approximate(rows[i].algorithm) &&
                        fits(rows[i].loop, node, NULL, NULL))
                        return true;
        return false;
}

/* A form of float32 is never smaller than the tensor. */
static bool is_narrow_form(const struct sl_cpu_loop *loop, const struct sl_node_desc *node)
{
        struct sl_packed packed;

        return loop->form && loop->form(node, 1, &packed) && packed.data_bytes < sl_tensor_bytes(&node->inputs[1]);
}

bool sl_algorithm_narrows(const struct sl_node_desc *node)
{
        for (size_t i = 0; i < N_ROWS && sl_narrow_wish(node); i++)
                if (rows[i].op == node->op && fits(rows[i].loop, node, NULL, NULL) && is_narrow_form(rows[i].loop, node))
                        return true;
        return false;
}

const struct sl_cpu_loop *sl_algorithm_loop(const struct sl_node_desc *node, uint32_t algorithm)
{
        for (size_t i = 0; i < N_ROWS; i++)
                if (rows[i].op == node->op && rows[i].algorithm == algorithm && fits(rows[i].loop, node, NULL, NULL))
                        return rows[i].loop;
        return NULL;
}

bool sl_algorithm_form_fits(
        const struct sl_cpu_loop *loop, const struct sl_node_desc *node, uint32_t index, const struct sl_packed *packed)
{
        struct sl_packed own;

        return loop->form && loop->form(node, index, &own) && own.data_bytes == packed->data_bytes &&
               own.form_bytes == packed->form_bytes && !memcmp(own.form, packed->form, own.form_bytes);
}

const struct sl_cpu_loop *sl_algorithm_of_form(const struct sl_node_desc *node, uint32_t index, const struct sl_packed *packed)
{
        uint32_t wanted = (uint32_t)sl_attrs_int(&node->attrs, SL_ATTR_ALGORITHM, SL_ALGORITHM_AUTO);

        for (size_t i = 0; i < N_ROWS; i++) {
                const struct sl_cpu_loop *loop = rows[i].loop;

                if (rows[i].op != node->op || !loop->form || (wanted != SL_ALGORITHM_AUTO && wanted != rows[i].algorithm) ||
                        !fits(loop, node, NULL, NULL))
                        continue;
                if (sl_algorithm_form_fits(loop, node, index, packed))
                        return loop;
        }
        return NULL;
}

/*
 * Own loops that are nearly as fast go before a call of oneDNN, whose code is generated at each load, and whose parts must be tried
 * before a team may cut it. Costs are guesses anyway.
 */
#define CALL_MARGIN 1.1

static double onednn_seconds(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        return CALL_MARGIN * sl_cost_onednn(core, node);
}

uint32_t sl_algorithm_list(const struct sl_node_desc *node, const struct sl_core_figures *core, bool onednn,
        uint32_t ret_algorithms[SL_ALGORITHM_COUNT], double ret_seconds[SL_ALGORITHM_COUNT])
{
        double seconds[SL_ALGORITHM_COUNT], own;
        uint32_t count = 0;

        for (uint32_t algorithm = SL_ALGORITHM_DIRECT; algorithm < SL_ALGORITHM_COUNT; algorithm++) {
                bool there = algorithm == SL_ALGORITHM_DIRECT && onednn;
                uint32_t place = count;

                if (there)
                        own = onednn_seconds(core, node);
                for (size_t i = 0; i < N_ROWS && !there; i++)
                        there = rows[i].op == node->op && rows[i].algorithm == algorithm && fits(rows[i].loop, node, core, &own);
                if (!there)
                        continue;
                for (; place > 0 && seconds[place - 1] > own; place--) {
                        seconds[place] = seconds[place - 1];
                        ret_algorithms[place] = ret_algorithms[place - 1];
                }
                seconds[place] = own;
                ret_algorithms[place] = algorithm;
                count++;
        }
        if (count == 1 && ret_algorithms[0] == SL_ALGORITHM_DIRECT)
                return 0;
        if (ret_seconds)
                memcpy(ret_seconds, seconds, count * sizeof(*seconds));
        return count;
}
