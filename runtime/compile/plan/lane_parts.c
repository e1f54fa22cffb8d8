/* SPDX-License-Identifier: Apache-2.0 */
#include "lane_parts.h"

#include "base/cleanup.h"
#include "executable.h"
#include "op.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LANES_MAX     64u
#define MAP_BYTES_MAX (32u << 20)
#define GRAIN_MIN     4u /* a float: lanes of few columns are not mixed up with their neighbours */
#define UNITS_MAX     (1 << 16)

/* Which lanes need what, at the step at hand: of each grain of the workspace, and of each output of the model. */
struct needs {
        struct sl_executable *executable;
        uint64_t all; /* lanes */
        uint64_t grain, n_grains;
        uint64_t *grains, *outputs;
        uint64_t *units[2], *slices; /* room: lanes of units along each axis, and of slices */
};

/* What some units of a step write or read of an operand. */
struct extent {
        const struct sl_plan_operand *operand;
        struct sl_reach reach;
};

/* ---- lanes of ports ---- */

/* "12/probabilities": merged plans name their ports so. */
static bool lane_of(const struct sl_port *port, uint32_t n_lanes, uint32_t *ret_lane)
{
        char *end;
        unsigned long lane = strtoul(port->name, &end, 10);

        *ret_lane = (uint32_t)lane;
        return isdigit((unsigned char)port->name[0]) && *end == '/' && lane < n_lanes;
}

static bool need_outputs(struct needs *needs)
{
        const struct sl_plan_info *info = needs->executable->plan->info;
        uint32_t lane;

        for (uint32_t i = 0; i < info->n_outputs; i++) {
                if (!lane_of(&info->outputs[i], info->n_lanes, &lane))
                        return false;
                needs->outputs[i] = 1ull << lane;
        }
        return true;
}

/* ---- bytes ---- */

static struct extent extent_of(
        const struct sl_executable_step *step, const struct sl_part *part, const struct sl_plan_operand *operand, uint32_t number)
{
        const struct sl_runner *runner = step->session->backend->runner;
        int64_t bytes = (int64_t)sl_tensor_bytes(&operand->tensor);
        struct extent extent = {.operand = operand};

        if (part && runner->reach && runner->reach(step->kernel, part, number, &extent.reach))
                return extent;
        extent.reach = (struct sl_reach){.bytes = bytes, .runs = 1};
        return extent;
}

/* The grains of run @run of the extent, no further than its operand goes; @whole: those that lie in it, else all that it touches.
 */
static void grains_of(
        const struct needs *needs, const struct extent *extent, int64_t run, bool whole, uint64_t *ret_first, uint64_t *ret_end)
{
        int64_t bytes = (int64_t)sl_tensor_bytes(&extent->operand->tensor), first = extent->reach.first + run * extent->reach.pitch,
                end = first + extent->reach.bytes;

        first = first < 0 ? 0 : first < bytes ? first : bytes;
        end = end < first ? first : end < bytes ? end : bytes;
        *ret_first = (extent->operand->offset + (uint64_t)first + (whole ? needs->grain - 1 : 0)) / needs->grain;
        *ret_end = (extent->operand->offset + (uint64_t)end + (whole ? 0 : needs->grain - 1)) / needs->grain;
        if (first == end)
                *ret_end = *ret_first;
}

static uint64_t lanes_at(const struct needs *needs, const struct extent *extent)
{
        uint64_t lanes = 0, first, end;

        if (extent->operand->place == SL_PLACE_OUTPUT)
                return extent->reach.runs > 0 ? needs->outputs[extent->operand->index] : 0;
        for (int64_t run = 0; run < extent->reach.runs && lanes != needs->all; run++) {
                grains_of(needs, extent, run, false, &first, &end);
                for (uint64_t i = first; i < end; i++)
                        lanes |= needs->grains[i];
        }
        return lanes;
}

static void need(struct needs *needs, const struct extent *extent, uint64_t lanes)
{
        uint64_t first, end;

        if (extent->operand->place == SL_PLACE_OUTPUT && extent->reach.runs > 0)
                needs->outputs[extent->operand->index] |= lanes;
        if (extent->operand->place != SL_PLACE_WORKSPACE)
                return;
        for (int64_t run = 0; run < extent->reach.runs; run++) {
                grains_of(needs, extent, run, false, &first, &end);
                for (uint64_t i = first; i < end; i++)
                        needs->grains[i] |= lanes;
        }
}

/* What was there before the step is no longer. */
static void forget(struct needs *needs, const struct extent *extent)
{
        uint64_t first, end;

        if (extent->operand->place != SL_PLACE_WORKSPACE)
                return;
        grains_of(needs, extent, 0, true, &first, &end);
        if (end > first)
                memset(&needs->grains[first], 0, (end - first) * sizeof(*needs->grains));
}

/* ---- steps ---- */

static bool is_used(const struct sl_plan_operand *operand)
{
        return operand->place == SL_PLACE_WORKSPACE || operand->place == SL_PLACE_OUTPUT;
}

/* Lanes that need what the part writes. */
static uint64_t lanes_of(const struct needs *needs, const struct sl_executable_step *step, const struct sl_part *part)
{
        const struct sl_plan_step *source = step->source;
        const struct sl_plan_operand *outputs = &needs->executable->plan->operands[source->first_operand + source->n_inputs];
        uint64_t lanes = 0;

        for (uint32_t i = 0; i < source->n_outputs; i++) {
                struct extent extent = extent_of(step, part, &outputs[i], SL_REACH_OUTPUT + i);

                if (is_used(&outputs[i]))
                        lanes |= sl_dtype_is_float(outputs[i].tensor.dtype) ? lanes_at(needs, &extent) : needs->all; /* indices */
        }
        return lanes;
}

/* One way to look at a step: by units along an axis. */
struct cut {
        uint32_t axis;
        int64_t units;
        uint64_t *lanes; /* that need each unit */
        double share;    /* of lanes, that an average unit is needed by; infinite: it cannot be cut so */
};

static void cut_along(const struct needs *needs, const struct sl_executable_step *step, uint32_t axis, struct cut *cut)
{
        const struct sl_runner *runner = step->session->backend->runner;
        double sum = 0;

        cut->axis = axis;
        cut->units = runner->units && runner->reach ? runner->units(step->kernel, axis) : 0;
        cut->share = __builtin_inf();
        if (cut->units < 1 || cut->units > UNITS_MAX || (runner->stages && runner->stages(step->kernel) != 1))
                return;
        for (int64_t unit = 0; unit < cut->units; unit++) {
                struct sl_part part = {.axis = axis, .first = unit, .end = unit + 1};
                struct sl_reach unheard;

                if (!runner->reach(step->kernel, &part, SL_REACH_OUTPUT, &unheard))
                        return;
                cut->lanes[unit] = lanes_of(needs, step, &part);
                sum += __builtin_popcountll(cut->lanes[unit]);
        }
        cut->share = sum / (double)cut->units;
}

static bool add_run(struct sl_lane_parts *parts, uint32_t room, int64_t unit, uint64_t lanes)
{
        struct sl_lane_run *last = parts->n_runs ? &parts->runs[parts->n_runs - 1] : NULL;

        if (last && last->lanes == lanes) {
                last->end = unit + 1;
                return true;
        }
        if (parts->n_runs == room)
                return false;
        parts->runs[parts->n_runs++] = (struct sl_lane_run){.first = unit, .end = unit + 1, .lanes = lanes};
        return true;
}

/* What is launched by itself. Return: whether that is few enough. */
static bool list_runs(const struct needs *needs, const struct cut *cut, struct sl_lane_parts *parts)
{
        uint32_t room = SL_LANE_RUNS_PER_LANE * needs->executable->plan->info->n_lanes;

        parts->axis = cut->axis;
        parts->n_runs = 0;
        for (int64_t unit = 0; unit < cut->units; unit++)
                if (!add_run(parts, room, unit, cut->lanes[unit]))
                        return false;
        return true;
}

/* The axis along which lanes lie apart, in few enough runs; or all at once. */
static void choose_runs(const struct needs *needs, const struct cut *cuts, uint64_t lanes, struct sl_lane_parts *parts)
{
        const struct cut *rows = &cuts[0], *columns = &cuts[1], *first = columns->share < rows->share ? columns : rows;
        const struct cut *second = first == rows ? columns : rows;
        double all = __builtin_popcountll(lanes);

        if (first->share < all && list_runs(needs, first, parts))
                return;
        if (second->share < all && list_runs(needs, second, parts))
                return;
        *parts = (struct sl_lane_parts){.axis = SL_AXIS_NONE, .n_runs = 1, .runs = parts->runs};
        parts->runs[0] = (struct sl_lane_run){.end = 1, .lanes = lanes};
}

static void need_inputs(struct needs *needs, const struct sl_executable_step *step, const struct sl_part *part, uint64_t lanes)
{
        const struct sl_plan_operand *operands = &needs->executable->plan->operands[step->source->first_operand];

        for (uint32_t i = 0; i < step->source->n_inputs && lanes; i++)
                if (is_used(&operands[i])) {
                        struct extent extent = extent_of(step, part, &operands[i], i);

                        need(needs, &extent, lanes);
                }
}

/* What is launched at once may still be told apart: an idle lane's part of it is made of whatever is there. */
static void need_by_units(struct needs *needs, const struct sl_executable_step *step, const struct cut *cut)
{
        for (int64_t unit = 0; unit < cut->units; unit++) {
                struct sl_part part = {.axis = cut->axis, .first = unit, .end = unit + 1};

                need_inputs(needs, step, &part, cut->lanes[unit]);
        }
}

/* ---- what is known of operators ---- */

/* Slices of a tensor: its rows along the last dimension, or all pixels of each channel. */
struct slices {
        int64_t n;
        bool rows;
};

static struct extent slice_of(const struct sl_plan_operand *operand, const struct slices *slices, int64_t index)
{
        const struct sl_tensor *tensor = &operand->tensor;
        int64_t word = (int64_t)sl_dtype_bytes(tensor->dtype), all = (int64_t)sl_shape_elements(&tensor->shape) * word;
        int64_t batch = slices->rows ? 1 : tensor->shape.dims[0], each = all / slices->n / batch;

        if (!slices->rows && tensor->layout == SL_LAYOUT_CHANNELS_LAST)
                return (struct extent){operand, {index * word, word, word * slices->n, batch * each / word}};
        return (struct extent){operand, {index * each, each, each * slices->n, batch}};
}

/* Of a Softmax; the rank or more where it has none that it could have. */
static uint32_t axis_of(const struct sl_plan *plan, const struct sl_plan_step *source)
{
        uint32_t rank = plan->operands[source->first_operand].tensor.shape.rank;
        int64_t axis = -1;

        for (uint64_t i = 0; i < source->n_attrs; i++)
                if (plan->attrs[source->first_attr + i].id == SL_ATTR_AXIS)
                        axis = plan->attrs[source->first_attr + i].i;
        return (uint32_t)(axis < 0 ? axis + rank : axis);
}

static bool is_pool(uint32_t op)
{
        return op == SL_OP_MAX_POOL || op == SL_OP_AVERAGE_POOL || op == SL_OP_GLOBAL_AVERAGE_POOL;
}

/*
 * Operators of which each slice of the output is made of that slice of the input alone, whatever their kernels can be cut into.
 * Return: how many slices; 0: it is none of those.
 */
static struct slices slices_of(const struct sl_plan *plan, const struct sl_plan_step *source)
{
        const struct sl_plan_operand *operands = &plan->operands[source->first_operand];
        const struct sl_tensor *x = &operands[0].tensor, *y = &operands[source->n_inputs].tensor;
        const struct sl_shape *shape = &x->shape;
        struct slices slices = {.n = 0};

        if (source->n_inputs != 1 || source->n_outputs != 1 || !is_used(&operands[0]) || !is_used(&operands[1]) ||
                shape->rank < 2 || shape->rank != y->shape.rank || !sl_dtype_is_float(y->dtype) || !sl_shape_elements(shape) ||
                !sl_shape_elements(&y->shape))
                return slices;
        if (is_pool(source->op) && shape->dims[0] == y->shape.dims[0] && shape->dims[1] == y->shape.dims[1])
                slices.n = shape->dims[1];
        if (source->op == SL_OP_SOFTMAX && x->layout == SL_LAYOUT_PLAIN && y->layout == SL_LAYOUT_PLAIN &&
                axis_of(plan, source) == shape->rank - 1)
                slices = (struct slices){(int64_t)sl_shape_elements(shape) / shape->dims[shape->rank - 1], true};
        slices.n = slices.n <= UNITS_MAX ? slices.n : 0;
        return slices;
}

/* ---- steps ---- */

static int walk_step(struct needs *needs, struct sl_executable_step *step)
{
        const struct sl_plan_step *source = step->source;
        const struct sl_plan_operand *operands = &needs->executable->plan->operands[source->first_operand];
        struct cut cuts[] = {{.lanes = needs->units[0]}, {.lanes = needs->units[1]}};
        uint64_t lanes = lanes_of(needs, step, NULL);
        struct slices slices = slices_of(needs->executable->plan, source);
        const struct cut *finest;

        step->lanes.runs = calloc(SL_LANE_RUNS_PER_LANE * LANES_MAX, sizeof(*step->lanes.runs));
        if (!step->lanes.runs)
                return -1;
        cut_along(needs, step, SL_AXIS_ROWS, &cuts[0]);
        cut_along(needs, step, SL_AXIS_COLUMNS, &cuts[1]);
        choose_runs(needs, cuts, lanes, &step->lanes);
        finest = cuts[1].share < cuts[0].share ? &cuts[1] : &cuts[0];
        for (int64_t i = 0; i < slices.n; i++) {
                struct extent extent = slice_of(&operands[1], &slices, i);

                needs->slices[i] = lanes_at(needs, &extent);
        }
        for (uint32_t i = 0; i < source->n_outputs; i++) {
                struct extent extent = extent_of(step, NULL, &operands[source->n_inputs + i], SL_REACH_OUTPUT + i);

                forget(needs, &extent);
        }
        for (int64_t i = 0; i < slices.n; i++) {
                struct extent extent = slice_of(&operands[0], &slices, i);

                need(needs, &extent, needs->slices[i]);
        }
        if (!slices.n && finest->share <= __builtin_popcountll(lanes)) /* also of one that reads less than all */
                need_by_units(needs, step, finest);
        else if (!slices.n)
                need_inputs(needs, step, NULL, lanes);
        return 0;
}

/* ---- all of them ---- */

static bool can_tell(const struct sl_executable *executable)
{
        const struct sl_plan_info *info = executable->plan->info;

        if (info->n_lanes < 2 || info->n_lanes > LANES_MAX || executable->dynamic || !executable->source->batch ||
                executable->constants)
                return false;
        for (uint32_t i = 0; i < executable->n_steps; i++)
                if (!executable->steps[i].session || executable->steps[i].session->backend->runner->memory)
                        return false;
        return true;
}

static void needs_deinit(struct needs *needs)
{
        free(needs->grains);
        free(needs->outputs);
        free(needs->slices);
        free(needs->units[0]);
        free(needs->units[1]);
}

static bool needs_init(struct needs *needs, struct sl_executable *executable)
{
        const struct sl_plan_info *info = executable->plan->info;
        uint64_t bytes = executable->source->workspace_bytes;

        *needs = (struct needs){.executable = executable, .grain = GRAIN_MIN};
        needs->all = info->n_lanes == LANES_MAX ? UINT64_MAX : (1ull << info->n_lanes) - 1;
        while ((bytes / needs->grain + 1) * sizeof(*needs->grains) > MAP_BYTES_MAX && needs->grain < 64)
                needs->grain *= 2;
        needs->n_grains = bytes / needs->grain + 1;
        if (needs->n_grains * sizeof(*needs->grains) > MAP_BYTES_MAX)
                return false;
        needs->grains = calloc(needs->n_grains, sizeof(*needs->grains));
        needs->outputs = calloc(info->n_outputs + 1u, sizeof(*needs->outputs));
        needs->slices = calloc(UNITS_MAX, sizeof(*needs->slices));
        for (uint32_t i = 0; i < 2; i++)
                needs->units[i] = calloc(UNITS_MAX, sizeof(*needs->units[i]));
        return needs->grains && needs->outputs && needs->slices && needs->units[0] && needs->units[1];
}

static void give_up(struct sl_executable *executable)
{
        for (uint32_t i = 0; i < executable->n_steps; i++) {
                free(executable->steps[i].lanes.runs);
                executable->steps[i].lanes = (struct sl_lane_parts){.runs = NULL};
        }
}

/* All lanes need each part of it: it is launched as ever. */
static bool is_needed_by_all(const struct needs *needs, const struct sl_lane_parts *parts)
{
        for (uint32_t i = 0; i < parts->n_runs; i++)
                if (parts->runs[i].lanes != needs->all)
                        return false;
        return true;
}

/* Only what is told apart stays, in as much memory as it takes. */
static bool keep(const struct needs *needs, struct sl_lane_parts *parts)
{
        struct sl_lane_run *runs;

        if (is_needed_by_all(needs, parts)) {
                free(parts->runs);
                *parts = (struct sl_lane_parts){.runs = NULL};
                return false;
        }
        runs = realloc(parts->runs, parts->n_runs * sizeof(*runs));
        parts->runs = runs ? runs : parts->runs;
        return true;
}

bool sl_lane_parts_find(struct sl_executable *executable)
{
        SL_CLEANUP(needs_deinit) struct needs needs = {.executable = NULL};
        bool any = false;

        if (!can_tell(executable) || !needs_init(&needs, executable) || !need_outputs(&needs))
                return false;
        for (uint32_t i = executable->n_steps; i-- > 0;)
                if (walk_step(&needs, &executable->steps[i]) < 0) {
                        give_up(executable);
                        return false;
                }
        for (uint32_t i = 0; i < executable->n_steps; i++)
                any |= keep(&needs, &executable->steps[i].lanes);
        return any;
}

bool sl_lane_parts_next(const struct sl_lane_parts *parts, uint64_t idle, uint32_t *at, struct sl_part *ret_part)
{
        uint32_t i = *at;

        while (i < parts->n_runs && !(parts->runs[i].lanes & ~idle))
                i++;
        if (i == parts->n_runs)
                return false;
        *ret_part = (struct sl_part){.axis = parts->axis, .first = parts->runs[i].first};
        while (i < parts->n_runs && parts->runs[i].lanes & ~idle)
                ret_part->end = parts->runs[i++].end;
        *at = i;
        return true;
}

uint64_t sl_lane_parts_bytes(uint32_t n_lanes, uint64_t n_steps)
{
        return n_lanes > 1 ? n_steps * SL_LANE_RUNS_PER_LANE * n_lanes * sizeof(struct sl_lane_run) : 0;
}
