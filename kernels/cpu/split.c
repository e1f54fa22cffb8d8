/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/split.h"

#include "cpu/base/cost.h"

#include <math.h>
#include <stdalign.h>
#include <stddef.h>
#include <string.h>

#define STATE_BYTES_MAX 4096 /* of loops that narrow it, which keep all of it */

struct question {
        const struct sl_cpu_loop *loop;
        const void *state;
        const struct sl_core_figures *core;
        const struct sl_kernel_source *source;
        double seconds;              /* of all of it */
        double weights;              /* bytes of constants */
        double scale[SL_AXIS_COUNT]; /* what parts along an axis took, of what they should; 0: they cannot be cut so */
        double cut[SL_AXIS_COUNT][SL_TEAM_SIZE_COUNT]; /* cut_seconds() of teams of all sizes: each is asked for again and again */
};

static double bytes_of(const struct sl_node_desc *node)
{
        double bytes = 0;

        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE)
                        bytes += (double)sl_tensor_bytes(&node->inputs[i]);
        for (uint32_t i = 0; i < node->n_outputs; i++)
                bytes += (double)sl_tensor_bytes(&node->outputs[i]);
        return bytes;
}

static bool is_constant(const struct sl_kernel_source *source, uint32_t i)
{
        return source->constants && source->constants[i];
}

/* As they are packed: halves are half of them, Winograd's filters more. */
static double packed_bytes(const struct sl_cpu_loop *loop, const struct sl_node_desc *node, uint32_t index)
{
        struct sl_packed packed;

        if (loop->form && loop->form(node, index, &packed) && packed.data_bytes)
                return (double)packed.data_bytes;
        return (double)sl_tensor_bytes(&node->inputs[index]);
}

static double weights_of(const struct sl_cpu_loop *loop, const struct sl_kernel_source *source)
{
        double bytes = 0;

        for (uint32_t i = 0; i < source->node->n_inputs; i++)
                if (is_constant(source, i))
                        bytes += packed_bytes(loop, source->node, i);
        return bytes;
}

/*
 * What all parts bring from memory together: each of some rows all weights. Activations that no L2 cache holds lie in the L3 cache,
 * or cost one core alone at least as much.
 */
static double shared_seconds(const struct question *q, uint32_t axis, uint32_t members)
{
        return q->weights * (axis == SL_AXIS_ROWS ? members : 1) / sl_core_team_bandwidth(q->core, members);
}

/* Who has no estimate of its own moves bytes, and computes a little. */
static double plain_seconds(const struct sl_core_figures *core, const struct sl_node_desc *node)
{
        double rate = node->inputs[0].dtype == SL_DTYPE_BF16 && core->bf16 > 0 ? core->bf16 : core->flops;

        return sl_cost_traffic(core, bytes_of(node)) + 2 * (double)sl_op_work(node) / rate;
}

static double whole_seconds(const struct question *q, const struct sl_node_desc *node)
{
        double seconds = q->loop->seconds ? q->loop->seconds(q->core, q->state) : 0;

        return seconds > 0 ? seconds : plain_seconds(q->core, node);
}

static double guess_part(const struct question *q, uint32_t axis, int64_t units, uint32_t members)
{
        const struct sl_part largest = {.axis = axis, .end = (units + members - 1) / members};
        alignas(max_align_t) unsigned char narrowed[STATE_BYTES_MAX];

        if (!q->loop->narrow || q->loop->state_bytes > sizeof(narrowed))
                return q->seconds * (double)largest.end / (double)units;
        memcpy(narrowed, q->state, q->loop->state_bytes);
        q->loop->narrow(narrowed, &largest);
        return q->loop->seconds(q->core, narrowed);
}

static double part_seconds(const struct question *q, uint32_t axis, int64_t units, uint32_t members)
{
        return q->scale[axis] * guess_part(q, axis, units, members);
}

/* The guess is scaled to what was timed, for teams of all sizes. */
static void use_times(struct question *q, const struct sl_part_times *times)
{
        for (uint32_t axis = SL_AXIS_ROWS; axis < SL_AXIS_COUNT; axis++) {
                int64_t units = q->loop->units(q->state, axis);
                uint32_t members = units < times->members ? (uint32_t)units : times->members;

                q->scale[axis] = units < 2 || !isfinite(times->seconds[axis])
                                         ? 0
                                         : times->seconds[axis] / guess_part(q, axis, units, members);
        }
        q->seconds = times->seconds[SL_AXIS_NONE];
}

/* Bytes of operand @number, of @bytes in all, that the largest part touches. */
static double touched(const struct question *q, const struct sl_part *part, uint32_t number, double bytes)
{
        struct sl_reach reach;

        if (!q->loop->reach || !q->loop->reach(q->state, part, number, &reach))
                return bytes;
        return (double)reach.bytes * (double)reach.runs;
}

/*
 * Rows are taken to lie in the cache of who computes the same rows next, and so to stay there. Of some columns all but the own
 * share of the rows come from the caches of others, and go there.
 */
static double travel_seconds(const struct question *q, uint32_t axis, int64_t units, uint32_t members)
{
        const struct sl_part largest = {.axis = axis, .end = (units + members - 1) / members};
        const struct sl_node_desc *node = q->source->node;
        double bytes = 0;

        if (axis != SL_AXIS_COLUMNS)
                return 0;
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE && !is_constant(q->source, i))
                        bytes += touched(q, &largest, i, (double)sl_tensor_bytes(&node->inputs[i]));
        for (uint32_t i = 0; i < node->n_outputs; i++)
                bytes += touched(q, &largest, SL_REACH_OUTPUT + i, (double)sl_tensor_bytes(&node->outputs[i]));
        return bytes * (members - 1) / members / q->core->far;
}

/* Of a team of @size; NONE: of one core. Infinite: it cannot be cut so. */
static double cut_seconds(const struct question *q, uint32_t axis, uint32_t size)
{
        const double calls = (double)(q->loop->stages ? q->loop->stages(q->state) : 1);
        int64_t units = axis == SL_AXIS_NONE ? 0 : q->loop->units(q->state, axis);
        uint32_t members = units < size ? (uint32_t)units : size;

        if (axis == SL_AXIS_NONE)
                return q->seconds;
        if (units < 2 || !(q->scale[axis] > 0))
                return INFINITY;
        return sl_cost_longer(part_seconds(q, axis, units, members), shared_seconds(q, axis, members)) +
               travel_seconds(q, axis, units, members) + calls * sl_core_team_call(q->core, members);
}

static void fill_cuts(struct question *q)
{
        for (uint32_t axis = SL_AXIS_NONE; axis < SL_AXIS_COUNT; axis++)
                for (uint32_t i = 0; i < SL_TEAM_SIZE_COUNT; i++)
                        q->cut[axis][i] = cut_seconds(q, axis, sl_team_size_at(i));
}

/* By how much fewer parts must be faster: neighbours that are cut into as many are chains. */
#define FEWER_MARGIN 0.05

/*
 * Of a team of the @size-th size so many take part, as a size too. More of them make shorter parts; but each part of some rows
 * brings all weights, and all are called.
 */
static uint32_t best_size(const struct question *q, uint32_t axis, uint32_t size)
{
        uint32_t best = size;

        for (uint32_t i = size; i-- > 0 && axis != SL_AXIS_NONE;)
                if (q->cut[axis][i] < (1 - FEWER_MARGIN) * q->cut[axis][best])
                        best = i;
        return best;
}

static double least_seconds(const struct question *q, uint32_t axis, uint32_t size)
{
        return q->cut[axis][best_size(q, axis, size)];
}

static uint32_t best_axis(const struct question *q, uint32_t size)
{
        uint32_t best = SL_AXIS_NONE;

        for (uint32_t axis = SL_AXIS_ROWS; axis < SL_AXIS_COUNT; axis++)
                if (least_seconds(q, axis, size) < least_seconds(q, best, size))
                        best = axis;
        return best;
}

/* By how much what was timed must be faster than the guess: parts that follow each other on one axis need no barrier (chains). */
#define TIMED_MARGIN 0.1

static struct sl_split choose_split(const struct question *guess, const struct question *timed, uint32_t size)
{
        uint32_t axis = best_axis(guess, size), other = timed ? best_axis(timed, size) : axis;
        int64_t units;

        if (timed && least_seconds(timed, other, size) < (1 - TIMED_MARGIN) * least_seconds(timed, axis, size))
                axis = other;
        if (axis == SL_AXIS_NONE)
                return (struct sl_split){SL_AXIS_NONE, 0, 0, 0};
        units = guess->loop->units(guess->state, axis);
        size = sl_team_size_at(best_size(guess, axis, size));
        return (struct sl_split){(uint8_t)axis, (uint8_t)(units < size ? units : size), 0, 0};
}

/* A part gains half of it at most, and a hundred of them are made in the time of a load. */
#define CALL_BARRIERS 20

static bool was_timed(const struct sl_part_times *times)
{
        return times && times->members && isfinite(times->seconds[SL_AXIS_NONE]);
}

bool sl_cpu_call_pays(const struct sl_kernel_source *source)
{
        const struct sl_core_figures *core = source->target ? &source->target->core : &sl_target_typical.core;

        /* More parts than a call can have were not timed. */
        if (was_timed(source->times) && isfinite(source->times->seconds[SL_AXIS_ROWS]))
                return source->times->seconds[SL_AXIS_ROWS] + sl_core_team_call(core, source->times->members) <
                       source->times->seconds[SL_AXIS_NONE];
        return plain_seconds(core, source->node) > CALL_BARRIERS * core->barrier;
}

void sl_cpu_choose_splits(const struct sl_cpu_loop *loop, const void *state, const struct sl_kernel_source *source,
        struct sl_provision *ret_provision)
{
        struct question question = {.loop = loop,
                .state = state,
                .source = source,
                .core = source->target ? &source->target->core : &sl_target_typical.core,
                .scale = {[SL_AXIS_ROWS] = 1, [SL_AXIS_COLUMNS] = 1}};

        struct question timed;

        question.weights = weights_of(loop, source);
        question.seconds = whole_seconds(&question, source->node);
        if (loop->units)
                fill_cuts(&question);
        timed = question;
        if (was_timed(source->times) && loop->units) {
                use_times(&timed, source->times);
                fill_cuts(&timed);
        }
        ret_provision->seconds.whole = timed.seconds;
        for (uint32_t i = 0; i < SL_TEAM_SIZE_COUNT && loop->units; i++) {
                struct sl_split *split = &ret_provision->splits[i];

                *split = choose_split(&question, was_timed(source->times) ? &timed : NULL, i);
                ret_provision->seconds.team[i] = cut_seconds(&timed, split->axis, split->members);
        }
}
