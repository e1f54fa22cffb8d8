#include "cpu/winograd.h"

#include "base/bytes.h"
#include "cpu/cost.h"
#include "cpu/describe.h"
#include "cpu/gemm.h"
#include "cpu/isa.h"
#include "shape/window.h"

#include <math.h>

/* A window that these tiles fit: 3x3, dense, stride 1. */
static bool read_window(const struct sl_node_desc *node, struct sl_winograd *w)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0], *f = sl_describe_input(node, 1);
        struct sl_window window;

        if (!f || x->shape.rank != 4 || !sl_cpu_is_nhwc_f32(x) || !sl_cpu_is_nhwc_f32(y) || !sl_cpu_is_f32(f))
                return false;
        if (sl_cpu_is_empty(x) || sl_cpu_is_empty(y) || sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1) != 1)
                return false;
        if (sl_window_read(node, &window, NULL))
                return false;
        for (uint32_t i = 0; i < 2; i++)
                if (window.kernel[i] != 3 || window.stride[i] != 1 || window.dilation[i] != 1)
                        return false;
        w->pad_top = window.pad_begin[0];
        w->pad_left = window.pad_begin[1];
        return w->pad_top <= 2 && w->pad_left <= 2;
}

/* Bytes that a block of that many tiles takes: transformed, and the sums of one step. */
static double block_bytes(const struct sl_winograd *w, int64_t positions, int64_t tiles)
{
        return (double)(positions * (w->channel_floats + w->step_filters) * tiles) * sizeof(float);
}

/*
 * How many tiles a block has. Every block reads all of the weights; within it, every step reads all of its tiles, which is free as
 * long as they stay in the second-level cache. Few blocks where the weights come from memory, small ones where they do not.
 */
static int64_t choose_block(const struct sl_winograd *w, int64_t positions)
{
        double cache = (double)sl_cpu_cache_bytes(), least = INFINITY;
        double weights = (double)(positions * w->channels * w->filters) * sizeof(float);
        double steps = (double)((w->filters + w->step_filters - 1) / w->step_filters);
        int64_t best = w->tiles;

        for (int64_t blocks = 1, tiles = w->tiles;; blocks++, tiles = (w->tiles + blocks - 1) / blocks) {
                double bytes = block_bytes(w, positions, tiles);
                double again = (double)blocks * weights / (weights > cache ? SL_COST_BYTES : SL_COST_NEAR);
                double spilled = bytes > cache * 5 / 8 ? (double)blocks * steps * bytes / SL_COST_FAR : 0;

                if (again + spilled < least) {
                        least = again + spilled;
                        best = tiles;
                }
                if (!spilled || tiles <= 14)
                        return best;
        }
}

/* Planes that lie a multiple of 4 KiB apart would share a few lines of the first-level cache. */
static int64_t plane_floats(int64_t floats)
{
        return floats % 256 ? floats : floats + SL_LINE_BYTES / (int64_t)sizeof(float);
}

static bool plan(const struct sl_node_desc *node, int64_t side, void *state, struct sl_cpu_sizes *sizes)
{
        const int64_t *x = node->inputs[0].shape.dims, *y = node->outputs[0].shape.dims;
        int64_t positions = (side + 2) * (side + 2);
        struct sl_winograd *w = state;

        if (!sl_cpu_has_avx512() || !read_window(node, w) || !sl_finish_plan(node, &w->finish))
                return false;
        w->output_side = side;
        w->batch = x[0];
        w->channels = x[1];
        w->height = x[2];
        w->width = x[3];
        w->filters = y[1];
        w->out_height = y[2];
        w->out_width = y[3];
        w->tiles_down = (y[2] + side - 1) / side;
        w->tiles_across = (y[3] + side - 1) / side;
        w->tiles = x[0] * w->tiles_down * w->tiles_across;
        w->channel_floats = (int64_t)sl_align_up((uint64_t)w->channels, 16);
        w->step_filters = w->tiles <= 2 ? 4 * SL_GEMM_PANEL : w->tiles <= 6 ? 2 * SL_GEMM_PANEL : SL_GEMM_PANEL;
        w->block_tiles = choose_block(w, positions);
        w->position_floats = plane_floats(w->block_tiles * w->channel_floats);
        w->sum_floats = plane_floats(w->block_tiles * w->step_filters);
        w->sums_offset = positions * w->position_floats;
        w->streams = positions * w->channels * w->filters * (int64_t)sizeof(float) > sl_cpu_cache_bytes() / 4;
        w->has_bias = sl_describe_input(node, 2) != NULL;
        w->residual = w->finish.has_residual ? node->n_inputs - 1 : 0;
        sizes->scratch_bytes = (size_t)((w->sums_offset + positions * w->sum_floats) * (int64_t)sizeof(float));
        return true;
}

static bool plan_2(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        return plan(node, 2, state, sizes);
}

static bool plan_4(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        return plan(node, 4, state, sizes);
}

static void form(const struct sl_node_desc *node, int64_t side, struct sl_packed *ret_packed)
{
        const int64_t *f = node->inputs[1].shape.dims;

        sl_cpu_form(ret_packed, side == 2 ? "winograd 2x2" : "winograd 4x4", f,
                (side + 2) * (side + 2) * sl_gemm_packed_floats(f[1], f[0]));
}

static bool form_2(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        if (index == 1)
                form(node, 2, ret_packed);
        return index == 1;
}

static bool form_4(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        if (index == 1)
                form(node, 4, ret_packed);
        return index == 1;
}

/* Rows of the transform of a filter: the powers of each point over its distances to the others; the last is infinity. */
static void filter_matrix(int64_t side, double ret_rows[SL_WINOGRAD_SIDE_MAX][3])
{
        static const double points_2[] = {0, 1, -1}, points_4[] = {0, 0.625, -0.625, 1.5, -1.5};
        const double *points = side == 2 ? points_2 : points_4;
        int64_t n = side + 1;

        for (int64_t j = 0; j < n; j++) {
                double distance = 1;

                for (int64_t l = 0; l < n; l++)
                        distance *= l == j ? 1 : points[j] - points[l];
                for (int k = 0; k < 3; k++)
                        ret_rows[j][k] = (k == 0 ? 1 : k == 1 ? points[j] : points[j] * points[j]) / distance;
        }
        ret_rows[n][0] = ret_rows[n][1] = 0;
        ret_rows[n][2] = 1;
}

static void transform_filter(int64_t inner, double rows[SL_WINOGRAD_SIDE_MAX][3], const float *filter, float *to, int64_t stride)
{
        for (int64_t i = 0; i < inner; i++)
                for (int64_t j = 0; j < inner; j++) {
                        double sum = 0;

                        for (int a = 0; a < 3; a++)
                                for (int b = 0; b < 3; b++)
                                        sum += rows[i][a] * (double)filter[a * 3 + b] * rows[j][b];
                        to[(i * inner + j) * stride] = (float)sum;
                }
}

/* [filter][channel][3][3] to [panel][position][channel][filter of the panel]. */
static int repack(const struct sl_node_desc *node, int64_t side, const float *plain, float *to)
{
        int64_t filters = node->inputs[1].shape.dims[0], channels = node->inputs[1].shape.dims[1], inner = side + 2;
        double rows[SL_WINOGRAD_SIDE_MAX][3];

        filter_matrix(side, rows);
        for (int64_t first = 0; first < filters; first += SL_GEMM_PANEL) {
                int64_t own = filters - first < SL_GEMM_PANEL ? filters - first : SL_GEMM_PANEL;
                int64_t width = sl_gemm_packed_floats(1, own);

                for (int64_t c = 0; c < channels; c++)
                        for (int64_t k = 0; k < own; k++)
                                transform_filter(inner, rows, plain + ((first + k) * channels + c) * 9, to + c * width + k,
                                        channels * width);
                to += inner * inner * channels * width;
        }
        return 0;
}

static int repack_2(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        (void)index;
        return repack(node, 2, plain, ret_data);
}

static int repack_4(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        (void)index;
        return repack(node, 4, plain, ret_data);
}

static int run(const void *state, const struct sl_binding *binding)
{
        return sl_winograd_run(state, binding);
}

/*
 * The products are short, and wait for their weights when there are few tiles; where both take long, the one hides the other only
 * in part. The transforms read and write every value about twice, in pieces.
 */
static double seconds(const void *state)
{
        const struct sl_winograd *w = state;
        double positions = (double)((w->output_side + 2) * (w->output_side + 2)), tiles = (double)w->tiles;
        double blocks = (double)((w->tiles + w->block_tiles - 1) / w->block_tiles);
        double weights = positions * (double)w->channels * (double)w->filters;
        double values = positions * tiles * (double)(w->channels + w->filters);
        double products = 2 * weights * tiles / SL_COST_FLOPS / (w->output_side == 2 ? 0.8 : 0.7);
        double waiting = 4 * weights * blocks / SL_COST_BYTES, longer = sl_cost_longer(products, waiting);

        return sl_cost_activation(w->finish.activation, (double)(w->batch * w->out_height * w->out_width * w->filters), false) +
               longer + 0.4 * (products + waiting - longer) + 2 * 4 * values / SL_COST_NEAR * 2;
}

const struct sl_cpu_loop sl_cpu_winograd_2 = {.state_bytes = sizeof(struct sl_winograd),
        .plan = plan_2,
        .run = run,
        .form = form_2,
        .repack = repack_2,
        .seconds = seconds,
        .finishes = true};
const struct sl_cpu_loop sl_cpu_winograd_4 = {.state_bytes = sizeof(struct sl_winograd),
        .plan = plan_4,
        .run = run,
        .form = form_4,
        .repack = repack_4,
        .seconds = seconds,
        .finishes = true};
