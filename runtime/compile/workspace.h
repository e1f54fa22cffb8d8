/*
 * The memory of one instance: anonymous, 64-byte aligned, faulted before the first request. One owner.
 */
#pragma once

#include <stdint.h>

struct sl_workspace {
        uint8_t *bytes; /* NULL before it is initialised */
        uint64_t n_bytes;
};

/* Maps at least a page, advises huge pages when there is room for one, touches every page. Return: 0, -ENOMEM. */
int sl_workspace_init(struct sl_workspace *workspace, uint64_t n_bytes);

/* A zeroed workspace is fine. */
void sl_workspace_deinit(struct sl_workspace *workspace);
