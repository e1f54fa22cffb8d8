/* SPDX-License-Identifier: Apache-2.0 */
#include "placed.h"

#include "base/bytes.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static_assert(SL_PLACED_START % SL_PAGE_BYTES == 0, "mappings begin on a page");

static uint64_t whole_pages(uint64_t bytes)
{
        return sl_align_up(bytes, SL_PAGE_BYTES);
}

/* The room is taken before it is mapped: a full file system would otherwise end the process at the first touch. */
static int map_room(const struct sl_placed *placed, uint64_t room, off_t at, void **ret_data)
{
        void *data;

        if (fallocate(placed->fd, 0, at, (off_t)room) < 0)
                return errno == ENOSPC || errno == ENOMEM ? -errno : -ENOTSUP;
        data = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, placed->fd, at);
        if (data == MAP_FAILED)
                return errno == ENOMEM ? -ENOMEM : -ENOTSUP;
        /* All of it will be written: once through the kernel instead of once for each page. A kernel that cannot leaves it to the
         * touch. */
        (void)madvise(data, room, MADV_POPULATE_WRITE);
        *ret_data = data;
        return 0;
}

static int clear_draft(struct sl_placed *placed, uint64_t bytes, void **ret_data)
{
        if (!placed->draft) {
                void *draft = mmap(NULL, SL_PLACED_DRAFT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

                if (draft == MAP_FAILED)
                        return -ENOMEM;
                (void)madvise(draft, SL_PLACED_DRAFT_BYTES, MADV_HUGEPAGE);
                placed->draft = draft;
        }
        *ret_data = memset(placed->draft, 0, bytes);
        return 0;
}

void sl_placed_deinit(struct sl_placed *placed)
{
        if (placed->draft)
                munmap(placed->draft, SL_PLACED_DRAFT_BYTES);
        placed->draft = NULL;
        sl_huge_pages_deinit(&placed->pages);
}

int sl_placed_take(struct sl_placed *placed, uint64_t bytes, void **ret_data, uint64_t *ret_offset)
{
        int r;

        if (placed->fd < 0 || bytes < SL_PLACED_BYTES_MIN)
                return -ENOTSUP;
        sl_huge_pages_reach(&placed->pages, placed->fd, SL_PLACED_START + placed->end_bytes + whole_pages(bytes));
        if (bytes <= SL_PLACED_DRAFT_BYTES)
                r = clear_draft(placed, bytes, ret_data);
        else
                r = map_room(placed, whole_pages(bytes), (off_t)(SL_PLACED_START + placed->end_bytes), ret_data);
        if (r < 0)
                return r;
        *ret_offset = placed->end_bytes;
        placed->end_bytes += whole_pages(bytes);
        return 0;
}

static int write_draft(const struct sl_placed *placed, uint64_t bytes, uint64_t offset)
{
        for (uint64_t done = 0; done < bytes;) {
                ssize_t n = pwrite(
                        placed->fd, (const char *)placed->draft + done, bytes - done, (off_t)(SL_PLACED_START + offset + done));

                if (n <= 0)
                        return n < 0 && (errno == ENOSPC || errno == ENOMEM) ? -errno : -EIO;
                done += (uint64_t)n;
        }
        return 0;
}

int sl_placed_keep(struct sl_placed *placed, uint64_t bytes, uint64_t offset, void **data)
{
        void *kept;
        int r;

        if (*data != placed->draft)
                return 0;
        r = write_draft(placed, bytes, offset);
        if (r < 0)
                return r;
        kept = mmap(NULL, whole_pages(bytes), PROT_READ, MAP_SHARED, placed->fd, (off_t)(SL_PLACED_START + offset));
        if (kept == MAP_FAILED)
                return -ENOMEM;
        *data = kept;
        return 0;
}

void sl_placed_give_back(struct sl_placed *placed, void *data, uint64_t bytes, uint64_t offset)
{
        uint64_t room = whole_pages(bytes);

        if (data != placed->draft) {
                munmap(data, room);
                (void)fallocate(
                        placed->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(SL_PLACED_START + offset), (off_t)room);
        }
        if (offset + room == placed->end_bytes)
                placed->end_bytes = offset;
}

void sl_placed_unmap(void *data, uint64_t bytes)
{
        munmap(data, whole_pages(bytes));
}
