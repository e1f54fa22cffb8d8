/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Huge pages for the weights of a plan file in memory. A product of few rows reads its weights once, as fast as memory gives them;
 * from pages of 4 KiB, which lie anywhere, that is a third less. Every process that maps the file has the same pages. The system's
 * settings for shared memory do not matter: MADV_COLLAPSE (Linux 6.1) is asked for by name. Where there is none, or the file is on
 * a disk, all stays as it is.
 *
 * One owner thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* of Linux 6.1, which older headers lack */
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* of Linux 5.14 */
#endif

#define SL_HUGE_PAGE_BYTES (2u << 20)

/* A file that is being written is so much longer than it is known to become, for who makes pages of it. */
#define SL_HUGE_PAGES_AHEAD_BYTES (16ull << 20)

/* What of a file lies in huge pages so far. Zeroed it is empty. */
struct sl_huge_pages {
        uint64_t end_bytes; /* of what was looked at */
        uint32_t n_contended;
        bool gives_up;
        void *window; /* a range of addresses that holds some huge pages, or NULL */
};

/*
 * The file, which ends before or at @end, is about to be written up to there: what it lacks comes in huge pages, but for the first.
 * It gets longer, by less than a huge page and SL_HUGE_PAGES_AHEAD_BYTES.
 */
void sl_huge_pages_reach(struct sl_huge_pages *pages, int fd, uint64_t end);
void sl_huge_pages_deinit(struct sl_huge_pages *pages);

/* The file has huge pages up to @end, but for the first. */
bool sl_huge_pages_have(const struct sl_huge_pages *pages, uint64_t end);

/*
 * The same for who makes pages ahead of who writes, in another process: the file is lengthened once, before the writer starts; then
 * each call makes the next pages that the file, which the writer lengthens further, has whole before @most. It neither changes the
 * length of the file nor touches what the writer may have cut off.
 */
enum sl_huge_pages_step {
        SL_HUGE_PAGES_MADE,
        SL_HUGE_PAGES_WAIT, /* until the file is longer */
        SL_HUGE_PAGES_DONE,
};

bool sl_huge_pages_lengthen(int fd, uint64_t bytes);
enum sl_huge_pages_step sl_huge_pages_next(struct sl_huge_pages *pages, int fd, uint64_t most);

/* mmap(), shared and read-only, where huge pages of the file can be mapped as such. MAP_FAILED and errno. */
const void *sl_huge_pages_map(int fd, size_t bytes);

/* The same of @bytes from @first on, a multiple of a huge page, to write; only what is touched is faulted. */
void *sl_huge_pages_map_part(int fd, uint64_t first, size_t bytes);
