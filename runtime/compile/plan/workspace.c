/* SPDX-License-Identifier: Apache-2.0 */
#include "workspace.h"

#include "base/bytes.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE_BYTES (2ull << 20)

int sl_workspace_init(struct sl_workspace *workspace, uint64_t n_bytes)
{
        /* One page at least: values without elements lie somewhere, too. */
        uint64_t mapped =
                n_bytes ? sl_align_up(n_bytes, n_bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : SL_PAGE_BYTES) : SL_PAGE_BYTES;
        void *bytes;

        *workspace = (struct sl_workspace){0};
        bytes = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (bytes == MAP_FAILED)
                return -ENOMEM;
        if (mapped >= HUGE_PAGE_BYTES)
                (void)madvise(bytes, mapped, MADV_HUGEPAGE);
        workspace->bytes = bytes;
        workspace->n_bytes = mapped;
        return 0;
}

int sl_workspace_populate(struct sl_workspace *workspace, uint64_t n_bytes, uint64_t most_bytes)
{
        uint64_t wanted = sl_align_up(n_bytes < workspace->n_bytes ? n_bytes : workspace->n_bytes, SL_PAGE_BYTES), missing;

        if (wanted <= workspace->n_faulted)
                return 0;
        missing =
                wanted - workspace->n_faulted < most_bytes ? wanted - workspace->n_faulted : sl_align_up(most_bytes, SL_PAGE_BYTES);
        if (madvise(workspace->bytes + workspace->n_faulted, missing, MADV_POPULATE_WRITE) < 0)
                return -ENOMEM;
        workspace->n_faulted += missing;
        return 1;
}

void sl_workspace_deinit(struct sl_workspace *workspace)
{
        if (workspace->bytes)
                munmap(workspace->bytes, workspace->n_bytes);
        *workspace = (struct sl_workspace){0};
}
