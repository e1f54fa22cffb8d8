/* SPDX-License-Identifier: Apache-2.0 */
#include "case.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/split_mix.h"
#include "compare.h"
#include "cpu/base/threads.h"
#include "guarded.h"

#include "ref/half.h"
#include "rounds.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const struct {
        const char *word;
        uint32_t activation;
        float a, b;
} activations[] = {
        {"+relu", SL_ACT_RELU, 0, 0},
        {"+clip", SL_ACT_CLIP, -0.25f, 0.5f},
        {"+relu6", SL_ACT_CLIP, 0, 6},
        {"+sigmoid", SL_ACT_SIGMOID, 0, 0},
        {"+tanh", SL_ACT_TANH, 0, 0},
        {"+leaky", SL_ACT_LEAKY_RELU, 0.1f, 0},
        {"+gelu", SL_ACT_GELU_ERF, 0, 0},
        {"+hardswish", SL_ACT_HARD_SWISH, 0, 0},
        {"+swish", SL_ACT_SWISH, 1.5f, 0},
        {"+elu", SL_ACT_ELU, 0.75f, 0},
};

static uint32_t parse_dtype(const char *word)
{
        for (uint32_t dtype = 1; dtype < SL_DTYPE_LIMIT; dtype++)
                if (!strcmp(word, sl_dtype_name(dtype)))
                        return dtype;
        cr_assert_fail("no element type %s", word);
        return SL_DTYPE_NONE;
}

static void parse_input(struct test_case *test, char *word)
{
        struct sl_tensor *tensor = &test->node.inputs[test->node.n_inputs++];
        char *type = strchr(word, ':'), *rest;

        *tensor = (struct sl_tensor){0};
        if (!strcmp(word, "_"))
                return;
        if (type)
                *type++ = 0;
        tensor->dtype = type ? parse_dtype(type) : SL_DTYPE_F32;
        if (!strcmp(word, "scalar"))
                return;
        for (char *dim = strtok_r(word, "x", &rest); dim; dim = strtok_r(NULL, "x", &rest))
                tensor->shape.dims[tensor->shape.rank++] = atoll(dim);
}

/* Internal operators go without their prefix. */
static int find_op(const char *word)
{
        for (int op = 0; op < SL_OP_COUNT; op++) {
                const char *name = sl_op_name((uint32_t)op), *dot = strchr(name, '.');

                if (!strcmp(dot ? dot + 1 : name, word))
                        return op;
        }
        cr_assert_fail("no operator %s", word);
        return 0;
}

static bool is_quantized_product(uint32_t op)
{
        return op == SL_OP_QUANTIZED_CONV || op == SL_OP_QUANTIZED_MATMUL;
}

static void parse_attribute(struct test_case *test, char *word)
{
        static const uint32_t lists[] = {SL_ATTR_AXES, SL_ATTR_KERNEL_SHAPE, SL_ATTR_STRIDES, SL_ATTR_PADS, SL_ATTR_DILATIONS,
                SL_ATTR_PERM, SL_ATTR_STARTS, SL_ATTR_ENDS, SL_ATTR_STEPS, SL_ATTR_SPLIT, SL_ATTR_SHAPE, SL_ATTR_SIZES,
                SL_ATTR_OUTPUT_PADDING, SL_ATTR_ACTIVATIONS};
        static const uint32_t reals[] = {SL_ATTR_ALPHA, SL_ATTR_BETA, SL_ATTR_EPSILON, SL_ATTR_MIN, SL_ATTR_MAX, SL_ATTR_VALUE,
                SL_ATTR_X_SCALE, SL_ATTR_ADDEND_SCALE, SL_ATTR_Y_SCALE, SL_ATTR_CLIP, SL_ATTR_CUBIC_COEFF, SL_ATTR_DEPTH,
                SL_ATTR_SPATIAL_SCALE};
        char *value = strchr(word, '='), *rest;
        int64_t values[SL_ATTR_INTS_MAX];
        double floats[SL_ATTR_INTS_MAX];
        uint32_t id = 0, count = 0;

        *value++ = 0;
        while (id < SL_ATTR_COUNT && strcmp(sl_attr_name(id), word))
                id++;
        cr_assert_lt(id, SL_ATTR_COUNT, "no attribute %s in %s", word, test->line);
        for (size_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++)
                if (reals[i] == id) {
                        sl_attrs_set_float(&test->node.attrs, id, atof(value));
                        return;
                }
        for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
                if (lists[i] == id) {
                        for (char *n = strtok_r(value, ",", &rest); n; n = strtok_r(NULL, ",", &rest))
                                values[count++] = atoll(n);
                        sl_attrs_set_ints(&test->node.attrs, id, values, count);
                        return;
                }
        if (id == SL_ATTR_SCALES || id == SL_ATTR_ACTIVATION_ALPHA || id == SL_ATTR_ACTIVATION_BETA) {
                for (char *n = strtok_r(value, ",", &rest); n; n = strtok_r(NULL, ",", &rest))
                        floats[count++] = (double)(float)atof(n);
                sl_attrs_set_floats(&test->node.attrs, id, floats, count);
                return;
        }
        sl_attrs_set_int(&test->node.attrs, id, atoll(value));
}

static void parse_epilogue(struct test_case *test, const char *word)
{
        if (!strcmp(word, "+residual")) {
                test->node.epilogue.has_residual = 1;
                return;
        }
        for (size_t i = 0; i < sizeof(activations) / sizeof(activations[0]); i++)
                if (!strcmp(word, activations[i].word)) {
                        test->node.epilogue.activation = activations[i].activation;
                        test->node.epilogue.act_a = activations[i].a;
                        test->node.epilogue.act_b = activations[i].b;
                        return;
                }
        cr_assert_fail("no epilogue %s", word);
}

static const char *const odd_words[ODD_KINDS] = {"none", "nan", "inf", "-inf", "mixed", "tiny", "zeros"};

static void parse_odd(struct test_case *test, char *word)
{
        char *at = strchr(word, ':');

        cr_assert(at, "odd:%s names no element", word);
        *at++ = 0;
        for (int kind = ODD_NONE; kind < ODD_KINDS; kind++)
                if (!strcmp(word, odd_words[kind]))
                        test->odd = (enum odd_kind)kind;
        test->odd_at = strtoull(at, NULL, 10);
}

static void parse_word(struct test_case *test, char *word)
{
        if (*word == '+')
                parse_epilogue(test, word);
        else if (strchr(word, '='))
                parse_attribute(test, word);
        else if ((*word >= '0' && *word <= '9') || *word == '_' || !strncmp(word, "scalar", 6))
                parse_input(test, word);
        else if (!strcmp(word, "nhwc"))
                test->nhwc_inputs = test->nhwc_outputs = true;
        else if (!strcmp(word, "tonhwc"))
                test->nhwc_outputs = true;
        else if (!strcmp(word, "fromnhwc"))
                test->nhwc_inputs = true;
        else if (!strcmp(word, "packed"))
                test->packed = true;
        else if (!strcmp(word, "positive"))
                test->positive = true;
        else if (!strcmp(word, "extreme"))
                test->extreme = true;
        else if (!strncmp(word, "outputs:", 8))
                test->node.n_outputs = (uint32_t)atoi(word + 8);
        else if (!strncmp(word, "below:", 6))
                test->below = atoll(word + 6);
        else if (!strncmp(word, "second:", 7))
                test->has_second = true, test->second = atof(word + 7);
        else if (!strncmp(word, "wide:", 5))
                test->wide = atof(word + 5);
        else if (!strncmp(word, "weights:", 8))
                test->weights = strcmp(word + 8, "f16") == 0 ? SL_DTYPE_F16 : SL_DTYPE_BF16;
        else if (!strcmp(word, "infloats"))
                test->in_floats = true;
        else if (!strcmp(word, "signs"))
                test->signs = true;
        else if (!strcmp(word, "masked"))
                test->masked = true;
        else if (!strncmp(word, "odd:", 4))
                parse_odd(test, word + 4);
        else if (!strncmp(word, "close:", 6))
                test->close = atof(word + 6);
        else if (!strncmp(word, "loose:", 6))
                test->loose = atof(word + 6);
        else
                cr_assert_fail("no word %s in %s", word, test->line);
}

void case_parse(const char *line, struct test_case *ret_case)
{
        struct test_case test = {.line = line, .below = 100, .loose = 1e-5, .wide = 1.0, .node.n_outputs = 1};
        struct sl_error error = {{0}};
        char *copy = strdup(line), *rest, *word = strtok_r(copy, " ", &rest);
        int op = find_op(word);

        test.node.op = (uint32_t)op;
        while ((word = strtok_r(NULL, " ", &rest)))
                parse_word(&test, word);
        free(copy);
        if (test.weights)
                sl_attrs_set_int(&test.node.attrs, SL_ATTR_WEIGHTS, test.weights);
        if (op == SL_OP_REORDER)
                sl_attrs_set_int(&test.node.attrs, SL_ATTR_LAYOUT, SL_LAYOUT_PLAIN);
        /* The residual has the shape of the output, which is inferred with any residual in its place. */
        if (test.node.epilogue.has_residual)
                test.node.inputs[test.node.n_inputs++] = test.node.inputs[0];
        if (test.node.epilogue.has_residual) {
                struct sl_node_desc bare = test.node;

                bare.epilogue.has_residual = 0;
                bare.n_inputs--;
                cr_assert_eq(sl_op_infer(&bare, &error), 0, "%s: %s", line, error.text);
                test.node.inputs[test.node.n_inputs - 1] = bare.outputs[0];
                if (is_quantized_product(test.node.op) && sl_attrs_find(&test.node.attrs, SL_ATTR_ADDEND_SCALE))
                        test.node.inputs[test.node.n_inputs - 1].dtype = SL_DTYPE_U8;
        }
        cr_assert_eq(sl_op_infer(&test.node, &error), 0, "%s: %s", line, error.text);
        *ret_case = test;
}

static void set_layout(struct sl_tensor *tensor)
{
        if (tensor->shape.rank >= 3 && tensor->shape.rank <= 5)
                tensor->layout = SL_LAYOUT_CHANNELS_LAST;
}

struct sl_node_desc case_cpu_node(const struct test_case *test)
{
        struct sl_node_desc node = test->node;
        bool has_weights = node.op == SL_OP_CONV || node.op == SL_OP_LANED_CONV || node.op == SL_OP_QUANTIZED_CONV ||
                           node.op == SL_OP_CONV_TRANSPOSE;

        for (uint32_t i = 0; i < node.n_inputs && test->nhwc_inputs; i++)
                if (i == 0 || (node.op != SL_OP_MBCONV && (!has_weights || i != 1)))
                        set_layout(&node.inputs[i]);
        for (uint32_t i = 0; i < node.n_outputs && test->nhwc_outputs; i++)
                set_layout(&node.outputs[i]);
        /* A residual lies as the output does. */
        if (node.epilogue.has_residual)
                node.inputs[node.n_inputs - 1].layout = node.outputs[0].layout;
        if (node.op == SL_OP_REORDER)
                sl_attrs_set_int(&node.attrs, SL_ATTR_LAYOUT, node.outputs[0].layout);
        return node;
}

static double random_value(const struct test_case *test, uint32_t dtype, uint64_t *state)
{
        double unit = (double)(sl_split_mix_next(state) >> 11) / (double)(1ull << 53);

        if (dtype == SL_DTYPE_BOOL)
                return unit < 0.5;
        if (sl_dtype_is_float(dtype))
                return test->wide * (test->positive ? 0.5 + unit : 2.0 * unit - 1.0);
        if (test->extreme && dtype == SL_DTYPE_U8)
                return unit < 0.25 ? 0 : UINT8_MAX;
        if (test->extreme && dtype == SL_DTYPE_I8)
                return unit < 0.5 ? INT8_MIN : INT8_MAX;
        if (dtype == SL_DTYPE_U8)
                return floor(unit * (double)test->below);
        return floor((2.0 * unit - 1.0) * (double)test->below);
}

/* Cut off, not rounded: it is random data. */
static uint16_t to_bf16(float value)
{
        uint32_t bits;

        memcpy(&bits, &value, sizeof(bits));
        return (uint16_t)(bits >> 16);
}

static float from_bf16(uint16_t half)
{
        uint32_t bits = (uint32_t)half << 16;
        float value;

        memcpy(&value, &bits, sizeof(value));
        return value;
}

static void store(void *data, uint32_t dtype, uint64_t index, double value)
{
        switch (dtype) {
        case SL_DTYPE_F32:
                ((float *)data)[index] = (float)value;
                break;
        case SL_DTYPE_F64:
                ((double *)data)[index] = value;
                break;
        case SL_DTYPE_I64:
                ((int64_t *)data)[index] = (int64_t)value;
                break;
        case SL_DTYPE_I32:
                ((int32_t *)data)[index] = (int32_t)value;
                break;
        case SL_DTYPE_I16:
                ((int16_t *)data)[index] = (int16_t)value;
                break;
        case SL_DTYPE_I8:
                ((int8_t *)data)[index] = (int8_t)value;
                break;
        case SL_DTYPE_U64:
                ((uint64_t *)data)[index] = (uint64_t)value;
                break;
        case SL_DTYPE_U32:
                ((uint32_t *)data)[index] = (uint32_t)value;
                break;
        case SL_DTYPE_U16:
                ((uint16_t *)data)[index] = (uint16_t)value;
                break;
        case SL_DTYPE_BF16:
                ((uint16_t *)data)[index] = to_bf16((float)value);
                break;
        case SL_DTYPE_F16:
                ((uint16_t *)data)[index] = sl_ref_to_f16(value);
                break;
        default:
                cr_assert_eq(sl_dtype_bytes(dtype), 1);
                ((uint8_t *)data)[index] = (uint8_t)value;
                break;
        }
}

/* Copies between layouts, one element at a time: the plainest way there is. Most lie the same way. */
static void permute(const struct sl_tensor *to, void *target, const struct sl_tensor *from, const void *source)
{
        int64_t to_strides[SL_RANK_MAX], from_strides[SL_RANK_MAX];
        size_t bytes = sl_dtype_bytes(to->dtype);
        uint64_t elements = sl_shape_elements(&to->shape);

        if (to->layout == from->layout) {
                memcpy(target, source, sl_tensor_bytes(to));
                return;
        }
        sl_tensor_strides(to, to_strides);
        sl_tensor_strides(from, from_strides);
        for (uint64_t i = 0; i < elements; i++) {
                int64_t rest = (int64_t)i, to_offset = 0, from_offset = 0;

                for (uint32_t d = to->shape.rank; d-- > 0; rest /= to->shape.dims[d]) {
                        to_offset += rest % to->shape.dims[d] * to_strides[d];
                        from_offset += rest % to->shape.dims[d] * from_strides[d];
                }
                memcpy((char *)target + to_offset * (int64_t)bytes, (const char *)source + from_offset * (int64_t)bytes, bytes);
        }
}

/* What the weights lie in holds the number exactly. */
static double rounded(const struct test_case *test, uint32_t dtype, double value)
{
        if (test->weights == SL_DTYPE_NONE || dtype != SL_DTYPE_F32)
                return value;
        return test->weights == SL_DTYPE_F16 ? (double)sl_ref_from_f16(sl_ref_to_f16(value))
                                             : (double)from_bf16(to_bf16((float)value));
}

static bool is_recurrent(uint32_t op)
{
        return op == SL_OP_LSTM || op == SL_OP_GRU || op == SL_OP_RNN;
}

#define ODD_STEP 7919 /* a prime: as many rounds as elements meet each, fewer are spread */

/* Packed, or as little to be changed between launches as what is. */
static bool stays(const struct test_case *test, uint32_t index)
{
        bool is_residual = test->node.epilogue.has_residual && index == test->node.n_inputs - 1;

        if (is_residual)
                return false;
        if (is_quantized_product(test->node.op) && index == 2)
                return true;
        if (test->node.op == SL_OP_MBCONV || test->node.op == SL_OP_GATHER)
                return test->packed && (index == 0) == (test->node.op == SL_OP_GATHER);
        if (test->node.op == SL_OP_NIBBLE_MATMUL)
                return test->packed && index > 0;
        return test->packed && index == 1;
}

static bool is_odd(const struct test_case *test, uint32_t index)
{
        if (test->odd == ODD_NONE || stays(test, index) || !sl_dtype_is_float(test->node.inputs[index].dtype))
                return false;
        if (is_recurrent(test->node.op))
                return index == 0 || (test->odd == ODD_ZEROS && index > 2);
        return index == 0 || test->odd >= ODD_MIXED;
}

/* Its instructions take subnormals for 0. */
static bool is_bf16_product(const struct test_case *test)
{
        uint32_t op = test->node.op;

        return (op == SL_OP_CONV || op == SL_OP_MATMUL || op == SL_OP_GEMM) && test->node.inputs[0].dtype == SL_DTYPE_BF16;
}

/* With nothing behind it, or all bits: where these are rounded away they carry. */
static double nan_of(uint64_t random)
{
        return random % 2 ? -__builtin_nan("0xfffffffffffff") : __builtin_nan("");
}

static double odd_value(const struct test_case *test, uint64_t random)
{
        static const double values[] = {0.0, -0.0, (double)INFINITY, -(double)INFINITY, 0x1p-149, -0x1p-130, 0x1p-140};
        uint64_t kind = random % (is_bf16_product(test) ? 5 : 8);

        return kind ? values[kind - 1] : nan_of(random >> 8);
}

static void make_odd(const struct test_case *test, uint32_t index, uint32_t dtype, uint64_t elements, void *values)
{
        uint64_t state = test->odd_at * 7919 + index;

        if (!is_odd(test, index) || !elements)
                return;
        if (test->odd == ODD_MIXED) {
                for (uint64_t i = 0; i < elements; i++)
                        if (sl_split_mix_next(&state) % 8 == 0)
                                store(values, dtype, i, odd_value(test, sl_split_mix_next(&state)));
        } else if (test->odd == ODD_ZEROS) {
                for (uint64_t i = 0; i < elements; i++)
                        store(values, dtype, i, sl_split_mix_next(&state) % 2 ? 0.0 : -0.0);
        } else if (test->odd != ODD_TINY) {
                store(values, dtype, test->odd_at * ODD_STEP % elements,
                        test->odd == ODD_NAN        ? nan_of(test->odd_at / elements)
                        : test->odd == ODD_INFINITE ? (double)INFINITY
                                                    : -(double)INFINITY);
        }
}

static void fill_input(const struct test_case *test, uint32_t index, const struct sl_tensor *as, void *data)
{
        struct sl_tensor plain = test->node.inputs[index];
        uint64_t state = 1000 + index, elements = sl_shape_elements(&plain.shape);
        void *values = malloc(sl_tensor_bytes(&plain) + 1);
        const double tiny = test->odd == ODD_TINY && is_odd(test, index) ? 0x1p-128 : 1;

        for (const char *c = test->line; *c; c++)
                state = state * 31 + (unsigned char)*c;
        for (uint64_t i = 0; i < elements; i++)
                store(values, plain.dtype, i,
                        rounded(test, plain.dtype,
                                test->has_second && index == 1 ? test->second : random_value(test, plain.dtype, &state) * tiny));
        for (uint64_t i = 0; i < elements && test->node.op == SL_OP_TENSOR_SCATTER && index == 2; i++)
                ((int64_t *)values)[i] = llabs(((int64_t *)values)[i]);
        for (uint64_t i = 0; i < elements && test->masked && index == 3; i++)
                if (sl_split_mix_next(&state) % 4)
                        store(values, plain.dtype, i, -(double)INFINITY);
        make_odd(test, index, plain.dtype, elements, values);
        permute(as, data, &plain, values);
        free(values);
}

static void make_tensors(struct test_kernel *k, const struct test_case *test)
{
        for (uint32_t i = 0; i < k->node.n_inputs; i++) {
                if (k->node.inputs[i].dtype == SL_DTYPE_NONE)
                        continue;
                k->tensors.inputs[i] = guarded_alloc(sl_tensor_bytes(&k->node.inputs[i]));
                fill_input(test, i, &k->node.inputs[i], k->tensors.inputs[i]);
        }
        for (uint32_t i = 0; i < k->node.n_outputs; i++)
                k->tensors.outputs[i] = guarded_alloc(sl_tensor_bytes(&k->node.outputs[i]));
}

/* Packed weights lie in read-only pages, as in a plan file: whoever writes into them dies. */
static bool pack_input(struct test_kernel *k, const struct test_case *test, uint32_t index)
{
        struct sl_packed *packed = &k->packed[index];
        int r = k->backend->planner->pack(NULL, &k->node, index, packed);

        cr_expect_eq(r, 0, "pack: %d", r);
        if (sl_attrs_find(&k->node.attrs, SL_ATTR_WEIGHTS))
                cr_expect_eq(packed->data_bytes >= sl_tensor_bytes(&k->node.inputs[index]), test->in_floats,
                        "%s: input %u takes %d bytes", test->line, index, (int)packed->data_bytes);
        if (r || !packed->data_bytes)
                return !r;
        k->packed_pages[index] = sl_align_up(packed->data_bytes, SL_PAGE_BYTES);
        k->packed_data[index] = mmap(NULL, k->packed_pages[index], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        cr_assert_neq(k->packed_data[index], MAP_FAILED);
        r = k->backend->planner->repack(NULL, &k->node, index, packed, k->tensors.inputs[index], k->packed_data[index]);
        cr_expect_eq(r, 0, "repack: %d", r);
        mprotect(k->packed_data[index], k->packed_pages[index], PROT_READ);
        return !r;
}

static bool pack_weights(struct test_kernel *k, const struct test_case *test)
{
        bool all = k->node.op == SL_OP_MBCONV || k->node.op == SL_OP_NIBBLE_MATMUL;

        for (uint32_t i = 2; all && i < k->node.n_inputs && i < SL_PACKED_INPUTS; i++)
                if (k->tensors.inputs[i] && !pack_input(k, test, i))
                        return false;
        if (k->node.op == SL_OP_GATHER)
                return pack_input(k, test, 0);
        return pack_input(k, test, 1) && (!is_recurrent(k->node.op) || pack_input(k, test, 2));
}

/* What is planned without code takes what the kernel does: workers compare. */
static void check_planned(const struct test_kernel *k, const struct test_case *test, const struct sl_kernel_source *source)
{
        struct sl_kernel_source uncut = *source;
        struct sl_provision provision;

        uncut.uncut = true;
        cr_expect_eq(k->backend->planner->provide(&uncut, &provision, NULL), 0, "%s: it cannot be planned", test->line);
        cr_expect_eq(provision.scratch_bytes, k->backend->runner->scratch_bytes(k->kernel), "%s: scratch of %zu bytes is planned",
                test->line, (size_t)provision.scratch_bytes);
}

bool test_kernel_init(struct test_kernel *k, const struct sl_backend *backend, const struct test_case *test)
{
        return test_kernel_init_for(k, backend, test, NULL);
}

bool test_kernel_init_for(
        struct test_kernel *k, const struct sl_backend *backend, const struct test_case *test, const struct sl_target *target)
{
        const void *constants[SL_NODE_INPUTS_MAX] = {NULL};
        struct sl_error error = {{0}};
        int r;

        *k = (struct test_kernel){.backend = backend, .node = strcmp(backend->name, "cpu") ? test->node : case_cpu_node(test)};
        cr_expect(backend->planner->supports(NULL, &k->node), "%s: backend %s does not support it", test->line, backend->name);
        if (!backend->planner->supports(NULL, &k->node))
                return false;
        make_tensors(k, test);
        if (test->packed && !strcmp(backend->name, "cpu") && !pack_weights(k, test))
                return false;
        if (test->packed && k->node.op != SL_OP_GATHER)
                constants[1] = k->packed_data[1] ? k->packed_data[1] : k->tensors.inputs[1];
        if (is_quantized_product(k->node.op))
                constants[2] = k->tensors.inputs[2];
        const struct sl_kernel_source source = {.node = &k->node, .packed = k->packed, .constants = constants, .target = target};
        r = backend->runner->compile(NULL, &source, &k->kernel, &error);
        cr_expect_eq(r, 0, "%s: compile for %s: %d, %s", test->line, backend->name, r, error.text);
        if (r)
                return false;
        check_planned(k, test, &source);
        k->scratch = guarded_alloc(backend->runner->scratch_bytes(k->kernel));
        return true;
}

void test_kernel_deinit(struct test_kernel *k)
{
        k->kernel = k->backend->runner->kernel_free(k->kernel);
        for (uint32_t i = 0; i < SL_PACKED_INPUTS; i++)
                if (k->packed_data[i])
                        munmap(k->packed_data[i], k->packed_pages[i]);
        for (uint32_t i = 0; i < k->node.n_inputs; i++)
                guarded_free(k->tensors.inputs[i]);
        for (uint32_t i = 0; i < k->node.n_outputs; i++)
                guarded_free(k->tensors.outputs[i]);
        guarded_free(k->scratch);
}

static int launch_part(struct test_kernel *k, void *output, const struct sl_part *part)
{
        const void *inputs[SL_NODE_INPUTS_MAX];
        void *outputs[SL_NODE_OUTPUTS_MAX];
        struct sl_binding binding = {.inputs = inputs, .outputs = outputs, .scratch = k->scratch, .part = part};

        memcpy(inputs, k->tensors.inputs, sizeof(inputs));
        memcpy(outputs, k->tensors.outputs, sizeof(outputs));
        for (uint32_t i = 0; i < SL_PACKED_INPUTS; i++)
                if (k->packed_data[i])
                        inputs[i] = k->packed_data[i];
        outputs[0] = output;
        return k->backend->runner->launch(k->kernel, &binding);
}

int test_kernel_launch(struct test_kernel *k)
{
        return launch_part(k, k->tensors.outputs[0], NULL);
}

int test_kernel_launch_in_place(struct test_kernel *k)
{
        return launch_part(k, k->tensors.inputs[0], NULL);
}

static void compare_output(const struct test_case *test, const struct test_kernel *cpu, const struct test_kernel *ref, uint32_t i)
{
        const struct sl_tensor *plain = &ref->node.outputs[i];
        void *values = malloc(sl_tensor_bytes(plain) + 1);

        permute(plain, values, &cpu->node.outputs[i], cpu->tensors.outputs[i]);
        case_compare(test, i, plain, values, ref->tensors.outputs[i]);
        free(values);
}

static bool may_lie_in_place(const struct sl_node_desc *node)
{
        const struct sl_tensor *x = &node->inputs[0], *y = &node->outputs[0];

        return (sl_op_traits(node->op) & SL_OP_INPLACE) && x->dtype == y->dtype && x->layout == y->layout &&
               sl_shape_equal(&x->shape, &y->shape);
}

#define UNWRITTEN 0xa5

/* What the parts have written of one output, each byte by one of them. */
struct gathered {
        uint8_t *bytes, *writers;
        uint64_t n;
};

static void gather(struct gathered *all, const uint8_t *output, uint32_t writer, const char *line)
{
        for (uint64_t i = 0; i < all->n; i++) {
                if (output[i] == UNWRITTEN)
                        continue;
                cr_expect(!all->writers[i], "%s: part %u writes byte %llu, as part %u does", line, writer, (unsigned long long)i,
                        all->writers[i] - 1u);
                if (all->writers[i])
                        return;
                all->writers[i] = (uint8_t)(writer + 1);
                all->bytes[i] = output[i];
        }
}

/* One for each of @n bytes that is reached, else zero. The caller's to free. */
static uint8_t *mark_reached(const struct sl_reach *reach, int64_t n)
{
        uint8_t *marks = calloc((size_t)n + 1, 1);

        for (int64_t run = 0; run < reach->runs; run++) {
                int64_t first = reach->first + run * reach->pitch, end = first + reach->bytes;

                first = first < 0 ? 0 : first;
                end = end < n ? end : n;
                if (first < end)
                        memset(marks + first, 1, (size_t)(end - first));
        }
        return marks;
}

/* Whatever lies outside of what a part is said to read becomes something else; @saved holds the inputs, each NULL or owned. */
static void spoil_inputs(struct test_kernel *cpu, const struct sl_part *part, void *saved[SL_NODE_INPUTS_MAX])
{
        for (uint32_t i = 0; i < cpu->node.n_inputs; i++) {
                int64_t bytes = (int64_t)sl_tensor_bytes(&cpu->node.inputs[i]);
                uint8_t *input = cpu->tensors.inputs[i], *marks;
                struct sl_reach reach;

                saved[i] = NULL;
                if (cpu->node.inputs[i].dtype == SL_DTYPE_NONE || (i < SL_PACKED_INPUTS && cpu->packed_data[i]) ||
                        !cpu->backend->runner->reach(cpu->kernel, part, i, &reach))
                        continue;
                saved[i] = memcpy(malloc((size_t)bytes + 1), input, (size_t)bytes);
                marks = mark_reached(&reach, bytes);
                for (int64_t b = 0; b < bytes; b++)
                        input[b] ^= (uint8_t)(marks[b] - 1);
                free(marks);
        }
}

static void restore_inputs(struct test_kernel *cpu, void *saved[SL_NODE_INPUTS_MAX])
{
        for (uint32_t i = 0; i < cpu->node.n_inputs; i++) {
                if (saved[i])
                        memcpy(cpu->tensors.inputs[i], saved[i], sl_tensor_bytes(&cpu->node.inputs[i]));
                free(saved[i]);
        }
}

/* A part whose other bytes are spoilt writes what the whole has there, and nothing outside of what it is said to write. */
static void check_reach(const struct test_case *test, struct test_kernel *cpu, const struct sl_part *part, void *const *whole)
{
        void *saved[SL_NODE_INPUTS_MAX];

        spoil_inputs(cpu, part, saved);
        for (uint32_t i = 0; i < cpu->node.n_outputs; i++)
                memset(cpu->tensors.outputs[i], UNWRITTEN, sl_tensor_bytes(&cpu->node.outputs[i]));
        cr_expect_eq(launch_part(cpu, cpu->tensors.outputs[0], part), 0);
        restore_inputs(cpu, saved);
        for (uint32_t i = 0; i < cpu->node.n_outputs; i++) {
                const uint8_t *output = cpu->tensors.outputs[i], *wanted = whole[i];
                int64_t bytes = (int64_t)sl_tensor_bytes(&cpu->node.outputs[i]), outside = 0, other = 0;
                struct sl_reach reach;
                bool known = cpu->backend->runner->reach(cpu->kernel, part, SL_REACH_OUTPUT + i, &reach);
                uint8_t *marks = known ? mark_reached(&reach, bytes) : memset(malloc((size_t)bytes + 1), 1, (size_t)bytes);

                for (int64_t b = 0; b < bytes; b++) {
                        other += output[b] != UNWRITTEN && output[b] != wanted[b];
                        outside += output[b] != UNWRITTEN && !marks[b];
                }
                free(marks);
                cr_expect(!other, "%s: units %lld to %lld along axis %u read more than they say", test->line,
                        (long long)part->first, (long long)part->end, part->axis);
                cr_expect(!outside, "%s: units %lld to %lld along axis %u write %lld bytes more than they say", test->line,
                        (long long)part->first, (long long)part->end, part->axis, (long long)outside);
        }
}

/* Each part by itself, with whatever in scratch: together they write what the whole does, and no byte twice. */
static void check_parts(const struct test_case *test, struct test_kernel *cpu, uint32_t axis, uint32_t count)
{
        int64_t units = cpu->backend->runner->units(cpu->kernel, axis);
        struct gathered all[SL_NODE_OUTPUTS_MAX];
        void *whole[SL_NODE_OUTPUTS_MAX];

        if (cpu->backend->runner->divide(cpu->kernel, axis, count) < 0)
                return; /* it is computed whole */
        for (uint32_t i = 0; i < cpu->node.n_outputs; i++) {
                all[i].n = sl_tensor_bytes(&cpu->node.outputs[i]);
                all[i].bytes = memset(malloc(all[i].n + 1), UNWRITTEN, all[i].n);
                all[i].writers = calloc(all[i].n + 1, 1);
                whole[i] = memcpy(malloc(all[i].n + 1), cpu->tensors.outputs[i], all[i].n);
        }
        for (uint32_t p = count; p-- > 0;) {
                struct sl_part part = sl_part_of(axis, units, p, count);

                memset(cpu->scratch, (int)(p + 3) * 51, cpu->backend->runner->scratch_bytes(cpu->kernel));
                for (uint32_t i = 0; i < cpu->node.n_outputs; i++)
                        memset(cpu->tensors.outputs[i], UNWRITTEN, all[i].n);
                cr_expect_eq(launch_part(cpu, cpu->tensors.outputs[0], &part), 0);
                for (uint32_t i = 0; i < cpu->node.n_outputs; i++)
                        gather(&all[i], cpu->tensors.outputs[i], p, test->line);
                check_reach(test, cpu, &part, whole);
        }
        for (uint32_t i = 0; i < cpu->node.n_outputs; i++) {
                cr_expect(!memcmp(all[i].bytes, whole[i], all[i].n), "%s: %u parts along axis %u give other bits", test->line,
                        count, axis);
                memcpy(cpu->tensors.outputs[i], whole[i], all[i].n);
                free(all[i].bytes);
                free(all[i].writers);
                free(whole[i]);
        }
}

/* Stage by stage over one scratch, the parts of every second one from the last on. */
static void check_stages(const struct test_case *test, struct test_kernel *cpu, uint32_t axis, uint32_t count)
{
        const struct sl_runner *runner = cpu->backend->runner;
        void *whole[SL_NODE_OUTPUTS_MAX];

        for (uint32_t i = 0; i < cpu->node.n_outputs; i++) {
                uint64_t bytes = sl_tensor_bytes(&cpu->node.outputs[i]);

                whole[i] = memcpy(malloc(bytes + 1), cpu->tensors.outputs[i], bytes);
                memset(cpu->tensors.outputs[i], UNWRITTEN, bytes);
        }
        memset(cpu->scratch, UNWRITTEN, runner->scratch_bytes(cpu->kernel));
        for (int64_t stage = 0; stage < runner->stages(cpu->kernel); stage++)
                for (uint32_t p = 0; p < count; p++) {
                        struct sl_part part =
                                sl_part_of(axis, runner->units(cpu->kernel, axis), stage % 2 ? count - 1 - p : p, count);

                        part.stage = stage;
                        cr_expect_eq(launch_part(cpu, cpu->tensors.outputs[0], &part), 0);
                }
        for (uint32_t i = 0; i < cpu->node.n_outputs; i++) {
                cr_expect(!memcmp(whole[i], cpu->tensors.outputs[i], sl_tensor_bytes(&cpu->node.outputs[i])),
                        "%s: %u parts along axis %u give other bits in output %u", test->line, count, axis, i);
                free(whole[i]);
        }
}

static void check_all_parts(const struct test_case *test, struct test_kernel *cpu)
{
#ifdef __SANITIZE_ADDRESS__ /* where each launch takes ten times as long */
        static const uint32_t counts[] = {3};
#else
        static const uint32_t counts[] = {2, 3, 4, 16};
#endif

        for (uint32_t axis = SL_AXIS_ROWS; axis < SL_AXIS_COUNT; axis++)
                for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
                        if (cpu->backend->runner->units(cpu->kernel, axis) > 1)
                                (cpu->backend->runner->stages(cpu->kernel) > 1 ? check_stages : check_parts)(
                                        test, cpu, axis, counts[i]);
}

/* As the whole does in place, of which the input lies in @input. */
static void check_parts_in_place(
        const struct test_case *test, struct test_kernel *cpu, const void *input, const void *whole, uint64_t bytes)
{
        int64_t units = cpu->backend->runner->units(cpu->kernel, SL_AXIS_ROWS);

        if (units < 2 || cpu->backend->runner->divide(cpu->kernel, SL_AXIS_ROWS, 3) < 0)
                return;
        memcpy(cpu->tensors.inputs[0], input, bytes);
        for (uint32_t p = 3; p-- > 0;) {
                struct sl_part part = sl_part_of(SL_AXIS_ROWS, units, p, 3);

                cr_expect_eq(launch_part(cpu, cpu->tensors.inputs[0], &part), 0);
        }
        cr_expect(!memcmp(whole, cpu->tensors.inputs[0], bytes), "%s: parts in place give other bits", test->line);
}

static void check_again(const struct test_case *test, struct test_kernel *cpu)
{
        uint64_t bytes = sl_tensor_bytes(&cpu->node.outputs[0]);
        void *first = malloc(bytes + 1), *input = malloc(bytes + 1);

        memcpy(first, cpu->tensors.outputs[0], bytes);
        memset(cpu->tensors.outputs[0], 0xff, bytes);
        cr_expect_eq(test_kernel_launch(cpu), 0);
        cr_expect(!memcmp(first, cpu->tensors.outputs[0], bytes), "%s: the second run gives other bits", test->line);
        if (may_lie_in_place(&cpu->node)) {
                memcpy(input, cpu->tensors.inputs[0], bytes);
                cr_expect_eq(test_kernel_launch_in_place(cpu), 0);
                cr_expect(!memcmp(first, cpu->tensors.inputs[0], bytes), "%s: in place it gives other bits", test->line);
                check_parts_in_place(test, cpu, input, first, bytes);
        }
        free(first);
        free(input);
}

#define ODD_LOOSE 3.0 /* times as much error as the line allows, since sums of little are left */

static void check_odd_values(struct test_case *test, struct test_kernel *cpu, struct test_kernel *ref)
{
        char line[400];

        for (uint32_t i = 0; i < cpu->node.n_inputs; i++)
                if (is_odd(test, i)) {
                        fill_input(test, i, &cpu->node.inputs[i], cpu->tensors.inputs[i]);
                        fill_input(test, i, &ref->node.inputs[i], ref->tensors.inputs[i]);
                }
        cr_expect_eq(test_kernel_launch(cpu), 0, "%s: launch on cpu", test->line);
        cr_expect_eq(test_kernel_launch(ref), 0, "%s: launch on ref", test->line);
        snprintf(line, sizeof(line), "%s odd:%s:%llu", test->line, odd_words[test->odd], (unsigned long long)test->odd_at);
        struct test_case named = *test;
        named.line = line;
        named.loose *= ODD_LOOSE;
        named.close *= ODD_LOOSE;
        for (uint32_t i = 0; i < cpu->node.n_outputs; i++)
                compare_output(&named, cpu, ref, i);
}

/* Where the number lies changes what is computed, and hardly what is touched, which is what AddressSanitizer looks at. */
static uint64_t rounds_here(uint64_t rounds)
{
        return SL_ROUNDS(rounds) ? SL_ROUNDS(rounds) : 1;
}

void case_check_odd(const char *line, uint32_t kinds, uint64_t rounds)
{
        struct test_case test;
        struct test_kernel cpu, ref;

        rounds = rounds_here(rounds);
        case_parse(line, &test);
        if (test_kernel_init(&cpu, &sl_backend_cpu, &test) && test_kernel_init(&ref, &sl_backend_ref, &test)) {
                for (int kind = ODD_NAN; kind < ODD_KINDS; kind++) {
                        test.odd = (enum odd_kind)kind;
                        for (test.odd_at = 0; kinds >> kind & 1 && test.odd_at < rounds; test.odd_at++)
                                check_odd_values(&test, &cpu, &ref);
                }
                test_kernel_deinit(&ref);
        }
        test_kernel_deinit(&cpu);
}

void case_check(const char *line)
{
        const char *odd_rounds = getenv("STARLING_ODD_ROUNDS");
        struct test_case test;
        struct test_kernel cpu, ref;

        if (odd_rounds)
                case_check_odd(line, UINT32_MAX, strtoull(odd_rounds, NULL, 10));
        case_parse(line, &test);
        if (test_kernel_init(&cpu, &sl_backend_cpu, &test) && test_kernel_init(&ref, &sl_backend_ref, &test)) {
                cr_expect_eq(test_kernel_launch(&cpu), 0, "%s: launch on cpu", line);
                cr_expect_eq(test_kernel_launch(&ref), 0, "%s: launch on ref", line);
                for (uint32_t i = 0; i < cpu.node.n_outputs; i++) {
                        compare_output(&test, &cpu, &ref, i);
                        cr_expect(guarded_stands(cpu.tensors.outputs[i], sl_tensor_bytes(&cpu.node.outputs[i])),
                                "%s: output %u is written outside", line, i);
                }
                cr_expect(guarded_stands(cpu.scratch, cpu.backend->runner->scratch_bytes(cpu.kernel)),
                        "%s: scratch is written outside", line);
                check_all_parts(&test, &cpu);
                check_again(&test, &cpu);
                test_kernel_deinit(&ref);
        }
        test_kernel_deinit(&cpu);
}

bool case_is_for_this_set(size_t i)
{
#ifdef __SANITIZE_ADDRESS__
        const char *limit = getenv("ONEDNN_MAX_CPU_ISA");

        return i % 2 == (limit && strcmp(limit, "AVX2") == 0);
#else
        (void)i;
        return true;
#endif
}

bool case_line_is_for_this_set(const char *line)
{
        uint32_t hash = 2166136261u;

        for (; *line; line++)
                hash = (hash ^ (uint8_t)*line) * 16777619u;
        return case_is_for_this_set(hash >> 16);
}

void case_check_all(const char *const *lines, size_t n_lines)
{
        sl_cpu_use_one_thread();
        for (size_t i = 0; i < n_lines; i++)
                if (case_is_for_this_set(i))
                        case_check(lines[i]);
}

bool case_is_taken(const char *line)
{
        struct sl_node_desc node;
        struct test_case test;

        case_parse(line, &test);
        node = case_cpu_node(&test);
        return sl_backend_cpu.planner->supports(NULL, &node);
}

void case_check_taken(const char *const *lines, size_t n_lines)
{
        sl_cpu_use_one_thread();
        for (size_t i = 0; i < n_lines; i++)
                if (case_is_for_this_set(i) && case_is_taken(lines[i]))
                        case_check(lines[i]);
}
