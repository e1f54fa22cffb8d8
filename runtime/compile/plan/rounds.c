/* SPDX-License-Identifier: Apache-2.0 */
#include "rounds.h"

#include "base/error.h"
#include "executable.h"
#include "interpreter.h"
#include "op.h"

#include <string.h>

/* One run of a settled step. */
struct course {
        struct sl_interpreter *interpreter;
        const struct sl_executable_step *step;
        const struct sl_rounds_layout *layout;
        struct sl_executable *body;
        uint8_t *scratch;
        const void *inputs[SL_NODE_INPUTS_MAX];
        void *outputs[SL_NODE_OUTPUTS_MAX + 1];
};

int sl_rounds_charge(struct sl_interpreter *interpreter, uint32_t op, const struct sl_executable *body)
{
        struct sl_dynamic *dynamic = &interpreter->dynamic;
        int r = sl_dynamic_step(dynamic, op);

        if (r < 0)
                return r;
        if (dynamic->steps_left < body->n_steps)
                return sl_error_set(
                        dynamic->error, E2BIG, "%s: the limit of steps that one run may take is reached", sl_op_name(op));
        dynamic->steps_left -= body->n_steps;
        return sl_dynamic_work(dynamic, op, body->work);
}

static int run_body(struct course *course)
{
        sl_executable_bind(course->body, course->inputs, course->outputs);
        return sl_executable_run(course->body, course->interpreter);
}

/* Its ports are static; what it makes between them need not be. */
static int run_round(struct course *course)
{
        const struct sl_plan_step *step = course->step->source;
        int r = sl_rounds_charge(course->interpreter, step->op, course->body);
        struct sl_live memory;

        if (r < 0 || !course->body->source->n_slots)
                return r < 0 ? r : run_body(course);
        r = sl_interpreter_make_slots(course->interpreter, step, course->body, &memory);
        if (r < 0)
                return r;
        r = run_body(course);
        sl_interpreter_end_slots(course->interpreter, course->body, &memory);
        return r;
}

static int run_branch(struct course *course)
{
        const struct sl_plan_step *source = course->step->source;
        const uint8_t *condition = course->step->binding.inputs[0];

        course->body = course->step->bodies[*condition ? 0 : 1];
        for (uint32_t i = 1; i < source->n_inputs; i++)
                course->inputs[i - 1] = course->step->binding.inputs[i];
        for (uint32_t i = 0; i < source->n_outputs; i++)
                course->outputs[i] = course->step->binding.outputs[i];
        return run_round(course);
}

static uint64_t row_offset(const struct sl_rounds_rows *rows, int64_t round)
{
        return (uint64_t)(rows->backwards ? rows->count - 1 - round : round) * rows->inner;
}

/* Where slice @round of @whole can be read. */
static const void *read_slice(struct course *course, const struct sl_rounds_rows *rows, const uint8_t *whole, int64_t round)
{
        const uint8_t *first = whole + row_offset(rows, round);
        uint8_t *row;

        if (rows->at == SL_ROUNDS_NOWHERE)
                return first;
        row = course->scratch + rows->at;
        for (uint64_t o = 0; o < rows->outer; o++)
                memcpy(row + o * rows->inner, first + o * (uint64_t)rows->count * rows->inner, rows->inner);
        return row;
}

static void *place_row(struct course *course, const struct sl_rounds_rows *rows, uint8_t *whole, int64_t round)
{
        return rows->at == SL_ROUNDS_NOWHERE ? whole + row_offset(rows, round) : course->scratch + rows->at;
}

static void spread_row(struct course *course, const struct sl_rounds_rows *rows, uint8_t *whole, int64_t round)
{
        uint8_t *first = whole + row_offset(rows, round);

        for (uint64_t o = 0; o < rows->outer && rows->at != SL_ROUNDS_NOWHERE; o++)
                memcpy(first + o * (uint64_t)rows->count * rows->inner, course->scratch + rows->at + o * rows->inner, rows->inner);
}

/* Round @round: what the one before has carried goes in, and comes out at the other place. @first is the first carried input, @made
 * the first carried output. */
static int run_carrying(struct course *course, int64_t round, uint32_t first, uint32_t made)
{
        const struct sl_rounds_layout *layout = course->layout;
        void *const *outputs = course->step->binding.outputs + layout->n_carried;
        int r;

        for (uint32_t i = 0; i < layout->n_carried; i++) {
                if (round)
                        course->inputs[first + i] = course->scratch + layout->carried_at[i][(round + 1) % 2];
                course->outputs[made + i] = course->scratch + layout->carried_at[i][round % 2];
        }
        for (uint32_t i = 0; i < layout->n_grown; i++)
                course->outputs[made + layout->n_carried + i] = place_row(course, &layout->rows[i], outputs[i], round);
        r = run_round(course);
        for (uint32_t i = 0; i < layout->n_grown && r == 0; i++)
                spread_row(course, &layout->rows[i], outputs[i], round);
        return r;
}

/* What was carried last becomes output; without a round that is what came in. */
static void hand_out(const struct course *course, int64_t rounds, uint32_t first)
{
        const struct sl_plan *plan = course->interpreter->plan;
        const struct sl_plan_step *source = course->step->source;

        for (uint32_t i = 0; i < course->layout->n_carried; i++) {
                const struct sl_tensor *tensor = &plan->operands[source->first_operand + source->n_inputs + i].tensor;
                const void *last = rounds ? course->scratch + course->layout->carried_at[i][(rounds - 1) % 2]
                                          : course->step->binding.inputs[first + i];

                if (sl_tensor_bytes(tensor))
                        memmove(course->step->binding.outputs[i], last, sl_tensor_bytes(tensor));
        }
}

static int denied(const struct course *course)
{
        return sl_error_set(course->interpreter->dynamic.error, EIO, "plan file: %s: it goes round more or less often than it says",
                sl_op_name(course->step->source->op));
}

static int run_loop(struct course *course)
{
        const struct sl_rounds_layout *layout = course->layout;
        const void *const *inputs = course->step->binding.inputs;
        uint8_t *condition = course->scratch + layout->condition_at, goes_on = inputs[1] ? *(const uint8_t *)inputs[1] : 1;
        int64_t *iteration = (int64_t *)(course->scratch + layout->iteration_at), trips = INT64_MAX, round = 0;
        static const uint8_t always = 1;
        int r = 0;

        if (inputs[0])
                memcpy(&trips, inputs[0], sizeof(trips));
        course->inputs[0] = iteration;
        course->inputs[1] = &always;
        course->outputs[0] = condition;
        for (; round < trips && goes_on && r == 0; round++) {
                if (layout->n_grown && round >= layout->rows[0].count)
                        return denied(course);
                *iteration = round;
                r = run_carrying(course, round, 2, 1);
                goes_on = *condition;
        }
        for (uint32_t i = 0; i < layout->n_grown && r == 0; i++)
                r = layout->rows[i].count == round ? 0 : denied(course);
        if (r == 0)
                hand_out(course, round, 2);
        return r;
}

static int run_scan(struct course *course)
{
        const struct sl_rounds_layout *layout = course->layout;
        int64_t round = 0, rounds = layout->slices[0].count;
        int r = 0;

        for (; round < rounds && r == 0; round++) {
                for (uint32_t i = 0; i < layout->n_scanned; i++)
                        course->inputs[layout->n_carried + i] =
                                read_slice(course, &layout->slices[i], course->step->binding.inputs[layout->n_carried + i], round);
                r = run_carrying(course, round, 0, 0);
        }
        if (r == 0)
                hand_out(course, round, 0);
        return r;
}

int sl_rounds_run(struct sl_interpreter *interpreter, const struct sl_executable_step *step)
{
        struct course course = {.interpreter = interpreter,
                .step = step,
                .layout = step->rounds,
                .body = step->bodies[0],
                .scratch = step->binding.scratch};

        if (step->source->op == SL_OP_IF)
                return run_branch(&course);
        memcpy(course.inputs, step->binding.inputs, step->source->n_inputs * sizeof(*course.inputs));
        return step->source->op == SL_OP_LOOP ? run_loop(&course) : run_scan(&course);
}
