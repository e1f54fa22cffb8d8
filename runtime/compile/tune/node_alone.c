/* SPDX-License-Identifier: Apache-2.0 */
#include "node_alone.h"

#include "backend.h"
#include "base/bytes.h"
#include "op.h"

#include <math.h>
#include <string.h>

static void turn_images(struct sl_tensor *tensors, uint32_t n, uint64_t constants)
{
        for (uint32_t i = 0; i < n; i++)
                if (!(constants >> i & 1) && tensors[i].shape.rank >= 3 && tensors[i].shape.rank <= 5)
                        tensors[i].layout = SL_LAYOUT_CHANNELS_LAST;
}

static const struct sl_backend *place(const struct sl_node_host *host, uint64_t constants, struct sl_node_desc *node)
{
        struct sl_node_desc turned = *node;

        turn_images(turned.inputs, turned.n_inputs, constants);
        turn_images(turned.outputs, turned.n_outputs, 0);
        if ((sl_op_traits(node->op) & SL_OP_SPATIAL) && host->backend->planner->supports(&host->target, &turned)) {
                *node = turned;
                return host->backend;
        }
        if (host->backend->planner->supports(&host->target, node))
                return host->backend;
        return sl_backend_ref.planner->supports(NULL, node) ? &sl_backend_ref : NULL;
}

static int set_algorithm(const struct sl_node_host *host, const struct sl_backend *backend, struct sl_node_desc *node)
{
        uint32_t algorithms[SL_ALGORITHM_COUNT];

        if (!backend->planner->algorithms || !backend->planner->algorithms(&host->target, node, algorithms, NULL))
                return 0;
        return sl_attrs_set_int(&node->attrs, SL_ATTR_ALGORITHM, algorithms[0]);
}

const struct sl_backend *sl_node_alone_place(const struct sl_node_host *host, uint64_t constants, struct sl_node_desc *node)
{
        const struct sl_backend *found = place(host, constants, node);

        return found && set_algorithm(host, found, node) == 0 ? found : NULL;
}

/* Unpacked where nobody packs it. */
static void find_form(const struct sl_node_host *host, const struct sl_backend *backend, const struct sl_node_desc *node,
        uint32_t input, struct sl_packed *ret_packed)
{
        memset(ret_packed, 0, sizeof(*ret_packed));
        if (!backend || !backend->planner->pack || backend->planner->pack(&host->target, node, input, ret_packed) < 0)
                memset(ret_packed, 0, sizeof(*ret_packed));
        if (!ret_packed->data_bytes)
                ret_packed->data_bytes = sl_tensor_bytes(&node->inputs[input]);
}

static bool is_alike(const struct sl_packed *lanes, const struct sl_packed *one)
{
        uint32_t bytes = lanes->form_bytes < SL_PACK_FORM_KIND_BYTES ? lanes->form_bytes : SL_PACK_FORM_KIND_BYTES;

        return one->data_bytes && one->data_bytes % SL_PAGE_BYTES == 0 && lanes->data_bytes % one->data_bytes == 0 &&
               lanes->form_bytes == one->form_bytes && !memcmp(lanes->form, one->form, bytes);
}

/* Of each algorithm the logarithm of its seconds is added; infinite: it is not taken. */
static void add_guesses(const struct sl_node_host *host, const struct sl_node_desc *node, double guesses[SL_ALGORITHM_COUNT])
{
        uint32_t algorithms[SL_ALGORITHM_COUNT], n;
        double seconds[SL_ALGORITHM_COUNT], sums[SL_ALGORITHM_COUNT];

        n = host->backend->planner->algorithms(&host->target, node, algorithms, seconds);
        for (uint32_t i = 0; i < SL_ALGORITHM_COUNT; i++)
                sums[i] = INFINITY;
        for (uint32_t i = 0; i < n; i++)
                sums[algorithms[i]] = guesses[algorithms[i]] + log(seconds[i]);
        memcpy(guesses, sums, sizeof(sums));
}

static bool is_much_faster(const double guesses[SL_ALGORITHM_COUNT], uint32_t algorithm, uint32_t n_guesses)
{
        for (uint32_t i = 0; i < SL_ALGORITHM_COUNT; i++)
                if (guesses[i] < guesses[algorithm] - n_guesses * log1p(SL_LANED_MARGIN))
                        return true;
        return false;
}

/* With the option `laned` a product of one lane takes the algorithm of several, by the guesses at both ends of the ladder. */
static void follow_lanes(const struct sl_node_host *host, const struct sl_node_desc *lanes, struct sl_node_desc *one)
{
        int64_t algorithm = sl_attrs_int(&lanes->attrs, SL_ATTR_ALGORITHM, SL_ALGORITHM_AUTO);
        struct sl_node_desc many = *one;
        double guesses[SL_ALGORITHM_COUNT] = {0};

        if ((one->op != SL_OP_GEMM && one->op != SL_OP_MATMUL) || algorithm == SL_ALGORITHM_AUTO ||
                !host->backend->planner->algorithms)
                return;
        many.inputs[0].shape.dims[0] *= host->batch_max;
        many.outputs[0].shape.dims[0] *= host->batch_max;
        if (many.epilogue.has_residual)
                many.inputs[many.n_inputs - 1].shape.dims[0] *= host->batch_max;
        add_guesses(host, one, guesses);
        if (host->batch_max > 1)
                add_guesses(host, &many, guesses);
        if (!is_much_faster(guesses, (uint32_t)algorithm, host->batch_max > 1 ? 2 : 1))
                (void)sl_attrs_set_int(&one->attrs, SL_ATTR_ALGORITHM, algorithm);
}

uint64_t sl_node_alone_copies(void *host, const struct sl_node_desc *node, const struct sl_node_desc *single, uint64_t constants)
{
        struct sl_node_desc lanes = *node, one = single ? *single : (struct sl_node_desc){0};
        const struct sl_backend *of_lanes = sl_node_alone_place(host, constants, &lanes),
                                *of_one = single ? sl_node_alone_place(host, constants, &one) : NULL;
        uint64_t bytes = 0;

        if (single)
                follow_lanes(host, &lanes, &one);
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                struct sl_packed packed, packed_one;

                if (!(constants >> i & 1) || node->inputs[i].dtype == SL_DTYPE_NONE)
                        continue;
                find_form(host, of_lanes, &lanes, i, &packed);
                if (i < one.n_inputs && one.inputs[i].dtype != SL_DTYPE_NONE) {
                        find_form(host, of_one, &one, i, &packed_one);
                        if (is_alike(&packed, &packed_one))
                                continue;
                }
                bytes += sl_align_up(packed.data_bytes, SL_LINE_BYTES);
        }
        return bytes;
}
