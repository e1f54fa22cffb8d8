/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starling's own CUDA kernels: what they run of a node, as launches, and the launches on a stream. A plan is made without a device
 * and holds no addresses: operands are slots of a kernel's one argument, a struct by value, and are filled in at the launch.
 *
 *      if (sl_cuda_own_supports(node) ...)                             the planner: pure
 *      sl_cuda_own_plan(node, &plan)                                   when the kernel is made
 *      sl_cuda_own_launch(own, &plan, &binding, stream)                on the request path, or into a stream that is captured
 *
 * Threads: plans are values. A library of kernels is read only once it is open.
 */
#pragma once

#include "cuda/driver/driver.h"
#include "cuda/own/ensemble.h"
#include "cuda/own/kernels.h"
#include "node.h"

#include <stdbool.h>
#include <stdint.h>

struct sl_error;

/* Where a pointer of an argument comes from. */
enum sl_own_source {
        SL_OWN_INPUT,
        SL_OWN_OUTPUT,
        SL_OWN_SCRATCH,
        SL_OWN_ERROR, /* the error word */
        SL_OWN_MADE,  /* the count that a node of SL_OP_COUNTS writes */
};

/* The pointer at @offset of the argument is @bytes behind operand @index. */
struct sl_own_slot {
        uint16_t offset;
        uint8_t source; /* enum sl_own_source */
        uint8_t index;
        uint64_t bytes;
};

#define SL_OWN_ARGUMENT_BYTES 1024
#define SL_OWN_SLOTS_MAX      14

struct sl_own_launch {
        uint32_t kernel; /* enum sl_own_kernel */
        uint32_t grid[3], block[3], shared_bytes;
        uint32_t repeats, counter; /* more than 0: it is queued so often, with its number as the word at @counter of the argument */
        uint32_t n_slots;
        struct sl_own_slot slots[SL_OWN_SLOTS_MAX];
        _Alignas(16) uint8_t argument[SL_OWN_ARGUMENT_BYTES];
};

struct sl_own_plan {
        uint32_t n_launches; /* in this order, on one stream; 0 where the node has no element */
        struct sl_own_launch *launches;
        uint64_t scratch_bytes; /* 256-byte aligned scratch of each run */
        bool checks;            /* reads indices, and may set the error word */
};

/*
 * Do own kernels run the node as it is (types, ranks, layouts, epilogue, sizes: at most 2^31 - 1 elements)? The node is inferred;
 * one whose shapes are not static, or whose parameters are not attributes yet, is not run. Pure; any thread.
 */
bool sl_cuda_own_supports(const struct sl_node_desc *node);

/*
 * How it is run. Trusts the node: sl_op_infer() agrees with its outputs. Return: 0, the plan is to be given back; -ENOTSUP
 * it is not supported; -ENOMEM.
 */
int sl_cuda_own_plan(const struct sl_node_desc *node, struct sl_own_plan *ret_plan);

/*
 * What a library has left of a node: output 0 becomes activation(output 0 + bias + residual), in place. @bias_axis: the logical
 * dimension of output 0 that input 2 is added along, -1: none; SL_OWN_BIAS_BROADCAST: BETA times input 2, broadcast. The residual is
 * the last input, where the epilogue has one.
 */
#define SL_OWN_BIAS_BROADCAST (-2)
int sl_cuda_own_plan_finish(const struct sl_node_desc *node, int bias_axis, struct sl_own_plan *ret_plan);

/*
 * A LSTM, GRU or RNN without the product of its input: that is one input more, behind those of the node, float32
 * [rows of X, directions * gates * hidden]. Return: as sl_cuda_own_plan().
 */
int sl_cuda_own_plan_turns(const struct sl_node_desc *node, struct sl_own_plan *ret_plan);

/*
 * Of a product of bytes what is before and behind its sums: input 0 less X_ZERO as float32, to output 0; and the result, from the node's
 * inputs and one more behind them, the sums, float32 with the channels innermost. Return: as sl_cuda_own_plan().
 */
int sl_cuda_own_plan_shift(const struct sl_node_desc *node, struct sl_own_plan *ret_plan);
int sl_cuda_own_plan_settle(const struct sl_node_desc *node, struct sl_own_plan *ret_plan);

/*
 * The same where the sums are those of int8, for which channels are multiples of 4: input 0 as int8 to output 0, uint8 less 128,
 * with the padding of a convolution where that is not 0 (it is the zero point); or as rows, those of its windows [n, places, taps,
 * channels]; and the result, from int32 sums and, behind them, the total of each channel's weights, by which the zero point is
 * taken off.
 */
int sl_cuda_own_plan_int8_image(const struct sl_node_desc *node, struct sl_own_plan *ret_plan);
int sl_cuda_own_plan_int8_rows(const struct sl_node_desc *node, struct sl_own_plan *ret_plan);
int sl_cuda_own_plan_int8_settle(const struct sl_node_desc *node, struct sl_own_plan *ret_plan);

/* What x's zero point is where its bytes are int8: where that is 0, so is padding. */
int64_t sl_cuda_own_int8_zero(const struct sl_node_desc *node);

void sl_cuda_own_plan_deinit(struct sl_own_plan *plan);

/* The kernels of this build, loaded into the device that is current. */
struct sl_cuda_own {
        const struct sl_cuda_driver *driver;
        CUlibrary libraries[SL_OWN_FAMILY_COUNT];
        CUkernel kernels[SL_OWN_KERNEL_COUNT];
};

/* Load time. Return: 0; -ENOMEM; -EINVAL the driver refuses the code; -EIO. */
int sl_cuda_own_open(const struct sl_cuda_driver *driver, struct sl_cuda_own *ret_own, struct sl_error *error);

/* Nothing is in flight. */
void sl_cuda_own_close(struct sl_cuda_own *own);

/* Addresses on the device. */
struct sl_own_binding {
        const CUdeviceptr *inputs, *outputs; /* n_inputs, n_outputs of the node; 0 for an absent one */
        CUdeviceptr scratch;

        /* 4 bytes, zero before: not zero afterwards where an index of the data was out of its range (-ERANGE is to be said then).
         * What is read and written stays inside the operands all the same. */
        CUdeviceptr error_word;

        CUdeviceptr made; /* 8 bytes for SL_OP_COUNTS: rows that output 0 has; 0: nobody asks */
};

/* Queues the launches. Never waits, allocates nothing. What the driver said. */
CUresult sl_cuda_own_launch(
        const struct sl_cuda_own *own, const struct sl_own_plan *plan, const struct sl_own_binding *binding, CUstream stream);

/* One launch of a plan with an argument that is filled in. */
CUresult sl_cuda_own_queue(const struct sl_cuda_own *own, const struct sl_own_launch *launch, void *arguments[1], CUstream stream);

/* The predictions of the members of an ensemble as one. */
struct sl_own_combination {
        enum sl_own_rule rule;
        uint32_t n_members;
        const float *weights; /* of a weighted sum: n_members, kept in the plan */
        uint32_t samples, classes;
};

/* Return: 0; -ENOTSUP more than 64 members, or 2^31 elements; -ENOMEM. */
int sl_cuda_own_plan_combine(const struct sl_own_combination *combination, struct sl_own_plan *ret_plan);

/* @predictions: one of each member, in model order, float32 [samples, classes]; the output is none of them. */
CUresult sl_cuda_own_combine(const struct sl_cuda_own *own, const struct sl_own_plan *plan, const CUdeviceptr *predictions,
        CUdeviceptr output, CUstream stream);

/* Runs @n_blocks blocks: word i of @words, which were zero, becomes 1 where multiprocessor i has run one of them. */
CUresult sl_cuda_own_processors(
        const struct sl_cuda_own *own, uint32_t n_blocks, CUdeviceptr words, uint32_t n_words, CUstream stream);
