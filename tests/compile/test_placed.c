/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"
#include "placed.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PIECES 9
#define BYTES  ((1u << 20) + 3 * SL_PAGE_BYTES + 64) /* of a piece: they cross huge pages */

static struct sl_placed placed;

static void begin(void)
{
        placed.fd = memfd_create("plan", MFD_CLOEXEC);
}

static void end(void)
{
        sl_placed_deinit(&placed);
        close(placed.fd);
}

TestSuite(placed, .init = begin, .fini = end);

static uint8_t *take(uint64_t *offset)
{
        void *data;

        cr_assert_eq(sl_placed_take(&placed, BYTES, &data, offset), 0);
        for (uint32_t i = 0; i < BYTES; i++)
                cr_assert_eq(((uint8_t *)data)[i], 0, "byte %u", i);
        return data;
}

static void *keep(uint8_t *data, uint64_t offset)
{
        void *kept = data;

        cr_assert_eq(sl_placed_keep(&placed, BYTES, offset, &kept), 0);
        return kept;
}

static void expect_in_file(uint8_t byte, uint64_t offset)
{
        static uint8_t read[BYTES], all[BYTES];

        memset(all, byte, BYTES);
        cr_assert_eq(pread(placed.fd, read, BYTES, (off_t)(SL_PLACED_START + offset)), (ssize_t)BYTES);
        cr_assert(!memcmp(read, all, BYTES), "the piece at %llu", (unsigned long long)offset);
}

static void put_all(uint64_t *offsets, void **kept)
{
        for (uint32_t i = 0; i < PIECES; i++) {
                uint8_t *data = take(&offsets[i]);

                memset(data, (int)i + 1, BYTES);
                kept[i] = keep(data, offsets[i]);
        }
}

static void expect_all(const uint64_t *offsets, void *const *kept)
{
        for (uint32_t i = 0; i < PIECES; i++) {
                expect_in_file((uint8_t)(i + 1), offsets[i]);
                cr_expect_eq(((uint8_t *)kept[i])[BYTES - 1], i + 1);
                sl_placed_unmap(&placed, kept[i], BYTES);
        }
}

Test(placed, what_is_kept_is_in_the_file_and_stays_to_be_read)
{
        uint64_t offsets[PIECES];
        void *kept[PIECES];

        put_all(offsets, kept);
        expect_all(offsets, kept);
        cr_expect(placed.windows || placed.pages.gives_up || placed.pages.n_contended);
}

Test(placed, drafts_come_to_the_same)
{
        uint64_t offsets[PIECES];
        void *kept[PIECES];

        placed.drafts = true;
        put_all(offsets, kept);
        expect_all(offsets, kept);
        cr_expect_null(placed.windows);
}

Test(placed, what_is_given_back_is_zeros_again_and_its_room_is_used_again)
{
        uint64_t offsets[PIECES], again;
        void *kept[PIECES];
        uint8_t *data;

        put_all(offsets, kept);
        data = take(&again);
        memset(data, 0xff, BYTES);
        sl_placed_give_back(&placed, data, BYTES, again);
        expect_in_file(0, again);
        data = take(&offsets[0]);
        cr_expect_eq(offsets[0], again);
        sl_placed_give_back(&placed, data, BYTES, again);
        for (uint32_t i = 0; i < PIECES; i++)
                sl_placed_unmap(&placed, kept[i], BYTES);
}

Test(placed, small_ones_and_those_without_a_file_are_made_elsewhere)
{
        int fd = placed.fd;
        uint64_t offset;
        void *data;

        cr_expect_eq(sl_placed_take(&placed, SL_PLACED_BYTES_MIN - 1, &data, &offset), -ENOTSUP);
        placed.fd = -1;
        cr_expect_eq(sl_placed_take(&placed, BYTES, &data, &offset), -ENOTSUP);
        placed.fd = fd;
}
