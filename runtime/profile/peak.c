/* SPDX-License-Identifier: Apache-2.0 */
#include "peak.h"

#include "backend.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "op.h"

#include <stdlib.h>
#include <string.h>

#define SIDE      768
#define ELEMENTS  ((size_t)SIDE * SIDE)
#define ALIGNMENT 64

struct product {
        struct sl_node_desc node;
        struct sl_packed packed[SL_NODE_INPUTS_MAX];
        float *matrices[3], *weights;
        void *scratch;
        struct sl_kernel *kernel;
};

static struct product *product_free(struct product *product)
{
        if (!product)
                return NULL;
        if (product->kernel)
                sl_backend_cpu.runner->kernel_free(product->kernel);
        for (int i = 0; i < 3; i++)
                free(product->matrices[i]);
        free(product->weights);
        free(product->scratch);
        free(product);
        return NULL;
}

SL_DEFINE_CLEANUP(struct product *, product_free)

static void describe(struct sl_node_desc *node)
{
        const struct sl_tensor square = {
                .dtype = SL_DTYPE_F32, .layout = SL_LAYOUT_PLAIN, .shape = {.rank = 2, .dims = {SIDE, SIDE}}};

        *node = (struct sl_node_desc){.op = SL_OP_MATMUL, .n_inputs = 2, .n_outputs = 1};
        node->inputs[0] = node->inputs[1] = node->outputs[0] = square;
}

static int fill(struct product *product)
{
        for (int i = 0; i < 3; i++) {
                product->matrices[i] = aligned_alloc(ALIGNMENT, ELEMENTS * sizeof(float));
                if (!product->matrices[i])
                        return -ENOMEM;
                for (size_t k = 0; k < ELEMENTS; k++)
                        product->matrices[i][k] = (float)(k % 17) / 16.0f - 0.5f;
        }
        return 0;
}

static int pack(struct product *product)
{
        uint64_t bytes;
        int r = sl_backend_cpu.planner->pack(NULL, &product->node, 1, &product->packed[1]);

        if (r < 0 || !product->packed[1].data_bytes)
                return r;
        bytes = (product->packed[1].data_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        product->weights = aligned_alloc(ALIGNMENT, bytes);
        if (!product->weights)
                return -ENOMEM;
        return sl_backend_cpu.planner->repack(NULL, &product->node, 1, &product->packed[1], product->matrices[1], product->weights);
}

static int build(struct product *product, struct sl_error *error)
{
        const void *constants[SL_NODE_INPUTS_MAX] = {NULL};
        size_t bytes;
        int r = fill(product);

        describe(&product->node);
        if (r == 0)
                r = pack(product);
        if (r < 0)
                return r;
        constants[1] = product->weights ? product->weights : product->matrices[1];
        r = sl_backend_cpu.runner->compile(NULL,
                &(struct sl_kernel_source){.node = &product->node, .packed = product->packed, .constants = constants},
                &product->kernel, error);
        if (r < 0)
                return r;
        bytes = sl_backend_cpu.runner->scratch_bytes(product->kernel);
        product->scratch = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
        return product->scratch ? 0 : -ENOMEM;
}

static int time_once(struct product *product, uint64_t *ret_ns)
{
        const void *inputs[] = {product->matrices[0], product->weights ? product->weights : product->matrices[1]};
        void *outputs[] = {product->matrices[2]};
        struct sl_binding binding = {.inputs = inputs, .outputs = outputs, .scratch = product->scratch};
        uint64_t before = sl_clock_ns();
        int r = sl_backend_cpu.runner->launch(product->kernel, &binding);

        *ret_ns = sl_clock_ns() - before;
        return r;
}

int sl_peak_measure(double seconds, double *ret_flops, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_product_free) struct product *product = calloc(1, sizeof(*product));
        uint64_t best = UINT64_MAX, until;
        int r = product ? build(product, error) : -ENOMEM;

        if (r < 0)
                return sl_error_set(error, -r, "the peak cannot be measured: %s", strerror(-r));
        until = sl_clock_ns() + (uint64_t)(seconds * (double)SL_NS_PER_SECOND);
        do {
                uint64_t ns;

                r = time_once(product, &ns);
                if (r < 0)
                        return sl_error_set(error, -r, "the peak cannot be measured: %s", strerror(-r));
                best = ns < best ? ns : best;
        } while (sl_clock_ns() < until);
        *ret_flops = 2.0 * SIDE * (double)ELEMENTS * 1e9 / (double)(best ? best : 1);
        return 0;
}
