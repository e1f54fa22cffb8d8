/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fourier transforms by their definition: a sum for each bin, with sines and cosines from a table in scratch (cosines first). Exact
 * to rounding at any length, and quadratic in it.
 */
#include "element.h"
#include "kernels.h"

static const double pi = 3.14159265358979323846;

/* One row of complex (or real) numbers. */
struct row {
        const void *data, *window;
        uint32_t dtype, window_dtype;
        int64_t first, step, count; /* elements from @count on are 0 */
        bool complex;
        bool halved; /* the other half of the bins is the mirror image of this one */
        struct sl_pace *pace;
};

static void fill_table(struct sl_pace *pace, double *table, int64_t length, bool inverse)
{
        for (int64_t i = 0; i < length && sl_pace_on(pace, 1); i++) {
                table[i] = cos(2 * pi * (double)i / (double)length);
                table[length + i] = (inverse ? 1 : -1) * sin(2 * pi * (double)i / (double)length);
        }
}

static void transform_bin(
        const struct row *row, const double *table, int64_t length, int64_t bin, double *ret_real, double *ret_imaginary)
{
        double real = 0, imaginary = 0;
        int64_t at = 0;

        for (int64_t i = 0; i < row->count && sl_pace_on(row->pace, 1); i++) {
                double weight = row->window                           ? sl_ref_load(row->window, i, row->window_dtype)
                                : row->halved && i && 2 * i != length ? 2
                                                                      : 1;
                double x = weight * sl_ref_load(row->data, row->first + i * row->step, row->dtype);
                double y = row->complex ? weight * sl_ref_load(row->data, row->first + i * row->step + 1, row->dtype) : 0;

                real += x * table[at] - y * table[length + at];
                imaginary += x * table[length + at] + y * table[at];
                at = (at + bin) % length;
        }
        *ret_real = real;
        *ret_imaginary = imaginary;
}

/* Half of the bins, back into the real signal that they come from. */
static bool gives_signal(const struct sl_node_desc *node)
{
        return node->op == SL_OP_DFT && sl_attrs_int(&node->attrs, SL_ATTR_ONESIDED, 0) &&
               sl_attrs_int(&node->attrs, SL_ATTR_INVERSE, 0);
}

static int64_t length_of(const struct sl_node_desc *node, uint32_t axis)
{
        int64_t fallback = node->op == SL_OP_STFT
                                   ? (node->n_inputs > 2 && node->inputs[2].dtype ? node->inputs[2].shape.dims[0] : 1)
                                   : node->inputs[0].shape.dims[axis];

        return sl_attrs_int(&node->attrs, SL_ATTR_LENGTH, gives_signal(node) ? node->outputs[0].shape.dims[axis] : fallback);
}

static uint32_t axis_of(const struct sl_node_desc *node)
{
        int64_t axis = sl_attrs_int(&node->attrs, SL_ATTR_AXIS, -2);

        return node->op == SL_OP_STFT ? 1 : (uint32_t)(axis < 0 ? axis + node->inputs[0].shape.rank : axis);
}

size_t sl_ref_scratch_dft(const struct sl_node_desc *node)
{
        return (size_t)length_of(node, axis_of(node)) * 2 * sizeof(double);
}

int sl_ref_dft(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const struct sl_shape *in = &node->inputs[0].shape, *out = &node->outputs[0].shape;
        uint32_t axis = axis_of(node), last = in->rank - 1;
        int64_t length = length_of(node, axis), parts = in->dims[last], inner = 1, outer = 1, bins = out->dims[axis];
        bool inverse = sl_attrs_int(&node->attrs, SL_ATTR_INVERSE, 0), halved = gives_signal(node);
        double scale = inverse ? 1 / (double)length : 1;

        for (uint32_t i = 0; i < last; i++) {
                outer *= i < axis ? in->dims[i] : 1;
                inner *= i > axis ? in->dims[i] : 1;
        }
        fill_table(binding->pace, binding->scratch, length, inverse);
        for (int64_t i = 0; i < outer * inner * bins && sl_pace_on(binding->pace, 1); i++) {
                int64_t o = i / inner / bins, bin = i / inner % bins, n = in->dims[axis], most = halved ? length / 2 + 1 : length;
                struct row row = {.data = binding->inputs[0],
                        .dtype = node->inputs[0].dtype,
                        .first = (o * n * inner + i % inner) * parts,
                        .step = inner * parts,
                        .count = n < most ? n : most,
                        .complex = parts == 2,
                        .halved = halved,
                        .pace = binding->pace};
                double real, imaginary;

                transform_bin(&row, binding->scratch, length, bin, &real, &imaginary);
                sl_ref_store(binding->outputs[0], halved ? i : 2 * i, row.dtype, real * scale);
                if (!halved)
                        sl_ref_store(binding->outputs[0], 2 * i + 1, row.dtype, imaginary * scale);
        }
        return 0;
}

int sl_ref_stft(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        const int64_t *in = node->inputs[0].shape.dims, *out = node->outputs[0].shape.dims;
        int64_t length = length_of(node, 1), step = sl_attrs_int(&node->attrs, SL_ATTR_STEP, 1), frames = out[1], bins = out[2];
        bool windowed = node->n_inputs > 2 && node->inputs[2].dtype != SL_DTYPE_NONE;

        fill_table(binding->pace, binding->scratch, length, false);
        for (int64_t i = 0; i < in[0] * frames * bins && sl_pace_on(binding->pace, 1); i++) {
                int64_t sample = i / bins / frames, frame = i / bins % frames;
                struct row row = {.data = binding->inputs[0],
                        .window = windowed ? binding->inputs[2] : NULL,
                        .dtype = node->inputs[0].dtype,
                        .window_dtype = windowed ? node->inputs[2].dtype : 0,
                        .first = (sample * in[1] + frame * step) * in[2],
                        .step = in[2],
                        .count = length,
                        .complex = in[2] == 2,
                        .pace = binding->pace};
                double real, imaginary;

                transform_bin(&row, binding->scratch, length, i % bins, &real, &imaginary);
                sl_ref_store(binding->outputs[0], 2 * i, row.dtype, real);
                sl_ref_store(binding->outputs[0], 2 * i + 1, row.dtype, imaginary);
        }
        return 0;
}

int sl_ref_taper(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t length = node->outputs[0].shape.dims[0];
        double span = (double)length - (sl_attrs_int(&node->attrs, SL_ATTR_PERIODIC, 1) ? 0 : 1);

        for (int64_t i = 0; i < length && sl_pace_on(binding->pace, 1); i++) {
                double x = span > 0 ? 2 * pi * (double)i / span : 0, y;

                if (node->op == SL_OP_HANN_WINDOW)
                        y = 0.5 - 0.5 * cos(x);
                else if (node->op == SL_OP_HAMMING_WINDOW)
                        y = 25.0 / 46 - 21.0 / 46 * cos(x);
                else
                        y = 0.42 - 0.5 * cos(x) + 0.08 * cos(2 * x);
                sl_ref_store(binding->outputs[0], i, node->outputs[0].dtype, y);
        }
        return 0;
}

static double mel_of(double hertz)
{
        return 2595 * log10(1 + hertz / 700);
}

/* The bin of the transform in which edge @i of the filters lies, kept within the matrix. */
static double edge(const double range[2], int64_t i, int64_t bins, int64_t length, double rate)
{
        double mel = range[0] + (double)i * (range[1] - range[0]) / (double)(bins + 2);
        double at = floor((double)(length + 1) * 700 * (pow(10, mel / 2595) - 1) / rate);

        return at >= 0 ? fmin(at, (double)(length / 2)) : 0;
}

int sl_ref_mel_weights(const struct sl_node_desc *node, const struct sl_binding *binding)
{
        int64_t rows = node->outputs[0].shape.dims[0], bins = node->outputs[0].shape.dims[1];
        int64_t length = sl_attrs_int(&node->attrs, SL_ATTR_LENGTH, 0);
        double rate = sl_ref_load(binding->inputs[0], 0, node->inputs[0].dtype), range[2];

        range[0] = mel_of(sl_ref_load(binding->inputs[1], 0, node->inputs[1].dtype));
        range[1] = mel_of(sl_ref_load(binding->inputs[2], 0, node->inputs[2].dtype));
        for (int64_t i = 0; i < rows * bins && sl_pace_on(binding->pace, 1); i++) {
                double low = edge(range, i % bins, bins, length, rate), centre = edge(range, i % bins + 1, bins, length, rate);
                double high = edge(range, i % bins + 2, bins, length, rate), row = (double)(i / bins), weight = 0;

                if (row >= centre && row < high)
                        weight = (high - row) / (high - centre);
                else if (row == centre && low == centre)
                        weight = 1;
                else if (row >= low && row <= centre)
                        weight = (row - low) / (centre - low);
                sl_ref_store(binding->outputs[0], i, node->outputs[0].dtype, weight);
        }
        return 0;
}
