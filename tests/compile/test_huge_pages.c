/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"
#include "huge_pages.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define BYTES (5 * (size_t)SL_HUGE_PAGE_BYTES + 12345)

static struct sl_huge_pages pages;

static uint8_t byte_at(size_t i)
{
        return (uint8_t)(i * 2654435761u >> 13);
}

/* Piece by piece, as a compiler writes: pieces begin on small pages. */
static void write_all(int fd)
{
        uint8_t *bytes = malloc(BYTES);

        for (size_t i = 0; i < BYTES; i++)
                bytes[i] = byte_at(i);
        for (size_t at = 0, n; at < BYTES; at += n) {
                n = BYTES - at < 700 * SL_PAGE_BYTES ? BYTES - at : 700 * SL_PAGE_BYTES;
                sl_huge_pages_reach(&pages, fd, at + n);
                cr_assert_eq(pwrite(fd, bytes + at, n, (off_t)at), (ssize_t)n);
        }
        free(bytes);
}

static void expect_all(int fd)
{
        const uint8_t *bytes = sl_huge_pages_map(fd, BYTES);
        size_t wrong = 0;

        cr_assert_neq(bytes, MAP_FAILED);
        cr_expect_eq((uintptr_t)bytes % SL_HUGE_PAGE_BYTES, 0);
        for (size_t i = 0; i < BYTES; i++)
                wrong += bytes[i] != byte_at(i);
        cr_expect_eq(wrong, 0);
        munmap((void *)bytes, BYTES);
}

/* KiB that /proc says of the mapping at @bytes. */
static long mapped_huge_kib(const void *bytes)
{
        FILE *file = fopen("/proc/self/smaps", "re");
        char line[512], start[32];
        long kib = 0;
        bool inside = false;

        snprintf(start, sizeof(start), "%lx-", (unsigned long)bytes);
        while (file && fgets(line, sizeof(line), file)) {
                if (strchr(line, '-') && strstr(line, " r--s "))
                        inside = !strncmp(line, start, strlen(start));
                if (inside && sscanf(line, "ShmemPmdMapped: %ld", &kib) == 1)
                        break;
        }
        if (file)
                fclose(file);
        return kib;
}

static void end(void)
{
        sl_huge_pages_deinit(&pages);
}

TestSuite(huge_pages, .fini = end);

Test(huge_pages, a_file_in_memory_holds_what_is_written_and_grows_by_less_than_is_said)
{
        int fd = memfd_create("plan", MFD_CLOEXEC);

        write_all(fd);
        cr_expect_lt(lseek(fd, 0, SEEK_END), (off_t)(BYTES + SL_HUGE_PAGE_BYTES + SL_HUGE_PAGES_AHEAD_BYTES));
        cr_assert_eq(ftruncate(fd, BYTES), 0);
        expect_all(fd);
        close(fd);
}

Test(huge_pages, weights_are_mapped_by_them_where_the_kernel_can)
{
        int fd = memfd_create("plan", MFD_CLOEXEC);
        const void *bytes;
        bool gave_up;

        write_all(fd);
        gave_up = pages.gives_up;
        bytes = sl_huge_pages_map(fd, BYTES);
        cr_assert_neq(bytes, MAP_FAILED);
        if (gave_up)
                cr_skip_test("this kernel collapses no pages of shared memory");
        cr_expect_geq(mapped_huge_kib(bytes), 3 * (long)(SL_HUGE_PAGE_BYTES >> 10));
        munmap((void *)bytes, BYTES);
        close(fd);
}

Test(huge_pages, a_small_file_takes_none)
{
        int fd = memfd_create("plan", MFD_CLOEXEC);

        sl_huge_pages_reach(&pages, fd, SL_HUGE_PAGE_BYTES);
        cr_expect_eq(lseek(fd, 0, SEEK_END), 0);
        cr_expect_null(pages.window);
        close(fd);
}

Test(huge_pages, a_file_on_a_disk_stays_as_it_is)
{
        char name[] = "/var/tmp/starling-huge-XXXXXX";
        int fd = mkostemp(name, O_CLOEXEC);

        cr_assert_geq(fd, 0);
        unlink(name);
        if (fcntl(fd, F_GET_SEALS) >= 0)
                cr_skip_test("/var/tmp lies in memory");
        write_all(fd);
        cr_expect(pages.gives_up);
        cr_expect_eq(lseek(fd, 0, SEEK_END), (off_t)BYTES);
        expect_all(fd);
        close(fd);
}

Test(huge_pages, nothing_grows_beyond_the_limit_of_a_file)
{
        const struct rlimit limit = {BYTES, BYTES};
        int fd = memfd_create("plan", MFD_CLOEXEC);

        signal(SIGXFSZ, SIG_DFL); /* which would end this process */
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
        write_all(fd);
        cr_expect(pages.gives_up);
        cr_expect_eq(lseek(fd, 0, SEEK_END), (off_t)BYTES);
        expect_all(fd);
        close(fd);
}
