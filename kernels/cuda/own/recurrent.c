/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recurrent layers as turns (arguments.h). Blocks are small, so that 512 units give a block to nearly each of Hopper's 132
 * multiprocessors; a layer of few units is one block for all of its turns, which waits for itself alone.
 */
#include "shape/recurrent.h"
#include "cuda/own/builder.h"

#include <errno.h>

#define SPREAD_THREADS 128
#define GRID_MAX       65535

/* Up to here a block has all units: a launch costs more than the turn itself. */
#define UNITS_OF_A_BLOCK 64

/* Turns that are launched one by one, at most; longer sequences stay in a block each, however slowly. */
#define LAUNCHES_MAX 8192

static uint32_t cell_of(uint32_t op)
{
        return op == SL_OP_LSTM ? SL_OWN_LSTM : op == SL_OP_GRU ? SL_OWN_GRU : SL_OWN_RNN;
}

static struct sl_own_recurrent argument_of(const struct sl_node_desc *node, const struct sl_recurrence *r)
{
        struct sl_own_recurrent a = {.cell = cell_of(node->op),
                .dtype = node->inputs[0].dtype,
                .gates = r->gates,
                .turns_per_step = node->op == SL_OP_GRU && !r->linear_before_reset ? 2 : 1,
                .steps = (uint32_t)r->steps,
                .batch = (uint32_t)r->batch,
                .inputs = (uint32_t)r->inputs,
                .units = (uint32_t)r->hidden,
                .directions = r->directions,
                .backward = r->backward,
                .batch_first = r->batch_first,
                .input_forget = r->input_forget,
                .linear_before_reset = r->linear_before_reset,
                .clip = (float)r->clip};

        for (uint32_t d = 0; d < r->directions; d++)
                for (uint32_t i = 0; i < r->functions; i++)
                        a.function[d][i] = (struct sl_own_gate){
                                r->function[d][i].kind, (float)r->function[d][i].alpha, (float)r->function[d][i].beta};
        return a;
}

static void add_input(struct sl_own_launch *launch, const struct sl_node_desc *node, size_t offset, uint32_t index)
{
        if (sl_own_is_there(node, index))
                sl_own_slot(launch, offset, SL_OWN_INPUT, index, 0);
}

static void add_slots(struct sl_own_launch *launch, const struct sl_node_desc *node, uint64_t states, bool multiplied)
{
        static const size_t outputs[] = {offsetof(struct sl_own_recurrent, out), offsetof(struct sl_own_recurrent, last_hidden),
                offsetof(struct sl_own_recurrent, last_cell)};

        for (uint32_t i = 0; i < node->n_outputs && i < 3; i++)
                if (node->outputs[i].dtype != SL_DTYPE_NONE)
                        sl_own_slot(launch, outputs[i], SL_OWN_OUTPUT, i, 0);
        sl_own_slot(launch, offsetof(struct sl_own_recurrent, x), SL_OWN_INPUT, multiplied ? node->n_inputs : SL_RNN_X, 0);
        if (!multiplied)
                add_input(launch, node, offsetof(struct sl_own_recurrent, w), SL_RNN_W);
        add_input(launch, node, offsetof(struct sl_own_recurrent, r), SL_RNN_R);
        add_input(launch, node, offsetof(struct sl_own_recurrent, bias), SL_RNN_B);
        add_input(launch, node, offsetof(struct sl_own_recurrent, lengths), SL_RNN_LENGTHS);
        add_input(launch, node, offsetof(struct sl_own_recurrent, first_hidden), SL_RNN_H);
        add_input(launch, node, offsetof(struct sl_own_recurrent, first_cell), SL_RNN_C);
        add_input(launch, node, offsetof(struct sl_own_recurrent, peephole), SL_RNN_P);
        sl_own_slot(launch, offsetof(struct sl_own_recurrent, error), SL_OWN_ERROR, 0, 0);
        sl_own_slot(launch, offsetof(struct sl_own_recurrent, states), SL_OWN_SCRATCH, 0, states);
}

static uint32_t at_most(uint64_t blocks)
{
        return (uint32_t)(blocks < GRID_MAX ? blocks : GRID_MAX);
}

static void add_turns(struct sl_own_builder *builder, const struct sl_node_desc *node, struct sl_own_recurrent *a, uint64_t states,
        bool multiplied)
{
        uint64_t turns = (uint64_t)a->steps * a->turns_per_step;
        bool whole = a->units <= UNITS_OF_A_BLOCK || turns > LAUNCHES_MAX;
        uint32_t threads = whole ? SL_OWN_BLOCK : SPREAD_THREADS, warps = threads / 32;
        struct sl_own_launch *launch;

        a->n_turns = whole ? (uint32_t)turns : 1;
        launch = sl_own_add(builder, sl_own_kernel_of(SL_OWN_KERNEL_recurrent_f32, a->dtype), a, sizeof(*a), 1);
        launch->grid[0] = whole ? 1 : at_most((a->units + warps - 1) / warps);
        launch->grid[1] = at_most((a->batch + SL_OWN_SAMPLES - 1) / SL_OWN_SAMPLES);
        launch->grid[2] = a->directions;
        launch->block[0] = threads;
        launch->repeats = whole ? 0 : (uint32_t)turns;
        launch->counter = offsetof(struct sl_own_recurrent, turn);
        add_slots(launch, node, states, multiplied);
}

static int build(struct sl_own_builder *builder, const struct sl_node_desc *node, bool multiplied)
{
        struct sl_recurrence r = {.gates = 0};
        struct sl_own_recurrent a;
        struct sl_own_launch *launch;
        uint64_t state_bytes, states;

        if (!sl_own_is_float(node->inputs[0].dtype) || sl_recurrence_read(node, &r, NULL) || r.steps < 1 || r.batch < 1 ||
                r.inputs < 1 || r.hidden < 1 || r.steps > INT32_MAX / 2)
                return -ENOTSUP;
        a = argument_of(node, &r);
        state_bytes = (uint64_t)r.directions * (uint64_t)r.batch * (uint64_t)r.hidden * sizeof(float);
        states = sl_own_scratch(builder, SL_OWN_STATES * state_bytes);
        launch = sl_own_add(builder, SL_OWN_KERNEL_recurrent_begin, &a, sizeof(a), state_bytes / sizeof(float));
        add_slots(launch, node, states, multiplied);
        add_turns(builder, node, &a, states, multiplied);
        sl_own_checks(builder);
        return 0;
}

int sl_own_plan_recurrent(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        return build(builder, node, false);
}

int sl_own_build_turns(struct sl_own_builder *builder, const struct sl_node_desc *node)
{
        return build(builder, node, true);
}
