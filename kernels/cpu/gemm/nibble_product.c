/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling.NibbleMatMul over nibble.h: the matrix, its scales and its zero points are packed once, or panel by panel at each launch
 * where they are no constants. Rows of floats are read where they lie, but for a depth that is no whole groups; rows of bytes are
 * made in scratch first.
 */
#include "base/bytes.h"
#include "cpu/base/cost.h"
#include "cpu/gemm/loops.h"
#include "cpu/gemm/nibble.h"
#include "shape/nibbles.h"

#include <errno.h>
#include <string.h>

#define PANEL SL_NIBBLE_PANEL
#define GROUP SL_NIBBLE_GROUP

/* Its inputs. */
enum { MATRIX = 1, SCALES, ZEROS, INPUTS };

struct nibble_product {
        struct sl_nibbles n;
        int64_t rows, groups;
        bool packed[INPUTS];
};

static int64_t panels_of(const struct sl_nibbles *n)
{
        return (n->columns + PANEL - 1) / PANEL;
}

static int64_t groups_of(const struct sl_nibbles *n)
{
        return (n->depth + GROUP - 1) / GROUP;
}

/* Bytes that a panel of an input takes. */
static int64_t panel_bytes(const struct sl_nibbles *n, uint32_t index)
{
        switch (index) {
        case MATRIX:
                return groups_of(n) * PANEL * (int64_t)sizeof(uint32_t);
        case SCALES:
                return n->blocks * PANEL * (int64_t)sizeof(float);
        default:
                return n->blocks * PANEL;
        }
}

static bool is_plain(const struct sl_node_desc *node)
{
        for (uint32_t i = 0; i < node->n_inputs; i++)
                if (node->inputs[i].dtype != SL_DTYPE_NONE &&
                        (node->inputs[i].layout != SL_LAYOUT_PLAIN || sl_cpu_is_empty(&node->inputs[i])))
                        return false;
        return node->outputs[0].layout == SL_LAYOUT_PLAIN;
}

static bool nibble_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        struct nibble_product *p = state;

        (void)sizes;
        if (!sl_cpu_has_avx2() || !is_plain(node) || !sl_cpu_is_f32(&node->inputs[0]) || sl_nibbles_read(node, &p->n, NULL))
                return false;
        p->rows = (int64_t)sl_shape_elements(&node->inputs[0].shape) / p->n.depth;
        p->groups = groups_of(&p->n);
        return true;
}

/* The eight elements of a group as nibble.h has them: the even bits of each pair are the first four. */
static uint32_t turn(uint32_t q)
{
        uint32_t turned = 0;

        for (uint32_t k = 0; k < GROUP; k++)
                turned |= (q >> (4 * k) & 15) << (8 * (k % 4) + 4 * (k / 4));
        return turned;
}

static uint8_t byte_of(const void *plain, int64_t at, int64_t end)
{
        return at < end ? ((const uint8_t *)plain)[at] : 0;
}

/* Columns beside the matrix are 0. */
static void pack_matrix(const struct sl_nibbles *n, const uint8_t *plain, int64_t panel, uint32_t *to)
{
        int64_t column_bytes = n->blocks * n->block / 2;

        for (int64_t group = 0; group < groups_of(n); group++)
                for (int64_t i = 0; i < PANEL; i++) {
                        int64_t column = panel * PANEL + i;
                        uint32_t q = 0;

                        if (column < n->columns)
                                memcpy(&q, plain + column * column_bytes + group * (GROUP / 2), sizeof(q));
                        to[group * PANEL + i] = turn(q);
                }
}

static void pack_scales(const struct sl_nibbles *n, const uint8_t *plain, int64_t panel, float *to)
{
        for (int64_t block = 0; block < n->blocks; block++)
                for (int64_t i = 0; i < PANEL; i++) {
                        int64_t column = panel * PANEL + i;
                        float scale = 0.0f;

                        if (column < n->columns)
                                memcpy(&scale, plain + (column * n->blocks + block) * (int64_t)sizeof(scale), sizeof(scale));
                        to[block * PANEL + i] = scale;
                }
}

static void pack_zeros(const struct sl_nibbles *n, const uint8_t *plain, int64_t panel, uint8_t *to)
{
        for (int64_t block = 0; block < n->blocks; block++)
                for (int64_t i = 0; i < PANEL; i++)
                        to[block * PANEL + i] = byte_of(plain, (panel * PANEL + i) * n->blocks + block, n->columns * n->blocks);
}

static void pack_panel(const struct sl_nibbles *n, uint32_t index, const void *plain, int64_t panel, void *to)
{
        switch (index) {
        case MATRIX:
                pack_matrix(n, plain, panel, to);
                break;
        case SCALES:
                pack_scales(n, plain, panel, to);
                break;
        default:
                pack_zeros(n, plain, panel, to);
                break;
        }
}

static bool nibble_form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        static const char *const names[INPUTS] = {NULL, "nibbles", "nibble scales", "nibble zeros"};
        struct sl_nibbles n;

        if (index < MATRIX || index >= INPUTS || !sl_cpu_input(node, index) || sl_nibbles_read(node, &n, NULL))
                return false;
        sl_cpu_form(ret_packed, names[index], (int64_t[]){n.depth, n.columns, n.block, 0},
                panels_of(&n) * panel_bytes(&n, index) / (int64_t)sizeof(float));
        return true;
}

static int nibble_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        struct sl_nibbles n;

        if (sl_nibbles_read(node, &n, NULL))
                return -ENOTSUP;
        for (int64_t panel = 0; panel < panels_of(&n); panel++)
                pack_panel(&n, index, plain, panel, (uint8_t *)ret_data + panel * panel_bytes(&n, index));
        return 0;
}

static void nibble_weights(void *state, const struct sl_packed *packed)
{
        struct nibble_product *p = state;

        for (uint32_t i = MATRIX; i < INPUTS; i++)
                p->packed[i] = packed && packed[i].data_bytes;
}

static bool is_given(const struct nibble_product *p, uint32_t index)
{
        return index != ZEROS || p->n.has_zeros;
}

static bool is_packed(const struct nibble_product *p)
{
        bool packed = true;

        for (uint32_t i = MATRIX; i < INPUTS; i++)
                packed = packed && (p->packed[i] || !is_given(p, i));
        return packed;
}

/* Scratch: what floats are widened in, rows, their scales and sums, a panel of each input. */
struct places {
        size_t rows, scales, sums, panels[INPUTS], end;
};

static size_t behind(size_t at, int64_t bytes)
{
        return sl_align_up(at + (size_t)bytes, SL_LINE_BYTES);
}

static struct places places_of(const struct nibble_product *p)
{
        bool bytes = p->n.mode == SL_NIBBLE_BYTES, copied = bytes || p->n.depth % GROUP;
        int64_t element = bytes ? 1 : (int64_t)sizeof(float), blocks = bytes ? p->rows * p->n.blocks : 0;
        struct places places = {.rows = behind(0, bytes ? 0 : sl_nibble_room(p->rows, p->groups) * (int64_t)sizeof(float))};

        places.scales = behind(places.rows, copied ? p->rows * p->groups * GROUP * element : 0);
        places.sums = behind(places.scales, blocks * (int64_t)sizeof(float));
        places.end = behind(places.sums, blocks * (int64_t)sizeof(int32_t));
        for (uint32_t i = MATRIX; i < INPUTS; i++) {
                places.panels[i] = places.end;
                places.end = behind(places.end, is_given(p, i) && !p->packed[i] ? panel_bytes(&p->n, i) : 0);
        }
        return places;
}

static size_t nibble_scratch(const void *state)
{
        return places_of(state).end;
}

static int64_t nibble_units(const void *state, uint32_t axis)
{
        const struct nibble_product *p = state;

        return axis == SL_AXIS_COLUMNS ? panels_of(&p->n) : p->rows;
}

/* Where there is no scratch all places are empty, and none is pointed into. */
static void *place_at(void *scratch, int64_t place)
{
        return scratch ? (char *)scratch + place : NULL;
}

/* Rows as the kernels read them. */
static void make_rows(
        const struct nibble_product *p, const struct places *places, const float *a, char *scratch, struct sl_nibble_rows *rows)
{
        int64_t room = p->groups * GROUP;
        int8_t *bytes = place_at(scratch, places->rows);
        float *scales = place_at(scratch, places->scales), *copy = place_at(scratch, places->rows);
        int32_t *sums = place_at(scratch, places->sums);

        rows->a = a;
        rows->a_stride = p->n.depth;
        if (p->n.mode == SL_NIBBLE_BYTES) {
                for (int64_t r = 0; r < rows->rows; r++)
                        sl_nibble_quantize(a + r * p->n.depth, p->n.depth, room, p->n.block, bytes + r * room,
                                scales + r * p->n.blocks, sums + r * p->n.blocks);
                rows->bytes = bytes;
                rows->row_scales = scales;
                rows->row_sums = sums;
                return;
        }
        if (p->n.depth == room)
                return;
        for (int64_t r = 0; r < rows->rows; r++) {
                memcpy(copy + r * room, a + r * p->n.depth, (size_t)p->n.depth * sizeof(*copy));
                memset(copy + r * room + p->n.depth, 0, (size_t)(room - p->n.depth) * sizeof(*copy));
        }
        rows->a = copy;
        rows->a_stride = room;
}

static void run_rows(const struct nibble_product *p, const struct sl_nibble_rows *rows)
{
        if (p->n.mode != SL_NIBBLE_BYTES)
                sl_nibble_floats(rows);
        else if (sl_cpu_has_vnni())
                sl_nibble_dot(rows);
        else
                sl_nibble_bytes(rows);
}

/* The weights from panel @panel on; what does not lie packed is, for that panel. */
static void set_weights(const struct nibble_product *p, const struct places *places, const struct sl_binding *binding,
        int64_t panel, struct sl_nibble_rows *rows)
{
        const char *at[INPUTS];

        for (uint32_t i = MATRIX; i < INPUTS; i++) {
                char *room = place_at(binding->scratch, places->panels[i]);

                at[i] = room;
                if (!is_given(p, i))
                        continue;
                if (p->packed[i])
                        at[i] = (const char *)binding->inputs[i] + panel * panel_bytes(&p->n, i);
                else
                        pack_panel(&p->n, i, binding->inputs[i], panel, room);
        }
        rows->b = (const void *)at[MATRIX];
        rows->scales = (const void *)at[SCALES];
        rows->zeros = p->n.has_zeros ? (const uint8_t *)at[ZEROS] : NULL;
}

static int nibble_run(const void *state, const struct sl_binding *binding)
{
        const struct nibble_product *p = state;
        struct sl_part part = sl_part_along(binding->part, SL_AXIS_ROWS, p->rows);
        struct sl_part panels = sl_part_along(binding->part, SL_AXIS_COLUMNS, panels_of(&p->n));
        struct places places = places_of(p);
        struct sl_nibble_rows rows = {.c_stride = p->n.columns,
                .rows = part.end - part.first,
                .groups = p->groups,
                .block_groups = p->n.block / GROUP,
                .blocks = p->n.blocks,
                .room = binding->scratch};
        int64_t step = is_packed(p) ? panels.end - panels.first : 1;

        make_rows(p, &places, (const float *)binding->inputs[0] + part.first * p->n.depth, binding->scratch, &rows);
        for (int64_t panel = panels.first; panel < panels.end && rows.rows; panel += step) {
                int64_t first = panel * PANEL, end = (panel + step) * PANEL;

                set_weights(p, &places, binding, panel, &rows);
                rows.c = (float *)binding->outputs[0] + part.first * p->n.columns + first;
                rows.columns = (end < p->n.columns ? end : p->n.columns) - first;
                run_rows(p, &rows);
        }
        return 0;
}

/* An instruction of VNNI has four products where one of floats has one; widening for a tile of rows costs a fifth. */
static double nibble_seconds(const struct sl_core_figures *core, const void *state)
{
        const struct nibble_product *p = state;
        double products = (double)p->rows * (double)p->n.depth * (double)p->n.columns;
        double bytes = (double)panels_of(&p->n) * (double)(panel_bytes(&p->n, MATRIX) + panel_bytes(&p->n, SCALES));
        double rate = p->n.mode == SL_NIBBLE_BYTES ? core->bytes / 2 : core->flops * core->product / 1.2;

        return sl_cost_longer(2 * products / rate, bytes / core->stream);
}

static void nibble_narrow(void *state, const struct sl_part *part)
{
        struct nibble_product *p = state;

        if (part->axis == SL_AXIS_ROWS)
                p->rows = part->end - part->first;
        else
                p->n.columns = (part->end - part->first) * PANEL;
}

static bool nibble_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct nibble_product *p = state;
        int64_t row_bytes = p->n.columns * (int64_t)sizeof(float);

        if (operand == SL_REACH_OUTPUT && part->axis == SL_AXIS_COLUMNS)
                return sl_reach_columns(part, PANEL * (int64_t)sizeof(float), row_bytes, p->rows, ret_reach);
        if (part->axis == SL_AXIS_ROWS && (operand == SL_REACH_OUTPUT || operand == 0))
                return sl_reach_rows(part, operand ? row_bytes : p->n.depth * (int64_t)sizeof(float), ret_reach);
        return false;
}

const struct sl_cpu_loop sl_cpu_nibble_product = {.state_bytes = sizeof(struct nibble_product),
        .plan = nibble_plan,
        .run = nibble_run,
        .units = nibble_units,
        .reach = nibble_reach,
        .form = nibble_form,
        .repack = nibble_repack,
        .reads_anywhere = true,
        .weights = nibble_weights,
        .scratch = nibble_scratch,
        .seconds = nibble_seconds,
        .narrow = nibble_narrow};
