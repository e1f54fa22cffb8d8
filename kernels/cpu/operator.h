/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the operators of this backend are written. There are two ways, and an operator may have both:
 *
 *   a loop    plan() turns a node into a flat state that owns nothing (what to walk, with which strides and which function),
 *             run() does it. The state is all that a kernel of that kind owns.
 *   a call    describe() turns a node into the spec of a oneDNN primitive and says which input is which of its arguments.
 *
 * Both are pure functions of the node, so what supports() promises is what compile() does. backend.c asks the call first, then the
 * loop. Threads: a state is only read by run(); any thread may plan and describe.
 */
#pragma once

#include "backend.h"
#include "core_figures.h"
#include "cpu/primitive.h"
#include "node.h"
#include "op.h"

/* What a kernel takes. A plan lowers state_bytes when it did not need all of its state, and says how much scratch a launch needs.
 */
struct sl_cpu_sizes {
        size_t state_bytes, scratch_bytes;
};

struct sl_cpu_loop {
        size_t state_bytes; /* at most */

        /* Fills @state (zeroed, aligned for any type). False: not a node for this loop. */
        bool (*plan)(const struct sl_node_desc *node, void *state, struct sl_cpu_sizes *sizes);

        /* As sl_backend.launch. */
        int (*run)(const void *state, const struct sl_binding *binding);

        /*
         * A loop over constant weights in a form of its own (sl_cpu_form()); both NULL for all others. form() says false for an
         * input that stays as it is, and must not depend on the batch. It and repack() see only nodes that plan() has taken.
         */
        bool (*form)(const struct sl_node_desc *node, uint32_t index, struct sl_packed *ret_packed);
        int (*repack)(const struct sl_node_desc *node, uint32_t index, const void *plain, void *ret_data);

        /* compile() says which inputs lie packed, all of them in the loop's own form; NULL: input 1 does, or nothing is packed. */
        void (*weights)(void *state, const struct sl_packed *packed);

        /*
         * A loop over constant tables that say where to read: looks at all of them once, when the kernel is made; @constants holds
         * NULL for an input that is none. NULL: nothing to check. -ENOTSUP; -ERANGE: a table leads outside; -ENOMEM.
         */
        int (*check)(const void *state, const void *const *constants);

        /* About, on such a core; only of loops that stand in algorithm.c. */
        double (*seconds)(const struct sl_core_figures *core, const void *state);

        const struct sl_cpu_loop *instead; /* tried where plan() declines; packs nothing. NULL: none */

        bool finishes; /* takes an epilogue: plan() looks at it */
};

/* The form of weights of shape @dims (4), which take @floats when packed; @name says how they lie. */
void sl_cpu_form(struct sl_packed *ret_packed, const char *name, const int64_t dims[4], int64_t floats);

struct sl_cpu_call {
        struct sl_primitive_spec spec;
        int8_t input_of[SL_ARGUMENT_COUNT]; /* node input of each argument; -1: none */
        int summand;                        /* node input that is copied into the result before the run; 0: none */
        int scales;                         /* node input that is spec.scales, a constant; 0: none */
        struct sl_tensor turned;            /* if it has a type: input 0 is first turned into this layout, in scratch */
};

/* Fills @call (zeroed, input_of all -1 except SOURCE, which is 0). False: not a node for oneDNN. */
typedef bool sl_cpu_describe(const struct sl_node_desc *node, struct sl_cpu_call *call);

sl_cpu_describe sl_cpu_describe_convolution;
sl_cpu_describe sl_cpu_describe_gemm;
sl_cpu_describe sl_cpu_describe_matmul;
sl_cpu_describe sl_cpu_describe_pool;
sl_cpu_describe sl_cpu_describe_response; /* LRN */
sl_cpu_describe sl_cpu_describe_softmax;
sl_cpu_describe sl_cpu_describe_function;
sl_cpu_describe sl_cpu_describe_quantized_convolution;
sl_cpu_describe sl_cpu_describe_quantized_matmul;

extern const struct sl_cpu_loop sl_cpu_binary; /* broadcasting arithmetic, comparisons, logic */
extern const struct sl_cpu_loop sl_cpu_fold;   /* Sum, Mean, Min, Max of many inputs */
extern const struct sl_cpu_loop sl_cpu_unary;  /* functions that need no table of polynomials */
extern const struct sl_cpu_loop sl_cpu_cast;
extern const struct sl_cpu_loop sl_cpu_is_nan;
extern const struct sl_cpu_loop sl_cpu_where;
extern const struct sl_cpu_loop sl_cpu_copy; /* whatever only moves elements */
extern const struct sl_cpu_loop sl_cpu_pad;  /* but with constants, which is sl_cpu_copy */
extern const struct sl_cpu_loop sl_cpu_concat;
extern const struct sl_cpu_loop sl_cpu_shuffle; /* starling.ChannelShuffle */
extern const struct sl_cpu_loop sl_cpu_gather;
extern const struct sl_cpu_loop sl_cpu_gather_elements;
extern const struct sl_cpu_loop sl_cpu_recurrent;    /* GRU, RNN, and the LSTM that sl_cpu_lstm declines */
extern const struct sl_cpu_loop sl_cpu_trees;        /* starling.Trees */
extern const struct sl_cpu_loop sl_cpu_class_scores; /* starling.ClassScores */
extern const struct sl_cpu_loop sl_cpu_distance;     /* starling.SquaredDistance */
extern const struct sl_cpu_loop sl_cpu_resize;
extern const struct sl_cpu_loop sl_cpu_conv_transpose;
extern const struct sl_cpu_loop sl_cpu_top_k;
extern const struct sl_cpu_loop sl_cpu_reduce;  /* GlobalAveragePool too */
extern const struct sl_cpu_loop sl_cpu_average; /* AveragePool, of windows for which this holds: */
bool sl_cpu_averages_many(const struct sl_node_desc *node);
extern const struct sl_cpu_loop sl_cpu_softmax;   /* over an axis that is not the innermost */
extern const struct sl_cpu_loop sl_cpu_scale;     /* BatchNormalization, of a Concat too: per channel */
extern const struct sl_cpu_loop sl_cpu_attention; /* starling.RowAttention */
extern const struct sl_cpu_loop sl_cpu_normalise; /* LayerNormalization, InstanceNormalization: per row */
extern const struct sl_cpu_loop sl_cpu_quantize;  /* one scale for the tensor */
extern const struct sl_cpu_loop sl_cpu_dequantize;
extern const struct sl_cpu_loop sl_cpu_dynamic_quantize;
extern const struct sl_cpu_loop sl_cpu_quantized_add;

extern const struct sl_cpu_loop sl_cpu_lstm;
extern const struct sl_cpu_loop sl_cpu_max_pool;       /* channels-last */
extern const struct sl_cpu_loop sl_cpu_product;        /* MatMul and Gemm by a constant matrix */
extern const struct sl_cpu_loop sl_cpu_byte_product;   /* starling.QuantizedMatMul, and QuantizedConv over images */
extern const struct sl_cpu_loop sl_cpu_grouped;        /* Conv with few channels a group, one above all */
extern const struct sl_cpu_loop sl_cpu_planes;         /* Conv of few channels, from PLAIN to CHANNELS_LAST */
extern const struct sl_cpu_loop sl_cpu_window_product; /* Conv without groups */
extern const struct sl_cpu_loop sl_cpu_separable;      /* starling.SeparableConv */
extern const struct sl_cpu_loop sl_cpu_winograd_2;     /* Conv, F(2x2, 3x3) */
extern const struct sl_cpu_loop sl_cpu_winograd_4;     /* Conv, F(4x4, 3x3), wider windows and lines */

/*
 * Before a function with a hot loop: compiled for AVX-512, AVX2 and the baseline, chosen when the program is loaded. The build
 * defines it as nothing under sanitizers, whose runtime is not up yet when the choice is made.
 */
#ifndef SL_CPU_CLONES
#error "the build file defines SL_CPU_CLONES"
#endif

static inline bool sl_cpu_is_f32(const struct sl_tensor *tensor)
{
        return tensor->dtype == SL_DTYPE_F32;
}

static inline bool sl_cpu_is_nhwc_f32(const struct sl_tensor *tensor)
{
        return tensor->dtype == SL_DTYPE_F32 && tensor->layout == SL_LAYOUT_CHANNELS_LAST;
}

/* The types that the library multiplies and adds up in float32. */
static inline bool sl_cpu_is_real(const struct sl_tensor *tensor)
{
        return tensor->dtype == SL_DTYPE_F32 || tensor->dtype == SL_DTYPE_BF16;
}

static inline bool sl_cpu_is_byte(const struct sl_tensor *tensor)
{
        return tensor->dtype == SL_DTYPE_U8 || tensor->dtype == SL_DTYPE_I8;
}

static inline bool sl_cpu_is_empty(const struct sl_tensor *tensor)
{
        return !sl_shape_elements(&tensor->shape);
}

/* Below rank 3 there is one layout only. */
static inline bool sl_cpu_same_layout(const struct sl_tensor *a, const struct sl_tensor *b)
{
        return a->layout == b->layout || a->shape.rank < 3;
}

static inline bool sl_cpu_same_place(const struct sl_tensor *a, const struct sl_tensor *b)
{
        return sl_shape_equal(&a->shape, &b->shape) && sl_cpu_same_layout(a, b);
}
