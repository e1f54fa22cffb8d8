/* SPDX-License-Identifier: Apache-2.0 */
#include "placed.h"

#include "base/bytes.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static_assert(SL_PLACED_START % SL_PAGE_BYTES == 0, "mappings begin on a page");

#define WINDOW_BYTES (64ull << 20) /* of the file, at least; addresses are bounded */

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

static bool covers(const struct sl_placed_window *window, uint64_t first, uint64_t bytes)
{
        return window && first >= window->first && first + bytes <= window->first + window->bytes;
}

/* The last window, or a new one, has the bytes. A mapping may reach beyond the end of the file. */
static bool open_window(struct sl_placed *placed, uint64_t first, uint64_t bytes)
{
        uint64_t begin = first - first % SL_HUGE_PAGE_BYTES, room = sl_align_up(first + bytes - begin, SL_HUGE_PAGE_BYTES);
        struct sl_placed_window *window;

        if (covers(placed->windows, first, bytes))
                return true;
        window = malloc(sizeof(*window));
        if (!window)
                return false;
        *window = (struct sl_placed_window){
                .before = placed->windows, .first = begin, .bytes = room > WINDOW_BYTES ? room : WINDOW_BYTES};
        window->data = sl_huge_pages_map_part(placed->fd, window->first, window->bytes);
        if (window->data == MAP_FAILED) {
                free(window);
                return false;
        }
        placed->windows = window;
        return true;
}

/* In the file itself, where all of it lies in huge pages. Nobody has written there: it has zeros. */
static bool take_window(struct sl_placed *placed, uint64_t bytes, void **ret_data)
{
        uint64_t first = SL_PLACED_START + placed->end_bytes;

        if (placed->drafts || first < SL_HUGE_PAGE_BYTES || !sl_huge_pages_have(&placed->pages, first + whole_pages(bytes)) ||
                !open_window(placed, first, whole_pages(bytes)))
                return false;
        *ret_data = placed->windows->data + (first - placed->windows->first);
        return true;
}

static bool lies_in_window(const struct sl_placed *placed, const void *data)
{
        const struct sl_placed_window *window = placed->windows;

        while (window && ((const char *)data < window->data || (const char *)data >= window->data + window->bytes))
                window = window->before;
        return window != NULL;
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
        for (struct sl_placed_window *window = placed->windows, *before; window; window = before) {
                before = window->before;
                munmap(window->data, window->bytes);
                free(window);
        }
        placed->windows = NULL;
        sl_huge_pages_deinit(&placed->pages);
}

int sl_placed_take(struct sl_placed *placed, uint64_t bytes, void **ret_data, uint64_t *ret_offset)
{
        int r;

        if (placed->fd < 0 || bytes < SL_PLACED_BYTES_MIN)
                return -ENOTSUP;
        sl_huge_pages_reach(&placed->pages, placed->fd, SL_PLACED_START + placed->end_bytes + whole_pages(bytes));
        if (take_window(placed, bytes, ret_data))
                r = 0;
        else if (bytes <= SL_PLACED_DRAFT_BYTES)
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

        if (lies_in_window(placed, data)) {
                memset(data, 0, bytes);
        } else if (data != placed->draft) {
                munmap(data, room);
                (void)fallocate(
                        placed->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(SL_PLACED_START + offset), (off_t)room);
        }
        if (offset + room == placed->end_bytes)
                placed->end_bytes = offset;
}

void sl_placed_unmap(const struct sl_placed *placed, void *data, uint64_t bytes)
{
        if (!lies_in_window(placed, data))
                munmap(data, whole_pages(bytes));
}
