/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of one instance: anonymous, 64-byte aligned, mapped whole and faulted as far as its owner asks. One owner.
 */
#pragma once

#include <stdint.h>

struct sl_workspace {
        uint8_t *bytes; /* NULL before it is initialised */
        uint64_t n_bytes;
        uint64_t n_faulted; /* of them, from the start */
};

/* Maps at least a page, advises huge pages when there is room for one, touches nothing. Return: 0, -ENOMEM. */
int sl_workspace_init(struct sl_workspace *workspace, uint64_t n_bytes);

/* Faults what is missing of the first @n_bytes, at most @most_bytes of it. Return: 1 there was something to do; 0; -ENOMEM. */
int sl_workspace_populate(struct sl_workspace *workspace, uint64_t n_bytes, uint64_t most_bytes);

/* A zeroed workspace is fine. */
void sl_workspace_deinit(struct sl_workspace *workspace);
