/* SPDX-License-Identifier: Apache-2.0 */
#include "huge_pages.h"

#include "base/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * Collapsed with one call, at most. Each call has all processors give back what pages they keep for themselves, and waits for that:
 * page by page it took longer than to clear them.
 */
#define CHUNK_PAGES 8u
#define CHUNK_BYTES ((uint64_t)CHUNK_PAGES * SL_HUGE_PAGE_BYTES)

/* Pages that were not to be had at once. */
#define CONTENDED_MAX 4
#define TRIES         8 /* of each, which wait for who has it */

/* Files on disks have no seals. */
static bool is_in_memory(int fd)
{
        return fcntl(fd, F_GET_SEALS) >= 0;
}

/* Longer than @limit the file would end this process. */
static bool lengthen(int fd, uint64_t bytes)
{
        struct rlimit limit;
        off_t now = lseek(fd, 0, SEEK_END);

        if (now < 0 || (uint64_t)now >= bytes)
                return now >= 0;
        return getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes <= limit.rlim_cur && ftruncate(fd, (off_t)bytes) == 0;
}

/* Room for a chunk; the addresses before the first whole huge page, and behind the last, are left over. */
static char *window_pages(struct sl_huge_pages *pages)
{
        if (!pages->window) {
                void *window =
                        mmap(NULL, CHUNK_BYTES + SL_HUGE_PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

                pages->window = window == MAP_FAILED ? NULL : window;
        }
        return pages->window ? (char *)sl_align_up((uintptr_t)pages->window, SL_HUGE_PAGE_BYTES) : NULL;
}

/* A small page of each must be there, or there is nothing to collapse. */
static int collapse(char *mapped, uint64_t bytes)
{
        for (uint64_t at = 0; at < bytes; at += SL_HUGE_PAGE_BYTES)
                if (madvise(mapped + at, SL_PAGE_BYTES, MADV_POPULATE_WRITE) < 0)
                        return -errno;
        return madvise(mapped, bytes, MADV_COLLAPSE) < 0 ? -errno : 0;
}

/* Nothing is touched here: where there is no memory, or the file has become shorter meanwhile, the kernel says so. */
static int make_pages(struct sl_huge_pages *pages, int fd, uint64_t at, uint64_t bytes)
{
        char *mapped = window_pages(pages);
        int r;

        if (!mapped)
                return -ENOMEM;
        if (mmap(mapped, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)at) == MAP_FAILED)
                return -errno;
        r = collapse(mapped, bytes);
        if (mmap(mapped, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
                return -errno;
        return r;
}

/* Another thread or process may be making the same page. */
static bool is_contended(int r)
{
        return r == -EAGAIN || r == -EBUSY;
}

/* The pages of a chunk before @end, as whole ones. */
static uint64_t chunk_bytes(uint64_t from, uint64_t end)
{
        uint64_t bytes = sl_align_up(end - from, SL_HUGE_PAGE_BYTES);

        return bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES;
}

/* Who makes pages ahead of this process makes as many as the file has. */
static bool make_room(int fd, uint64_t end)
{
        if (!lengthen(fd, end))
                return false;
        (void)lengthen(fd, end + SL_HUGE_PAGES_AHEAD_BYTES);
        return true;
}

void sl_huge_pages_reach(struct sl_huge_pages *pages, int fd, uint64_t end)
{
        pages->gives_up = pages->gives_up || (!pages->end_bytes && !is_in_memory(fd));
        /* What a small file has is not worth a page of this size. */
        if (!pages->end_bytes)
                pages->end_bytes = SL_HUGE_PAGE_BYTES;
        while (!pages->gives_up && pages->end_bytes < end) {
                uint64_t bytes = chunk_bytes(pages->end_bytes, end);
                int r = make_room(fd, pages->end_bytes + bytes) ? make_pages(pages, fd, pages->end_bytes, bytes) : -ENOMEM;

                for (uint32_t i = 0; i < TRIES && is_contended(r); i++)
                        r = make_pages(pages, fd, pages->end_bytes, bytes);
                pages->gives_up = r < 0 && (!is_contended(r) || ++pages->n_contended > CONTENDED_MAX);
                pages->end_bytes += bytes;
        }
}

bool sl_huge_pages_have(const struct sl_huge_pages *pages, uint64_t end)
{
        return !pages->gives_up && !pages->n_contended && pages->end_bytes >= end;
}

bool sl_huge_pages_lengthen(int fd, uint64_t bytes)
{
        return is_in_memory(fd) && lengthen(fd, bytes);
}

enum sl_huge_pages_step sl_huge_pages_next(struct sl_huge_pages *pages, int fd, uint64_t most)
{
        off_t length = lseek(fd, 0, SEEK_END);
        uint64_t end = length < 0 ? 0 : (uint64_t)length < most ? (uint64_t)length : most, bytes;

        if (!pages->end_bytes)
                pages->end_bytes = SL_HUGE_PAGE_BYTES;
        if (pages->gives_up || pages->end_bytes + SL_HUGE_PAGE_BYTES > most)
                return SL_HUGE_PAGES_DONE;
        if (pages->end_bytes + SL_HUGE_PAGE_BYTES > end)
                return SL_HUGE_PAGES_WAIT;
        bytes = chunk_bytes(pages->end_bytes, end - end % SL_HUGE_PAGE_BYTES);
        pages->gives_up = make_pages(pages, fd, pages->end_bytes, bytes) < 0;
        pages->end_bytes += bytes;
        return pages->gives_up ? SL_HUGE_PAGES_DONE : SL_HUGE_PAGES_MADE;
}

void sl_huge_pages_deinit(struct sl_huge_pages *pages)
{
        if (pages->window)
                munmap(pages->window, CHUNK_BYTES + SL_HUGE_PAGE_BYTES);
        pages->window = NULL;
}

/* Both ends of what was reserved are given back. */
static void trim(char *reserved, size_t room, char *from, size_t bytes)
{
        char *end = from + sl_align_up(bytes, SL_PAGE_BYTES);

        if (from > reserved)
                munmap(reserved, (size_t)(from - reserved));
        if (reserved + room > end)
                munmap(end, (size_t)(reserved + room - end));
}

/* MAP_FAILED and errno. */
static void *map_aligned(int fd, uint64_t first, size_t bytes, int protection, int flags)
{
        size_t room = sl_align_up(bytes, SL_PAGE_BYTES) + SL_HUGE_PAGE_BYTES;
        char *reserved = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *from;

        if (reserved == MAP_FAILED)
                return mmap(NULL, bytes, protection, MAP_SHARED | flags, fd, (off_t)first);
        from = (char *)sl_align_up((uintptr_t)reserved, SL_HUGE_PAGE_BYTES);
        if (mmap(from, bytes, protection, MAP_SHARED | flags | MAP_FIXED, fd, (off_t)first) == MAP_FAILED) {
                int error = errno;

                munmap(reserved, room);
                errno = error;
                return MAP_FAILED;
        }
        trim(reserved, room, from, bytes);
        return from;
}

const void *sl_huge_pages_map(int fd, size_t bytes)
{
        if (bytes < SL_HUGE_PAGE_BYTES)
                return mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
        return map_aligned(fd, 0, bytes, PROT_READ, MAP_POPULATE);
}

void *sl_huge_pages_map_part(int fd, uint64_t first, size_t bytes)
{
        return map_aligned(fd, first, bytes, PROT_READ | PROT_WRITE, 0);
}
