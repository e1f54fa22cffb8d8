/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include "base/error.h"
#include "stats_claim.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIB 1024u
#define MIB (1024u * KIB)

static char folder[64];

static void make_folder(void)
{
        strcpy(folder, "/tmp/starling-stats-XXXXXX");
        cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/starling.demo", folder);
        unlink(path);
        cr_expect_eq(rmdir(folder), 0, "nothing is left in %s", folder);
}

/* A skipped test is not torn down. */
static void skip(const char *what)
{
        remove_folder();
        cr_skip("%s", what);
}

TestSuite(stats, .init = make_folder, .fini = remove_folder);

static const char *page_path(void)
{
        static char path[128];

        snprintf(path, sizeof(path), "%s/starling.demo", folder);
        return path;
}

static struct sl_stats_options options(void)
{
        return (struct sl_stats_options){
                .name = "demo", .directory = folder, .wait_name = "epoll", .bytes = MIB, .n_dispatchers = 2, .n_models = 40};
}

static struct sl_stats *create(void)
{
        struct sl_stats_options o = options();
        struct sl_stats *stats = NULL;
        struct sl_error error = {""};

        cr_assert_eq(sl_stats_create(&o, &stats, &error), 0, "%s", error.text);
        return stats;
}

static struct sl_stats_view *view(void)
{
        struct sl_stats_view *v = NULL;
        struct sl_error error = {""};

        cr_assert_eq(sl_stats_open("demo", folder, &v, &error), 0, "%s", error.text);
        return v;
}

static int create_result(const struct sl_stats_options *o, struct sl_error *error)
{
        struct sl_stats *stats = NULL;
        int r = sl_stats_create(o, &stats, error);

        sl_stats_free(stats);
        return r;
}

Test(stats, a_reader_sees_what_was_counted)
{
        struct sl_stats *stats = create();
        struct sl_stats_view *v = view();
        struct sl_model_counting counting;
        struct sl_client_stats *client, client_copy;
        struct sl_worker_stats *worker, worker_copy;
        struct sl_model_stats model;
        struct sl_dispatcher_stats dispatcher;
        struct sl_stats_header header;

        cr_assert_eq(sl_stats_model_add(stats, "resnet", &counting, NULL), 0);
        cr_assert_eq(sl_stats_client_add(stats, 77, 1000, 4242, "camera", &client), 0);
        cr_assert_eq(sl_stats_worker_add(stats, "resnet", 3, 16, &worker), 0);
        sl_model_count(&counting, completed, 5);
        sl_model_record(&counting, SL_STAGE_QUEUED, 1000);
        sl_counter_add(&client->requests, 9);
        sl_counter_add(&worker->busy_ns, 123);
        sl_counter_add(&sl_stats_dispatcher(stats, 1)->passes, 8);
        sl_counter_add(&sl_stats_dispatcher(stats, 1)->refusals[SL_REFUSAL_QUOTA], 2);
        sl_stats_dispatcher_pinned(stats, 1, 1);
        sl_stats_set_state(stats, SL_RUNTIME_READY);

        sl_stats_read_header(v, &header);
        cr_expect_str_eq(header.runtime_name, "demo");
        cr_expect_str_eq(header.wait_name, "epoll");
        cr_expect_eq(header.pid, (uint32_t)getpid());
        cr_expect_eq(atomic_load(&header.state), SL_RUNTIME_READY);
        cr_assert_eq(sl_stats_read_model(v, 1, &model), 0);
        cr_expect_str_eq(model.name, "resnet");
        cr_expect_eq(sl_counter_read(&model.completed), 5);
        cr_expect_eq(sl_histogram_quantile(&sl_stats_histograms(v, &model)->stages[SL_STAGE_QUEUED], 0.5), 1000);
        cr_assert_eq(sl_stats_read_client(v, 0, &client_copy), 0);
        cr_expect_str_eq(client_copy.label, "camera");
        cr_expect(client_copy.id == 77 && client_copy.uid == 1000 && client_copy.pid == 4242);
        cr_expect_eq(sl_counter_read(&client_copy.requests), 9);
        cr_assert_eq(sl_stats_read_worker(v, 0, &worker_copy), 0);
        cr_expect(worker_copy.core == 3 && worker_copy.batch_max == 16 && sl_counter_read(&worker_copy.busy_ns) == 123);
        cr_assert_eq(sl_stats_read_dispatcher(v, 1, &dispatcher), 0);
        cr_expect(dispatcher.core == 1 && sl_counter_read(&dispatcher.passes) == 8);
        cr_expect_eq(sl_counter_read(&dispatcher.refusals[SL_REFUSAL_QUOTA]), 2);
        cr_expect_eq(sl_stats_count(v, SL_STATS_DISPATCHERS), 2);
        sl_stats_close(v);
        sl_stats_free(stats);
}

Test(stats, the_page_is_for_all_to_read_and_goes_with_the_runtime)
{
        struct sl_stats *stats = create();
        struct stat status;

        umask(0777); /* must not matter */
        cr_assert_eq(stat(page_path(), &status), 0);
        cr_expect_eq(status.st_mode & 07777, 0644);
        cr_expect_eq(status.st_size, MIB);
        cr_expect_null(sl_stats_free(stats));
        cr_expect_lt(stat(page_path(), &status), 0);
        cr_expect_null(sl_stats_free(NULL));
}

Test(stats, slots_are_used_again)
{
        struct sl_stats *stats = create();
        struct sl_stats_view *v = view();
        struct sl_client_stats *first, *second, copy;
        struct sl_model_counting a, b;
        struct sl_model_stats model;

        sl_stats_client_add(stats, 1, 0, 0, "one", &first);
        sl_counter_add(&first->requests, 100);
        sl_stats_client_remove(stats, first);
        cr_expect_eq(sl_stats_read_client(v, 0, &copy), -ENOENT);
        sl_stats_client_add(stats, 2, 0, 0, "two", &second);
        cr_expect_eq(first, second);
        cr_expect_eq(sl_counter_read(&second->requests), 0, "a slot starts from zero");

        sl_stats_model_add(stats, "a", &a, NULL);
        sl_model_record(&a, SL_STAGE_TOTAL, 5);
        struct sl_histogram_set *set = a.histograms;
        sl_stats_model_remove(stats, &a);
        cr_expect_null(a.counters);
        cr_expect_eq(sl_stats_read_model(v, 1, &model), -ENOENT);
        sl_stats_model_add(stats, "b", &b, NULL);
        cr_expect_eq(b.histograms, set);
        cr_expect_eq(sl_counter_read(&b.histograms->stages[SL_STAGE_TOTAL].count), 0);
        sl_stats_close(v);
        sl_stats_free(stats);
}

Test(stats, a_model_without_room_is_told_so_and_counted_in_the_common_histograms)
{
        struct sl_stats *stats = create();
        struct sl_stats_view *v = view();
        struct sl_model_counting counting[42];
        struct sl_model_stats model;
        struct sl_stats_header header;
        struct sl_error error = {""};
        int n = 0;

        while (sl_stats_model_add(stats, "model", &counting[n], &error) == 0)
                n++;
        cr_assert(n > 3 && n < 40, "%d sets of histograms in 1 MiB", n);
        cr_expect_not_null(strstr(error.text, "model \"model\""));
        cr_expect_eq(sl_stats_model_add(stats, "late", &counting[n + 1], &error), -ENOSPC);
        sl_model_record(&counting[n], SL_STAGE_TOTAL, 10);
        sl_model_record(&counting[n + 1], SL_STAGE_TOTAL, 20);
        sl_model_count(&counting[n + 1], completed, 1);
        cr_assert_eq(sl_stats_read_model(v, 0, &model), 0);
        cr_expect_str_eq(model.name, "(others)");
        cr_expect_eq(sl_counter_read(&sl_stats_histograms(v, &model)->stages[SL_STAGE_TOTAL].count), 2);
        cr_assert_eq(sl_stats_read_model(v, (uint32_t)n + 2, &model), 0);
        cr_expect_str_eq(model.name, "late", "its counters are its own");
        cr_expect_eq(sl_counter_read(&model.completed), 1);
        sl_stats_read_header(v, &header);
        cr_expect_eq(sl_counter_read(&header.crowded), 2);
        sl_stats_model_remove(stats, &counting[0]);
        cr_expect_eq(sl_stats_model_add(stats, "next", &counting[0], &error), 0, "room that came back is given again");
        sl_stats_close(v);
        sl_stats_free(stats);
}

Test(stats, a_model_without_a_slot_counts_in_the_common_one)
{
        struct sl_stats_options o = options();
        struct sl_stats *stats;
        struct sl_model_counting counting[3];
        struct sl_error error = {""};

        o.n_models = 2;
        cr_assert_eq(sl_stats_create(&o, &stats, NULL), 0);
        cr_expect_eq(sl_stats_model_add(stats, "a", &counting[0], NULL), 0);
        cr_expect_eq(sl_stats_model_add(stats, "b", &counting[1], NULL), 0);
        cr_expect_eq(sl_stats_model_add(stats, "c", &counting[2], &error), -ENOSPC);
        sl_model_count(&counting[2], requests, 1);
        sl_model_record(&counting[2], SL_STAGE_TOTAL, 1);
        cr_expect(counting[2].shared_counters && counting[2].shared_histograms);
        sl_stats_model_remove(stats, &counting[2]);
        sl_stats_free(stats);
}

Test(stats, clients_beyond_the_slots_are_served_uncounted)
{
        struct sl_stats_options o = options();
        struct sl_stats *stats;
        struct sl_client_stats *slots[3];

        o.n_clients = 2;
        cr_assert_eq(sl_stats_create(&o, &stats, NULL), 0);
        cr_expect_eq(sl_stats_client_add(stats, 1, 0, 0, "a", &slots[0]), 0);
        cr_expect_eq(sl_stats_client_add(stats, 2, 0, 0, "b", &slots[1]), 0);
        cr_expect_eq(sl_stats_client_add(stats, 3, 0, 0, "c", &slots[2]), -ENOSPC);
        sl_counter_add(&slots[2]->requests, 1);
        sl_stats_client_remove(stats, slots[2]);
        sl_stats_free(stats);
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
                struct sl_stats_options o = options();
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

Test(stats, a_second_runtime_of_the_name_is_refused_while_the_first_lives)
{
        pid_t child = start_runtime();
        struct sl_stats_options o = options();
        struct sl_error error = {""};

        cr_expect_eq(create_result(&o, &error), -EADDRINUSE);
        cr_expect_not_null(strstr(error.text, page_path()));
        struct sl_stats_view *v = view();
        cr_expect(sl_stats_is_live(v));
        sl_stats_close(v);
        kill_runtime(child);
}

Test(stats, what_a_killed_runtime_left_is_readable_and_then_replaced)
{
        kill_runtime(start_runtime());

        struct sl_stats_view *v = view();
        struct sl_model_stats model;

        cr_expect_not(sl_stats_is_live(v));
        cr_assert_eq(sl_stats_read_model(v, 1, &model), 0);
        cr_expect_str_eq(model.name, "flight");
        cr_expect_eq(sl_counter_read(&model.failed), 13);

        struct sl_stats *stats = create();
        struct sl_stats_view *fresh = view();
        cr_expect_eq(sl_stats_read_model(fresh, 1, &model), -ENOENT);
        cr_expect(sl_stats_is_live(fresh));
        cr_expect_eq(sl_stats_read_model(v, 1, &model), 0, "who had it open keeps the flight recorder");
        sl_stats_close(fresh);
        sl_stats_close(v);
        sl_stats_free(stats);
}

/* As the kernel does with a large process: the owner is dead, and its lock is not dropped yet. */
static void die_with_lock_held(void)
{
        create();
        if (fork() == 0) {
                usleep(300000);
                _exit(0);
        }
        _exit(0);
}

Test(stats, a_lock_that_outlives_its_owner_is_waited_for)
{
        pid_t child = fork();

        if (child == 0)
                die_with_lock_held();
        cr_assert_eq(waitpid(child, NULL, 0), child);
        cr_expect(sl_stats_is_claimed("demo", folder), "the lock is gone too early for this test");
        struct sl_stats *stats = create();
        cr_expect(sl_stats_has_replaced(stats));
        cr_expect_str_eq(sl_stats_path(stats), page_path());
        sl_stats_free(stats);
}

Test(stats, a_reader_that_locks_the_file_cannot_keep_a_runtime_from_starting)
{
        kill_runtime(start_runtime());

        int fd = open(page_path(), O_RDONLY | O_CLOEXEC);
        struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};

        cr_assert_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
        sl_stats_free(create());
        close(fd);
}

Test(stats, a_symbolic_link_is_refused_and_not_followed)
{
        struct sl_stats_options o = options();
        struct sl_error error = {""};
        char target[160];
        struct stat status;

        snprintf(target, sizeof(target), "%s/target", folder);
        cr_assert_eq(symlink(target, page_path()), 0);
        cr_expect_eq(create_result(&o, &error), -EPERM);
        cr_expect_not_null(strstr(error.text, "symbolic link"));
        cr_expect_lt(stat(target, &status), 0);
        cr_expect_eq(lstat(page_path(), &status), 0, "it is not removed either");
}

Test(stats, what_is_no_regular_file_or_has_a_second_name_is_refused)
{
        struct sl_stats_options o = options();
        char other[160];

        cr_assert_eq(mkfifo(page_path(), 0600), 0);
        cr_expect_eq(create_result(&o, NULL), -EPERM);
        unlink(page_path());
        cr_assert_eq(mkdir(page_path(), 0700), 0);
        cr_expect_eq(create_result(&o, NULL), -EPERM);
        rmdir(page_path());
        close(open(page_path(), O_CREAT | O_WRONLY, 0600));
        snprintf(other, sizeof(other), "%s/other", folder);
        cr_assert_eq(link(page_path(), other), 0);
        cr_expect_eq(create_result(&o, NULL), -EPERM);
        unlink(other);
}

/* A path that is cut short would be that of another page. */
Test(stats, a_name_that_makes_no_path_is_refused)
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
        struct sl_stats *stats = create();
        struct stat status;

        cr_assert_eq(stat(page_path(), &status), 0);
        sl_stats_free(stats);
        return (uint64_t)status.st_blocks;
}

Test(stats, memory_is_reserved_as_well_where_the_file_system_cannot_be_asked_for_it)
{
        uint64_t asked = reserved_blocks();

        fallocate_is_unknown = true;
        cr_expect_gt(asked, 8);
        cr_expect_geq(reserved_blocks(), asked);
}

Test(stats, a_file_of_another_user_is_refused)
{
        struct sl_stats_options o = options();

        if (geteuid() != 0)
                skip("needs root to make a file of another user");
        close(open(page_path(), O_CREAT | O_WRONLY, 0666));
        cr_assert_eq(chown(page_path(), 12345, 12345), 0);
        cr_expect_eq(create_result(&o, NULL), -EPERM);
}

Test(stats, names_and_sizes_out_of_range_are_refused_with_a_cause)
{
        struct sl_stats_options o = options();
        struct sl_error error = {""};
        char name[100];

        memset(name, 'n', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        o.name = "";
        cr_expect_eq(create_result(&o, &error), -EINVAL);
        o.name = "a/b";
        cr_expect_eq(create_result(&o, &error), -EINVAL);
        o.name = name;
        cr_expect_eq(create_result(&o, &error), -EINVAL);
        o.name = "demo";
        o.bytes = 64 * KIB;
        cr_expect_eq(create_result(&o, &error), -EINVAL);
        cr_expect_not_null(strstr(error.text, "65536"));
        o.bytes = MIB;
        o.n_clients = UINT32_MAX;
        cr_expect_eq(create_result(&o, &error), -EINVAL);
        o.n_clients = 0;
        o.directory = "/no/such/directory";
        cr_expect_eq(create_result(&o, &error), -ENOENT);
        cr_expect_not_null(strstr(error.text, "/no/such/directory"));
}

Test(stats, of_runtimes_that_start_at_once_one_wins)
{
        enum { N = 6 };
        pid_t children[N];
        int go[2], winners = 0;

        cr_assert_eq(pipe(go), 0);
        for (int i = 0; i < N; i++) {
                children[i] = fork();
                if (children[i] == 0) {
                        struct sl_stats_options o = options();
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
                        mount("none", folder, "tmpfs", 0, size) < 0)
                        _exit(255);
                body();
                _exit(0);
        }
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void create_in_too_little(void)
{
        struct sl_stats_options o = options();
        struct sl_stats *stats = NULL;
        struct sl_error error = {""};
        struct stat status;

        CHECK(sl_stats_create(&o, &stats, &error) == -ENOSPC);
        CHECK(strstr(error.text, page_path()) && strstr(error.text, "bytes"));
        CHECK(stat(page_path(), &status) < 0);
}

static void fill_up(void)
{
        struct sl_stats_options o = options();
        struct sl_stats *stats = NULL;
        struct sl_model_counting counting;
        struct sl_model_stats model;
        struct sl_stats_view *v = NULL;
        int n = 0, r;

        CHECK(sl_stats_create(&o, &stats, NULL) == 0);
        while ((r = sl_stats_model_add(stats, "m", &counting, NULL)) == 0)
                n++;
        CHECK(r == -ENOSPC && n >= 1 && n < 15);
        for (int stage = 0; stage < SL_STAGES; stage++)
                for (uint64_t ns = 1; ns < SL_HISTOGRAM_MAX_NS; ns *= 2)
                        sl_model_record(&counting, stage, ns); /* every store has its page */
        CHECK(sl_stats_open("demo", folder, &v, NULL) == 0);
        CHECK(sl_stats_read_model(v, (uint32_t)n + 1, &model) == 0 && sl_stats_histograms(v, &model));
        CHECK(sl_histogram_quantile(&sl_stats_histograms(v, &model)->stages[SL_STAGE_TOTAL], 1) > 0);
        sl_stats_close(v);
        sl_stats_free(stats);
}

Test(stats, a_full_dev_shm_is_one_clear_error_and_leaves_nothing)
{
        int r = in_small_tmpfs("size=128k", create_in_too_little);

        if (r == 255)
                skip("needs the right to mount in a namespace of its own");
        cr_expect_eq(r, 0, "check in line %% 250 = %d", r - 1);
}

Test(stats, a_dev_shm_that_fills_up_later_never_kills)
{
        int r = in_small_tmpfs("size=600k", fill_up);

        if (r == 255)
                skip("needs the right to mount in a namespace of its own");
        cr_expect_eq(r, 0, "check in line %% 250 = %d", r - 1);
}

/* ---- damaged pages -------------------------------------------------------------------------------------------------- */

static void write_page(const void *bytes, size_t n)
{
        int fd = open(page_path(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

        cr_assert_geq(fd, 0);
        cr_assert_eq(write(fd, bytes, n), n);
        close(fd);
}

static void read_all(const struct sl_stats_view *v)
{
        struct sl_stats_header header;
        struct sl_dispatcher_stats dispatcher;
        struct sl_model_stats model;
        struct sl_client_stats client;
        struct sl_worker_stats worker;

        sl_stats_read_header(v, &header);
        for (uint32_t i = 0; i < sl_stats_count(v, SL_STATS_DISPATCHERS) && i < 100; i++)
                sl_stats_read_dispatcher(v, i, &dispatcher);
        for (uint32_t i = 0; i < sl_stats_count(v, SL_STATS_MODELS) && i < 100; i++)
                if (sl_stats_read_model(v, i, &model) == 0 && sl_stats_histograms(v, &model))
                        sl_histogram_quantile(&sl_stats_histograms(v, &model)->stages[SL_STAGES - 1], 0.5);
        for (uint32_t i = 0; i < sl_stats_count(v, SL_STATS_CLIENTS) && i < 100; i++)
                sl_stats_read_client(v, i, &client);
        for (uint32_t i = 0; i < sl_stats_count(v, SL_STATS_WORKERS) && i < 100; i++)
                sl_stats_read_worker(v, i, &worker);
}

Test(stats, a_damaged_page_is_refused_or_read_without_harm)
{
        struct sl_stats *stats = create();
        char *good = malloc(MIB), *bad = malloc(MIB);
        int fd = open(page_path(), O_RDONLY), refused = 0;
        unsigned seed = 1;

        cr_assert_eq(pread(fd, good, MIB, 0), MIB);
        close(fd);
        sl_stats_free(stats);
        for (int round = 0; round < 300; round++) {
                struct sl_stats_view *v = NULL;
                size_t bytes = round % 5 ? MIB : (size_t)rand_r(&seed) % MIB;

                memcpy(bad, good, MIB);
                for (int i = 0; i < 1 + round % 8; i++)
                        bad[(unsigned)rand_r(&seed) % (round % 2 ? sizeof(struct sl_stats_header) : 64 * KIB)] ^= (char)(1 << i);
                write_page(bad, bytes);
                int r = sl_stats_open("demo", folder, &v, NULL);
                cr_assert(r == 0 || r == -EBADMSG);
                refused += r < 0;
                if (v)
                        read_all(v);
                sl_stats_close(v);
        }
        cr_expect_gt(refused, 20);
        free(good);
        free(bad);
}

Test(stats, what_is_no_page_is_refused)
{
        struct sl_stats_view *v = NULL;

        cr_expect_eq(sl_stats_open("demo", folder, &v, NULL), -ENOENT);
        write_page("", 0);
        cr_expect_eq(sl_stats_open("demo", folder, &v, NULL), -EBADMSG);
        write_page("x", 1);
        cr_expect_eq(sl_stats_open("demo", folder, &v, NULL), -EBADMSG);
        cr_expect_eq(sl_stats_open("../demo", folder, &v, NULL), -EINVAL);
        cr_expect_null(sl_stats_close(v));
}

/* ---- names of codes ------------------------------------------------------------------------------------------------- */

Test(stats, every_refusal_and_stage_has_its_text)
{
        for (int i = 0; i < SL_REFUSAL_LIMIT; i++)
                cr_expect_gt(strlen(sl_refusal_text(i)), 3);
        for (int i = 0; i < SL_STAGES; i++)
                cr_expect_gt(strlen(sl_stage_name(i)), 3);
        cr_expect_str_eq(sl_refusal_text(SL_REFUSAL_LIMIT), "unknown");
}

struct counting {
        struct sl_dispatcher_stats *slot;
        atomic_bool stop;
};

static void *count_on(void *context)
{
        struct counting *counting = context;

        while (!atomic_load(&counting->stop)) {
                sl_counter_add(&counting->slot->requests, 1);
                sl_counter_add(&counting->slot->completions, 1);
        }
        return NULL;
}

Test(stats, counters_are_read_while_they_change_and_never_fall)
{
        struct sl_stats *stats = create();
        struct sl_stats_view *v = view();
        struct counting counting = {.slot = sl_stats_dispatcher(stats, 0)};
        struct sl_dispatcher_stats copy;
        pthread_t thread;
        uint64_t last = 0;

        cr_assert_eq(pthread_create(&thread, NULL, count_on, &counting), 0);
        for (int i = 0; i < 20000; i++) {
                cr_assert_eq(sl_stats_read_dispatcher(v, 0, &copy), 0);
                cr_assert_geq(sl_counter_read(&copy.requests), last);
                last = sl_counter_read(&copy.requests);
        }
        atomic_store(&counting.stop, true);
        pthread_join(thread, NULL);
        sl_stats_close(v);
        sl_stats_free(stats);
}
