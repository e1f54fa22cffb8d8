/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the cache of plans: what a plan depends on is in its key, and nothing is used that could be somebody else's.
 */
#include "base/error.h"
#include "base_plan.h"
#include "cache_bench.h"
#include "format.h"
#include "lower.h"
#include "network.h"
#include "plan.h"
#include "stop.h"
#include "target.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(plan_cache, .init = cache_bench_init, .fini = cache_bench_deinit);

Test(plan_cache, a_kept_plan_is_found_again_also_by_another_process)
{
        struct sl_plan_cache_key key = key_of(bench.model);

        cr_assert_eq(find(&key, NULL), -ENOENT);
        keep();
        cr_assert_eq(find(&key, NULL), 0);
        sl_plan_cache_free(bench.cache);
        open_cache(64 * MIB);
        key = key_of(bench.model);
        cr_assert_eq(find(&key, NULL), 0);
}

Test(plan_cache, a_copy_of_the_model_has_the_same_key)
{
        struct sl_plan_cache_key key = key_of(bench.model), other;

        write_file(inside("copy.onnx"), "not parsed here");
        other = key_of(inside("copy.onnx"));
        cr_assert_str_eq(key.name, other.name);
}

Test(plan_cache, every_option_is_in_the_key)
{
        static const char *const changes[] = {"tune=quick", "winograd=false", "max_relative_error=0.5", "batch_max=3",
                "backend=ref", "without_passes=fuse-bias", "precision=bf16"};
        struct sl_plan_cache_key key = key_of(bench.model);

        for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
                sl_lower_options_init(&bench.options);
                cr_assert_eq(sl_lower_options_parse(&bench.options, changes[i], NULL), 0);
                cr_expect_str_neq(key.name, key_of(bench.model).name, "%s", changes[i]);
        }
}

Test(plan_cache, the_program_that_compiles_is_in_the_key)
{
        struct sl_plan_cache_key key = key_of(bench.model), other;

        cr_assert_eq(sl_plan_cache_key(bench.cache, bench.model, "/bin/true", &bench.options, NULL, &other, NULL), 0);
        cr_assert_str_neq(key.name, other.name);
        cr_assert_eq(sl_plan_cache_key(bench.cache, bench.model, "/nowhere", &bench.options, NULL, &other, NULL), -ENOENT);
}

/* The first file of that suffix in the cache's folder. */
static bool find_suffix(const char *suffix, char ret_path[PATH_MAX])
{
        DIR *directory = opendir(inside("cache"));
        bool found = false;

        for (struct dirent *file; directory && !found && (file = readdir(directory));) {
                const char *dot = strrchr(file->d_name, '.');

                found = dot && !strcmp(dot, suffix);
                if (found)
                        snprintf(ret_path, PATH_MAX, "%s/cache/%s", bench.folder, file->d_name);
        }
        if (directory)
                closedir(directory);
        return found;
}

Test(plan_cache, what_a_core_reaches_is_measured_once_and_again_when_its_file_is_damaged)
{
        struct sl_target first, again;
        char path[PATH_MAX];
        int r = sl_plan_cache_target(bench.cache, "cpu", &first);

        if (r == -ENOTSUP)
                cr_skip_test("there is nothing to measure on this processor");
        cr_assert_eq(r, 0);
        cr_assert(find_suffix(".core", path));
        sl_plan_cache_free(bench.cache);
        open_cache(64 * MIB);
        cr_assert_eq(sl_plan_cache_target(bench.cache, "cpu", &again), 0);
        cr_expect_arr_eq(&first, &again, sizeof(first));
        write_file(path, "nothing of the kind");
        cr_assert_eq(sl_plan_cache_target(bench.cache, "cpu", &again), 0);
        cr_expect(again.core.flops > 0 && again.core.weights > 0 && again.core.stream > 0 && again.core.far > 0 &&
                  again.core.near > 0);
}

Test(plan_cache, a_changed_model_is_another)
{
        struct sl_plan_cache_key key = keep(), other;

        write_file(bench.model, "not parsed either");
        other = key_of(bench.model);
        cr_assert_str_neq(key.name, other.name);
        cr_assert_eq(find(&other, NULL), -ENOENT);
        cr_assert_eq(sl_plan_cache_store(bench.cache, &key, bench.model, bench.plan_fd, NULL), -ESTALE);
}

Test(plan_cache, external_data_are_part_of_the_model)
{
        struct sl_plan_cache_key plain = key_of(bench.model), before, after;

        write_file(inside("model/weights"), "1");
        cr_assert_str_eq(plain.name, key_of(bench.model).name, "a file without external data does not depend on its neighbours");
        write_file(bench.model, "... location weights ...");
        before = key_of(bench.model);
        write_file(inside("model/weights"), "2");
        after = key_of(bench.model);
        cr_assert_str_neq(before.name, after.name);
}

static int key_with(const struct sl_stop *stop, struct sl_plan_cache_key *ret_key)
{
        return sl_plan_cache_key(bench.cache, bench.model, NULL, &bench.options, stop, ret_key, NULL);
}

Test(plan_cache, a_file_larger_than_a_model_may_be_is_not_read)
{
        struct sl_plan_cache_key key;

        cr_assert_eq(truncate(bench.model, (off_t)bench.options.model_bytes_max + 1), 0);
        cr_expect_eq(key_with(NULL, &key), -EFBIG);
        bench.options.model_bytes_max = 3;
        cr_assert_eq(truncate(bench.model, 3), 0);
        cr_expect_eq(key_with(NULL, &key), 0);
}

static void write_long_ago(const char *path, time_t modified)
{
        const struct timespec times[2] = {{.tv_sec = modified}, {.tv_sec = modified}};

        write_file(path, "1234567");
        cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

Test(plan_cache, a_folder_with_more_than_may_be_read_counts_by_what_the_file_system_says)
{
        struct sl_plan_cache_key before, after;

        time_t written;
        int r;

        write_file(bench.model, "... location weights ...");
        bench.options.model_bytes_max = 28;
        do { /* once more where others had the processor in between for so long that it is no new one any more */
                written = time(NULL);
                write_long_ago(inside("model/weights"), 1000);
                r = key_with(NULL, &before);
        } while (time(NULL) > written + 1);
        cr_expect_eq(r, -EAGAIN, "a change in the same tick of the clock would not be seen");
        sleep(3);
        cr_assert_eq(key_with(NULL, &before), 0);
        write_long_ago(inside("model/weights"), 2000);
        sleep(3);
        cr_assert_eq(key_with(NULL, &after), 0);
        cr_expect_str_neq(before.name, after.name);
}

Test(plan_cache, reading_a_model_ends_when_its_owner_or_a_deadline_says_so)
{
        _Atomic int32_t verdict = -ECANCELED;
        const struct sl_stop ended = {.verdict = &verdict}, late = {.deadline_ns = 1};
        struct sl_plan_cache_key key;

        cr_expect_eq(key_with(&ended, &key), -ECANCELED);
        cr_expect_eq(key_with(&late, &key), -ETIME);
        verdict = 0;
        cr_expect_eq(key_with(&ended, &key), 0);
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
        return (off_t)(header.sections[SL_PLAN_SECTION_INFO].offset + offsetof(struct sl_plan_description, info.multiply_adds));
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
        snprintf(command, sizeof(command), "cp -p %s %s/copy", entry(&key), bench.folder);
        cr_assert_eq(system(command), 0);
        fd = open(inside("copy"), O_RDWR);
        flip(fd);
        close(fd);
        snprintf(command, sizeof(command), "touch -r %s %s/copy && mv %s/copy %s", entry(&key), bench.folder, bench.folder,
                entry(&key));
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

Test(plan_cache, the_end_gives_up_copies_under_way_and_leaves_none_half_written)
{
        struct sl_plan_cache_key key = key_of(bench.model);

        for (uint32_t i = 0; i < 20; i++)
                cr_assert_eq(sl_plan_cache_store(bench.cache, &key, bench.model, bench.plan_fd, NULL), 0);
        bench.cache = sl_plan_cache_free(bench.cache);
        open_cache(64 * MIB);
        if (find(&key, NULL) < 0)
                cr_assert_eq(find(&key, NULL), -ENOENT, "there is a whole plan or none");
}

static struct sl_plan_cache_key key_of_sizes(const char *sizes)
{
        struct sl_plan_cache_key key;

        cr_assert_eq(sl_dim_sizes_parse(sizes, &bench.options.shapes, NULL), 0);
        key = key_of(bench.model);
        bench.options.shapes = (struct sl_dim_sizes){0};
        return key;
}

/* Keeps the plan under the key of some sizes, as base of the others. */
static struct sl_plan_cache_key keep_base(const char *sizes)
{
        struct sl_plan_cache_key key = key_of_sizes(sizes);
        struct sl_plan *plan;

        cr_assert_eq(sl_plan_open(bench.plan_fd, &plan, NULL), 0);
        cr_assert_eq(sl_plan_cache_store(bench.cache, &key, bench.model, bench.plan_fd, NULL), 0);
        cr_assert_eq(sl_plan_cache_keep_base(bench.cache, &key, plan, NULL), 0);
        cr_assert_eq(sl_plan_cache_wait(bench.cache, NULL), 0);
        sl_plan_free(plan);
        return key;
}

Test(plan_cache, the_base_is_found_for_all_sizes_of_a_model)
{
        struct sl_plan_cache_key own = keep_base("M=4"), other = key_of_sizes("M=8"), stranger;
        struct sl_error error = {""};
        struct sl_plan *base;
        bool is_own;

        cr_assert_eq(sl_plan_cache_find_base(bench.cache, &other, &base, &is_own, &error), 0, "%s", error.text);
        cr_assert_not(is_own);
        sl_plan_free(base);
        cr_assert_eq(sl_plan_cache_find_base(bench.cache, &own, &base, &is_own, &error), 0, "%s", error.text);
        cr_assert(is_own);
        sl_plan_free(base);
        bench.options.batch_max = 7;
        stranger = key_of_sizes("M=8");
        cr_assert_eq(sl_plan_cache_find_base(bench.cache, &stranger, &base, &is_own, &error), -ENOENT);
}

Test(plan_cache, a_base_that_is_gone_is_named_once)
{
        struct sl_plan_cache_key own = keep_base("M=4"), other = key_of_sizes("M=8");
        struct sl_error error = {""};
        struct sl_plan *base;
        bool is_own;

        cr_assert_eq(unlink(entry(&own)), 0);
        cr_assert_eq(sl_plan_cache_find_base(bench.cache, &other, &base, &is_own, &error), -ESTALE);
        cr_assert_not_null(strstr(error.text, own.name), "%s", error.text);
        cr_assert_not_null(strstr(error.text, "is gone"), "%s", error.text);
        cr_assert_eq(sl_plan_cache_find_base(bench.cache, &other, &base, &is_own, &error), -ENOENT);
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
        cr_assert_eq(sl_lowered_new_in(net.graph, &bench.options, base, fd, &lowered, NULL), 0);
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

/* As the compiler's process leaves it. */
static int unsummed_plan_fd(bool sealed)
{
        struct sl_lowered *lowered;
        struct network net;
        int fd = memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        network_init(&net);
        network_output(&net, network_apply(&net, SL_OP_RELU, network_input(&net, SL_DTYPE_F32, DIMS(SL_DIM_BATCH, 7))));
        network_finish(&net);
        cr_assert_eq(sl_lowered_new_in(net.graph, &bench.options, NULL, fd, &lowered, NULL), 0);
        cr_assert_eq(sl_lowered_write_unsummed(lowered, fd, NULL), 0);
        sl_lowered_free(lowered);
        network_deinit(&net);
        if (sealed)
                cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
        return fd;
}

Test(plan_cache, a_plan_in_sealed_memory_gets_its_checksum_when_it_is_kept)
{
        int fd = unsummed_plan_fd(true), kept_fd;
        struct sl_plan_cache_key key = key_of(bench.model);
        struct sl_plan *plan = open_plan(fd), *found;
        struct sl_plan_identity identity = sl_plan_identity(plan), kept;

        cr_assert_eq(sl_plan_cache_store(bench.cache, &key, bench.model, fd, NULL), 0);
        cr_assert_eq(sl_plan_cache_wait(bench.cache, NULL), 0);
        cr_assert_eq(sl_plan_cache_find(bench.cache, &key, NULL, &found, NULL), 0);
        kept = sl_plan_identity(found);
        cr_assert_eq(kept.checksum, identity.checksum);
        cr_assert_eq(kept.bytes, identity.bytes);
        sl_plan_free(found);
        sl_plan_free(plan);
        close(fd);
        let_the_clock_tick();
        kept_fd = open(entry(&key), O_RDWR);
        flip(kept_fd);
        close(kept_fd);
        cr_assert_eq(find(&key, NULL), -EBADMSG);
}

Test(plan_cache, a_plan_without_a_checksum_is_taken_from_sealed_memory_alone)
{
        int fd = unsummed_plan_fd(false);
        struct sl_plan *plan;

        cr_assert_eq(sl_plan_open(fd, &plan, NULL), -EBADMSG);
        close(fd);
}

Test(plan_cache, a_derived_plan_is_kept_under_the_digest_of_its_base)
{
        int other_fd = derived_plan_fd(5, -1), fd = derived_plan_fd(6, bench.plan_fd);
        struct sl_plan *base = open_plan(bench.plan_fd), *other = open_plan(other_fd), *found;
        struct sl_plan_cache_key alone = key_of_sizes("M=8"), key = alone, elsewhere = alone;
        struct sl_error error = {""};

        sl_plan_cache_key_on(&key, base);
        sl_plan_cache_key_on(&elsewhere, other);
        cr_assert_str_neq(key.name, alone.name);
        cr_assert_str_neq(key.name, elsewhere.name);
        cr_assert_str_eq(key.family, alone.family);
        cr_assert_eq(sl_plan_cache_store(bench.cache, &key, bench.model, fd, NULL), 0);
        cr_assert_eq(sl_plan_cache_wait(bench.cache, NULL), 0);
        cr_assert_eq(sl_plan_cache_find(bench.cache, &elsewhere, other, &found, &error), -ENOENT);
        cr_assert_eq(sl_plan_cache_find(bench.cache, &key, base, &found, &error), 0, "%s", error.text);
        sl_plan_free(found);
        cr_assert_eq(sl_plan_cache_find(bench.cache, &key, other, &found, &error), -ESTALE);
        cr_assert_not_null(strstr(error.text, "derived from plan"), "%s", error.text);
        cr_assert_eq(sl_plan_cache_find(bench.cache, &key, base, &found, &error), -ENOENT, "it should have been removed");
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
                fprintf(stderr, "[SKIP] only root can give a file away\n");
}

Test(plan_cache, what_is_no_plan_is_removed)
{
        expect_foreign(cut_short, -EBADMSG);
        expect_foreign(empty, -EBADMSG);
        expect_foreign(fill_with_garbage, -EBADMSG);
}

static struct sl_digest identity_of(const char *model)
{
        struct sl_digest digest = {0};
        int64_t changed;

        cr_assert_eq(sl_model_identify(model, true, &digest, &changed), 0);
        return digest;
}

static bool differ(struct sl_digest a, struct sl_digest b)
{
        return a.low != b.low || a.high != b.high;
}

static void write_text(const char *path, const char *text)
{
        FILE *file = fopen(path, "w");

        cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Downloads are kept as links into a folder of blobs; a volume is replaced by another link. */
Test(plan_cache, a_model_is_what_its_links_lead_to)
{
        char folder[] = "/tmp/starling-links-XXXXXX", blobs[] = "/tmp/starling-blobs-XXXXXX", model[64], blob[64], link[64];
        struct sl_digest before;

        cr_assert(mkdtemp(folder) && mkdtemp(blobs));
        snprintf(model, sizeof(model), "%s/model.onnx", folder);
        snprintf(blob, sizeof(blob), "%s/1", blobs);
        snprintf(link, sizeof(link), "%s/weights.bin", folder);
        write_text(model, "a model");
        write_text(blob, "some weights");
        cr_assert_eq(symlink(blobs, link), 0);
        before = identity_of(model);
        cr_expect_not(differ(before, identity_of(model)));
        cr_assert(remove(link) == 0 && symlink("/", link) == 0);
        cr_expect(differ(before, identity_of(model)), "the link leads elsewhere");
        cr_assert(remove(link) == 0 && symlink(blob, link) == 0);
        before = identity_of(model);
        write_text(blob, "other weights");
        cr_expect(differ(before, identity_of(model)), "what it leads to is another");
        cr_assert(remove(link) == 0 && remove(blob) == 0 && remove(model) == 0 && rmdir(folder) == 0 && rmdir(blobs) == 0);
}
