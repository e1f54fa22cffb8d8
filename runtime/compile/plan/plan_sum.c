/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_sum.h"

#include "format.h"
#include "huge_pages.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/types.h>
#include <unistd.h>
#include <xxh_x86dispatch.h>

uint64_t sl_plan_sum(const uint8_t *bytes, uint64_t n_bytes)
{
        uint64_t sum = XXH3_64bits(bytes + SL_PLAN_CHECKED_FROM, n_bytes - SL_PLAN_CHECKED_FROM);

        return sum == SL_PLAN_NOT_SUMMED ? 1 : sum;
}

static bool wants_sum(const struct sl_plan_header *header, uint64_t n_bytes)
{
        return !memcmp(header->magic, SL_PLAN_MAGIC, sizeof(header->magic)) && header->file_bytes == n_bytes &&
               header->checksum == SL_PLAN_NOT_SUMMED;
}

int sl_plan_sum_write(int fd)
{
        off_t end = lseek(fd, 0, SEEK_END); /* which the compiler's sandbox allows, other than fstat() */
        const uint8_t *bytes;
        ssize_t n;
        uint64_t sum = SL_PLAN_NOT_SUMMED;

        if (end < (off_t)sizeof(struct sl_plan_header))
                return end < 0 ? -errno : 0;
        bytes = sl_huge_pages_map(fd, (size_t)end);
        if (bytes == MAP_FAILED)
                return -errno;
        if (wants_sum((const struct sl_plan_header *)bytes, (uint64_t)end))
                sum = sl_plan_sum(bytes, (uint64_t)end);
        munmap((void *)bytes, (size_t)end);
        if (sum == SL_PLAN_NOT_SUMMED)
                return 0;
        n = pwrite(fd, &sum, sizeof(sum), offsetof(struct sl_plan_header, checksum));
        return n == sizeof(sum) ? 0 : n < 0 ? -errno : -EIO;
}

int sl_plan_sum_copy(int from, int to)
{
        off_t end = lseek(from, 0, SEEK_END);

        if (end < 0)
                return -errno;
        for (off_t at = 0; at < end;) {
                ssize_t n = sendfile(to, from, &at, (size_t)(end - at));

                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
        }
        return sl_plan_sum_write(to);
}
