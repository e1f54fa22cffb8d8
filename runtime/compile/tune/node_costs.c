/* SPDX-License-Identifier: Apache-2.0 */
#include "node_costs.h"

#include "backend.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "node_alone.h"
#include "node_run.h"
#include "op.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define LAUNCHES         5
#define LAUNCH_ENOUGH_NS (2 * 1000 * 1000)
#define BYTES_MAX        (1ull << 28) /* of one tensor that is timed */
#define WORK_MAX         (1ull << 34)

struct entry {
        uint64_t key;
        double seconds;
};

struct sl_node_costs {
        struct sl_node_host host;
        uint64_t until_ns;
        uint32_t n, room, n_timed;
        struct entry *entries;
        double seconds, work; /* of all that was timed */
};

int sl_node_costs_new(const struct sl_node_host *host, uint64_t until_ns, struct sl_node_costs **ret_costs)
{
        struct sl_node_costs *costs = calloc(1, sizeof(*costs));

        if (!costs)
                return -ENOMEM;
        costs->host = *host;
        costs->until_ns = until_ns;
        *ret_costs = costs;
        return 0;
}

struct sl_node_costs *sl_node_costs_free(struct sl_node_costs *costs)
{
        if (costs)
                free(costs->entries);
        free(costs);
        return NULL;
}

uint32_t sl_node_costs_timed(const struct sl_node_costs *costs)
{
        return costs->n_timed;
}

static uint64_t mix_tensors(uint64_t key, const struct sl_tensor *tensors, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++) {
                const uint64_t head[] = {tensors[i].dtype, tensors[i].layout, tensors[i].shape.rank};

                key = XXH3_64bits_withSeed(head, sizeof(head), key);
                key = XXH3_64bits_withSeed(tensors[i].shape.dims, tensors[i].shape.rank * sizeof(*tensors[i].shape.dims), key);
        }
        return key;
}

static uint64_t key_of(const struct sl_node_desc *node, uint64_t constants)
{
        const uint64_t head[] = {
                node->op, node->n_inputs, node->n_outputs, node->epilogue.activation, node->epilogue.has_residual, constants};
        uint64_t key = XXH3_64bits(head, sizeof(head));

        key = XXH3_64bits_withSeed(node->attrs.items, node->attrs.count * sizeof(*node->attrs.items), key);
        return mix_tensors(mix_tensors(key, node->inputs, node->n_inputs), node->outputs, node->n_outputs);
}

static bool is_affordable(const struct sl_node_desc *node)
{
        bool known = sl_op_work(node) <= WORK_MAX;

        for (uint32_t i = 0; i < node->n_inputs; i++)
                known = known && (node->inputs[i].dtype == SL_DTYPE_NONE || sl_tensor_bytes(&node->inputs[i]) <= BYTES_MAX);
        for (uint32_t i = 0; i < node->n_outputs; i++)
                known = known && sl_tensor_bytes(&node->outputs[i]) <= BYTES_MAX;
        return known;
}

static double time_launches(struct sl_node_run *run)
{
        uint64_t best = UINT64_MAX, began = sl_clock_ns();

        if (sl_node_run_bind(run, (const void *const[SL_NODE_INPUTS_MAX]){0}, (void *const[SL_NODE_OUTPUTS_MAX]){0}, NULL) < 0)
                return INFINITY;
        for (uint32_t i = 0; i <= LAUNCHES; i++) {
                uint64_t from = sl_clock_ns(), took;

                if (sl_node_run_launch(run) < 0)
                        return INFINITY;
                took = sl_clock_ns() - from;
                /* The first one finds cold caches. */
                if (i && took < best)
                        best = took;
                if (i && from + took - began > LAUNCH_ENOUGH_NS)
                        break;
        }
        return (double)best / SL_NS_PER_SECOND;
}

static void free_constants(void **constants)
{
        for (uint32_t i = 0; i < SL_NODE_INPUTS_MAX; i++)
                free(constants[i]);
}

static int make_constants(const struct sl_node_desc *node, uint64_t constants, void **ret_constants)
{
        for (uint32_t i = 0; i < node->n_inputs; i++) {
                if (!(constants >> i & 1) || node->inputs[i].dtype == SL_DTYPE_NONE)
                        continue;
                ret_constants[i] = aligned_alloc(64, (sl_tensor_bytes(&node->inputs[i]) + 64) & ~63ull);
                if (!ret_constants[i])
                        return -ENOMEM;
                sl_node_run_fill(&node->inputs[i], i, ret_constants[i]);
        }
        return 0;
}

static double time_node(const struct sl_node_costs *costs, const struct sl_node_desc *node, uint64_t constants)
{
        struct sl_node_desc placed = *node;
        const struct sl_backend *backend = sl_node_alone_place(&costs->host, constants, &placed);
        void *data[SL_NODE_INPUTS_MAX] = {NULL};
        struct sl_node_run *run = NULL;
        double seconds = INFINITY;

        if (backend && make_constants(&placed, constants, data) == 0 &&
                sl_node_run_new(backend, &placed, (const void *const *)data, &run, NULL) == 0)
                seconds = time_launches(run);
        sl_node_run_free(run);
        free_constants(data);
        return seconds;
}

static int keep(struct sl_node_costs *costs, uint64_t key, double seconds)
{
        if (costs->n == costs->room) {
                uint32_t room = costs->room ? 2 * costs->room : 64;
                struct entry *grown = reallocarray(costs->entries, room, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                costs->entries = grown;
                costs->room = room;
        }
        costs->entries[costs->n++] = (struct entry){key, seconds};
        return 0;
}

double sl_node_costs_seconds(void *context, const struct sl_node_desc *node, uint64_t constants)
{
        struct sl_node_costs *costs = context;
        uint64_t key = key_of(node, constants), work = sl_op_work(node);
        double seconds;

        if (work == UINT64_MAX)
                return INFINITY;
        for (uint32_t i = 0; i < costs->n; i++)
                if (costs->entries[i].key == key)
                        return costs->entries[i].seconds;
        if (!is_affordable(node) || (costs->n_timed && sl_clock_ns() > costs->until_ns))
                return costs->work > 0 ? (double)work * costs->seconds / costs->work : INFINITY;
        seconds = time_node(costs, node, constants);
        costs->n_timed++;
        if (isfinite(seconds)) {
                costs->seconds += seconds;
                costs->work += (double)work;
        }
        return keep(costs, key, seconds) < 0 ? INFINITY : seconds;
}
