/* SPDX-License-Identifier: Apache-2.0 */
#include "node_bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sl_node_desc bench_node(enum sl_op op)
{
        return (struct sl_node_desc){.op = op, .n_outputs = 1};
}

void bench_input(struct sl_node_desc *node, enum sl_dtype dtype, struct sl_shape shape)
{
        node->inputs[node->n_inputs++] = (struct sl_tensor){.dtype = dtype, .shape = shape};
}

void bench_expect_shape(struct sl_node_desc *node, uint32_t index, struct sl_shape want)
{
        char text[SL_SHAPE_TEXT_BYTES], want_text[SL_SHAPE_TEXT_BYTES];
        struct sl_error error = {""};
        int r = sl_op_infer(node, &error);

        cr_assert_eq(r, 0, "%s", error.text);
        cr_assert(sl_shape_equal(&node->outputs[index].shape, &want), "%s: output %u is %s, want %s", sl_op_name(node->op), index,
                sl_shape_print(&node->outputs[index].shape, text), sl_shape_print(&want, want_text));
}

void bench_expect_error(struct sl_node_desc *node, int code, const char *part)
{
        struct sl_error error = {""};
        int r = sl_op_infer(node, &error);

        cr_assert_eq(r, -code, "%s: %d instead of %d: %s", sl_op_name(node->op), r, -code, error.text);
        cr_assert_not_null(strstr(error.text, part), "\"%s\" does not say \"%s\"", error.text, part);
        cr_assert_eq(strncmp(error.text, sl_op_name(node->op), strlen(sl_op_name(node->op))), 0, "%s", error.text);
}

int bench_run(struct sl_node_desc *node, const void *const *inputs, void *const *outputs)
{
        const struct sl_backend *ref = sl_backend_find("ref");
        struct sl_packed *packed = calloc(SL_NODE_INPUTS_MAX, sizeof(*packed));
        const void *constants[SL_NODE_INPUTS_MAX] = {NULL};
        struct sl_kernel *kernel = NULL;
        struct sl_error error = {""};
        int r = sl_op_infer(node, &error);

        /* The length of a Range is for its caller to say. */
        if (node->op == SL_OP_RANGE)
                node->outputs[0].shape.dims[0] = sl_op_range_elements(node->inputs[0].dtype, inputs[0], inputs[1], inputs[2]);
        cr_assert_eq(r, 0, "%s", error.text);
        cr_assert(ref->planner->supports(NULL, node), "ref does not support this %s", sl_op_name(node->op));
        r = ref->runner->compile(
                NULL, &(struct sl_kernel_source){.node = node, .packed = packed, .constants = constants}, &kernel, &error);
        cr_assert_eq(r, 0, "%s", error.text);
        void *scratch = malloc(ref->runner->scratch_bytes(kernel) + 1);

        r = ref->runner->launch(kernel, &(struct sl_binding){.inputs = inputs, .outputs = outputs, .scratch = scratch});
        free(scratch);
        cr_assert_null(ref->runner->kernel_free(kernel));
        free(packed);
        return r;
}

/* Runs with an output of exactly the inferred size, so that a sanitizer sees what is written past it. */
static void *run_alone(struct sl_node_desc *node, const void *const *inputs, size_t n_bytes)
{
        struct sl_node_desc inferred = *node;
        struct sl_error error = {""};
        char text[SL_SHAPE_TEXT_BYTES];

        cr_assert_eq(sl_op_infer(&inferred, &error), 0, "%s", error.text);
        if (node->op != SL_OP_RANGE)
                cr_assert_eq(sl_tensor_bytes(&inferred.outputs[0]), n_bytes, "%s gives %s, which is not %zu bytes",
                        sl_op_name(node->op), sl_shape_print(&inferred.outputs[0].shape, text), n_bytes);
        void *out = malloc(n_bytes ? n_bytes : 1);
        memset(out, 0xa5, n_bytes);
        cr_assert_eq(bench_run(node, inputs, &out), 0);
        return out;
}

void bench_expect_floats(struct sl_node_desc *node, const void *const *inputs, const float *want, size_t n_want, double tolerance)
{
        float *out = run_alone(node, inputs, n_want * sizeof(*want));

        for (size_t i = 0; i < n_want; i++) {
                double got = (double)out[i], wanted = (double)want[i];
                bool same =
                        got == wanted || (isnan(got) && isnan(wanted)) || fabs(got - wanted) <= tolerance * fmax(1, fabs(wanted));

                cr_assert(same, "%s: element %zu is %.9g, want %.9g", sl_op_name(node->op), i, got, wanted);
        }
        free(out);
}

void bench_expect_bytes(struct sl_node_desc *node, const void *const *inputs, const void *want, size_t n_bytes)
{
        uint8_t *out = run_alone(node, inputs, n_bytes);

        for (size_t i = 0; i < n_bytes; i++)
                cr_assert_eq(out[i], ((const uint8_t *)want)[i], "%s: byte %zu is %u, want %u", sl_op_name(node->op), i, out[i],
                        ((const uint8_t *)want)[i]);
        free(out);
}
