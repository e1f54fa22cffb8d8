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
        if (madvise(bytes, mapped, MADV_POPULATE_WRITE) < 0) {
                munmap(bytes, mapped);
                return -ENOMEM;
        }
        workspace->bytes = bytes;
        workspace->n_bytes = mapped;
        return 0;
}

void sl_workspace_deinit(struct sl_workspace *workspace)
{
        if (workspace->bytes)
                munmap(workspace->bytes, workspace->n_bytes);
        *workspace = (struct sl_workspace){0};
}
