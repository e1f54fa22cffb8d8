/* SPDX-License-Identifier: Apache-2.0 */
#include "huge_pages.h"
#include "page_maker.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES (16 * (uint64_t)SL_HUGE_PAGE_BYTES)

static uint64_t bytes_of(int fd)
{
        struct stat status;

        cr_assert_eq(fstat(fd, &status), 0);
        return (uint64_t)status.st_size;
}

Test(page_maker, the_file_can_be_sealed_when_it_has_ended)
{
        int fd = memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        struct sl_page_maker *maker = sl_page_maker_start(fd, BYTES, BYTES);

        cr_assert_not_null(maker);
        cr_expect_null(sl_page_maker_end(maker));
        cr_expect_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK), 0);
        close(fd);
}

Test(page_maker, what_is_written_meanwhile_stays)
{
        static uint8_t written[SL_HUGE_PAGE_BYTES], read_back[SL_HUGE_PAGE_BYTES];
        int fd = memfd_create("plan", MFD_CLOEXEC);
        struct sl_page_maker *maker = sl_page_maker_start(fd, BYTES, BYTES);
        uint64_t wrong = 0;

        cr_assert_not_null(maker);
        for (uint64_t at = 0; at < BYTES; at += sizeof(written)) {
                memset(written, (int)(1 + at / sizeof(written)), sizeof(written));
                cr_assert_eq(pwrite(fd, written, sizeof(written), (off_t)at), (ssize_t)sizeof(written));
        }
        sl_page_maker_end(maker);
        for (uint64_t at = 0; at < BYTES; at += sizeof(read_back)) {
                memset(written, (int)(1 + at / sizeof(written)), sizeof(written));
                cr_assert_eq(pread(fd, read_back, sizeof(read_back), (off_t)at), (ssize_t)sizeof(read_back));
                wrong += memcmp(written, read_back, sizeof(written)) != 0;
        }
        cr_expect_eq(wrong, 0);
        cr_expect_eq(bytes_of(fd), BYTES);
        close(fd);
}

/* A child that knows what it needs cuts the rest off; a hostile one does so when it likes. */
Test(page_maker, a_file_that_is_cut_meanwhile_stays_cut)
{
        for (int i = 0; i < 50; i++) {
                int fd = memfd_create("plan", MFD_CLOEXEC);
                struct sl_page_maker *maker = sl_page_maker_start(fd, BYTES, BYTES);

                cr_assert_not_null(maker);
                usleep((useconds_t)(20 * i));
                cr_assert_eq(ftruncate(fd, 12345), 0);
                sl_page_maker_end(maker);
                cr_expect_eq(bytes_of(fd), 12345);
                close(fd);
        }
}

static uint64_t bytes_in_memory(int fd)
{
        struct stat status;

        cr_assert_eq(fstat(fd, &status), 0);
        return (uint64_t)status.st_blocks * 512;
}

/* Waits until there are as many, for so long at most. */
static void await_bytes(int fd, uint64_t bytes, int limit_ms)
{
        for (int i = 0; i < limit_ms && bytes_in_memory(fd) < bytes; i++)
                usleep(1000);
}

Test(page_maker, what_the_file_is_lengthened_by_is_made_up_to_a_bound)
{
        int fd = memfd_create("plan", MFD_CLOEXEC);
        struct sl_page_maker *maker = sl_page_maker_start(fd, BYTES, 2 * BYTES);
        uint64_t made;

        cr_assert_not_null(maker);
        await_bytes(fd, BYTES - SL_HUGE_PAGE_BYTES, 30000);
        made = bytes_in_memory(fd);
        cr_expect_leq(made, BYTES);
        cr_assert_eq(ftruncate(fd, 4 * BYTES), 0);
        await_bytes(fd, 2 * BYTES - SL_HUGE_PAGE_BYTES, made < BYTES - SL_HUGE_PAGE_BYTES ? 0 : 120000);
        sl_page_maker_end(maker);
        cr_expect_leq(bytes_in_memory(fd), 2 * BYTES);
        if (made < BYTES - SL_HUGE_PAGE_BYTES)
                cr_skip_test("this kernel collapses no pages of shared memory");
        cr_expect_geq(bytes_in_memory(fd), 2 * BYTES - SL_HUGE_PAGE_BYTES);
        close(fd);
}

Test(page_maker, there_is_none_for_little_nor_for_files_on_a_disk)
{
        char name[] = "/var/tmp/plan-XXXXXX";
        int fd = memfd_create("plan", MFD_CLOEXEC), disk = mkstemp(name);

        cr_expect_null(sl_page_maker_start(fd, 1 << 20, BYTES));
        cr_expect_eq(bytes_of(fd), 0);
        cr_assert_geq(disk, 0);
        unlink(name);
        cr_expect_null(sl_page_maker_start(disk, BYTES, BYTES));
        cr_expect_eq(bytes_of(disk), 0);
        close(fd);
        close(disk);
}
