/* SPDX-License-Identifier: Apache-2.0 */
#include "chains.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "executable.h"

#include <errno.h>
#include <stdlib.h>

/* What some units of a step touch of one operand. */
struct touch {
        const struct sl_plan_operand *operand;
        struct sl_reach reach;
        bool writes;
};

/* Of all operands that are no constants; room for those of any step. */
struct touches {
        uint32_t n;
        struct touch list[SL_NODE_INPUTS_MAX + SL_NODE_OUTPUTS_MAX];
};

static void add_touch(const struct sl_executable_step *step, const struct sl_part *part, uint32_t number, struct touches *touches)
{
        const struct sl_runner *runner = step->session->backend->runner;
        bool writes = number >= SL_REACH_OUTPUT;
        struct touch *touch = &touches->list[touches->n];

        if (touch->operand->place == SL_PLACE_NONE || touch->operand->place == SL_PLACE_CONSTANT)
                return;
        touch->writes = writes;
        if (part->axis == SL_AXIS_NONE || !runner->reach || !runner->reach(step->kernel, part, number, &touch->reach))
                touch->reach = (struct sl_reach){.bytes = (int64_t)sl_tensor_bytes(&touch->operand->tensor), .runs = 1};
        touches->n++;
}

static void list_touches(const struct sl_executable *executable, const struct sl_executable_step *step, const struct sl_part *part,
        struct touches *touches)
{
        const struct sl_plan_step *source = step->source;
        const struct sl_plan_operand *operands = &executable->plan->operands[source->first_operand];

        touches->n = 0;
        for (uint32_t i = 0; i < source->n_inputs + source->n_outputs; i++) {
                touches->list[touches->n].operand = &operands[i];
                add_touch(step, part, i < source->n_inputs ? i : SL_REACH_OUTPUT + i - source->n_inputs, touches);
        }
}

/* Ports are buffers of their own, as the workspace is. */
static bool touches_meet(const struct touch *a, const struct touch *b)
{
        bool in_workspace = a->operand->place == SL_PLACE_WORKSPACE;

        if ((!a->writes && !b->writes) || a->operand->place != b->operand->place ||
                (!in_workspace && a->operand->index != b->operand->index))
                return false;
        return sl_reaches_meet(&a->reach, in_workspace ? (int64_t)a->operand->offset : 0, &b->reach,
                in_workspace ? (int64_t)b->operand->offset : 0);
}

static bool any_meet(const struct touches *a, const struct touches *b)
{
        for (uint32_t i = 0; i < a->n; i++)
                for (uint32_t k = 0; k < b->n; k++)
                        if (touches_meet(&a->list[i], &b->list[k]))
                                return true;
        return false;
}

/* Two steps at hand: what a member computes of the one, and what the others do of the other. */
struct meeting {
        const struct sl_executable *executable;
        uint32_t cut; /* of the steps */
        struct touches own, others;
};

static const struct sl_step_cut *cut_of(const struct meeting *meeting, const struct sl_executable_step *step)
{
        return &step->cuts[meeting->cut];
}

static bool units_meet(struct meeting *meeting, const struct sl_executable_step *step, int64_t first, int64_t end)
{
        if (first >= end)
                return false;
        list_touches(meeting->executable, step,
                &(struct sl_part){.axis = cut_of(meeting, step)->split.axis, .first = first, .end = end}, &meeting->others);
        return any_meet(&meeting->own, &meeting->others);
}

/* What members other than @member do of a step that is cut: all before its part, and all behind it, count as one part. */
static bool others_meet(struct meeting *meeting, const struct sl_executable_step *step, uint32_t member)
{
        const struct sl_step_cut *cut = cut_of(meeting, step);
        struct sl_part same;
        bool takes_part = sl_split_part(cut->split, cut->units, member, &same);

        if (cut->split.axis == SL_AXIS_NONE) {
                list_touches(meeting->executable, step, &(struct sl_part){.axis = SL_AXIS_NONE}, &meeting->others);
                return !takes_part && any_meet(&meeting->own, &meeting->others);
        }
        if (!takes_part)
                return units_meet(meeting, step, 0, cut->units);
        return units_meet(meeting, step, 0, same.first) || units_meet(meeting, step, same.end, cut->units);
}

/* What some member does of @a, and what another one does of @b? */
static bool steps_meet(struct meeting *meeting, const struct sl_executable_step *a, const struct sl_executable_step *b)
{
        const struct sl_step_cut *cut = cut_of(meeting, a);

        for (uint32_t m = cut->split.first; m < cut->split.first + cut->split.members; m++) {
                struct sl_part own;

                (void)sl_split_part(cut->split, cut->units, m, &own);
                list_touches(meeting->executable, a, &own, &meeting->own);
                if (others_meet(meeting, b, m))
                        return true;
        }
        return false;
}

/* Whole steps of backends that cut none stay their owner's: they look at its pace. */
static bool can_chain(const struct meeting *meeting, const struct sl_executable_step *step)
{
        uint32_t members = step->session ? cut_of(meeting, step)->split.members : 0;

        return (members > 1 && step->stages == 1) || (members == 1 && step->session->backend->runner->units);
}

/* May @step, of which @head and those behind it are a chain so far, go on with it? */
static bool joins(struct meeting *meeting, const struct sl_executable_step *head, const struct sl_executable_step *step)
{
        if (!can_chain(meeting, head) || !can_chain(meeting, step) || head->session != step->session ||
                cut_of(meeting, step)->split.begins || step - head >= SL_CHAIN_STEPS_MAX)
                return false;
        for (const struct sl_executable_step *before = step - 1; before >= head; before--)
                if (steps_meet(meeting, before, step))
                        return false;
        return true;
}

static void find_chains(struct meeting *meeting, struct sl_executable *executable)
{
        struct sl_executable_step *head = executable->steps;

        for (uint32_t i = 0; i < executable->n_steps; i++) {
                struct sl_executable_step *step = &executable->steps[i];

                step->cuts[meeting->cut].chain = 0;
                if (i == 0 || !executable->source->batch || !joins(meeting, head, step))
                        head = step;
                head->cuts[meeting->cut].chain++;
        }
}

int sl_chains_find(struct sl_executable *executable, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) struct meeting *meeting = malloc(sizeof(*meeting));

        if (!meeting)
                return sl_error_set(error, ENOMEM, "no memory for what parts of steps touch");
        meeting->executable = executable;
        for (meeting->cut = 0; meeting->cut < SL_CUTS; meeting->cut++)
                find_chains(meeting, executable);
        return 0;
}
