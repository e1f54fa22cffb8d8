/* SPDX-License-Identifier: Apache-2.0 */
#include "fork_guard.h"

#include "base/bytes.h"

#include <errno.h>
#include <sys/mman.h>

int sl_fork_guard_init(struct sl_fork_guard *guard)
{
        void *page = mmap(NULL, SL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (page == MAP_FAILED)
                return -ENOMEM;
        guard->state = page;
        guard->pid = getpid();
        *guard->state = madvise(page, SL_PAGE_BYTES, MADV_WIPEONFORK) == 0 ? SL_FORK_IN_PARENT : SL_FORK_ASK_PID;
        return 0;
}

void sl_fork_guard_deinit(struct sl_fork_guard *guard)
{
        if (guard->state)
                munmap(guard->state, SL_PAGE_BYTES);
        guard->state = NULL;
}
