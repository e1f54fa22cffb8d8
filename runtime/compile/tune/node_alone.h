/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One node by itself, as a plan would have it without timing: what a merge asks of each of its forms (merge/merge.h). Pure but for
 * memory; compiler's process and tools.
 */
#pragma once

#include "node.h"
#include "target.h"

#include <stdint.h>

struct sl_backend;

/* What is planned for, and by whom. */
struct sl_node_host {
        const struct sl_backend *backend;
        struct sl_target target;
        uint32_t batch_max; /* of the plans, whose nodes are described at batch 1 */
};

/* A product of one lane takes the algorithm of those of several (option `laned`) unless another is faster by this share. */
#define SL_LANED_MARGIN 0.25

/*
 * The backend that runs @node, which gets its layouts (images with channels last where the backend has them so) and its algorithm:
 * a node by itself would never be computed approximately. @constants: bit i says that input i is constant. NULL: nobody runs it.
 */
const struct sl_backend *sl_node_alone_place(const struct sl_node_host *host, uint64_t constants, struct sl_node_desc *node);

/*
 * Of the constants of @node, which stands for several of @single: bytes that those do not have so when each is packed by itself. As
 * sl_plan_share() has it, lanes share what is packed alike and is whole pages of each. @single: NULL: all bytes. @host: a struct
 * sl_node_host, of both.
 */
uint64_t sl_node_alone_copies(void *host, const struct sl_node_desc *node, const struct sl_node_desc *single, uint64_t constants);
