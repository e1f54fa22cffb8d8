/* SPDX-License-Identifier: Apache-2.0 */
#include "segment.h"

#include "base/bytes.h"
#include "base/error.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct segment {
        int fd;
        struct sl_mapping mapping;
};

static struct segment make(uint64_t bytes, enum sl_seal seal)
{
        struct segment segment;
        struct sl_error error = {""};

        cr_assert_eq(sl_segment_create("starling-test", bytes, seal, &segment.fd, &segment.mapping, &error), 0, "%s", error.text);
        return segment;
}

static void drop(struct segment *segment)
{
        sl_mapping_free(&segment->mapping);
        close(segment->fd);
}

/* Runs @attack in a process of its own, as nobody where that is possible; true when it returned true. */
static bool another_process(bool (*attack)(int fd), int fd)
{
        int status;
        pid_t child = fork();

        if (child == 0) {
                if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
                        _exit(2);
                _exit(attack(fd) ? 1 : 0);
        }
        waitpid(child, &status, 0);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) < 2);
        return WEXITSTATUS(status) == 1;
}

Test(segment, no_seal_lets_anybody_change_the_size)
{
        for (int seal = SL_SEAL_SHARED; seal <= SL_SEAL_RESPONSE; seal++) {
                struct segment segment = make(2 * SL_PAGE_BYTES, seal);

                cr_expect(ftruncate(segment.fd, 0) < 0 && errno == EPERM);
                cr_expect(ftruncate(segment.fd, 4 * SL_PAGE_BYTES) < 0 && errno == EPERM);
                cr_expect(fcntl(segment.fd, F_ADD_SEALS, F_SEAL_WRITE) < 0 && errno == EPERM, "no seal can be added");
                drop(&segment);
        }
}

static bool maps_for_writing(int fd)
{
        return mmap(NULL, SL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED;
}

static bool reopens_and_maps_for_writing(int fd)
{
        char path[64];
        int again;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        again = open(path, O_RDWR);
        return again >= 0 && maps_for_writing(again);
}

static bool makes_a_mapping_writable(int fd)
{
        void *base = mmap(NULL, SL_PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);

        return base != MAP_FAILED && mprotect(base, SL_PAGE_BYTES, PROT_READ | PROT_WRITE) == 0;
}

static bool writes_or_punches(int fd)
{
        return pwrite(fd, "x", 1, 0) > 0 || fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SL_PAGE_BYTES) == 0;
}

static bool maps_for_reading(int fd)
{
        return mmap(NULL, SL_PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED;
}

Test(segment, response_memory_is_written_by_its_maker_alone)
{
        struct segment segment = make(SL_PAGE_BYTES, SL_SEAL_RESPONSE);

        cr_expect(another_process(maps_for_reading, segment.fd));
        cr_expect_not(another_process(maps_for_writing, segment.fd));
        cr_expect_not(another_process(reopens_and_maps_for_writing, segment.fd));
        cr_expect_not(another_process(makes_a_mapping_writable, segment.fd));
        cr_expect_not(another_process(writes_or_punches, segment.fd));
        *(char *)segment.mapping.base = 42; /* while the maker still can */
        cr_expect_eq(*(char *)segment.mapping.base, 42);
        drop(&segment);
}

Test(segment, shared_memory_is_written_by_both)
{
        struct segment segment = make(100, SL_SEAL_SHARED);
        struct sl_mapping other;

        cr_expect_eq(segment.mapping.bytes, SL_PAGE_BYTES);
        cr_assert_eq(sl_segment_map(segment.fd, SL_PAGE_BYTES, SL_SEAL_SHARED, 1, &other, NULL), 0);
        ((char *)other.base)[7] = 3;
        cr_expect_eq(((char *)segment.mapping.base)[7], 3);
        sl_mapping_free(&other);
        cr_expect_null(other.base);
        sl_mapping_free(&other);
        drop(&segment);
}

Test(segment, an_fd_does_not_survive_exec)
{
        struct segment segment = make(1, SL_SEAL_SHARED);

        cr_expect(fcntl(segment.fd, F_GETFD) & FD_CLOEXEC);
        drop(&segment);
}

static void expect_refused(int fd, uint64_t bytes, enum sl_seal seal, const char *what)
{
        struct sl_mapping mapping;
        struct sl_error error = {""};

        cr_expect_eq(sl_segment_map(fd, bytes, seal, 0, &mapping, &error), -EBADMSG, "%s", what);
        cr_expect_gt(strlen(error.text), 10, "%s: has a cause", what);
}

Test(segment, a_foreign_fd_is_mapped_only_with_the_size_and_the_seals)
{
        struct segment segment = make(SL_PAGE_BYTES, SL_SEAL_SHARED);
        int plain = memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        int half = memfd_create("half", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        int ends[2];

        cr_assert_eq(ftruncate(plain, SL_PAGE_BYTES), 0);
        cr_assert_eq(ftruncate(half, SL_PAGE_BYTES), 0);
        cr_assert_eq(fcntl(half, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
        cr_assert_eq(pipe(ends), 0);
        expect_refused(segment.fd, 2 * SL_PAGE_BYTES, SL_SEAL_SHARED, "another size");
        expect_refused(segment.fd, SL_PAGE_BYTES, SL_SEAL_RESPONSE, "without FUTURE_WRITE");
        expect_refused(plain, SL_PAGE_BYTES, SL_SEAL_SHARED, "without seals");
        expect_refused(half, SL_PAGE_BYTES, SL_SEAL_SHARED, "without SHRINK");
        expect_refused(ends[0], SL_PAGE_BYTES, SL_SEAL_SHARED, "a pipe");
        expect_refused(-1, SL_PAGE_BYTES, SL_SEAL_SHARED, "no fd");
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        expect_refused(null, SL_PAGE_BYTES, SL_SEAL_SHARED, "a device");
        close(null);
        close(plain);
        close(half);
        close(ends[0]);
        close(ends[1]);
        drop(&segment);
}

Test(segment, a_size_of_nothing_or_of_too_much_is_refused_with_a_cause)
{
        struct sl_mapping mapping;
        struct sl_error error = {""};
        int fd;

        cr_expect_eq(sl_segment_create("none", 0, SL_SEAL_SHARED, &fd, &mapping, &error), -EINVAL);
        cr_expect_not_null(strstr(error.text, "none"));
        cr_expect_lt(sl_segment_create("vast", INT64_MAX - 10000, SL_SEAL_SHARED, &fd, &mapping, &error), 0);
        cr_expect_not_null(strstr(error.text, "vast"));
}

Test(segment, populating_stays_inside_the_mapping)
{
        struct segment segment = make(16 * SL_PAGE_BYTES, SL_SEAL_SHARED);
        struct stat status;

        cr_expect_eq(sl_mapping_populate(&segment.mapping, 100, 2 * SL_PAGE_BYTES), 0);
        cr_expect_eq(sl_mapping_populate(&segment.mapping, 0, segment.mapping.bytes), 0);
        cr_expect_eq(sl_mapping_populate(&segment.mapping, 0, 0), 0);
        cr_expect_eq(sl_mapping_populate(&segment.mapping, SL_PAGE_BYTES, segment.mapping.bytes), -EINVAL);
        cr_expect_eq(sl_mapping_populate(&segment.mapping, UINT64_MAX - 10, 20), -EINVAL);
        cr_expect_eq(fstat(segment.fd, &status), 0);
        drop(&segment);
}
