/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of the own kernels, as the host writes them and the device reads them: C and CUDA C++. Counts and offsets are in
 * elements and below 2^31. Pointers are addresses on the device.
 */
#pragma once

#include <stdint.h>

#define SL_OWN_DIMS     8
#define SL_OWN_OPERANDS 8
#define SL_OWN_STEPS    10

/*
 * Division of numbers below 2^31: (mulhi(n, multiplier) + n) >> shift.
 * Sources: Granlund, Montgomery: Division by Invariant Integers using Multiplication, 1994, section 4.
 */
struct sl_own_divisor {
        uint32_t divisor, multiplier, shift;
};

/* Functions of an element, or of it and an operand's, by the operators that they are; and those that only epilogues have. */
#define SL_OWN_UNARY(X)                                                                                                            \
        X(RELU) X(LEAKY_RELU) X(ELU) X(SIGMOID) X(HARD_SIGMOID) X(HARD_SWISH) X(TANH) X(SOFTPLUS) X(GELU) X(ERF) X(EXP) X(LOG)     \
        X(SQRT) X(RECIPROCAL) X(NEG) X(ABS) X(FLOOR) X(CEIL) X(ROUND) X(SIGN) X(SIN) X(COS) X(CLIP) X(ACOS) X(ACOSH) X(ASIN)       \
        X(ASINH) X(ATAN) X(ATANH) X(COSH) X(SINH) X(TAN) X(SELU) X(CELU) X(MISH) X(THRESHOLDED_RELU) X(SOFTSIGN) X(SHRINK)         \
        X(NOT) X(BITWISE_NOT)
#define SL_OWN_BINARY(X)                                                                                                           \
        X(ADD) X(SUB) X(MUL) X(DIV) X(POW) X(MIN) X(MAX) X(PRELU) X(MOD) X(BIT_SHIFT) X(BITWISE_AND) X(BITWISE_OR) X(BITWISE_XOR)

/* Of two numbers, or of one. */
#define SL_OWN_TESTS(X)                                                                                                            \
        X(EQUAL) X(GREATER) X(GREATER_OR_EQUAL) X(LESS) X(LESS_OR_EQUAL) X(AND) X(OR) X(XOR) X(IS_NAN) X(IS_INF)

enum sl_own_function {
#define X(id) SL_OWN_##id,
        SL_OWN_UNARY(X) SL_OWN_BINARY(X) SL_OWN_TESTS(X)
#undef X
        SL_OWN_GELU_TANH,
        SL_OWN_SWISH,
        SL_OWN_SCALE, /* a * x + b */
        SL_OWN_FUNCTION_COUNT,
};

struct sl_own_step {
        uint32_t function; /* enum sl_own_function */
        uint32_t operand;  /* of a function of two */
        float a, b;
};

struct sl_own_operand {
        const void *data;
        uint32_t strides[SL_OWN_DIMS];
};

/*
 * Each element of the output is operand 0's, through the steps in turn. Dimensions are those of the output, the innermost first,
 * and it is dense. @vector: elements that a thread may take at once; the innermost dimension and all strides are multiples of it,
 * or 0, or 1 for the innermost.
 */
struct sl_own_chain {
        void *out;
        uint32_t elements, n_dims, n_operands, n_steps, vector, dtype;
        int64_t least, most; /* of a CLIP of integers */
        struct sl_own_divisor dims[SL_OWN_DIMS];
        struct sl_own_operand operands[SL_OWN_OPERANDS];
        struct sl_own_step steps[SL_OWN_STEPS];
};

/* A box of elements of 1, 2, 4, 8 or 16 bytes from one place to another. */
struct sl_own_copy {
        void *out;
        const void *in;
        uint32_t elements, n_dims;
        struct sl_own_divisor dims[SL_OWN_DIMS]; /* the innermost first */
        int32_t out_strides[SL_OWN_DIMS], in_strides[SL_OWN_DIMS];
};

/* Matrices of @rows and @columns, one for each place of the outer dimensions: out[row][column] = in[column][row]. */
#define SL_OWN_TILE 32
struct sl_own_transpose {
        void *out;
        const void *in;
        uint32_t rows, columns, out_stride, in_stride; /* of a row of the output, of a column of it in the input */
        uint32_t n_outer, n_tiles;
        struct sl_own_divisor row_tiles, column_tiles, outer[SL_OWN_DIMS];
        uint32_t out_strides[SL_OWN_DIMS], in_strides[SL_OWN_DIMS];
};

enum sl_own_pad_mode { SL_OWN_PAD_CONSTANT, SL_OWN_PAD_REFLECT, SL_OWN_PAD_EDGE, SL_OWN_PAD_WRAP };

struct sl_own_pad {
        void *out;
        const void *in;
        uint32_t elements, n_dims, bytes, mode;
        uint64_t value;
        struct sl_own_divisor dims[SL_OWN_DIMS]; /* of the output, dense, the innermost first */
        int32_t begin[SL_OWN_DIMS], sizes[SL_OWN_DIMS];
        uint32_t strides[SL_OWN_DIMS];
};

struct sl_own_fill {
        void *out;
        uint32_t elements, bytes;
        uint64_t value;
};

/* A few numbers of 64 bits that are known beforehand. */
struct sl_own_values {
        void *out;
        uint32_t count;
        int64_t values[SL_OWN_DIMS];
};

/* Rows of some elements of 1 to 16 bytes, looked up. Output: [outer, indices, row]; input: [outer, limit, row]. */
struct sl_own_gather {
        void *out;
        const void *in, *indices;
        uint32_t *error;
        uint32_t elements, index_dtype, limit;
        struct sl_own_divisor row, n_indices;
};

/* Elements, each looked up along one dimension of the input; with @scatter of the output. Dimensions are those of the indices, the
 * innermost first. */
struct sl_own_gather_elements {
        void *out;
        const void *in, *indices;
        uint32_t *error;
        uint32_t elements, n_dims, bytes, index_dtype, axis, limit, scatter;
        uint32_t reduction, dtype; /* of a scatter that adds up: a thread has all that may meet in one place, in their order */
        struct sl_own_divisor dims[SL_OWN_DIMS];
        uint32_t strides[SL_OWN_DIMS]; /* of what is looked up in */
};

/* As SL_ATTR_REDUCTION has them. */
enum sl_own_scatter { SL_OWN_SCATTER, SL_OWN_SCATTER_ADD, SL_OWN_SCATTER_MUL, SL_OWN_SCATTER_MAX, SL_OWN_SCATTER_MIN };

/* Rows, looked up by @depth indices each, in each of some batches. With @scatter the output is looked up in, not the input. */
struct sl_own_gather_nd {
        void *out;
        const void *in, *indices;
        uint32_t *error;
        uint32_t elements, bytes, index_dtype, depth, batch_stride, scatter;
        uint32_t reduction, dtype, owners; /* of a scatter that adds up: threads for each element of a row, which share the rows */
        struct sl_own_divisor row, n_indices;
        uint32_t limits[SL_OWN_DIMS], strides[SL_OWN_DIMS];
};

/* Along an axis of @depth places the second value where the index means the place, the first one elsewhere. */
struct sl_own_one_hot {
        void *out;
        const void *indices, *values;
        uint32_t elements, bytes, index_dtype;
        struct sl_own_divisor inner, depth;
};

/* Channels of some tensors side by side, regrouped, and cut into others. */
#define SL_OWN_SHUFFLE_TENSORS 4
struct sl_own_shuffle {
        void *out[SL_OWN_SHUFFLE_TENSORS];
        const void *in[SL_OWN_SHUFFLE_TENSORS];
        uint32_t elements, bytes, channels_last;
        struct sl_own_divisor inner, channels, group;
        uint32_t in_channels[SL_OWN_SHUFFLE_TENSORS], out_channels[SL_OWN_SHUFFLE_TENSORS];
};

/* 1 where the diagonal is, or what is below or above it is cleared. */
struct sl_own_triangle {
        void *out;
        const void *in; /* NULL: ones along the diagonal */
        uint32_t elements, dtype, upper;
        int64_t diagonal;
        struct sl_own_divisor rows, columns;
};

struct sl_own_cast {
        void *out;
        const void *in;
        uint32_t elements, from, to;
};

/* Operators over lines of @size elements that lie @inner apart: line l begins at l / inner * size * inner + l % inner. */
enum sl_own_line_kind { SL_OWN_SOFTMAX, SL_OWN_LOG_SOFTMAX, SL_OWN_LAYER_NORM, SL_OWN_RMS_NORM, SL_OWN_LP_NORM };

/*
 * @group threads share a line; they take @vector elements at once. Scale and shift of element k of line l are at
 * l % lines_modulo * line_step + k / k_divisor * k_step.
 */
struct sl_own_lines {
        void *out;
        const void *in, *scale, *shift;
        void *mean, *deviation; /* results of each line, or NULL */
        uint32_t lines, size, kind, group, vector;
        uint32_t scale_dtype, shift_dtype, mean_dtype;
        struct sl_own_divisor inner, lines_modulo, k_divisor;
        uint32_t line_step, k_step;
        float epsilon;
        uint32_t absolute; /* of a SL_OWN_LP_NORM */
};

enum sl_own_reduction {
        SL_OWN_REDUCE_SUM,
        SL_OWN_REDUCE_MEAN,
        SL_OWN_REDUCE_MAX,
        SL_OWN_REDUCE_MIN,
        SL_OWN_REDUCE_PROD,
        SL_OWN_REDUCE_L1,
        SL_OWN_REDUCE_L2,
        SL_OWN_REDUCE_SUM_SQUARE,
        SL_OWN_REDUCE_LOG_SUM,
        SL_OWN_REDUCE_LOG_SUM_EXP,
        SL_OWN_REDUCE_POWERS, /* the root of the sum of their powers */
};

/* One result for each place of the dimensions that stay, of all places of those that go, the innermost first. */
struct sl_own_reduce {
        void *out;
        const void *in;
        uint32_t results, count, kind, group, vector, dtype, n_stays, n_goes;
        struct sl_own_divisor stays[SL_OWN_DIMS], goes[SL_OWN_DIMS];
        uint32_t stay_strides[SL_OWN_DIMS], go_strides[SL_OWN_DIMS];
        float p; /* of SL_OWN_REDUCE_POWERS */
};

/* The place of the largest, or smallest, of each line: the first one of equal ones, or the last one. */
struct sl_own_arg {
        int64_t *out;
        const void *in;
        uint32_t lines, size, group, dtype, largest, last;
        struct sl_own_divisor inner;
};

#define SL_OWN_SPATIAL 3
enum sl_own_pooling { SL_OWN_POOL_MAX, SL_OWN_POOL_AVERAGE, SL_OWN_POOL_POWERS };

/* A window over images of three dimensions, depth first; those that are missing have a size of 1. */
struct sl_own_window {
        struct sl_own_divisor out_size[SL_OWN_SPATIAL];
        int32_t in_size[SL_OWN_SPATIAL], kernel[SL_OWN_SPATIAL], stride[SL_OWN_SPATIAL], dilation[SL_OWN_SPATIAL];
        int32_t pad_begin[SL_OWN_SPATIAL], pad_end[SL_OWN_SPATIAL];
};

struct sl_own_pool {
        void *out;
        const void *in;
        int64_t *places; /* of the largest, in the input, or NULL */
        uint32_t results, kind, vector, channels_last, padding_too, by_columns;
        float p;
        struct sl_own_divisor channels;
        struct sl_own_window window;
};

/*
 * A convolution by plain loops, or a transposed one: each result adds up what its window sees. Filters are as ONNX has them. Of one of
 * lanes (starling.LanedConv) the groups interleave.
 */
struct sl_own_convolve {
        void *out;
        const void *x, *w, *bias; /* the bias may be NULL */
        uint32_t results, transposed, channels_last;
        uint32_t channels, group_channels, group_filters; /* of the image; of a group of it, and of the result */
        uint32_t lanes;                                   /* 0: groups lie one behind the other */
        struct sl_own_divisor filters;
        struct sl_own_window window;
};

/*
 * (x - mean) / sqrt(variance + epsilon) * scale + shift by channel, and a function of it. The channels of the input are some of
 * the output's, from @first on.
 */
struct sl_own_scale {
        void *out;
        const void *in;
        const void *statistics[4]; /* scale, shift, mean, variance: of the output's channels */
        uint32_t dtypes[4];
        uint32_t elements, vector, channels_last, first, out_channels, active;
        struct sl_own_divisor inner, channels;
        float epsilon;
        struct sl_own_step activation;
};

struct sl_own_lrn {
        void *out;
        const void *in;
        uint32_t elements, channels_last;
        struct sl_own_divisor inner, channels;
        int32_t before, after;
        float alpha, beta, bias; /* alpha: for each square */
};

/* As shape/resize.h has it; axes in the order of the output's memory, the innermost first. */
struct sl_own_resize_axis {
        struct sl_own_divisor out;
        uint32_t in, stride, keeps;
        float scale, extent, crop_start, crop_end;
        float support; /* of a filter that is cubic, or wider than its two places */
};

struct sl_own_resize {
        void *out;
        const void *in;
        uint32_t elements, n_axes, bytes, dtype, linear, cubic, transform, nearest, exclude_outside;
        float coefficient;
        uint64_t extrapolation;
        struct sl_own_resize_axis axes[SL_OWN_DIMS];
};

/* The best @k of each line of @size elements, sorted in shared memory, @chunk at a time beside the best so far. */
struct sl_own_top_k {
        void *out;
        int64_t *places; /* or NULL */
        const void *in;
        uint32_t lines, size, k, dtype, bytes, largest, sorted; /* sorted: keys that the shared memory has room for, a power of 2 */
        struct sl_own_divisor inner;
};

/* 1 at the first one of the largest of each line of @size elements, 0 elsewhere. */
struct sl_own_hardmax {
        void *out;
        const void *in;
        uint32_t lines, size, dtype;
        struct sl_own_divisor inner;
};

/* As GridSample has its attributes; images have three dimensions, depth first, of which @rank are there. */
struct sl_own_grid_sample {
        void *out;
        const void *in, *grid;
        uint32_t elements, rank, mode, padding, corners, dtype, grid_dtype;
        struct sl_own_divisor positions, channels;
        int32_t size[SL_OWN_SPATIAL];
};

/* The first steps of each sequence backwards, as many as it is long. Rows of @bytes, one for each step and sequence. */
struct sl_own_reverse {
        void *out;
        const void *in;
        const int64_t *lengths;
        uint32_t *error;
        uint32_t elements, bytes, steps, batch, time_first;
        struct sl_own_divisor row;
};

/* Running sums along lines of @size elements. */
struct sl_own_cum_sum {
        void *out;
        const void *in;
        uint32_t lines, size, dtype, exclusive, reverse;
        struct sl_own_divisor inner;
};

/*
 * NonMaxSuppression. A block has the boxes of one class of one image: their keys, sorted, in scratch, and a flag for each that is
 * suppressed. A second kernel writes what all of them have kept, class by class.
 */
struct sl_own_nms {
        int64_t *out, *made;
        const float *boxes, *scores, *overlap, *least; /* the last two may be NULL */
        uint64_t *keys;                                /* @padded for each class */
        uint32_t *kept, *counts;                       /* @most, 1 for each class */
        uint8_t *suppressed;                           /* @n_boxes for each class */
        uint32_t n_boxes, padded, most, room, centred, n_all;
        struct sl_own_divisor classes;
};

/* A byte q of a tensor stands for scale * (q - zero). Element e has scale number (shape/quantize.h: sl_scale_of()). */
struct sl_own_quantize {
        void *out;
        const void *in, *scale, *zero; /* zero may be NULL */
        uint32_t elements, from, to, scale_dtype;
        uint32_t block, blocks; /* 0: one scale; 0: one vector of scales */
        struct sl_own_divisor inner, size, block_size;
};

/* Bytes less their zero point. */
struct sl_own_shift {
        float *out;
        const void *in;
        uint32_t elements, dtype;
        int32_t zero;
};

/*
 * im2col over bytes in channels-last: of each place of the window the channels of each tap, in words of 4 of them, as int8.
 * Unsigned bytes become signed by @flip of each word, which takes 128 off; what lies outside the image is @zero.
 */
struct sl_own_im2col {
        uint32_t *out;
        const uint32_t *in;
        uint32_t words, flip, zero;                             /* of the output */
        struct sl_own_divisor channels, kernel[SL_OWN_SPATIAL]; /* words of a pixel; sizes of the window */
        struct sl_own_window window;
};

/*
 * scale * (sum + bias) + addend, through a function, over y_scale, and y_zero more. Channels are the innermost dimension. Sums are
 * float32, or int32 to which x_zero times the total of the channel's weights is still to be taken off.
 */
struct sl_own_settle {
        void *out;
        const void *sums;
        const float *scales;
        const int32_t *totals; /* NULL: nothing is to be taken off */
        const int32_t *bias;   /* may be NULL */
        const void *addend;    /* so may this */
        uint32_t elements, scale_step, sums_dtype, addend_dtype, y_dtype, active;
        int32_t x_zero, addend_zero, y_zero;
        double addend_scale, y_scale;
        struct sl_own_divisor channels;
        struct sl_own_step activation;
};

/* DynamicQuantizeLinear: the least and the largest of each block of the first kernel, in scratch; then bytes by those of all. */
#define SL_OWN_RANGE_BLOCKS 256
struct sl_own_dynamic_quantize {
        uint8_t *out, *zero; /* the latter may be NULL */
        float *scale;        /* so may this */
        const float *in;
        float *ranges;
        uint32_t elements, n_ranges;
};

/* x_scale * (x - x_zero) + addend_scale * (addend - addend_zero), through a function, over y_scale, and y_zero more. */
struct sl_own_quantized_add {
        void *out;
        const void *x, *addend; /* the addend may be NULL */
        uint32_t elements, x_dtype, addend_dtype, y_dtype, active;
        int32_t x_zero, addend_zero, y_zero;
        float x_scale, addend_scale, y_scale;
        struct sl_own_step activation;
};

/*
 * A recurrent layer (shape/recurrent.h), @n_turns turns of it from @turn on. A turn is a step of the sequence; a GRU that resets before
 * its product takes two of them for each step. States are float32, each of [directions, batch, units], one behind the other: hidden
 * before and after a step, which change places with each, cell, and of a GRU what the first turn of a step leaves to the second.
 */
#define SL_OWN_GATE_FUNCTIONS 3
#define SL_OWN_SAMPLES        4 /* that a warp takes at once */
enum sl_own_cell { SL_OWN_LSTM, SL_OWN_GRU, SL_OWN_RNN };
enum sl_own_state { SL_OWN_HIDDEN, SL_OWN_HIDDEN_NEXT, SL_OWN_CELL, SL_OWN_UPDATE = SL_OWN_CELL, SL_OWN_RESET, SL_OWN_STATES };

struct sl_own_gate {
        uint32_t kind; /* enum sl_gate */
        float alpha, beta;
};

struct sl_own_recurrent {
        void *out, *last_hidden, *last_cell; /* may be NULL */
        const void *x, *w;                   /* w NULL: x is the product of both, float32, without the bias */
        const void *r, *bias, *first_hidden, *first_cell, *peephole; /* the last four may be NULL */
        const int32_t *lengths;                                      /* NULL: all steps */
        uint32_t *error;
        float *states; /* of enum sl_own_state */
        uint32_t cell, dtype, gates, turns_per_step, turn, n_turns;
        uint32_t steps, batch, inputs, units, directions, backward, batch_first, input_forget, linear_before_reset;
        float clip; /* 0: none */
        struct sl_own_gate function[2][SL_OWN_GATE_FUNCTIONS]; /* of a direction */
};

/*
 * starling.RowAttention (shape/attention.h). A task is a block's rows of queries of a head of a sample. Elements between rows, and
 * of the first head's in a row, of queries, keys and values; strides of the mask along [batch, heads, rows, keys].
 */
#define SL_OWN_QUERIES         16 /* of a warp */
#define SL_OWN_ATTENTION_WARPS 4  /* of a block */
struct sl_own_attention {
        void *out;
        const void *q, *k, *v, *mask; /* the mask may be NULL */
        uint32_t tasks, rows, keys, depth, width, out_row, guard;
        uint32_t row[3], first[3], mask_strides[4], mask_dtype;
        float scale;
        struct sl_own_divisor tiles, heads;
};

/* The predictions of the members of an ensemble, [samples, classes] each, become one, always in the order of the members. */
#define SL_OWN_MEMBERS_MAX 64
struct sl_own_combine {
        float *out;
        const float *predictions[SL_OWN_MEMBERS_MAX];
        float weights[SL_OWN_MEMBERS_MAX];
        uint32_t rule, n_members, samples, classes;
};

/* Word i becomes 1 where multiprocessor i runs a block. */
struct sl_own_processors {
        uint32_t *out;
        uint32_t count;
};
