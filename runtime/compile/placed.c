#include "placed.h"

#include "base/bytes.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

static_assert(SL_PLACED_START % SL_PAGE_BYTES == 0, "mappings begin on a page");

static uint64_t whole_pages(uint64_t bytes)
{
        return sl_align_up(bytes, SL_PAGE_BYTES);
}

/* The room is taken before it is mapped: a full file system would otherwise end the process at the first touch. */
int sl_placed_take(struct sl_placed *placed, uint64_t bytes, void **ret_data, uint64_t *ret_offset)
{
        uint64_t room = whole_pages(bytes);
        off_t at = (off_t)(SL_PLACED_START + placed->end_bytes);
        void *data;

        if (placed->fd < 0 || bytes < SL_PLACED_BYTES_MIN)
                return -ENOTSUP;
        if (fallocate(placed->fd, 0, at, (off_t)room) < 0)
                return errno == ENOSPC || errno == ENOMEM ? -errno : -ENOTSUP;
        data = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, placed->fd, at);
        if (data == MAP_FAILED)
                return errno == ENOMEM ? -ENOMEM : -ENOTSUP;
        /* All of it will be written: once through the kernel instead of once for each page. A kernel that cannot leaves it to the
         * touch. */
        (void)madvise(data, room, MADV_POPULATE_WRITE);
        *ret_data = data;
        *ret_offset = placed->end_bytes;
        placed->end_bytes += room;
        return 0;
}

void sl_placed_give_back(struct sl_placed *placed, void *data, uint64_t bytes, uint64_t offset)
{
        uint64_t room = whole_pages(bytes);

        munmap(data, room);
        (void)fallocate(placed->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(SL_PLACED_START + offset), (off_t)room);
        if (offset + room == placed->end_bytes)
                placed->end_bytes = offset;
}

void sl_placed_unmap(void *data, uint64_t bytes)
{
        munmap(data, whole_pages(bytes));
}
