/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One test of the `cpu` backend against `ref`, written as a line of words:
 *
 *     Conv 2x3x9x9 4x3x3x3 4 pads=1,1,1,1 strides=2,2 +residual +relu nhwc packed
 *
 *   Conv            the operator, by its ONNX name; Reorder is the internal one
 *   2x3x9x9         an input; a type other than float32 follows a colon: 4:int64, 2x3:bool; "scalar"; "_" is an absent one
 *   pads=1,1        an attribute by its ONNX name
 *   +residual       the epilogue: the residual, then +relu, +clip, +relu6, +sigmoid, +tanh, +leaky, +gelu, +hardswish, +swish, +elu
 *   nhwc            all tensors of rank 3 or more are CHANNELS_LAST on the `cpu` side; "tonhwc" the output only, "fromnhwc" the
 *                   inputs only
 *   packed          input 1 (and R of an LSTM, and all weights of a MBConv) is constant and goes through pack() and repack()
 *   outputs:3       more than one output
 *   positive        all float data is in [0.5, 1.5), else in [-1, 1)
 *   wide:30         float data is that many times as large
 *   second:2        every element of input 1 is 2
 *   below:7         integer data is in [-7, 7), and the places of a TensorScatter in [0, 7]
 *   weights:f16     the node asks for weights in float16, or bf16; all float32 data is rounded to that
 *   infloats        it does not get them so
 *   loose:1e-4      allowed relative error, 1e-5 without it
 *   close:1e-12     the same of float64 and float16, which else agree to the bit
 *   signs           where an output is 0, its sign agrees
 *   masked          of input 3 three of four elements are -infinity
 *   odd:nan:7       by seed 7 an element of the first input is a NaN, or "inf", "-inf"; "mixed": one in eight elements of all
 *                   inputs is one of these, 0, -0 or a subnormal; "tiny": all are subnormal; "zeros": all are 0 or -0. Packed
 *                   inputs and scales of bytes stay, the weights of a recurrent operator too, and but for "zeros" whatever it has
 *                   beside its first input
 */
#pragma once

#include "backend.h"
#include "op.h"

#include <stdbool.h>
#include <stdint.h>

/* Numbers at the edges of float. */
enum odd_kind { ODD_NONE, ODD_NAN, ODD_INFINITE, ODD_MINUS_INFINITE, ODD_MIXED, ODD_TINY, ODD_ZEROS, ODD_KINDS };

struct test_case {
        const char *line;
        struct sl_node_desc node; /* shapes inferred, all PLAIN */
        bool nhwc_inputs, nhwc_outputs, packed, positive, extreme, in_floats, signs, masked;
        uint32_t weights; /* SL_DTYPE_F16, SL_DTYPE_BF16; NONE: no wish */
        int64_t below;
        double loose, close, wide;
        bool has_second;
        double second;
        enum odd_kind odd;
        uint64_t odd_at;
};

/* Ends the test with a message when the line makes no sense. */
void case_parse(const char *line, struct test_case *ret_case);

/* The tensors of one run. Data of inputs is random, the same each time for the same line. */
struct test_tensors {
        void *inputs[SL_NODE_INPUTS_MAX];
        void *outputs[SL_NODE_OUTPUTS_MAX];
};

/* The node as the `cpu` side sees it: the layouts chosen. */
struct sl_node_desc case_cpu_node(const struct test_case *test);

#define SL_PACKED_INPUTS 6 /* input 0 only of a Gather */

/* A kernel of @backend with everything that it needs for a launch. */
struct test_kernel {
        const struct sl_backend *backend;
        struct sl_node_desc node;
        struct sl_packed packed[SL_NODE_INPUTS_MAX];
        void *packed_data[SL_PACKED_INPUTS]; /* of an input: read-only pages, or NULL */
        size_t packed_pages[SL_PACKED_INPUTS];
        struct sl_kernel *kernel;
        void *scratch;
        struct test_tensors tensors; /* inputs filled */
};

/* False, with a test failure noted, when the backend does not take the node. @target: what it is planned for, or NULL. */
bool test_kernel_init(struct test_kernel *k, const struct sl_backend *backend, const struct test_case *test);
bool test_kernel_init_for(
        struct test_kernel *k, const struct sl_backend *backend, const struct test_case *test, const struct sl_target *target);
void test_kernel_deinit(struct test_kernel *k);
int test_kernel_launch(struct test_kernel *k);

/* The same with output 0 lying on input 0, whose data is lost. */
int test_kernel_launch_in_place(struct test_kernel *k);

/* Runs the line on both backends and compares every output, twice, and in place where the operator allows it. */
void case_check(const char *line);

/*
 * Runs the line with odd numbers: each kind that is one bit of @kinds, with @rounds seeds. Outputs agree where they are NaN,
 * infinite (and of which sign), and to the line's error where they are finite. With STARLING_ODD_ROUNDS=N in the environment
 * case_check() begins so, with all kinds and N seeds: minutes. Under AddressSanitizer an eighth of the seeds, at least one.
 */
void case_check_odd(const char *line, uint32_t kinds, uint64_t rounds);

/* Whether the backend takes it on this processor. */
bool case_is_taken(const char *line);

/*
 * Case @i of many. Under AddressSanitizer, where every launch takes ten times as long, a case is checked for one of the two
 * instruction sets that the suites are run with; each build without it checks all for both.
 */
bool case_is_for_this_set(size_t i);
bool case_line_is_for_this_set(const char *line); /* by its text, where lines are made one by one */

/* Each of them, on one thread; or each that the backend takes, where that depends on the processor. */
void case_check_all(const char *const *lines, size_t n_lines);
void case_check_taken(const char *const *lines, size_t n_lines);
