/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the cache of plans: what a plan depends on is in its key, and nothing is used that could be somebody else's.
 */
#include "base/error.h"
#include "base_plan.h"
#include "cache_folder.h"
#include "format.h"
#include "lower.h"
#include "lower_options.h"
#include "network.h"
#include "plan.h"
#include "plan_cache.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1u << 20)

static char folder[64], model[PATH_MAX];
static struct sl_plan_cache *cache;
static struct sl_lower_options options;
static int plan_fd;

static void write_file(const char *path, const char *content)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

        cr_assert_geq(fd, 0, "%s", path);
        cr_assert_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
        close(fd);
}

static const char *inside(const char *name)
{
        static char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        return path;
}

static void open_cache(uint64_t bytes)
{
        cr_assert_eq(sl_plan_cache_new(inside("cache"), bytes, &cache, NULL), 0);
}

static void setup(void)
{
        struct network net;
        uint32_t x;

        strcpy(folder, "/tmp/starling-cache-XXXXXX");
        cr_assert_not_null(mkdtemp(folder));
        cr_assert_eq(mkdir(inside("model"), 0700), 0);
        snprintf(model, sizeof(model), "%s/model/model.onnx", folder);
        write_file(model, "not parsed here");
        open_cache(64 * MIB);
        sl_lower_options_init(&options);
        network_init(&net);
        x = network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 4, 4, 4));
        network_output(&net, network_apply(&net, SL_OP_RELU, x));
        network_finish(&net);
        plan_fd = network_plan_fd(&net, "cpu", 1);
        network_deinit(&net);
}

static void teardown(void)
{
        char command[128];

        sl_plan_cache_free(cache);
        close(plan_fd);
        snprintf(command, sizeof(command), "rm -rf %s", folder);
        cr_assert_eq(system(command), 0);
}

TestSuite(plan_cache, .init = setup, .fini = teardown);

static struct sl_plan_cache_key key_of(const char *path)
{
        struct sl_plan_cache_key key;
        struct sl_error error = {""};

        cr_assert_eq(sl_plan_cache_key(cache, path, NULL, &options, &key, &error), 0, "%s", error.text);
        return key;
}

static struct sl_plan_cache_key keep(void)
{
        struct sl_plan_cache_key key = key_of(model);
        struct sl_error error = {""};

        cr_assert_eq(sl_plan_cache_store(cache, &key, model, plan_fd, &error), 0, "%s", error.text);
        cr_assert_eq(sl_plan_cache_wait(cache, &error), 0, "%s", error.text);
        return key;
}

static int find(const struct sl_plan_cache_key *key, struct sl_error *error)
{
        struct sl_plan *plan = NULL;
        int r = sl_plan_cache_find(cache, key, NULL, &plan, error);

        cr_assert_eq(!plan, r != 0);
        sl_plan_free(plan);
        return r;
}

/* Of one plan in the cache, with its record. */
static uint64_t plan_bytes(void)
{
        struct stat status;

        cr_assert_eq(fstat(plan_fd, &status), 0);
        return ((uint64_t)status.st_size + 4095) / 4096 * 4096 + 4096;
}

static const char *entry(const struct sl_plan_cache_key *key)
{
        static char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/cache/%s", folder, key->name);
        return path;
}

/* Two changes within one tick of the file system's clock look like one. */
static void let_the_clock_tick(void)
{
        usleep(20000);
}

static const char *record_of(const struct sl_plan_cache_key *key)
{
        static char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/cache/%.32s.intact", folder, key->name);
        return path;
}

Test(plan_cache, a_kept_plan_is_found_again_also_by_another_process)
{
        struct sl_plan_cache_key key = key_of(model);

        cr_assert_eq(find(&key, NULL), -ENOENT);
        keep();
        cr_assert_eq(find(&key, NULL), 0);
        sl_plan_cache_free(cache);
        open_cache(64 * MIB);
        key = key_of(model);
        cr_assert_eq(find(&key, NULL), 0);
}

Test(plan_cache, a_copy_of_the_model_has_the_same_key)
{
        struct sl_plan_cache_key key = key_of(model), other;

        write_file(inside("copy.onnx"), "not parsed here");
        other = key_of(inside("copy.onnx"));
        cr_assert_str_eq(key.name, other.name);
}

Test(plan_cache, every_option_is_in_the_key)
{
        static const char *const changes[] = {"tune=quick", "winograd=false", "max_relative_error=0.5", "batch_max=3",
                "backend=ref", "without_passes=fuse-bias", "precision=bf16"};
        struct sl_plan_cache_key key = key_of(model);

        for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
                sl_lower_options_init(&options);
                cr_assert_eq(sl_lower_options_parse(&options, changes[i], NULL), 0);
                cr_expect_str_neq(key.name, key_of(model).name, "%s", changes[i]);
        }
}

Test(plan_cache, the_program_that_compiles_is_in_the_key)
{
        struct sl_plan_cache_key key = key_of(model), other;

        cr_assert_eq(sl_plan_cache_key(cache, model, "/bin/true", &options, &other, NULL), 0);
        cr_assert_str_neq(key.name, other.name);
        cr_assert_eq(sl_plan_cache_key(cache, model, "/nowhere", &options, &other, NULL), -ENOENT);
}

Test(plan_cache, a_changed_model_is_another)
{
        struct sl_plan_cache_key key = keep(), other;

        write_file(model, "not parsed either");
        other = key_of(model);
        cr_assert_str_neq(key.name, other.name);
        cr_assert_eq(find(&other, NULL), -ENOENT);
        cr_assert_eq(sl_plan_cache_store(cache, &key, model, plan_fd, NULL), -ESTALE);
}

Test(plan_cache, external_data_are_part_of_the_model)
{
        struct sl_plan_cache_key plain = key_of(model), before, after;

        write_file(inside("model/weights"), "1");
        cr_assert_str_eq(plain.name, key_of(model).name, "a file without external data does not hang on its neighbours");
        write_file(model, "... location weights ...");
        before = key_of(model);
        write_file(inside("model/weights"), "2");
        after = key_of(model);
        cr_assert_str_neq(before.name, after.name);
}

Test(plan_cache, a_damaged_plan_is_removed_with_one_line)
{
        struct sl_plan_cache_key key = keep();
        struct sl_error error = {""};
        int fd = open(entry(&key), O_WRONLY);

        let_the_clock_tick();
        cr_assert_eq(pwrite(fd, "damage", 6, 600), 6);
        close(fd);
        cr_assert_eq(find(&key, &error), -EBADMSG);
        cr_assert_not_null(strstr(error.text, key.name), "%s", error.text);
        cr_assert_null(strchr(error.text, '\n'));
        cr_assert_eq(find(&key, NULL), -ENOENT);
        keep();
        cr_assert_eq(find(&key, NULL), 0);
}

/* A field of no consequence: only the checksum can tell that it is another. */
static off_t harmless_offset(int fd)
{
        struct sl_plan_header header;

        cr_assert_eq(pread(fd, &header, sizeof(header), 0), sizeof(header));
        return (off_t)(header.sections[SL_PLAN_SECTION_INFO].offset + offsetof(struct sl_plan_info, multiply_adds));
}

static void flip(int fd)
{
        off_t at = harmless_offset(fd);
        uint8_t byte;

        cr_assert_eq(pread(fd, &byte, 1, at), 1);
        byte ^= 1;
        cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
}

/* What the file system says of a page that is dirty already does not change with it. */
static void flip_unseen(const struct sl_plan_cache_key *key, int (*between)(const struct sl_plan_cache_key *key))
{
        int fd = open(entry(key), O_RDWR);
        struct stat status;

        cr_assert_eq(fstat(fd, &status), 0);
        volatile uint8_t *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        cr_assert_neq((void *)bytes, MAP_FAILED);
        for (int i = 0; i < 2; i++)
                bytes[harmless_offset(fd)] ^= 1;
        cr_assert_eq(between(key), 0);
        bytes[harmless_offset(fd)] ^= 1;
        munmap((void *)bytes, (size_t)status.st_size);
        close(fd);
}

static int find_quietly(const struct sl_plan_cache_key *key)
{
        return find(key, NULL);
}

static int remove_record(const struct sl_plan_cache_key *key)
{
        return find(key, NULL) || unlink(record_of(key));
}

static int spoil_record(const struct sl_plan_cache_key *key)
{
        return find(key, NULL) || truncate(record_of(key), 30);
}

Test(plan_cache, what_is_known_to_be_right_is_not_read_for_damage_again)
{
        struct sl_plan_cache_key key = keep();

        flip_unseen(&key, find_quietly);
        cr_assert_eq(find(&key, NULL), 0);
}

Test(plan_cache, without_a_whole_record_a_plan_is_read_for_damage)
{
        struct sl_plan_cache_key key = keep();

        flip_unseen(&key, remove_record);
        cr_assert_eq(find(&key, NULL), -EBADMSG);
        key = keep();
        flip_unseen(&key, spoil_record);
        cr_assert_eq(find(&key, NULL), -EBADMSG);
}

Test(plan_cache, what_changed_is_read_for_damage_whatever_was_found_before)
{
        struct sl_plan_cache_key key = keep();
        int fd = open(entry(&key), O_RDWR);

        cr_assert_eq(find(&key, NULL), 0);
        let_the_clock_tick();
        flip(fd);
        close(fd);
        cr_assert_eq(find(&key, NULL), -EBADMSG);
        cr_assert_eq(access(record_of(&key), F_OK), -1, "the record goes with its plan");
        cr_assert_eq(find(&key, NULL), -ENOENT);
}

Test(plan_cache, a_copy_of_a_plan_is_read_for_damage_although_its_times_are_those_of_the_plan)
{
        struct sl_plan_cache_key key = keep();
        char command[3 * PATH_MAX];
        int fd;

        cr_assert_eq(find(&key, NULL), 0);
        snprintf(command, sizeof(command), "cp -p %s %s/copy", entry(&key), folder);
        cr_assert_eq(system(command), 0);
        fd = open(inside("copy"), O_RDWR);
        flip(fd);
        close(fd);
        snprintf(command, sizeof(command), "touch -r %s %s/copy && mv %s/copy %s", entry(&key), folder, folder, entry(&key));
        cr_assert_eq(system(command), 0);
        cr_assert_eq(find(&key, NULL), -EBADMSG);
}

Test(plan_cache, a_plan_that_others_can_write_is_not_used)
{
        struct sl_plan_cache_key key = keep();

        cr_assert_eq(chmod(entry(&key), 0620), 0);
        cr_assert_eq(find(&key, NULL), -EPERM);
        cr_assert_eq(chmod(entry(&key), 0602), 0);
        cr_assert_eq(find(&key, NULL), -EPERM);
        cr_assert_eq(chmod(entry(&key), 0600), 0);
        cr_assert_eq(find(&key, NULL), 0);
}

Test(plan_cache, a_link_is_not_followed)
{
        struct sl_plan_cache_key key = keep();

        cr_assert_eq(rename(entry(&key), inside("elsewhere")), 0);
        cr_assert_eq(symlink(inside("elsewhere"), entry(&key)), 0);
        cr_assert_eq(find(&key, NULL), -ELOOP);
}

Test(plan_cache, a_folder_that_others_can_write_is_refused)
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

Test(plan_cache, over_its_bound_what_was_used_longest_ago_goes)
{
        struct sl_plan_cache_key keys[3];

        sl_plan_cache_free(cache);
        open_cache(plan_bytes() * 5 / 2);
        for (uint32_t i = 0; i < 3; i++) {
                struct timespec times[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};

                options.batch_max = i + 1;
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

Test(plan_cache, a_plan_larger_than_the_cache_is_not_kept)
{
        struct sl_plan_cache_key key = key_of(model);

        sl_plan_cache_free(cache);
        open_cache(100);
        cr_assert_eq(sl_plan_cache_store(cache, &key, model, plan_fd, NULL), -EFBIG);
        cr_assert_eq(find(&key, NULL), -ENOENT);
}

Test(plan_cache, the_end_gives_up_copies_under_way_and_leaves_none_half_written)
{
        struct sl_plan_cache_key key = key_of(model);

        for (uint32_t i = 0; i < 20; i++)
                cr_assert_eq(sl_plan_cache_store(cache, &key, model, plan_fd, NULL), 0);
        cache = sl_plan_cache_free(cache);
        open_cache(64 * MIB);
        if (find(&key, NULL) < 0)
                cr_assert_eq(find(&key, NULL), -ENOENT, "there is a whole plan or none");
}

static struct sl_plan_cache_key key_of_sizes(const char *sizes)
{
        struct sl_plan_cache_key key;

        cr_assert_eq(sl_dim_sizes_parse(sizes, &options.shapes, NULL), 0);
        key = key_of(model);
        options.shapes = (struct sl_dim_sizes){0};
        return key;
}

/* Keeps the plan under the key of some sizes, as base of the others. */
static struct sl_plan_cache_key keep_base(const char *sizes)
{
        struct sl_plan_cache_key key = key_of_sizes(sizes);
        struct sl_plan *plan;

        cr_assert_eq(sl_plan_open(plan_fd, &plan, NULL), 0);
        cr_assert_eq(sl_plan_cache_store(cache, &key, model, plan_fd, NULL), 0);
        cr_assert_eq(sl_plan_cache_keep_base(cache, &key, plan, NULL), 0);
        cr_assert_eq(sl_plan_cache_wait(cache, NULL), 0);
        sl_plan_free(plan);
        return key;
}

Test(plan_cache, the_base_is_found_for_all_sizes_of_a_model)
{
        struct sl_plan_cache_key own = keep_base("M=4"), other = key_of_sizes("M=8"), stranger;
        struct sl_error error = {""};
        struct sl_plan *base;
        bool is_own;

        cr_assert_eq(sl_plan_cache_find_base(cache, &other, &base, &is_own, &error), 0, "%s", error.text);
        cr_assert_not(is_own);
        sl_plan_free(base);
        cr_assert_eq(sl_plan_cache_find_base(cache, &own, &base, &is_own, &error), 0, "%s", error.text);
        cr_assert(is_own);
        sl_plan_free(base);
        options.batch_max = 7;
        stranger = key_of_sizes("M=8");
        cr_assert_eq(sl_plan_cache_find_base(cache, &stranger, &base, &is_own, &error), -ENOENT);
}

Test(plan_cache, a_base_that_is_gone_is_named_once)
{
        struct sl_plan_cache_key own = keep_base("M=4"), other = key_of_sizes("M=8");
        struct sl_error error = {""};
        struct sl_plan *base;
        bool is_own;

        cr_assert_eq(unlink(entry(&own)), 0);
        cr_assert_eq(sl_plan_cache_find_base(cache, &other, &base, &is_own, &error), -ESTALE);
        cr_assert_not_null(strstr(error.text, own.name), "%s", error.text);
        cr_assert_not_null(strstr(error.text, "is gone"), "%s", error.text);
        cr_assert_eq(sl_plan_cache_find_base(cache, &other, &base, &is_own, &error), -ENOENT);
}

static int derived_plan_fd(int64_t size, int base_fd)
{
        struct sl_base_plan *base = NULL;
        struct sl_lowered *lowered;
        struct network net;
        int fd = memfd_create("plan", MFD_CLOEXEC);

        network_init(&net);
        network_output(&net, network_apply(&net, SL_OP_RELU, network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, size))));
        network_finish(&net);
        if (base_fd >= 0)
                cr_assert_eq(sl_base_plan_open(base_fd, &base, NULL), 0);
        cr_assert_eq(sl_lowered_new_in(net.graph, &options, base, fd, &lowered, NULL), 0);
        cr_assert_eq(sl_lowered_write(lowered, fd, NULL), 0);
        sl_lowered_free(lowered);
        sl_base_plan_free(base);
        network_deinit(&net);
        return fd;
}

static struct sl_plan *open_plan(int fd)
{
        struct sl_plan *plan;

        cr_assert_eq(sl_plan_open(fd, &plan, NULL), 0);
        return plan;
}

Test(plan_cache, a_derived_plan_is_kept_under_the_digest_of_its_base)
{
        int other_fd = derived_plan_fd(5, -1), fd = derived_plan_fd(6, plan_fd);
        struct sl_plan *base = open_plan(plan_fd), *other = open_plan(other_fd), *found;
        struct sl_plan_cache_key alone = key_of_sizes("M=8"), key = alone, elsewhere = alone;
        struct sl_error error = {""};

        sl_plan_cache_key_on(&key, base);
        sl_plan_cache_key_on(&elsewhere, other);
        cr_assert_str_neq(key.name, alone.name);
        cr_assert_str_neq(key.name, elsewhere.name);
        cr_assert_str_eq(key.family, alone.family);
        cr_assert_eq(sl_plan_cache_store(cache, &key, model, fd, NULL), 0);
        cr_assert_eq(sl_plan_cache_wait(cache, NULL), 0);
        cr_assert_eq(sl_plan_cache_find(cache, &elsewhere, other, &found, &error), -ENOENT);
        cr_assert_eq(sl_plan_cache_find(cache, &key, base, &found, &error), 0, "%s", error.text);
        sl_plan_free(found);
        cr_assert_eq(sl_plan_cache_find(cache, &key, other, &found, &error), -ESTALE);
        cr_assert_not_null(strstr(error.text, "derived from plan"), "%s", error.text);
        cr_assert_eq(sl_plan_cache_find(cache, &key, base, &found, &error), -ENOENT, "it should have been removed");
        sl_plan_free(base);
        sl_plan_free(other);
        close(fd);
        close(other_fd);
}

/* ---- what others may have put there ---- */

/* @spoil has put something else in the place of the plan: it is not used, and the next plan takes its place. */
static void expect_foreign(void (*spoil)(const char *path), int wanted)
{
        struct sl_plan_cache_key key = keep();
        struct sl_error error = {""};

        spoil(entry(&key));
        cr_assert_eq(find(&key, &error), wanted, "%s", error.text);
        cr_assert_not_null(strstr(error.text, key.name), "%s", error.text);
        keep();
        cr_assert_eq(find(&key, NULL), 0);
}

static void put_fifo(const char *path)
{
        cr_assert_eq(unlink(path), 0);
        cr_assert_eq(mkfifo(path, 0600), 0);
}

static void give_another_name(const char *path)
{
        unlink(inside("again"));
        cr_assert_eq(link(path, inside("again")), 0);
}

static void put_link_to_nowhere(const char *path)
{
        cr_assert_eq(unlink(path), 0);
        cr_assert_eq(symlink("/nowhere", path), 0);
}

static void give_away(const char *path)
{
        cr_assert_eq(chown(path, 60001, 60001), 0);
}

static void cut_short(const char *path)
{
        cr_assert_eq(truncate(path, 1000), 0);
}

static void empty(const char *path)
{
        cr_assert_eq(truncate(path, 0), 0);
}

static void fill_with_garbage(const char *path)
{
        char garbage[20000];

        memset(garbage, 0xa5, sizeof(garbage));
        int fd = open(path, O_WRONLY | O_TRUNC);
        cr_assert_eq(write(fd, garbage, sizeof(garbage)), (ssize_t)sizeof(garbage));
        close(fd);
}

Test(plan_cache, what_is_no_file_of_this_users_alone_is_not_used_and_makes_way)
{
        expect_foreign(put_fifo, -EPERM);
        expect_foreign(give_another_name, -EPERM);
        expect_foreign(put_link_to_nowhere, -ELOOP);
        if (geteuid() == 0)
                expect_foreign(give_away, -EPERM);
        else
                cr_log_warn("skipped: only root can give a file away");
}

Test(plan_cache, what_is_no_plan_is_removed)
{
        expect_foreign(cut_short, -EBADMSG);
        expect_foreign(empty, -EBADMSG);
        expect_foreign(fill_with_garbage, -EBADMSG);
}

Test(plan_cache, a_folder_of_another_user_is_refused)
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

Test(plan_cache, without_a_cache_home_it_is_below_the_users_home)
{
        char path[PATH_MAX], wanted[PATH_MAX];
        struct sl_error error = {""};
        struct stat status;

        unsetenv("XDG_CACHE_HOME");
        setenv("HOME", folder, 1);
        cr_assert_eq(sl_cache_folder_default(path, &error), 0, "%s", error.text);
        snprintf(wanted, sizeof(wanted), "%s/.cache/starling", folder);
        cr_assert_str_eq(path, wanted);
        cr_assert_eq(stat(inside(".cache"), &status), 0);
        cr_assert_eq(status.st_mode & 07777u, 0700);
        setenv("XDG_CACHE_HOME", inside("xdg"), 1);
        cr_assert_eq(sl_cache_folder_default(path, NULL), 0);
        snprintf(wanted, sizeof(wanted), "%s/xdg/starling", folder);
        cr_assert_str_eq(path, wanted);
}

/* Neither the home of whoever was there before sudo is used, nor one that is not there. */
static int look_for_a_home_as_nobody(void)
{
        char path[PATH_MAX];
        struct sl_error error = {""};

        unsetenv("XDG_CACHE_HOME");
        setenv("HOME", folder, 1);
        if (setresuid(60001, 60001, 60001) < 0 || sl_cache_folder_default(path, &error) != -ENOENT)
                return 1;
        unsetenv("HOME");
        return sl_cache_folder_default(path, &error) == -ENOENT && strstr(error.text, "user 60001 has no home folder") ? 0 : 2;
}

Test(plan_cache, a_user_without_a_home_has_no_default_folder)
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

        options.batch_max = 100 + number;
        key = key_of(model);
        key.asked = uid != 0;
        key.uid = uid;
        cr_assert_eq(sl_plan_cache_store(cache, &key, model, plan_fd, NULL), 0);
        cr_assert_eq(sl_plan_cache_wait(cache, NULL), 0);
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

Test(plan_cache, what_was_kept_for_a_user_is_found_by_all)
{
        struct sl_plan_cache_key key;

        keep_for(7, 1);
        key = key_of(model);
        cr_assert_eq(find(&key, NULL), 0);
        cr_assert_eq(count_for(7), 1);
        cr_assert_eq(count_for(0), 0);
}

Test(plan_cache, plans_of_one_user_without_end_leave_those_of_others_as_far_as_their_share)
{
        sl_plan_cache_free(cache);
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

Test(plan_cache, a_user_that_is_alone_has_what_the_models_do_not_take_and_gives_it_back)
{
        sl_plan_cache_free(cache);
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
        sl_plan_cache_free(cache);
        open_cache(plan_bytes() * 5);
        for (uint32_t i = 0; i < 50; i++)
                keep_for(0, from + i);
        cache = sl_plan_cache_free(cache);
}

Test(plan_cache, two_processes_that_share_a_folder_keep_its_bound_and_break_no_plan)
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

Test(plan_cache, what_is_not_ours_in_the_folder_is_neither_counted_nor_removed)
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

Test(plan_cache, a_record_goes_with_its_plan_and_counts_alone_when_it_has_none)
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
