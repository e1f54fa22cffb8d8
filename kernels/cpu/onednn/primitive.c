/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/onednn/primitive.h"

#include "backend.h"
#include "base/cleanup.h"
#include "base/error.h"

#include <assert.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(dnnl_memory_desc_t) <= SL_PACK_FORM_BYTES, "a memory descriptor fits a form");

/* Longer than any block of elements in a form that oneDNN uses. */
#define BLOCK_MAX         4096
#define POOL_VECTOR_BYTES 32
#define AMX_ROW_CHANNELS  32
#define IMAGE_CHANNELS    4

struct sl_primitive {
        dnnl_engine_t engine;
        dnnl_stream_t stream;
        dnnl_primitive_t primitive;
        size_t scratch_bytes;
        bool has_behind, is_narrow;
        struct sl_cpu_epilogue behind;
        int64_t elements; /* of the result */
        int n_arguments;
        uint8_t pointer_of[SL_ARGUMENT_COUNT]; /* enum sl_primitive_argument of each of arguments[] */
        dnnl_exec_arg_t arguments[SL_ARGUMENT_COUNT];
};

/* What oneDNN wants to know before it builds anything. */
struct description {
        union {
                dnnl_convolution_desc_t convolution;
                dnnl_matmul_desc_t matmul;
                dnnl_pooling_v2_desc_t pooling;
                dnnl_lrn_desc_t response;
                dnnl_eltwise_desc_t function;
        } op;
        dnnl_memory_desc_t source, weights, bias, result;
        dnnl_primitive_attr_t attr;
};

static const dnnl_alg_kind_t functions[] = {
        [SL_FUNCTION_RELU] = dnnl_eltwise_relu,
        [SL_FUNCTION_CLIP] = dnnl_eltwise_clip_v2,
        [SL_FUNCTION_SIGMOID] = dnnl_eltwise_logistic,
        [SL_FUNCTION_TANH] = dnnl_eltwise_tanh,
        [SL_FUNCTION_GELU_ERF] = dnnl_eltwise_gelu_erf,
        [SL_FUNCTION_GELU_TANH] = dnnl_eltwise_gelu_tanh,
        [SL_FUNCTION_HARD_SWISH] = dnnl_eltwise_hardswish,
        [SL_FUNCTION_SWISH] = dnnl_eltwise_swish,
        [SL_FUNCTION_ELU] = dnnl_eltwise_elu,
        [SL_FUNCTION_LINEAR] = dnnl_eltwise_linear,
        [SL_FUNCTION_EXP] = dnnl_eltwise_exp,
        [SL_FUNCTION_LOG] = dnnl_eltwise_log,
        [SL_FUNCTION_SOFTPLUS] = dnnl_eltwise_soft_relu,
};

static int from_status(dnnl_status_t status)
{
        switch (status) {
        case dnnl_success:
                return 0;
        case dnnl_out_of_memory:
                return -ENOMEM;
        case dnnl_invalid_arguments:
        case dnnl_unimplemented:
                return -ENOTSUP;
        default:
                return -EIO;
        }
}

static dnnl_data_type_t onednn_type(uint32_t dtype)
{
        switch (dtype) {
        case SL_DTYPE_F32:
                return dnnl_f32;
        case SL_DTYPE_BF16:
                return dnnl_bf16;
        case SL_DTYPE_U8:
                return dnnl_u8;
        case SL_DTYPE_I8:
                return dnnl_s8;
        case SL_DTYPE_I32:
                return dnnl_s32;
        default:
                return dnnl_data_type_undef;
        }
}

static dnnl_status_t describe_tensor(const struct sl_strided *tensor, bool any, dnnl_memory_desc_t *ret_md)
{
        dnnl_data_type_t type = onednn_type(tensor->dtype);
        dnnl_dims_t dims, strides;

        *ret_md = (dnnl_memory_desc_t){0};
        if (!tensor->rank)
                return dnnl_success;
        for (uint32_t i = 0; i < tensor->rank; i++) {
                dims[i] = tensor->dims[i];
                strides[i] = tensor->strides[i];
        }
        if (any)
                return dnnl_memory_desc_init_by_tag(ret_md, (int)tensor->rank, dims, type, dnnl_format_tag_any);
        return dnnl_memory_desc_init_by_strides(ret_md, (int)tensor->rank, dims, type, strides);
}

/* Nothing that would lead oneDNN outside a memory of the size that it computes: blocks are small and over dimensions there
 * are. */
static bool blocks_are_sane(const dnnl_memory_desc_t *form)
{
        const dnnl_blocking_desc_t *blocking = &form->format_desc.blocking;

        if (blocking->inner_nblks < 0 || blocking->inner_nblks > DNNL_MAX_NDIMS)
                return false;
        for (int i = 0; i < blocking->inner_nblks; i++)
                if (blocking->inner_idxs[i] < 0 || blocking->inner_idxs[i] >= form->ndims || blocking->inner_blks[i] < 1 ||
                        blocking->inner_blks[i] > BLOCK_MAX)
                        return false;
        return true;
}

/*
 * Weights of bytes carry sums of themselves behind their data, which make up for what oneDNN adds to a source. A primitive
 * whose own flags differ refuses the form; here it is enough that they belong to bytes.
 */
static bool extra_is_sane(const dnnl_memory_desc_t *form)
{
        const uint64_t sums =
                dnnl_memory_extra_flag_compensation_conv_s8s8 | dnnl_memory_extra_flag_compensation_conv_asymmetric_src;
        uint64_t flags = form->extra.flags & ~(uint64_t)dnnl_memory_extra_flag_scale_adjust;

        return !form->extra.flags || (form->data_type == dnnl_s8 && !(flags & ~sums));
}

/* A form comes out of a file, so it is believed only when it describes this very tensor. */
static bool form_fits(const dnnl_memory_desc_t *form, const struct sl_strided *weights)
{
        if (form->ndims != (int)weights->rank || form->data_type != onednn_type(weights->dtype) ||
                form->format_kind != dnnl_blocked)
                return false;
        if (form->offset0 || !extra_is_sane(form) || !blocks_are_sane(form))
                return false;
        for (int i = 0; i < form->ndims; i++) {
                if (form->dims[i] != weights->dims[i] || form->padded_offsets[i] || form->format_desc.blocking.strides[i] < 0)
                        return false;
                if (form->padded_dims[i] < form->dims[i] || form->padded_dims[i] - form->dims[i] >= BLOCK_MAX)
                        return false;
        }
        return true;
}

/* Weights: in the form (of exactly the bytes that it claims), of oneDNN's choice (@any), or plain. */
static dnnl_status_t describe_weights(
        const struct sl_primitive_spec *spec, const struct sl_packed *packed, bool any, dnnl_memory_desc_t *ret_md)
{
        dnnl_memory_desc_t form;

        if (any || !packed || !packed->data_bytes)
                return describe_tensor(&spec->weights, any, ret_md);
        if (packed->form_bytes != sizeof(form))
                return dnnl_invalid_arguments;
        memcpy(&form, packed->form, sizeof(form));
        if (!form_fits(&form, &spec->weights) || dnnl_memory_desc_get_size(&form) != packed->data_bytes)
                return dnnl_invalid_arguments;
        *ret_md = form;
        return dnnl_success;
}

static dnnl_status_t append_step(dnnl_post_ops_t ops, const struct sl_primitive_step *step)
{
        dnnl_memory_desc_t addend;
        dnnl_status_t status;

        if (step->kind == SL_STEP_SUM)
                return dnnl_post_ops_append_sum(ops, 1.0f);
        if (step->kind == SL_STEP_FUNCTION)
                return dnnl_post_ops_append_eltwise(ops, 1.0f, functions[step->function], step->a, step->b);
        status = describe_tensor(&step->addend, false, &addend);
        if (status != dnnl_success)
                return status;
        return dnnl_post_ops_append_binary(ops, dnnl_binary_add, &addend);
}

static dnnl_status_t append_steps(const struct sl_primitive_spec *spec, dnnl_primitive_attr_t attr)
{
        dnnl_post_ops_t ops;
        dnnl_status_t status = dnnl_post_ops_create(&ops);

        if (status != dnnl_success)
                return status;
        for (uint32_t i = 0; i < spec->n_steps && status == dnnl_success; i++)
                status = append_step(ops, &spec->steps[i]);
        if (status == dnnl_success)
                status = dnnl_primitive_attr_set_post_ops(attr, ops);
        dnnl_post_ops_destroy(ops);
        return status;
}

/* oneDNN copies the factors. Those that are not known yet are none of its business. */
static dnnl_status_t describe_scales(const struct sl_primitive_spec *spec, dnnl_primitive_attr_t attr)
{
        float common = spec->scale != 0.0f ? spec->scale : 1.0f, *scales;
        bool product = spec->kind == SL_PRIMITIVE_MATMUL || spec->kind == SL_PRIMITIVE_CONVOLUTION;
        dnnl_status_t status;
        int mask;

        if (!product || (!spec->n_scales && spec->scale == 0.0f))
                return dnnl_success;
        if (!spec->n_scales)
                return dnnl_primitive_attr_set_output_scales(attr, 1, 0, &common);
        scales = calloc(spec->n_scales, sizeof(*scales));
        if (!scales)
                return dnnl_out_of_memory;
        for (uint32_t i = 0; i < spec->n_scales; i++)
                scales[i] = common * (spec->scales ? spec->scales[i] : 1.0f);
        mask = spec->n_scales == 1 ? 0 : 1 << (spec->kind == SL_PRIMITIVE_MATMUL ? spec->result.rank - 1 : 1);
        status = dnnl_primitive_attr_set_output_scales(attr, spec->n_scales, mask, scales);
        free(scales);
        return status;
}

static dnnl_status_t describe_attr(const struct sl_primitive_spec *spec, dnnl_primitive_attr_t *ret_attr)
{
        dnnl_primitive_attr_t attr;
        dnnl_status_t status = dnnl_primitive_attr_create(&attr);

        if (status != dnnl_success)
                return status;
        status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
        if (status == dnnl_success)
                status = describe_scales(spec, attr);
        if (status == dnnl_success && spec->source_zero)
                status = dnnl_primitive_attr_set_zero_points(attr, DNNL_ARG_SRC, 1, 0, &spec->source_zero);
        if (status == dnnl_success)
                status = append_steps(spec, attr);
        if (status != dnnl_success) {
                dnnl_primitive_attr_destroy(attr);
                return status;
        }
        *ret_attr = attr;
        return dnnl_success;
}

/* The window of a convolution or pooling in oneDNN's own arrays, which are longer; it counts dilations from 0. */
struct onednn_window {
        dnnl_dims_t kernel, strides, dilations, pads_begin, pads_end;
};

static struct onednn_window read_window(const struct sl_primitive_spec *spec)
{
        struct onednn_window w = {0};

        for (int i = 0; i < 3; i++) {
                w.kernel[i] = spec->kernel[i];
                w.strides[i] = spec->strides[i];
                w.dilations[i] = spec->dilations[i] - 1;
                w.pads_begin[i] = spec->pads_begin[i];
                w.pads_end[i] = spec->pads_end[i];
        }
        return w;
}

static dnnl_status_t describe_convolution(const struct sl_primitive_spec *spec, struct description *d)
{
        struct onednn_window w = read_window(spec);

        return dnnl_dilated_convolution_forward_desc_init(&d->op.convolution, dnnl_forward_inference, dnnl_convolution_direct,
                &d->source, &d->weights, spec->bias.rank ? &d->bias : NULL, &d->result, w.strides, w.dilations, w.pads_begin,
                w.pads_end);
}

static dnnl_status_t describe_pooling(const struct sl_primitive_spec *spec, struct description *d)
{
        static const dnnl_alg_kind_t algorithms[] = {
                [SL_PRIMITIVE_POOL_MAX] = dnnl_pooling_max,
                [SL_PRIMITIVE_POOL_AVERAGE] = dnnl_pooling_avg_exclude_padding,
                [SL_PRIMITIVE_POOL_AVERAGE_PADDED] = dnnl_pooling_avg_include_padding,
        };
        struct onednn_window w = read_window(spec);

        return dnnl_pooling_v2_forward_desc_init(&d->op.pooling, dnnl_forward_inference, algorithms[spec->kind], &d->source,
                &d->result, w.strides, w.kernel, w.dilations, w.pads_begin, w.pads_end);
}

static dnnl_status_t describe_op(const struct sl_primitive_spec *spec, struct description *d)
{
        switch (spec->kind) {
        case SL_PRIMITIVE_CONVOLUTION:
                return describe_convolution(spec, d);
        case SL_PRIMITIVE_MATMUL:
                return dnnl_matmul_desc_init(&d->op.matmul, &d->source, &d->weights, spec->bias.rank ? &d->bias : NULL, &d->result);
        case SL_PRIMITIVE_POOL_MAX:
        case SL_PRIMITIVE_POOL_AVERAGE:
        case SL_PRIMITIVE_POOL_AVERAGE_PADDED:
                return describe_pooling(spec, d);
        case SL_PRIMITIVE_RESPONSE:
                return dnnl_lrn_forward_desc_init(&d->op.response, dnnl_forward_inference, dnnl_lrn_across_channels, &d->source,
                        (dnnl_dim_t)spec->axis, spec->a, spec->scale, spec->b);
        case SL_PRIMITIVE_FUNCTION:
                return dnnl_eltwise_forward_desc_init(
                        &d->op.function, dnnl_forward_inference, functions[spec->function], &d->source, spec->a, spec->b);
        default:
                return dnnl_invalid_arguments;
        }
}

static dnnl_status_t describe(const struct sl_primitive_spec *spec, const struct sl_packed *packed, bool any, struct description *d)
{
        dnnl_status_t status = describe_tensor(&spec->source, false, &d->source);

        if (status == dnnl_success)
                status = describe_weights(spec, packed, any, &d->weights);
        if (status == dnnl_success)
                status = describe_tensor(&spec->bias, false, &d->bias);
        if (status == dnnl_success)
                status = describe_tensor(&spec->result, false, &d->result);
        if (status == dnnl_success)
                status = describe_op(spec, d);
        if (status == dnnl_success)
                status = describe_attr(spec, &d->attr);
        return status;
}

static const char *name_of(dnnl_primitive_desc_t chosen)
{
        const char *name = "";

        dnnl_primitive_desc_query(chosen, dnnl_query_impl_info_str, 0, &name);
        return name;
}

/*
 * oneDNN's convolution by matrix products mixes up the channels of an addend when channels lie last (2.6.3): seen with
 * groups, and below AVX2 whenever the last block of channels is not full. Sums onto the result are right.
 */
static bool mixes_up_addend(const struct sl_primitive_spec *spec, dnnl_primitive_desc_t chosen)
{
        bool adds = false;

        for (uint32_t i = 0; i < spec->n_steps; i++)
                adds = adds || spec->steps[i].kind == SL_STEP_ADD;
        return adds && spec->kind == SL_PRIMITIVE_CONVOLUTION && spec->result.strides[1] == 1 && strstr(name_of(chosen), "gemm");
}

/*
 * On a processor that has VNNI for AVX-512 alone oneDNN's code for AVX2 saturates; kernels of bytes have VNNI in their names.
 * Its reference code does not, and is what there is for plain filters.
 */
static bool saturates(const struct sl_primitive_spec *spec, dnnl_primitive_desc_t chosen)
{
        const char *name = name_of(chosen);

        return spec->weights.dtype == SL_DTYPE_I8 && strstr(name, "int8") && !strstr(name, "ref") && !strstr(name, "vnni") &&
               !strstr(name, "amx");
}

static int64_t count_elements(const struct sl_strided *tensor)
{
        int64_t n = 1;

        for (uint32_t i = 0; i < tensor->rank; i++)
                n *= tensor->dims[i];
        return n;
}

/*
 * Pooling of bytes: without the masks of AVX-512 (seen in 2.6.3) a vector of 32 that would reach beyond the end of the tensor
 * begins before it instead, which is before the tensor where it has few more bytes than that. So are results stored, too.
 */
static bool reaches_before(const struct sl_primitive_spec *spec, dnnl_primitive_desc_t chosen)
{
        if (spec->kind != SL_PRIMITIVE_POOL_MAX || (spec->source.dtype != SL_DTYPE_U8 && spec->source.dtype != SL_DTYPE_I8))
                return false;
        return (count_elements(&spec->source) < 2 * POOL_VECTOR_BYTES || count_elements(&spec->result) < 2 * POOL_VECTOR_BYTES) &&
               !strstr(name_of(chosen), "avx512");
}

static bool is_wrong(const struct sl_primitive_spec *spec, dnnl_primitive_desc_t chosen)
{
        return mixes_up_addend(spec, chosen) || saturates(spec, chosen) || reaches_before(spec, chosen);
}

/*
 * A convolution of bfloat16 by AMX whose channels don't fill a row of a tile reads those of the pixels behind (seen in 2.6.3).
 * Their weights are 0, but 0 * NaN is NaN. Of images it is taken nonetheless, as it is up to six times as fast as
 * the next (one core of a Xeon, model 207).
 */
static bool reads_behind(const struct sl_primitive_spec *spec, dnnl_primitive_desc_t chosen)
{
        static const char reader[] = "jit:avx512_core_amx";
        int64_t channels;

        if (spec->kind != SL_PRIMITIVE_CONVOLUTION || spec->source.dtype != SL_DTYPE_BF16)
                return false;
        channels = spec->weights.dims[spec->weights.rank - spec->source.rank + 1];
        return channels > IMAGE_CHANNELS && channels < AMX_ROW_CHANNELS &&
               strncmp(name_of(chosen), reader, sizeof(reader) - 1) == 0;
}

/* Its first choice that does not read behind. The caller destroys it. */
static dnnl_status_t choose_of(
        const struct sl_primitive_spec *spec, dnnl_primitive_desc_iterator_t choices, dnnl_primitive_desc_t *ret_chosen)
{
        dnnl_status_t status = dnnl_success;

        while (status == dnnl_success) {
                dnnl_primitive_desc_t chosen = dnnl_primitive_desc_iterator_fetch(choices);

                if (!chosen)
                        return dnnl_out_of_memory;
                if (!reads_behind(spec, chosen)) {
                        *ret_chosen = chosen;
                        return dnnl_success;
                }
                dnnl_primitive_desc_destroy(chosen);
                status = dnnl_primitive_desc_iterator_next(choices);
        }
        return dnnl_unimplemented;
}

/* oneDNN's choice for the spec. The caller destroys it. */
static dnnl_status_t choose(const struct sl_primitive_spec *spec, const struct sl_packed *packed, bool any, dnnl_engine_t engine,
        dnnl_primitive_desc_t *ret_chosen)
{
        dnnl_primitive_desc_iterator_t choices;
        struct description d;
        dnnl_status_t status = describe(spec, packed, any, &d);

        if (status != dnnl_success)
                return status;
        status = dnnl_primitive_desc_iterator_create(&choices, &d.op, d.attr, engine, NULL);
        dnnl_primitive_attr_destroy(d.attr);
        if (status != dnnl_success)
                return status;
        status = choose_of(spec, choices, ret_chosen);
        dnnl_primitive_desc_iterator_destroy(choices);
        if (status == dnnl_success && is_wrong(spec, *ret_chosen)) {
                dnnl_primitive_desc_destroy(*ret_chosen);
                status = dnnl_unimplemented;
        }
        return status;
}

static bool is_slow(dnnl_primitive_desc_t chosen)
{
        return strstr(name_of(chosen), "ref") != NULL;
}

/* Bytes that the form does not use are zero, so that the plan file of one model is the same each time. */
static int fill_packed(const dnnl_memory_desc_t *liked, const struct sl_primitive_spec *spec, struct sl_packed *ret_packed)
{
        struct sl_packed packed = {0};
        dnnl_memory_desc_t plain;
        dnnl_status_t status = describe_tensor(&spec->weights, false, &plain);

        if (status != dnnl_success)
                return from_status(status);
        if (!dnnl_memory_desc_equal(liked, &plain)) {
                packed.data_bytes = dnnl_memory_desc_get_size(liked);
                packed.form_bytes = sizeof(*liked);
                memcpy(packed.form, liked, sizeof(*liked));
        }
        *ret_packed = packed;
        return 0;
}

/* No form makes slow code faster. */
static int ask_form(dnnl_primitive_desc_t chosen, const struct sl_primitive_spec *spec, struct sl_packed *ret_packed)
{
        if (spec->weights.rank && !is_slow(chosen))
                return fill_packed(dnnl_primitive_desc_query_md(chosen, dnnl_query_weights_md, 0), spec, ret_packed);
        *ret_packed = (struct sl_packed){0};
        return 0;
}

bool sl_primitive_possible(const struct sl_primitive_spec *spec, bool *ret_slow, struct sl_packed *ret_packed)
{
        dnnl_primitive_desc_t chosen;
        dnnl_engine_t engine;
        bool possible;

        if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
                return false;
        possible = choose(spec, NULL, spec->weights.rank > 0, engine, &chosen) == dnnl_success;
        if (possible) {
                *ret_slow = is_slow(chosen);
                possible = !ret_packed || ask_form(chosen, spec, ret_packed) == 0;
                dnnl_primitive_desc_destroy(chosen);
        }
        dnnl_engine_destroy(engine);
        return possible;
}

/*
 * Adds an argument with the descriptor @md. A flat descriptor is used where oneDNN must not touch the padding of what it is
 * given: setting the pointer of a padded memory object writes zeros into the padding, and packed weights are mapped read-only.
 */
static dnnl_status_t add_argument(struct sl_primitive *p, int onednn_argument, uint8_t pointer, const dnnl_memory_desc_t *md)
{
        dnnl_dims_t bytes = {(dnnl_dim_t)dnnl_memory_desc_get_size(md)};
        dnnl_memory_desc_t flat;
        dnnl_memory_t memory;
        dnnl_status_t status = dnnl_success;

        if (!md->ndims)
                return dnnl_success;
        if (pointer == SL_ARGUMENT_WEIGHTS) {
                status = dnnl_memory_desc_init_by_tag(&flat, 1, bytes, dnnl_u8, dnnl_a);
                md = &flat;
        }
        if (status == dnnl_success)
                status = dnnl_memory_create(&memory, md, p->engine, DNNL_MEMORY_NONE);
        if (status != dnnl_success)
                return status;
        p->pointer_of[p->n_arguments] = pointer;
        p->arguments[p->n_arguments++] = (dnnl_exec_arg_t){onednn_argument, memory};
        return dnnl_success;
}

static dnnl_status_t add_sides(struct sl_primitive *p, const struct sl_primitive_spec *spec)
{
        dnnl_status_t status = dnnl_success;
        uint8_t pointer = SL_ARGUMENT_SIDE;

        for (uint32_t i = 0; i < spec->n_steps && status == dnnl_success; i++) {
                dnnl_memory_desc_t addend;

                if (spec->steps[i].kind != SL_STEP_ADD)
                        continue;
                status = describe_tensor(&spec->steps[i].addend, false, &addend);
                if (status == dnnl_success)
                        status = add_argument(p, DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)i) | DNNL_ARG_SRC_1, pointer++, &addend);
        }
        return status;
}

static dnnl_status_t add_arguments(struct sl_primitive *p, dnnl_primitive_desc_t chosen, const struct sl_primitive_spec *spec)
{
        const dnnl_memory_desc_t *scratch = dnnl_primitive_desc_query_md(chosen, dnnl_query_scratchpad_md, 0);
        dnnl_memory_desc_t source, bias, result;
        dnnl_status_t status = describe_tensor(&spec->source, false, &source);

        if (status == dnnl_success)
                status = describe_tensor(&spec->bias, false, &bias);
        if (status == dnnl_success)
                status = describe_tensor(&spec->result, false, &result);
        if (status == dnnl_success)
                status = add_argument(p, DNNL_ARG_SRC, SL_ARGUMENT_SOURCE, &source);
        if (status == dnnl_success && spec->weights.rank)
                status = add_argument(
                        p, DNNL_ARG_WEIGHTS, SL_ARGUMENT_WEIGHTS, dnnl_primitive_desc_query_md(chosen, dnnl_query_weights_md, 0));
        if (status == dnnl_success)
                status = add_argument(p, DNNL_ARG_BIAS, SL_ARGUMENT_BIAS, &bias);
        if (status == dnnl_success)
                status = add_argument(p, DNNL_ARG_DST, SL_ARGUMENT_RESULT, &result);
        if (status == dnnl_success)
                status = add_argument(p, DNNL_ARG_SCRATCHPAD, SL_ARGUMENT_SCRATCH, scratch);
        if (status == dnnl_success)
                status = add_sides(p, spec);
        p->scratch_bytes = dnnl_memory_desc_get_size(scratch);
        return status;
}

/* What is run. The caller destroys it. */
static dnnl_status_t choose_run(const struct sl_primitive_spec *spec, const struct sl_packed *packed, dnnl_engine_t engine,
        dnnl_primitive_desc_t *ret_chosen)
{
        dnnl_status_t status = choose(spec, packed, false, engine, ret_chosen);

        if (status == dnnl_success && packed && packed->data_bytes && is_slow(*ret_chosen)) {
                dnnl_primitive_desc_destroy(*ret_chosen);
                status = dnnl_unimplemented;
        }
        return status;
}

static dnnl_status_t build(struct sl_primitive *p, const struct sl_primitive_spec *spec, const struct sl_packed *packed)
{
        dnnl_primitive_desc_t chosen;
        dnnl_status_t status = dnnl_engine_create(&p->engine, dnnl_cpu, 0);

        if (status == dnnl_success)
                status = dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags);
        if (status == dnnl_success)
                status = choose_run(spec, packed, p->engine, &chosen);
        if (status != dnnl_success)
                return status;
        status = dnnl_primitive_create(&p->primitive, chosen);
        if (status == dnnl_success)
                status = add_arguments(p, chosen, spec);
        dnnl_primitive_desc_destroy(chosen);
        return status;
}

static int check_form(const struct sl_primitive_spec *spec, const struct sl_packed *packed, struct sl_error *error)
{
        dnnl_memory_desc_t weights;

        if (describe_weights(spec, packed, false, &weights) == dnnl_success)
                return 0;
        return sl_error_set(error, ENOTSUP, "the packed weights are not in a form of these weights");
}

static int explain(dnnl_status_t status, const struct sl_packed *packed, struct sl_error *error)
{
        return sl_error_set(error, -from_status(status), "oneDNN cannot build the primitive%s: status %d",
                packed && packed->data_bytes ? " over weights packed in this form" : "", (int)status);
}

int sl_primitive_new(const struct sl_primitive_spec *spec, const struct sl_packed *packed, struct sl_primitive **ret_primitive,
        struct sl_error *error)
{
        struct sl_primitive *p;
        dnnl_status_t status;
        int r = check_form(spec, packed, error);

        if (r < 0)
                return r;
        p = calloc(1, sizeof(*p));
        if (!p)
                return sl_error_set(error, ENOMEM, "no memory for a oneDNN primitive");
        status = build(p, spec, packed);
        if (status != dnnl_success) {
                sl_primitive_free(p);
                return explain(status, packed, error);
        }
        p->has_behind = spec->has_behind;
        p->is_narrow = spec->result.dtype == SL_DTYPE_BF16;
        p->behind = spec->behind;
        p->elements = count_elements(&spec->result);
        *ret_primitive = p;
        return 0;
}

int sl_primitive_plan(
        const struct sl_primitive_spec *spec, const struct sl_packed *packed, size_t *ret_scratch_bytes, struct sl_error *error)
{
        dnnl_primitive_desc_t chosen;
        dnnl_engine_t engine;
        dnnl_status_t status;
        int r = check_form(spec, packed, error);

        if (r < 0)
                return r;
        status = dnnl_engine_create(&engine, dnnl_cpu, 0);
        if (status != dnnl_success)
                return explain(status, packed, error);
        status = choose_run(spec, packed, engine, &chosen);
        if (status == dnnl_success) {
                *ret_scratch_bytes = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(chosen, dnnl_query_scratchpad_md, 0));
                dnnl_primitive_desc_destroy(chosen);
        }
        dnnl_engine_destroy(engine);
        return status == dnnl_success ? 0 : explain(status, packed, error);
}

struct sl_primitive *sl_primitive_free(struct sl_primitive *p)
{
        if (!p)
                return NULL;
        for (int i = 0; i < p->n_arguments; i++)
                dnnl_memory_destroy(p->arguments[i].memory);
        if (p->primitive)
                dnnl_primitive_destroy(p->primitive);
        if (p->stream)
                dnnl_stream_destroy(p->stream);
        if (p->engine)
                dnnl_engine_destroy(p->engine);
        free(p);
        return NULL;
}

size_t sl_primitive_scratch_bytes(const struct sl_primitive *p)
{
        return p->scratch_bytes;
}

int sl_primitive_run(struct sl_primitive *p, void *const pointers[SL_ARGUMENT_COUNT])
{
        for (int i = 0; i < p->n_arguments; i++)
                if (dnnl_memory_set_data_handle(p->arguments[i].memory, pointers[p->pointer_of[i]]) != dnnl_success)
                        return -EIO;
        if (dnnl_primitive_execute(p->primitive, p->stream, p->n_arguments, p->arguments) != dnnl_success)
                return -EIO;
        if (p->has_behind && p->is_narrow)
                sl_cpu_epilogue_pass_bf16(&p->behind, pointers[SL_ARGUMENT_RESULT], p->elements);
        else if (p->has_behind)
                sl_cpu_epilogue_pass(&p->behind, pointers[SL_ARGUMENT_RESULT], p->elements);
        return 0;
}

/* A reorder runs once per model, so it may own everything that it needs. */
struct reorder {
        dnnl_engine_t engine;
        dnnl_stream_t stream;
        dnnl_primitive_desc_t chosen;
        dnnl_primitive_t primitive;
        dnnl_memory_t from, to;
};

static dnnl_status_t reorder_build(
        struct reorder *r, const dnnl_memory_desc_t *from, const void *source, const dnnl_memory_desc_t *to, void *ret_data)
{
        dnnl_status_t status = dnnl_engine_create(&r->engine, dnnl_cpu, 0);

        if (status == dnnl_success)
                status = dnnl_stream_create(&r->stream, r->engine, dnnl_stream_default_flags);
        if (status == dnnl_success)
                status = dnnl_reorder_primitive_desc_create(&r->chosen, from, r->engine, to, r->engine, NULL);
        if (status == dnnl_success)
                status = dnnl_primitive_create(&r->primitive, r->chosen);
        if (status == dnnl_success)
                status = dnnl_memory_create(&r->from, from, r->engine, (void *)source);
        if (status == dnnl_success)
                status = dnnl_memory_create(&r->to, to, r->engine, ret_data);
        return status;
}

static void reorder_deinit(struct reorder *r)
{
        if (r->to)
                dnnl_memory_destroy(r->to);
        if (r->from)
                dnnl_memory_destroy(r->from);
        if (r->primitive)
                dnnl_primitive_destroy(r->primitive);
        if (r->chosen)
                dnnl_primitive_desc_destroy(r->chosen);
        if (r->stream)
                dnnl_stream_destroy(r->stream);
        if (r->engine)
                dnnl_engine_destroy(r->engine);
}

int sl_primitive_pack(const struct sl_primitive_spec *spec, const struct sl_packed *packed, const void *plain, void *ret_data)
{
        dnnl_memory_desc_t from, to;
        struct reorder r = {0};
        dnnl_status_t status = describe_tensor(&spec->weights, false, &from);

        if (status != dnnl_success)
                return from_status(status);
        if (!packed->data_bytes || describe_weights(spec, packed, false, &to) != dnnl_success)
                return -EINVAL;
        memset(ret_data, 0, packed->data_bytes);
        status = reorder_build(&r, &from, plain, &to, ret_data);
        if (status == dnnl_success) {
                dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, r.from}, {DNNL_ARG_TO, r.to}};

                status = dnnl_primitive_execute(r.primitive, r.stream, 2, arguments);
        }
        reorder_deinit(&r);
        return from_status(status);
}

/* Those of a large network, so that its second worker finds what the first has made. */
#define FEW 256

static void keep_few(void)
{
        int capacity;

        if (dnnl_get_primitive_cache_capacity(&capacity) == dnnl_success && capacity > FEW)
                (void)dnnl_set_primitive_cache_capacity(FEW);
}

void sl_primitive_keep_few(void)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        pthread_once(&once, keep_few);
}

void sl_primitive_version(char *ret_text, size_t text_bytes)
{
        const dnnl_version_t *version = dnnl_version();

        snprintf(ret_text, text_bytes, "oneDNN %d.%d.%d, instructions 0x%x", version->major, version->minor, version->patch,
                (unsigned)dnnl_get_effective_cpu_isa());
}
