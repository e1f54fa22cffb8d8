/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of the stats page: who may have its name, and what becomes of it where the file system is full.
 */
#include "base/error.h"
#include "stats_bench.h"
#include "stats_claim.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(stats_file, .init = stats_bench_init, .fini = stats_bench_deinit);

static int stats_create_result(const struct sl_stats_options *o, struct sl_error *error)
{
        struct sl_stats *stats = NULL;
        int r = sl_stats_create(o, &stats, error);

        sl_stats_free(stats);
        return r;
}

/* ---- who may have the name ------------------------------------------------------------------------------------------ */

/* A runtime in a process of its own that creates the page, counts, and stays. */
static pid_t start_runtime(void)
{
        int ready[2];
        char byte;

        cr_assert_eq(pipe(ready), 0);
        pid_t child = fork();
        if (child == 0) {
                struct sl_stats_options o = stats_options();
                struct sl_stats *stats;
                struct sl_model_counting counting;

                if (sl_stats_create(&o, &stats, NULL) < 0 || sl_stats_model_add(stats, "flight", &counting, NULL) < 0)
                        _exit(1);
                sl_model_count(&counting, failed, 13);
                if (write(ready[1], "r", 1) == 1)
                        pause();
                _exit(0);
        }
        close(ready[1]);
        cr_assert_eq(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        return child;
}

static void kill_runtime(pid_t child)
{
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
}

Test(stats_file, a_second_runtime_of_the_name_is_refused_while_the_first_lives)
{
        pid_t child = start_runtime();
        struct sl_stats_options o = stats_options();
        struct sl_error error = {""};

        cr_expect_eq(stats_create_result(&o, &error), -EADDRINUSE);
        cr_expect_not_null(strstr(error.text, stats_path()));
        struct sl_stats_view *v = stats_view();
        cr_expect(sl_stats_is_live(v));
        sl_stats_close(v);
        kill_runtime(child);
}

Test(stats_file, what_a_killed_runtime_left_is_readable_and_then_replaced)
{
        kill_runtime(start_runtime());

        struct sl_stats_view *v = stats_view();
        struct sl_model_stats model;

        cr_expect_not(sl_stats_is_live(v));
        cr_assert_eq(sl_stats_read_model(v, 1, &model), 0);
        cr_expect_str_eq(model.name, "flight");
        cr_expect_eq(sl_counter_read(&model.failed), 13);

        struct sl_stats *stats = stats_create();
        struct sl_stats_view *fresh = stats_view();
        cr_expect_eq(sl_stats_read_model(fresh, 1, &model), -ENOENT);
        cr_expect(sl_stats_is_live(fresh));
        cr_expect_eq(sl_stats_read_model(v, 1, &model), 0, "who had it open keeps the flight recorder");
        sl_stats_close(fresh);
        sl_stats_close(v);
        sl_stats_free(stats);
}

/* As the kernel does with a large process: the owner is dead, and its lock stays until a while after @released is closed. */
static void die_with_lock_held(const int released[2])
{
        char byte;

        stats_create();
        if (fork() == 0) {
                close(released[1]);
                (void)!read(released[0], &byte, 1);
                usleep(100000);
                _exit(0);
        }
        _exit(0);
}

Test(stats_file, a_lock_that_outlives_its_owner_is_waited_for)
{
        int released[2];

        cr_assert_eq(pipe(released), 0);
        pid_t child = fork();
        if (child == 0)
                die_with_lock_held(released);
        cr_assert_eq(waitpid(child, NULL, 0), child);
        cr_expect(sl_stats_is_claimed("demo", stats_folder), "the lock is gone too early for this test");
        close(released[0]);
        close(released[1]);
        struct sl_stats *stats = stats_create();
        cr_expect(sl_stats_has_replaced(stats));
        cr_expect_str_eq(sl_stats_path(stats), stats_path());
        sl_stats_free(stats);
}

Test(stats_file, a_reader_that_locks_the_file_cannot_keep_a_runtime_from_starting)
{
        kill_runtime(start_runtime());

        int fd = open(stats_path(), O_RDONLY | O_CLOEXEC);
        struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};

        cr_assert_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
        sl_stats_free(stats_create());
        close(fd);
}

Test(stats_file, a_symbolic_link_is_refused_and_not_followed)
{
        struct sl_stats_options o = stats_options();
        struct sl_error error = {""};
        char target[160];
        struct stat status;

        snprintf(target, sizeof(target), "%s/target", stats_folder);
        cr_assert_eq(symlink(target, stats_path()), 0);
        cr_expect_eq(stats_create_result(&o, &error), -EPERM);
        cr_expect_not_null(strstr(error.text, "symbolic link"));
        cr_expect_lt(stat(target, &status), 0);
        cr_expect_eq(lstat(stats_path(), &status), 0, "it is not removed either");
}

Test(stats_file, what_is_no_regular_file_or_has_a_second_name_is_refused)
{
        struct sl_stats_options o = stats_options();
        char other[160];

        cr_assert_eq(mkfifo(stats_path(), 0600), 0);
        cr_expect_eq(stats_create_result(&o, NULL), -EPERM);
        unlink(stats_path());
        cr_assert_eq(mkdir(stats_path(), 0700), 0);
        cr_expect_eq(stats_create_result(&o, NULL), -EPERM);
        rmdir(stats_path());
        close(open(stats_path(), O_CREAT | O_WRONLY, 0600));
        snprintf(other, sizeof(other), "%s/other", stats_folder);
        cr_assert_eq(link(stats_path(), other), 0);
        cr_expect_eq(stats_create_result(&o, NULL), -EPERM);
        unlink(other);
}

/* A path that is cut short would be that of another page. */
Test(stats_file, a_name_that_makes_no_path_is_refused)
{
        struct sl_stats_view *v = NULL;
        char name[600];
        int beyond = -1, within = -1;

        for (size_t n = 400; n < sizeof(name) - 1; n++) {
                memset(name, 'x', n);
                name[n] = 0;
                int r = sl_stats_open(name, "/", &v, NULL);

                cr_expect_lt(r, 0);
                if (1 + strlen("/starling.") + n < 512)
                        within = within == -1 || within == r ? r : 0;
                else
                        beyond = beyond == -1 || beyond == r ? r : 0;
        }
        cr_expect(within < 0 && beyond < 0 && within != beyond, "%d up to 511 bytes, %d beyond", within, beyond);
}

static bool fallocate_is_unknown;

/* Stands before the C library's. */
int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
        if (!fallocate_is_unknown)
                return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
        errno = EOPNOTSUPP;
        return -1;
}

/* Of a page that was just made. */
static uint64_t reserved_blocks(void)
{
        struct sl_stats *stats = stats_create();
        struct stat status;

        cr_assert_eq(stat(stats_path(), &status), 0);
        sl_stats_free(stats);
        return (uint64_t)status.st_blocks;
}

Test(stats_file, memory_is_reserved_as_well_where_the_file_system_cannot_be_asked_for_it)
{
        uint64_t asked = reserved_blocks();

        fallocate_is_unknown = true;
        cr_expect_gt(asked, 8);
        cr_expect_geq(reserved_blocks(), asked);
}

Test(stats_file, a_file_of_another_user_is_refused)
{
        struct sl_stats_options o = stats_options();

        if (geteuid() != 0)
                stats_skip("needs root to make a file of another user");
        close(open(stats_path(), O_CREAT | O_WRONLY, 0666));
        cr_assert_eq(chown(stats_path(), 12345, 12345), 0);
        cr_expect_eq(stats_create_result(&o, NULL), -EPERM);
}

Test(stats_file, names_and_sizes_out_of_range_are_refused_with_a_cause)
{
        struct sl_stats_options o = stats_options();
        struct sl_error error = {""};
        char name[100];

        memset(name, 'n', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        o.name = "";
        cr_expect_eq(stats_create_result(&o, &error), -EINVAL);
        o.name = "a/b";
        cr_expect_eq(stats_create_result(&o, &error), -EINVAL);
        o.name = name;
        cr_expect_eq(stats_create_result(&o, &error), -EINVAL);
        o.name = "demo";
        o.bytes = 64 * KIB;
        cr_expect_eq(stats_create_result(&o, &error), -EINVAL);
        cr_expect_not_null(strstr(error.text, "65536"));
        o.bytes = MIB;
        o.counts[SL_STATS_CLIENTS] = UINT32_MAX;
        cr_expect_eq(stats_create_result(&o, &error), -EINVAL);
        o.counts[SL_STATS_CLIENTS] = 0;
        o.directory = "/no/such/directory";
        cr_expect_eq(stats_create_result(&o, &error), -ENOENT);
        cr_expect_not_null(strstr(error.text, "/no/such/directory"));
}

Test(stats_file, of_runtimes_that_start_at_once_one_wins)
{
        enum { N = 6 };
        pid_t children[N];
        int go[2], winners = 0;

        cr_assert_eq(pipe(go), 0);
        for (int i = 0; i < N; i++) {
                children[i] = fork();
                if (children[i] == 0) {
                        struct sl_stats_options o = stats_options();
                        struct sl_stats *stats;
                        char byte;

                        close(go[1]);
                        int n = (int)read(go[0], &byte, 1); /* end of file starts all */
                        int r = n == 0 ? sl_stats_create(&o, &stats, NULL) : -EIO;
                        if (r < 0)
                                _exit(r == -EADDRINUSE ? 1 : 2);
                        alarm(20); /* a second winner fails the test and does not hang it */
                        pause();   /* keeps the name without removing it */
                        _exit(0);
                }
        }
        close(go[0]);
        close(go[1]);
        for (int ended = 0; ended < N - 1; ended++) {
                int status;

                cr_assert_gt(wait(&status), 0);
                cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1, "the losers are told why");
        }
        for (int i = 0; i < N; i++)
                winners += kill(children[i], SIGKILL) == 0 && waitpid(children[i], NULL, 0) == children[i];
        cr_expect_eq(winners, 1);
}

/* ---- a full file system --------------------------------------------------------------------------------------------- */

/* In a mount namespace of its own: a tmpfs of @size over the folder. Exit status 0, or the line that failed. */
#define CHECK(condition)                                                                                                           \
        do {                                                                                                                       \
                if (!(condition))                                                                                                  \
                        _exit(__LINE__ % 250 + 1);                                                                                 \
        } while (0)

static int in_small_tmpfs(const char *size, void (*body)(void))
{
        int status;
        pid_t child = fork();

        if (child == 0) {
                if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                        mount("none", stats_folder, "tmpfs", 0, size) < 0)
                        _exit(255);
                body();
                _exit(0);
        }
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void create_in_too_little(void)
{
        struct sl_stats_options o = stats_options();
        struct sl_stats *stats = NULL;
        struct sl_error error = {""};
        struct stat status;

        CHECK(sl_stats_create(&o, &stats, &error) == -ENOSPC);
        CHECK(strstr(error.text, stats_path()) && strstr(error.text, "bytes"));
        CHECK(stat(stats_path(), &status) < 0);
}

static void fill_up(void)
{
        struct sl_stats_options o = stats_options();
        struct sl_stats *stats = NULL;
        struct sl_model_counting counting;
        struct sl_model_stats model;
        struct sl_histogram histogram;
        struct sl_stats_view *v = NULL;
        int n = 0, r;

        CHECK(sl_stats_create(&o, &stats, NULL) == 0);
        while ((r = sl_stats_model_add(stats, stats_name(n), &counting, NULL)) == 0)
                n++;
        CHECK(r == -ENOSPC && n >= 1 && n < 15);
        for (int stage = 0; stage < SL_STAGES; stage++)
                for (uint64_t ns = 1; ns < SL_HISTOGRAM_MAX_NS; ns *= 2)
                        sl_model_record(&counting, stage, ns); /* every store has its page */
        CHECK(sl_stats_open("demo", stats_folder, &v, NULL) == 0);
        CHECK(sl_stats_read_model(v, (uint32_t)n + 1, &model) == 0 &&
                sl_stats_read_histogram(v, model.histograms, SL_STAGE_TOTAL, &histogram) == 0);
        CHECK(sl_histogram_quantile(&histogram, 1) > 0);
        sl_stats_close(v);
        sl_stats_free(stats);
}

Test(stats_file, a_full_dev_shm_is_one_clear_error_and_leaves_nothing)
{
        int r = in_small_tmpfs("size=64k", create_in_too_little);

        if (r == 255)
                stats_skip("needs the right to mount in a namespace of its own");
        cr_expect_eq(r, 0, "check in line %% 250 = %d", r - 1);
}

Test(stats_file, a_dev_shm_that_fills_up_later_never_kills)
{
        int r = in_small_tmpfs("size=600k", fill_up);

        if (r == 255)
                stats_skip("needs the right to mount in a namespace of its own");
        cr_expect_eq(r, 0, "check in line %% 250 = %d", r - 1);
}
