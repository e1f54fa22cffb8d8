/* SPDX-License-Identifier: Apache-2.0 */
#include "interpreter.h"

#include "base/error.h"
#include "op.h"
#include "plan.h"

#include <stdlib.h>
#include <string.h>

/* The slots of one program while it runs. */
struct frame {
        struct sl_interpreter *interpreter;
        struct sl_live *slots;
        uint64_t n_slots;
};

struct bodies {
        struct sl_interpreter *interpreter;
        const struct sl_plan_step *step;
};

static int contradiction(struct sl_interpreter *interpreter, const struct sl_plan_step *step, const char *what)
{
        return sl_error_set(interpreter->dynamic.error, EIO, "plan file: %s: %s", sl_op_name(step->op), what);
}

static const struct sl_plan_operand *operand_of(
        const struct sl_interpreter *interpreter, const struct sl_plan_step *step, uint32_t i)
{
        return &interpreter->plan->operands[step->first_operand + i];
}

static struct sl_live read_operand(const struct frame *frame, const struct sl_plan_operand *operand)
{
        const struct sl_interpreter *interpreter = frame->interpreter;
        const struct sl_plan *plan = interpreter->plan;
        struct sl_live live = {.tensor = operand->tensor};

        switch (operand->place) {
        case SL_PLACE_SLOT:
                return frame->slots[operand->index];
        case SL_PLACE_CONSTANT:
                live.data = (void *)sl_plan_constant_data(plan, &plan->constants[operand->index]);
                return live;
        case SL_PLACE_WORKSPACE:
                live.data = interpreter->workspace + operand->offset;
                return live;
        case SL_PLACE_INPUT:
                live.data = (void *)interpreter->inputs[operand->index];
                return live;
        case SL_PLACE_OUTPUT:
                live.data = interpreter->outputs[operand->index];
                return live;
        default:
                return (struct sl_live){0};
        }
}

static int write_open(struct frame *frame, const struct sl_plan_step *step, uint32_t port, const struct sl_live *live)
{
        struct sl_interpreter *interpreter = frame->interpreter;
        uint64_t bytes = sl_tensor_bytes(&live->tensor);

        if (!interpreter->open)
                return sl_error_set(interpreter->dynamic.error, EINVAL, "output %u has a shape that hangs on data", port);
        if (live->tensor.dtype != interpreter->plan->info->outputs[port].dtype ||
                live->tensor.shape.rank != interpreter->plan->info->outputs[port].shape.rank)
                return contradiction(interpreter, step, "an output of another type or rank than the model's");
        interpreter->open[port].shape = live->tensor.shape;
        if (bytes > interpreter->open[port].capacity_bytes)
                interpreter->too_small = sl_error_set(interpreter->dynamic.error, EMSGSIZE,
                        "output \"%s\" takes %llu bytes, there is room for %llu", interpreter->plan->info->outputs[port].name,
                        (unsigned long long)bytes, (unsigned long long)interpreter->open[port].capacity_bytes);
        else if (bytes)
                memcpy(interpreter->outputs[port], live->data, bytes);
        return 0;
}

/* What has a static shape goes where the static steps look for it. */
static int write_static(
        struct frame *frame, const struct sl_plan_step *step, const struct sl_plan_operand *operand, const struct sl_live *live)
{
        struct sl_live to = read_operand(frame, operand);

        if (live->tensor.dtype != to.tensor.dtype || !sl_shape_equal(&live->tensor.shape, &to.tensor.shape))
                return contradiction(frame->interpreter, step, "it makes another shape than it says");
        if (sl_tensor_bytes(&to.tensor))
                memmove(to.data, live->data, sl_tensor_bytes(&to.tensor));
        return 0;
}

static int write_operand(
        struct frame *frame, const struct sl_plan_step *step, const struct sl_plan_operand *operand, struct sl_live *live)
{
        struct sl_pool *pool = &frame->interpreter->dynamic.pool;

        if (operand->place == SL_PLACE_SLOT) {
                /* What a branch hands on may be somebody else's memory, which ends before the slot does. */
                if (sl_live_own(pool, live) < 0)
                        return sl_error_set(frame->interpreter->dynamic.error, ENOMEM, "%s: over the dynamic memory of %llu bytes",
                                sl_op_name(step->op), (unsigned long long)pool->limit_bytes);
                sl_live_drop(pool, &frame->slots[operand->index]);
                frame->slots[operand->index] = *live;
                *live = (struct sl_live){0};
                return 0;
        }
        if (operand->place == SL_PLACE_OUTPUT && sl_port_is_open(&frame->interpreter->plan->info->outputs[operand->index]))
                return write_open(frame, step, operand->index, live);
        return write_static(frame, step, operand, live);
}

static int run_step(struct frame *frame, const struct sl_plan_step *step);

static int run_program(
        struct frame *frame, const struct sl_plan_program *program, const struct sl_live *inputs, struct sl_live *ret_outputs)
{
        const struct sl_plan_operand *ports = &frame->interpreter->plan->operands[program->first_operand];
        struct sl_pool *pool = &frame->interpreter->dynamic.pool;
        int r = 0;

        for (uint64_t i = 0; i < program->n_inputs; i++) {
                sl_live_drop(pool, &frame->slots[ports[i].index]);
                frame->slots[ports[i].index] = sl_live_share(&inputs[i]);
        }
        for (uint64_t i = 0; i < program->n_steps && r == 0; i++)
                r = run_step(frame, &frame->interpreter->plan->steps[program->first_step + i]);
        for (uint64_t i = 0; i < program->n_outputs && r == 0; i++) {
                struct sl_live output = read_operand(frame, &ports[program->n_inputs + i]);

                if (output.tensor.dtype == SL_DTYPE_NONE)
                        r = sl_error_set(frame->interpreter->dynamic.error, EIO, "plan file: a body does not make its output %llu",
                                (unsigned long long)i);
                else
                        ret_outputs[i] = sl_live_share(&output);
        }
        return r;
}

static int run_body(void *context, uint32_t body, const struct sl_live *inputs, uint32_t n_inputs, struct sl_live *ret_outputs,
        uint32_t n_outputs)
{
        const struct bodies *bodies = context;
        struct sl_interpreter *interpreter = bodies->interpreter;
        const struct sl_plan_program *program = &interpreter->plan->programs[bodies->step->first_body + body];
        struct sl_tensor bytes = {.dtype = SL_DTYPE_U8, .shape = {.rank = 1}};
        struct frame frame = {.interpreter = interpreter, .n_slots = program->n_slots};
        struct sl_live memory;
        int r;

        if (program->n_inputs != n_inputs || program->n_outputs != n_outputs)
                return contradiction(interpreter, bodies->step, "a body has other inputs or outputs than its node");
        if (sl_dynamic_work(&interpreter->dynamic, bodies->step->op, program->n_slots) < 0)
                return -E2BIG;
        bytes.shape.dims[0] = (int64_t)(program->n_slots * sizeof(*frame.slots));
        if (sl_live_make(&interpreter->dynamic.pool, &bytes, &memory) < 0)
                return sl_error_set(interpreter->dynamic.error, ENOMEM, "%s: over the dynamic memory of %llu bytes",
                        sl_op_name(bodies->step->op), (unsigned long long)interpreter->dynamic.pool.limit_bytes);
        frame.slots = memset(memory.data, 0, (size_t)bytes.shape.dims[0]);
        r = run_program(&frame, program, inputs, ret_outputs);
        for (uint64_t i = 0; i < frame.n_slots; i++)
                sl_live_drop(&interpreter->dynamic.pool, &frame.slots[i]);
        sl_live_drop(&interpreter->dynamic.pool, &memory);
        return r;
}

static void describe(const struct frame *frame, const struct sl_plan_step *step, struct sl_node_desc *desc)
{
        memset(desc, 0, sizeof(*desc));
        desc->op = step->op;
        desc->n_inputs = step->n_inputs;
        desc->n_outputs = step->n_outputs;
        desc->epilogue = step->epilogue;
        desc->attrs.count = step->n_attrs;
        memcpy(desc->attrs.items, &frame->interpreter->plan->attrs[step->first_attr], step->n_attrs * sizeof(struct sl_attr));
        for (uint32_t i = 0; i < step->n_outputs; i++)
                desc->outputs[i] = operand_of(frame->interpreter, step, step->n_inputs + i)->tensor;
}

static int compute(struct frame *frame, const struct sl_plan_step *step, const struct sl_live *inputs, struct sl_live *outputs)
{
        struct bodies bodies = {.interpreter = frame->interpreter, .step = step};
        struct sl_node_desc desc;

        if (step->op == SL_OP_IDENTITY && step->n_inputs == 1 && step->n_outputs == 1) {
                outputs[0] = sl_live_share(&inputs[0]);
                return sl_dynamic_step(&frame->interpreter->dynamic, step->op);
        }
        describe(frame, step, &desc);
        if (sl_op_traits(step->op) & SL_OP_CONTROL)
                return sl_control_run(&frame->interpreter->dynamic, &desc, inputs, run_body, &bodies, outputs);
        return sl_dynamic_run(&frame->interpreter->dynamic, &desc, inputs, outputs);
}

static int run_step(struct frame *frame, const struct sl_plan_step *step)
{
        struct sl_interpreter *interpreter = frame->interpreter;
        struct sl_live inputs[SL_NODE_INPUTS_MAX], outputs[SL_NODE_OUTPUTS_MAX] = {0};
        int r = 0;

        for (uint32_t i = 0; i < step->n_inputs; i++) {
                const struct sl_plan_operand *operand = operand_of(interpreter, step, i);

                inputs[i] = read_operand(frame, operand);
                if (operand->place != SL_PLACE_NONE && inputs[i].tensor.dtype == SL_DTYPE_NONE)
                        return contradiction(interpreter, step, "it reads what nothing has made");
        }
        r = compute(frame, step, inputs, outputs);
        for (uint32_t i = 0; i < step->n_outputs && r == 0; i++)
                r = write_operand(frame, step, operand_of(interpreter, step, step->n_inputs + i), &outputs[i]);
        for (uint32_t i = 0; i < step->n_outputs; i++)
                sl_live_drop(&interpreter->dynamic.pool, &outputs[i]);
        for (uint32_t i = 0; i < step->n_inputs && r == 0; i++) {
                const struct sl_plan_operand *operand = operand_of(interpreter, step, i);

                if (operand->place == SL_PLACE_SLOT && operand->offset)
                        sl_live_drop(&interpreter->dynamic.pool, &frame->slots[operand->index]);
        }
        return r < 0 && step->name[0] ? sl_error_prefix(interpreter->dynamic.error, r, "node \"%s\"", step->name) : r;
}

int sl_interpreter_init(struct sl_interpreter *interpreter, const struct sl_plan *plan, uint32_t n_programs, uint8_t *workspace,
        struct sl_pace *pace)
{
        *interpreter = (struct sl_interpreter){.plan = plan, .workspace = workspace, .pace = pace};
        for (uint32_t i = 0; i < n_programs; i++)
                if (plan->programs[i].n_slots > interpreter->n_slots)
                        interpreter->n_slots = plan->programs[i].n_slots;
        interpreter->slots = calloc(interpreter->n_slots + 1, sizeof(*interpreter->slots));
        return interpreter->slots ? 0 : -ENOMEM;
}

void sl_interpreter_deinit(struct sl_interpreter *interpreter)
{
        free(interpreter->slots);
        *interpreter = (struct sl_interpreter){0};
}

void sl_interpreter_begin(struct sl_interpreter *interpreter, const struct sl_plan_program *program, const void *const *inputs,
        void *const *outputs, struct sl_open_output *open, struct sl_error *error)
{
        interpreter->dynamic = (struct sl_dynamic){.pool.limit_bytes = program->dynamic_bytes,
                .steps_left = program->dynamic_steps,
                .work_left = program->work,
                .pace = interpreter->pace,
                .error = error};
        interpreter->inputs = inputs;
        interpreter->outputs = outputs;
        interpreter->open = open;
        interpreter->too_small = 0;
}

void sl_interpreter_end(struct sl_interpreter *interpreter)
{
        for (uint64_t i = 0; i < interpreter->n_slots; i++)
                sl_live_drop(&interpreter->dynamic.pool, &interpreter->slots[i]);
}

int sl_interpreter_step(struct sl_interpreter *interpreter, const struct sl_plan_step *step)
{
        struct frame frame = {.interpreter = interpreter, .slots = interpreter->slots, .n_slots = interpreter->n_slots};

        return run_step(&frame, step);
}
