/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the folder of the cache of plans: whose it is, how much of it is whose, and what goes when it is full.
 */
#include "base/error.h"
#include "cache_bench.h"
#include "cache_folder.h"
#include "plan.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(cache_folder, .init = cache_bench_init, .fini = cache_bench_deinit);

Test(cache_folder, a_folder_that_others_can_write_is_refused)
{
        struct sl_plan_cache *other = NULL;
        struct sl_error error = {""};

        cr_assert_eq(mkdir(inside("open"), 0700), 0);
        cr_assert_eq(chmod(inside("open"), 0770), 0);
        cr_assert_eq(sl_plan_cache_new(inside("open"), MIB, &other, &error), -EPERM);
        cr_assert_not_null(strstr(error.text, inside("open")));
        cr_assert_eq(symlink("cache", inside("link")), 0);
        cr_assert_lt(sl_plan_cache_new(inside("link"), MIB, &other, NULL), 0);
        cr_assert_lt(sl_plan_cache_new(inside("nowhere/cache"), MIB, &other, NULL), 0);
        cr_assert_null(other);
}

Test(cache_folder, over_its_bound_what_was_used_longest_ago_goes)
{
        struct sl_plan_cache_key keys[3];

        sl_plan_cache_free(bench.cache);
        open_cache(plan_bytes() * 5 / 2);
        for (uint32_t i = 0; i < 3; i++) {
                struct timespec times[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};

                bench.options.batch_max = i + 1;
                keys[i] = keep();
                cr_assert_eq(utimensat(AT_FDCWD, entry(&keys[i]), times, 0), 0);
                cr_assert_eq(utimensat(AT_FDCWD, record_of(&keys[i]), times, 0), 0);
                if (i == 1)
                        cr_assert_eq(find(&keys[0], NULL), 0, "which makes the first the last used");
        }
        cr_assert_eq(find(&keys[1], NULL), -ENOENT);
        cr_assert_eq(find(&keys[0], NULL), 0);
        cr_assert_eq(find(&keys[2], NULL), 0);
}

static void keep_batch(uint32_t batch_max)
{
        bench.options.batch_max = batch_max;
        keep();
}

Test(cache_folder, what_others_keep_is_seen_after_a_sixty_fourth_of_the_bound)
{
        const uint64_t bound = SL_PLAN_CACHE_LOOKS * 3 * (plan_bytes() + 8192);
        char path[PATH_MAX];

        sl_plan_cache_free(bench.cache);
        open_cache(bound);
        keep_batch(1);
        snprintf(path, sizeof(path), "%s", inside("cache/0123456789abcdef0123456789abcdef.plan"));
        write_file(path, "");
        cr_assert_eq(truncate(path, (off_t)bound), 0);
        cr_assert_eq(utimensat(AT_FDCWD, path, (struct timespec[2]){{.tv_sec = 1000}, {.tv_sec = 1000}}, 0), 0);
        keep_batch(2);
        cr_expect_eq(access(path, F_OK), 0, "the folder was looked at for one plan");
        for (uint32_t batch_max = 3; batch_max < 10; batch_max++)
                keep_batch(batch_max);
        cr_expect_eq(access(path, F_OK), -1, "the bound is passed for good");
}

Test(cache_folder, a_plan_larger_than_the_cache_is_not_kept)
{
        struct sl_plan_cache_key key = key_of(bench.model);

        sl_plan_cache_free(bench.cache);
        open_cache(100);
        cr_assert_eq(sl_plan_cache_store(bench.cache, &key, bench.model, bench.plan_fd, NULL), -EFBIG);
        cr_assert_eq(find(&key, NULL), -ENOENT);
}

Test(cache_folder, a_folder_of_another_user_is_refused)
{
        struct sl_plan_cache *other = NULL;
        struct sl_error error = {""};

        if (geteuid() != 0)
                cr_skip_test("only root can give a folder away");
        cr_assert_eq(mkdir(inside("theirs"), 0700), 0);
        cr_assert_eq(chown(inside("theirs"), 60001, 60001), 0);
        cr_assert_eq(sl_plan_cache_new(inside("theirs"), MIB, &other, &error), -EPERM);
        cr_assert_not_null(strstr(error.text, "user 60001"), "%s", error.text);
}

/* ---- the default folder ---- */

Test(cache_folder, without_a_cache_home_it_is_below_the_users_home)
{
        char path[PATH_MAX], wanted[PATH_MAX];
        struct sl_error error = {""};
        struct stat status;
        int fd;

        unsetenv("XDG_CACHE_HOME");
        setenv("HOME", bench.folder, 1);
        cr_assert_eq(sl_cache_folder_default(path, &error), 0, "%s", error.text);
        snprintf(wanted, sizeof(wanted), "%s/.cache/starling", bench.folder);
        cr_assert_str_eq(path, wanted);
        cr_assert_eq(sl_cache_folder_open(path, false, &fd, &error), -ENOENT);
        cr_assert_lt(stat(inside(".cache"), &status), 0, "who looks makes nothing");
        cr_assert_eq(sl_cache_folder_open(path, true, &fd, &error), 0, "%s", error.text);
        close(fd);
        cr_assert_eq(stat(inside(".cache"), &status), 0);
        cr_assert_eq(status.st_mode & 07777u, 0700);
        setenv("XDG_CACHE_HOME", inside("xdg"), 1);
        cr_assert_eq(sl_cache_folder_default(path, NULL), 0);
        snprintf(wanted, sizeof(wanted), "%s/xdg/starling", bench.folder);
        cr_assert_str_eq(path, wanted);
        cr_assert_eq(
                sl_cache_folder_open(inside("other/starling"), true, &fd, &error), -ENOENT, "above another one nothing is made");
}

/* Neither the home of whoever was there before sudo is used, nor one that is not there. */
static int look_for_a_home_as_nobody(void)
{
        char path[PATH_MAX];
        struct sl_error error = {""};

        unsetenv("XDG_CACHE_HOME");
        setenv("HOME", bench.folder, 1);
        if (setresuid(60001, 60001, 60001) < 0 || sl_cache_folder_default(path, &error) != -ENOENT)
                return 1;
        unsetenv("HOME");
        return sl_cache_folder_default(path, &error) == -ENOENT && strstr(error.text, "user 60001 has no home folder") ? 0 : 2;
}

Test(cache_folder, a_user_without_a_home_has_no_default_folder)
{
        int status;

        if (geteuid() != 0)
                cr_skip_test("only root can become a user without a home");
        pid_t pid = fork();
        if (pid == 0)
                _exit(look_for_a_home_as_nobody());
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert_eq(status, 0, "wait status %#x", status);
}

/* ---- who has how much ---- */

static void keep_for(uint32_t uid, uint32_t number)
{
        struct sl_plan_cache_key key;

        bench.options.batch_max = 100 + number;
        key = key_of(bench.model);
        key.asked = uid != 0;
        key.uid = uid;
        cr_assert_eq(sl_plan_cache_store(bench.cache, &key, bench.model, bench.plan_fd, NULL), 0);
        cr_assert_eq(sl_plan_cache_wait(bench.cache, NULL), 0);
}

static uint32_t count_for(uint32_t uid)
{
        struct sl_cache_file *files;
        uint32_t n, found = 0;
        int fd;

        cr_assert_eq(sl_cache_folder_open(inside("cache"), false, &fd, NULL), 0);
        cr_assert_eq(sl_cache_folder_list(fd, &files, &n), 0);
        for (uint32_t i = 0; i < n; i++)
                found += files[i].kind == SL_CACHE_PLAN && files[i].asked == (uid != 0) && files[i].uid == uid;
        free(files);
        close(fd);
        return found;
}

Test(cache_folder, what_was_kept_for_a_user_is_found_by_all)
{
        struct sl_plan_cache_key key;

        keep_for(7, 1);
        key = key_of(bench.model);
        cr_assert_eq(find(&key, NULL), 0);
        cr_assert_eq(count_for(7), 1);
        cr_assert_eq(count_for(0), 0);
}

Test(cache_folder, plans_of_one_user_without_end_leave_those_of_others_as_far_as_their_share)
{
        sl_plan_cache_free(bench.cache);
        open_cache(plan_bytes() * 12 + 4096);
        for (uint32_t i = 0; i < 3; i++)
                keep_for(0, i);
        for (uint32_t i = 0; i < 3; i++)
                keep_for(8, 10 + i);
        for (uint32_t i = 0; i < 40; i++)
                keep_for(7, 20 + i);
        cr_assert_eq(count_for(0), 3);
        cr_assert_eq(count_for(8), 3);
        cr_assert_geq(count_for(7), 4);
        cr_assert_leq(count_for(7), 6);
}

Test(cache_folder, a_user_that_is_alone_has_what_the_models_do_not_take_and_gives_it_back)
{
        sl_plan_cache_free(bench.cache);
        open_cache(plan_bytes() * 8 + 4096);
        for (uint32_t i = 0; i < 20; i++)
                keep_for(7, i);
        cr_assert_geq(count_for(7), 7);
        for (uint32_t i = 0; i < 20; i++)
                keep_for(0, 100 + i);
        cr_assert_eq(count_for(7), 4);
        cr_assert_geq(count_for(0), 3);
}

/* ---- several processes ---- */

static void keep_many(uint32_t from)
{
        sl_plan_cache_free(bench.cache);
        open_cache(plan_bytes() * 5);
        for (uint32_t i = 0; i < 50; i++)
                keep_for(0, from + i);
        bench.cache = sl_plan_cache_free(bench.cache);
}

Test(cache_folder, two_processes_that_share_a_folder_keep_its_bound_and_break_no_plan)
{
        struct sl_cache_file *files;
        uint64_t bytes = 0;
        uint32_t n;
        int fd;

        for (uint32_t p = 0; p < 2; p++)
                if (fork() == 0) {
                        keep_many(1000 * p);
                        _exit(0);
                }
        for (int p = 0, status; p < 2; p++) {
                cr_assert_gt(wait(&status), 0);
                cr_assert_eq(status, 0, "wait status %#x", status);
        }
        cr_assert_eq(sl_cache_folder_open(inside("cache"), false, &fd, NULL), 0);
        sl_cache_folder_make_room(fd, plan_bytes() * 5);
        cr_assert_eq(sl_cache_folder_list(fd, &files, &n), 0);
        cr_assert_geq(n, 4);
        for (uint32_t i = 0; i < n; i++) {
                struct sl_plan *plan;
                int plan_file;

                bytes += files[i].bytes;
                cr_assert_neq(files[i].kind, SL_CACHE_UNDER_WAY);
                if (files[i].kind != SL_CACHE_PLAN)
                        continue;
                cr_assert_eq(sl_cache_folder_find(fd, files[i].name, &plan_file), 0);
                cr_assert_eq(sl_plan_open(plan_file, &plan, NULL), 0);
                sl_plan_free(plan);
                close(plan_file);
        }
        cr_assert_leq(bytes, plan_bytes() * 5);
        free(files);
        close(fd);
}

Test(cache_folder, what_is_not_ours_in_the_folder_is_neither_counted_nor_removed)
{
        struct sl_plan_cache_key key = keep();
        uint64_t bytes;
        uint32_t n;
        int fd;

        write_file(inside("cache/letter.txt"), "dear");
        write_file(inside("cache/0123456789abcdef0123456789abcdef.planet"), "mars");
        write_file(inside("cache/0123456789abcdef0123456789abcdef.7.base"), "bass");
        write_file(inside("cache/0123456789abcdef0123456789abcdef. 7.intact"), "lost");
        write_file(inside("cache/new.00ff00ff00ff00ff"), "under way, of another process");
        cr_assert_eq(sl_cache_folder_open(inside("cache"), false, &fd, NULL), 0);
        sl_cache_folder_make_room(fd, 0);
        cr_assert_eq(find(&key, NULL), -ENOENT);
        keep();
        cr_assert_eq(sl_cache_folder_clear(fd, &n, &bytes), 0);
        cr_assert_eq(n, 1);
        cr_assert_eq(bytes, plan_bytes());
        cr_assert_eq(access(inside("cache/letter.txt"), F_OK), 0);
        cr_assert_eq(access(inside("cache/0123456789abcdef0123456789abcdef.planet"), F_OK), 0);
        cr_assert_eq(access(inside("cache/0123456789abcdef0123456789abcdef.7.base"), F_OK), 0);
        cr_assert_eq(access(inside("cache/0123456789abcdef0123456789abcdef. 7.intact"), F_OK), 0);
        cr_assert_eq(access(inside("cache/new.00ff00ff00ff00ff"), F_OK), 0);
        close(fd);
}

Test(cache_folder, a_record_goes_with_its_plan_and_counts_alone_when_it_has_none)
{
        struct sl_plan_cache_key key = keep();
        struct sl_cache_file *files;
        uint64_t bytes;
        uint32_t n;
        int fd;

        cr_assert_eq(sl_cache_folder_open(inside("cache"), false, &fd, NULL), 0);
        cr_assert_eq(access(record_of(&key), F_OK), 0);
        sl_cache_folder_make_room(fd, 0);
        cr_assert_eq(access(record_of(&key), F_OK), -1);
        keep();
        cr_assert_eq(unlink(entry(&key)), 0);
        cr_assert_eq(sl_cache_folder_list(fd, &files, &n), 0);
        cr_assert_eq(n, 1);
        cr_assert_eq(files[0].kind, SL_CACHE_RECORD);
        cr_assert_eq(sl_cache_folder_clear(fd, &n, &bytes), 0);
        cr_assert_eq(n, 1);
        cr_assert_eq(bytes, 4096);
        cr_assert_eq(access(record_of(&key), F_OK), -1);
        free(files);
        close(fd);
}
