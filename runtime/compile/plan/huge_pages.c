/* SPDX-License-Identifier: Apache-2.0 */
#include "huge_pages.h"

#include "base/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

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

/* The addresses behind the window's first whole huge page are left over. */
static void *window_page(struct sl_huge_pages *pages)
{
        if (!pages->window) {
                void *window = mmap(NULL, 2 * SL_HUGE_PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

                pages->window = window == MAP_FAILED ? NULL : window;
        }
        return pages->window ? (void *)sl_align_up((uintptr_t)pages->window, SL_HUGE_PAGE_BYTES) : NULL;
}

/*
 * A small page of it must be there, or there is nothing to collapse. Nothing is touched here: where there is no memory, or the file
 * has become shorter meanwhile, the kernel says so.
 */
static int make_page(struct sl_huge_pages *pages, int fd, uint64_t at)
{
        char *page = window_page(pages);
        int r = 0;

        if (!page)
                return -ENOMEM;
        if (mmap(page, SL_HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)at) == MAP_FAILED)
                return -errno;
        if (madvise(page, SL_PAGE_BYTES, MADV_POPULATE_WRITE) < 0 || madvise(page, SL_HUGE_PAGE_BYTES, MADV_COLLAPSE) < 0)
                r = -errno;
        if (mmap(page, SL_HUGE_PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
                return -errno;
        return r;
}

/* Another thread or process may be making the same page. */
static bool is_contended(int r)
{
        return r == -EAGAIN || r == -EBUSY;
}

void sl_huge_pages_reach(struct sl_huge_pages *pages, int fd, uint64_t end)
{
        pages->gives_up = pages->gives_up || (!pages->end_bytes && !is_in_memory(fd));
        /* What a small file has is not worth a page of this size. */
        if (!pages->end_bytes)
                pages->end_bytes = SL_HUGE_PAGE_BYTES;
        for (; !pages->gives_up && pages->end_bytes < end; pages->end_bytes += SL_HUGE_PAGE_BYTES) {
                int r = lengthen(fd, pages->end_bytes + SL_HUGE_PAGE_BYTES) ? make_page(pages, fd, pages->end_bytes) : -ENOMEM;

                for (uint32_t i = 0; i < TRIES && is_contended(r); i++)
                        r = make_page(pages, fd, pages->end_bytes);
                pages->gives_up = r < 0 && (!is_contended(r) || ++pages->n_contended > CONTENDED_MAX);
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

bool sl_huge_pages_next(struct sl_huge_pages *pages, int fd, uint64_t end)
{
        if (!pages->end_bytes)
                pages->end_bytes = SL_HUGE_PAGE_BYTES;
        if (pages->gives_up || pages->end_bytes + SL_HUGE_PAGE_BYTES > end)
                return false;
        pages->gives_up = make_page(pages, fd, pages->end_bytes) < 0;
        pages->end_bytes += SL_HUGE_PAGE_BYTES;
        return !pages->gives_up;
}

void sl_huge_pages_deinit(struct sl_huge_pages *pages)
{
        if (pages->window)
                munmap(pages->window, 2 * SL_HUGE_PAGE_BYTES);
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
