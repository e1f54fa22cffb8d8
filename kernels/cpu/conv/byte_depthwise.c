/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolutions of bytes with VNNI, windows of 3 and 5 pixels, scanline by scanline of 64 channels
 * (byte_depthwise_tile.h). A function that is more than a limit goes over real numbers of a scanline in scratch. A sum is exact, so
 * a sample has the same bits in any batch and part.
 */
#include "base/bytes.h"
#include "cpu/base/cost.h"
#include "cpu/base/isa.h"
#include "cpu/conv/byte_depthwise_tile.h"
#include "cpu/conv/loops.h"
#include "cpu/gemm/byte_epilogue.h"
#include "cpu/gemm/epilogue.h"
#include "shape/window.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define AXES        2
#define LEAST_SHARE 0.6 /* of the lanes that channels fill: else oneDNN's are faster, but for functions */

struct depthwise {
        struct sl_byte_epilogue epilogue;
        struct sl_cpu_epilogue function; /* in scratch; activation 0: none */
        bool hard_swish;
        struct sl_depthwise_group group;
        int64_t batch, channels, height, width, out_height, out_width;
        int64_t kernel[AXES], pad[AXES], stride[AXES];
        int32_t zero;
};

static int64_t divide_up(int64_t a, int64_t b)
{
        return (a + b - 1) / b;
}

static int64_t block_bytes(const int64_t kernel[AXES], struct sl_depthwise_group group)
{
        return SL_DEPTHWISE_CHANNELS * (4 + kernel[0] * group.blocks * group.outputs * 4);
}

/* What lanes the channels take. */
static int64_t lanes_of(int64_t channels)
{
        int64_t rest = channels % SL_DEPTHWISE_CHANNELS;

        return channels - rest + (rest > SL_DEPTHWISE_HALF ? SL_DEPTHWISE_CHANNELS : rest ? SL_DEPTHWISE_HALF : 0);
}

static bool read_window(const struct sl_node_desc *node, struct depthwise *p)
{
        struct sl_window w;

        if (sl_window_read(node, &w, NULL))
                return false;
        for (uint32_t i = 0; i < AXES; i++) {
                p->kernel[i] = w.kernel[i];
                p->pad[i] = w.pad_begin[i];
                p->stride[i] = w.stride[i];
                if (w.dilation[i] != 1)
                        return false;
        }
        p->group = sl_depthwise_group(p->kernel[1], p->stride[1]);
        return p->group.outputs && p->kernel[0] <= SL_DEPTHWISE_SCANLINES;
}

static bool depthwise_plan(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes)
{
        const struct sl_tensor *x = &node->inputs[0], *w = sl_cpu_input(node, 1), *y = &node->outputs[0];
        struct depthwise *p = state;

        if (!sl_cpu_has_vnni() || x->dtype != SL_DTYPE_U8 || !w || w->layout != SL_LAYOUT_PLAIN || x->shape.rank != 4 ||
                x->layout != SL_LAYOUT_CHANNELS_LAST || y->layout != SL_LAYOUT_CHANNELS_LAST || sl_cpu_is_empty(y) ||
                sl_cpu_is_empty(x))
                return false;
        if (w->shape.dims[1] != 1 || w->shape.dims[0] != x->shape.dims[1] || node->epilogue.has_residual ||
                sl_attrs_int(&node->attrs, SL_ATTR_GROUP, 1) != x->shape.dims[1] || !read_window(node, p) ||
                !sl_byte_epilogue_plan(node, &p->epilogue))
                return false;
        if (!p->epilogue.activation && (double)x->shape.dims[1] < LEAST_SHARE * (double)lanes_of(x->shape.dims[1]))
                return false;
        p->batch = x->shape.dims[0];
        p->channels = x->shape.dims[1];
        p->height = x->shape.dims[2];
        p->width = x->shape.dims[3];
        p->out_height = y->shape.dims[2];
        p->out_width = y->shape.dims[3];
        p->zero = (int32_t)sl_attrs_int(&node->attrs, SL_ATTR_X_ZERO, 0);
        p->hard_swish = p->epilogue.activation == SL_ACT_HARD_SWISH;
        p->function = (struct sl_cpu_epilogue){
                .activation = p->hard_swish ? SL_ACT_NONE : p->epilogue.activation, .act_a = p->epilogue.act_a};
        if (p->function.activation)
                sizes->scratch_bytes = (size_t)p->out_width * SL_DEPTHWISE_CHANNELS * sizeof(float);
        return true;
}

static bool is_real(const struct depthwise *p)
{
        return p->epilogue.y_dtype == SL_DTYPE_F32;
}

/* 64 channels with their numbers, in the order of places. */
struct block {
        int64_t first, n; /* channels */
        const int8_t *weights;
        bool fits; /* as in byte_depthwise_tile.h */
        int32_t starts[SL_DEPTHWISE_CHANNELS];
        float factors[SL_DEPTHWISE_CHANNELS], rests[SL_DEPTHWISE_CHANNELS];
};

/* What a sum may begin with, to stay within 32 bits. */
static int64_t cut_start(int64_t start)
{
        const int64_t most = INT32_MAX - SL_DEPTHWISE_SCANLINES * SL_DEPTHWISE_SCANLINES * UINT8_MAX * -INT8_MIN;

        return start > most ? most : start < -most ? -most : start;
}

static void fill_block(const struct depthwise *p, const struct sl_binding *binding, int64_t index, struct block *block)
{
        const float *scales = binding->inputs[2];
        const int32_t *bias = p->epilogue.has_bias ? binding->inputs[3] : NULL;
        float unit = p->epilogue.activation || is_real(p) ? 1.0f : p->epilogue.y_factor;

        memset(block, 0, sizeof(*block));
        block->fits = true;
        block->first = index * SL_DEPTHWISE_CHANNELS;
        block->n = p->channels - block->first < SL_DEPTHWISE_CHANNELS ? p->channels - block->first : SL_DEPTHWISE_CHANNELS;
        block->weights = (const int8_t *)binding->inputs[1] + index * block_bytes(p->kernel, p->group);
        for (int64_t place = 0; place < SL_DEPTHWISE_CHANNELS; place++) {
                int64_t channel = sl_depthwise_channel(block->n, place);
                int64_t start;
                int32_t sum;

                if (channel >= block->n)
                        continue;
                memcpy(&sum, block->weights + place * (int64_t)sizeof(sum), sizeof(sum));
                start = (bias ? bias[block->first + channel] : 0) - (int64_t)sum * p->zero;
                block->starts[place] = (int32_t)cut_start(start);
                block->factors[place] = scales[p->epilogue.has_scales ? block->first + channel : 0] * unit;
                block->rests[place] = (float)(start - cut_start(start)) * block->factors[place];
                block->fits = block->fits && start == cut_start(start) && fabsf(block->factors[place]) < 1;
        }
}

/* But for the pixels, and where what comes out goes. */
static struct sl_depthwise_line describe_line(const struct depthwise *p, const struct block *block)
{
        uint8_t sign = p->epilogue.y_dtype == SL_DTYPE_I8 ? 0x80 : 0;
        float shift = is_real(p) ? 0.0f : (float)sign;

        return (struct sl_depthwise_line){.kernel = {p->kernel[0], p->kernel[1]},
                .stride = p->stride[1],
                .pad = p->pad[1],
                .width = p->width,
                .pixel_stride = p->channels,
                .x_zero = (uint8_t)p->zero,
                .channels = block->n,
                .weights = block->weights,
                .starts = block->starts,
                .factors = block->factors,
                .rests = block->rests,
                .fits = block->fits && !p->hard_swish,
                .hard_swish = p->hard_swish,
                .unit = p->epilogue.y_factor,
                .outputs = p->out_width,
                .y_stride = p->function.activation && !is_real(p) ? SL_DEPTHWISE_CHANNELS : p->channels,
                .least = is_real(p) ? p->epilogue.low : -INFINITY,
                .most = is_real(p) ? p->epilogue.high : INFINITY,
                .low = is_real(p) ? 0 : (uint8_t)(p->epilogue.low + shift),
                .high = is_real(p) ? 0 : (uint8_t)(p->epilogue.high + shift),
                .sign = sign,
                .zero = (int16_t)(p->epilogue.y_zero + shift)};
}

/* @like: that of the block. */
static void run_line(const struct depthwise *p, const struct sl_binding *binding, const struct block *block,
        const struct sl_depthwise_line *like, int64_t number)
{
        const uint8_t *image = (const uint8_t *)binding->inputs[0] + number / p->out_height * p->height * p->width * p->channels;
        int64_t at = number * p->out_width * p->channels + block->first, top = number % p->out_height * p->stride[0] - p->pad[0];
        struct sl_depthwise_line line = *like;

        for (int64_t i = 0; i < p->kernel[0]; i++)
                if (top + i >= 0 && top + i < p->height)
                        line.scanlines[i] = image + (top + i) * p->width * p->channels + block->first;
        if (is_real(p))
                line.reals = (float *)binding->outputs[0] + at;
        else if (p->function.activation)
                line.reals = binding->scratch;
        else
                line.y = (uint8_t *)binding->outputs[0] + at;
        sl_depthwise_line(&line);
        if (p->function.activation)
                sl_cpu_epilogue_activate(&p->function, line.reals, line.y_stride, p->out_width, block->n);
        if (p->function.activation && !is_real(p))
                sl_depthwise_round(&line, p->epilogue.y_factor, (uint8_t *)binding->outputs[0] + at, p->channels);
}

static int64_t depthwise_units(const void *state, uint32_t axis)
{
        const struct depthwise *p = state;

        return axis == SL_AXIS_ROWS ? p->batch * p->out_height : divide_up(p->channels, SL_DEPTHWISE_CHANNELS);
}

static int depthwise_run(const void *state, const struct sl_binding *binding)
{
        const struct depthwise *p = state;
        struct sl_part lines = sl_part_along(binding->part, SL_AXIS_ROWS, depthwise_units(p, SL_AXIS_ROWS));
        struct sl_part blocks = sl_part_along(binding->part, SL_AXIS_COLUMNS, depthwise_units(p, SL_AXIS_COLUMNS));
        struct sl_depthwise_line like;
        struct block block;

        for (int64_t i = blocks.first; i < blocks.end; i++) {
                fill_block(p, binding, i, &block);
                like = describe_line(p, &block);
                for (int64_t line = lines.first; line < lines.end; line++)
                        run_line(p, binding, &block, &like, line);
        }
        return 0;
}

static bool depthwise_form(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed)
{
        struct depthwise p = {.batch = 0};
        int64_t channels = node->inputs[1].shape.dims[0];

        if (index != 1 || !read_window(node, &p))
                return false;
        sl_cpu_form(ret_packed, "dot channels", (int64_t[]){channels, p.kernel[0], p.kernel[1], p.stride[1]},
                divide_up(channels, SL_DEPTHWISE_CHANNELS) * block_bytes(p.kernel, p.group) / (int64_t)sizeof(float));
        return true;
}

/* The weights of one channel, at its place in a block. */
static void pack_channel(const struct depthwise *p, const int8_t *plain, int64_t place, int8_t *block)
{
        int8_t *to = block + SL_DEPTHWISE_CHANNELS * (int64_t)sizeof(int32_t) + place * 4;
        int32_t sum = 0;

        for (int64_t i = 0; i < p->kernel[0] * p->kernel[1]; i++)
                sum += plain ? plain[i] : 0;
        memcpy(block + place * (int64_t)sizeof(sum), &sum, sizeof(sum));
        for (int64_t row = 0; row < p->kernel[0]; row++)
                for (int64_t b = 0; b < p->group.blocks; b++)
                        for (int64_t j = 0; j < p->group.outputs; j++, to += SL_DEPTHWISE_CHANNELS * 4)
                                for (int64_t i = 0; i < 4; i++) {
                                        int64_t tap = 4 * b + i - j * p->stride[1];

                                        to[i] = plain && tap >= 0 && tap < p->kernel[1] ? plain[row * p->kernel[1] + tap] : 0;
                                }
}

static int depthwise_repack(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data)
{
        int64_t channels = node->inputs[1].shape.dims[0];
        struct depthwise p = {.batch = 0};

        (void)index;
        if (!read_window(node, &p))
                return -ENOTSUP;
        for (int64_t first = 0; first < channels; first += SL_DEPTHWISE_CHANNELS)
                for (int64_t place = 0; place < SL_DEPTHWISE_CHANNELS; place++) {
                        int64_t channel = first + sl_depthwise_channel(channels - first, place);
                        const int8_t *from = (const int8_t *)plain + channel * p.kernel[0] * p.kernel[1];

                        pack_channel(&p, channel < channels ? from : NULL, place,
                                (int8_t *)ret_data + first / SL_DEPTHWISE_CHANNELS * block_bytes(p.kernel, p.group));
                }
        return 0;
}

/* What is stored is most of it. */
static double depthwise_seconds(const struct sl_core_figures *core, const void *state)
{
        const struct depthwise *p = state;
        double outputs = (double)(p->batch * p->out_height * p->out_width * p->channels);
        double products = outputs * (double)(p->kernel[0] * p->kernel[1]) * 2 / core->bytes;

        return core->onednn_call + 1.1 * (products / core->onednn_product + outputs * core->store / core->flops) +
               sl_cost_activation(core, p->epilogue.activation, outputs, false);
}

static void depthwise_narrow(void *state, const struct sl_part *part)
{
        struct depthwise *p = state;

        if (part->axis == SL_AXIS_COLUMNS) {
                p->channels = (part->end - part->first) * SL_DEPTHWISE_CHANNELS;
                return;
        }
        p->batch = 1;
        p->out_height = part->end - part->first;
}

static bool depthwise_reach(const void *state, const struct sl_part *part, uint32_t operand, struct sl_reach *ret_reach)
{
        const struct depthwise *p = state;
        int64_t element = is_real(p) ? sizeof(float) : 1, pixels = p->batch * p->out_height * p->out_width;

        if (operand != SL_REACH_OUTPUT)
                return false;
        if (part->axis == SL_AXIS_COLUMNS)
                return sl_reach_columns(part, SL_DEPTHWISE_CHANNELS * element, p->channels * element, pixels, ret_reach);
        return sl_reach_rows(part, p->out_width * p->channels * element, ret_reach);
}

const struct sl_cpu_loop sl_cpu_byte_depthwise = {.state_bytes = sizeof(struct depthwise),
        .plan = depthwise_plan,
        .run = depthwise_run,
        .units = depthwise_units,
        .reach = depthwise_reach,
        .form = depthwise_form,
        .repack = depthwise_repack,
        .seconds = depthwise_seconds,
        .narrow = depthwise_narrow,
        .fuses_epilogue = true};
