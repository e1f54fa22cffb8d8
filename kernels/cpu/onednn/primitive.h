/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One oneDNN primitive over memory of the caller. This pair of files holds every call of oneDNN's C API (version 2), so
 * that another version of it means another primitive.c.
 *
 * Threads: a primitive belongs to one thread at a time. Ownership: a primitive owns its engine, stream and memory objects; tensors
 * and scratch are the caller's and are handed over at each run. What a primitive is, is said by a plain struct, the spec.
 */
#pragma once

#include "cpu/gemm/epilogue.h"
#include "tensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_error;
struct sl_packed;
struct sl_primitive;

enum sl_primitive_kind {
        SL_PRIMITIVE_CONVOLUTION,
        SL_PRIMITIVE_MATMUL,
        SL_PRIMITIVE_POOL_MAX,
        SL_PRIMITIVE_POOL_AVERAGE,        /* over the elements inside the tensor */
        SL_PRIMITIVE_POOL_AVERAGE_PADDED, /* over the whole kernel */
        SL_PRIMITIVE_RESPONSE,            /* x / (b + a / axis * sum of squares over `axis` channels) ^ scale */
        SL_PRIMITIVE_FUNCTION,
};

/* Functions of one element. a and b are those of enum sl_activation where that has them. */
enum sl_primitive_function {
        SL_FUNCTION_RELU, /* a: slope of the negative side */
        SL_FUNCTION_CLIP, /* a: minimum, b: maximum */
        SL_FUNCTION_SIGMOID,
        SL_FUNCTION_TANH,
        SL_FUNCTION_GELU_ERF,
        SL_FUNCTION_GELU_TANH,
        SL_FUNCTION_HARD_SWISH,
        SL_FUNCTION_SWISH,  /* x * sigmoid(a * x) */
        SL_FUNCTION_ELU,    /* a: scale of the negative side */
        SL_FUNCTION_LINEAR, /* a * x + b */
        SL_FUNCTION_EXP,
        SL_FUNCTION_LOG,
        SL_FUNCTION_SOFTPLUS,
};

/* A tensor by its strides (in elements); one rank more than tensors have, for the groups of weights. */
#define SL_STRIDED_RANK_MAX (SL_RANK_MAX + 1)
struct sl_strided {
        uint32_t rank;  /* 0: there is none */
        uint32_t dtype; /* enum sl_dtype: float32, bfloat16, int8, uint8, int32 */
        int64_t dims[SL_STRIDED_RANK_MAX];
        int64_t strides[SL_STRIDED_RANK_MAX];
};

#define SL_PRIMITIVE_STEPS_MAX 6
#define SL_PRIMITIVE_SIDES_MAX 3

/* Pointers of one run, by what they are. SIDE is the first of SL_PRIMITIVE_SIDES_MAX addends. */
enum sl_primitive_argument {
        SL_ARGUMENT_SOURCE,
        SL_ARGUMENT_WEIGHTS,
        SL_ARGUMENT_BIAS,
        SL_ARGUMENT_RESULT,
        SL_ARGUMENT_SCRATCH,
        SL_ARGUMENT_SIDE,
        SL_ARGUMENT_COUNT = SL_ARGUMENT_SIDE + SL_PRIMITIVE_SIDES_MAX,
};

enum sl_primitive_step_kind {
        SL_STEP_FUNCTION,
        SL_STEP_ADD, /* the addend is the next SIDE argument, and broadcasts */
        SL_STEP_SUM, /* what lay in the result before the run is added */
};

/* What happens to each element of the result, in order. */
struct sl_primitive_step {
        uint32_t kind; /* enum sl_primitive_step_kind */
        struct sl_strided addend;
        uint32_t function; /* enum sl_primitive_function */
        float a, b;
};

struct sl_primitive_spec {
        uint32_t kind; /* enum sl_primitive_kind */
        struct sl_strided source, weights, bias, result;
        int64_t kernel[3], strides[3], dilations[3], pads_begin[3], pads_end[3]; /* per spatial dimension; dilations start at 1 */
        float scale;       /* of the product, before the steps, 0: none; of RESPONSE: the exponent */
        uint32_t n_scales; /* of a product of bytes: 1, or one for each channel of the result; 0: none */
        const float
                *scales; /* they times `scale` apply to the sums; only looked at while a primitive is made. NULL: not known yet */
        int32_t source_zero; /* of a product of bytes: what stands for zero in the source */
        uint32_t axis;       /* of RESPONSE: the width of the window */
        uint32_t function;   /* of FUNCTION */
        float a, b;
        uint32_t n_steps;
        struct sl_primitive_step steps[SL_PRIMITIVE_STEPS_MAX];
        bool has_behind;
        struct sl_cpu_epilogue behind; /* if it has one: over the result, which is dense, by own code */
};

/*
 * Can oneDNN build it, with weights in a form of its own choice? *ret_slow is true when it only has its plain reference code
 * for it. *ret_packed (if not NULL) is the form that it likes best; data_bytes 0 when that is spec->weights itself. Any thread.
 */
bool sl_primitive_possible(const struct sl_primitive_spec *spec, bool *ret_slow, struct sl_packed *ret_packed);

/* Turns plain weights (as spec->weights) into @packed's form: packed->data_bytes at @ret_data. Return: as above, -EINVAL a damaged
 * form. */
int sl_primitive_pack(const struct sl_primitive_spec *spec, const struct sl_packed *packed, const void *plain, void *ret_data);

/*
 * @packed: the form of the weights; NULL or data_bytes 0: plain, as in the spec. Load time: allocates and generates code.
 * Return: 0; -ENOTSUP oneDNN has no code for it, or only reference code for weights in that form, or the form is not one of
 * these weights; -ENOMEM.
 */
int sl_primitive_new(const struct sl_primitive_spec *spec, const struct sl_packed *packed, struct sl_primitive **ret_primitive,
        struct sl_error *error);
struct sl_primitive *sl_primitive_free(struct sl_primitive *primitive);

/* What such a primitive would have of scratch, and whether there would be one, without its code. Return: as above. */
int sl_primitive_plan(
        const struct sl_primitive_spec *spec, const struct sl_packed *packed, size_t *ret_scratch_bytes, struct sl_error *error);
size_t sl_primitive_scratch_bytes(const struct sl_primitive *primitive);

/*
 * What one takes with its code at most, as far as was seen, since oneDNN does not say it: products 61 KB with AVX-512, 15 KB with
 * AVX2 (AMD EPYC, family 25, model 17).
 */
#define SL_PRIMITIVE_BYTES (64u << 10)

/* Computes on the calling thread. pointers[] by enum sl_primitive_argument; inputs are only read. Return: 0; -EIO never seen. */
int sl_primitive_run(struct sl_primitive *primitive, void *const pointers[SL_ARGUMENT_COUNT]);

/*
 * From now on oneDNN keeps few primitives that nobody holds any more, code included, for somebody who wants the same: for a process
 * whose sizes seldom return. It keeps 1,024 else.
 * Of the process; any thread.
 */
void sl_primitive_keep_few(void);

/* Which oneDNN this is and which instructions it sees, environment included: what its forms of weights depend on. */
void sl_primitive_version(char *ret_text, size_t text_bytes);
