/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that a runtime has in the file system, its socket and its stats page: nobody else keeps it from a start by them, those
 * who are let in find them open, and what a dead runtime left behind is taken over.
 */
#include "base/error.h"
#include "raw.h"
#include "stats.h"
#include "users.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RESTARTS 10

/* Starts of one world find the first one's plan: the cache that tests share is another user's. */
static void prepare(struct world *world, const char *access)
{
        char cache[128];

        users_need_root();
        world_init(world);
        world_move_to_user(world, RUNTIME_UID, "lenet");
        snprintf(cache, sizeof(cache), "models: [lenet]\ncache: {directory: %s/plans}\n", world->folder);
        world_configure(world, cache);
        world_configure(world, access);
}

static void page_of(const struct world *world, char ret_path[128])
{
        snprintf(ret_path, 128, "/dev/shm/starling.%s", world->name);
}

/* ---- somebody else's file ---- */

static int occupy_with_file(const struct world *world)
{
        char page[128];

        page_of(world, page);
        int fd = open(page, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

        return fd >= 0 && fchmod(fd, 0666) == 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0 ? HELD : BROKEN;
}

static int occupy_with_closed_file(const struct world *world)
{
        char page[128];

        page_of(world, page);
        return open(page, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0) >= 0 ? HELD : BROKEN;
}

static int occupy_with_link(const struct world *world)
{
        char page[128];

        page_of(world, page);
        return symlink(world->log_path, page) == 0 ? HELD : BROKEN;
}

static int occupy_with_fifo(const struct world *world)
{
        char page[128];

        page_of(world, page);
        return mkfifo(page, 0666) == 0 ? HELD : BROKEN;
}

static int occupy_with_folder(const struct world *world)
{
        char page[128];

        page_of(world, page);
        return mkdir(page, 0777) == 0 ? HELD : BROKEN;
}

static void expect_page_beside_socket(struct world *world)
{
        struct sl_stats_header header;
        struct sl_stats_view *view;
        struct sl_error error;

        cr_expect_eq(world_count_log(world, "event=stats-page-elsewhere"), 1, "%s", world_log(world));
        setenv("STARLING_SOCKET_DIR", world->folder, 1);
        cr_assert_eq(sl_stats_open(world->name, NULL, &view, &error), 0);
        sl_stats_read_header(view, &header);
        cr_expect_eq(header.pid, (uint32_t)world->pid);
        cr_expect(sl_stats_is_live(view));
        sl_stats_close(view);
        unsetenv("STARLING_SOCKET_DIR");
}

Test(names, somebody_elses_file_at_the_stats_pages_name_prevents_no_start, .timeout = 60)
{
        int (*const occupations[])(const struct world *world) = {
                occupy_with_file, occupy_with_closed_file, occupy_with_link, occupy_with_fifo, occupy_with_folder};

        for (size_t i = 0; i < sizeof(occupations) / sizeof(occupations[0]); i++) {
                struct world world, second;
                char page[128], beside[256];

                prepare(&world, "access: {allow: ['*']}\n");
                page_of(&world, page);
                cr_assert_eq(users_try(STRANGER_UID, occupations[i], &world), HELD);
                world_start(&world);
                expect_page_beside_socket(&world);
                cr_assert_eq(remove(page), 0);
                second = world;
                strcat(second.log_path, "2");
                world_launch(&second);
                int status = world_wait(&second);
                cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1, "the name is taken, wait status %#x", status);
                cr_expect_not_null(strstr(world_log(&second), "a runtime of this name is running"), "%s", world_log(&second));
                world_stop(&world);
                snprintf(beside, sizeof(beside), "%s/starling.%s", world.folder, world.name);
                cr_expect_neq(access(beside, F_OK), 0, "%s is left behind", beside);
                world_free(&world);
        }
}

/* ---- the dead ---- */

/* No pause, and nobody has reaped the dead one when the next one starts. */
Test(names, a_start_right_after_a_kill_takes_over_with_one_line, .timeout = 60)
{
        struct world world;

        prepare(&world, "");
        world_start(&world);
        for (int i = 0; i < RESTARTS; i++) {
                pid_t killed = world.pid;

                kill(killed, SIGKILL);
                world_launch(&world);
                world_expect_ready(&world);
                cr_expect_eq(world_count_log(&world, "event=left-behind-replaced stats_page="), 1, "%s", world_log(&world));
                cr_expect_eq(world_count_log(&world, ".sock"), 1, "%s", world_log(&world));
                waitpid(killed, NULL, 0);
        }
        world_stop(&world);
        world_start(&world);
        cr_expect_eq(world_count_log(&world, "event=left-behind-replaced"), 0, "%s", world_log(&world));
        world_stop(&world);
        world_free(&world);
}

/* It has its signal, and may still serve when the next one starts. */
Test(names, a_start_right_after_a_signal_to_end_waits_for_the_end, .timeout = 60)
{
        struct world world;

        prepare(&world, "");
        world_start(&world);
        for (int i = 0; i < RESTARTS; i++) {
                pid_t ended = world.pid;
                int status = 0;

                kill(ended, SIGTERM);
                world_launch(&world);
                world_expect_ready(&world);
                cr_assert_eq(waitpid(ended, &status, 0), ended);
                cr_expect_eq(status, 0, "wait status %#x", status);
        }
        world_stop(&world);
        world_free(&world);
}

/* ---- the socket ---- */

static void be_private(void *context)
{
        (void)context;
        umask(0077);
}

/* Connects again and again; whatever goes wrong, it is never a denial. */
static int expect_no_denial(const struct world *world)
{
        users_ready();
        for (;;) {
                int socket = raw_dial(world->socket_path);

                if (socket == -EACCES)
                        return crossed("%s is there and closed", world->socket_path);
                if (socket >= 0)
                        close(socket);
        }
}

Test(names, a_socket_is_open_from_the_moment_it_is_there, .timeout = 60)
{
        struct world world;

        prepare(&world, "access: {allow: ['*']}\n");
        world.before_exec = be_private;
        world_start(&world);
        pid_t client = users_start(OTHER_UID, expect_no_denial, &world);
        for (int i = 0; i < RESTARTS; i++) {
                world_kill(&world);
                world_start(&world);
        }
        cr_expect_eq(waitpid(client, NULL, WNOHANG), 0, "permission was denied");
        users_end(client);
        world_stop(&world);
        world_free(&world);
}

/* ---- who reads ---- */

static int read_page(const struct world *world)
{
        char page[128];

        page_of(world, page);
        int fd = open(page, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == EACCES ? HELD : BROKEN;
        return open(page, O_RDWR | O_CLOEXEC) >= 0 ? BROKEN : CROSSED;
}

Test(names, statistics_are_read_by_those_who_may_attach_as_readers, .timeout = 60)
{
        struct world world;

        prepare(&world, "access: {allow: [60002], readers: ['@60003'], admins: [60004]}\n");
        world_start(&world);
        if (world_count_log(&world, "event=stats-page-closed")) {
                world_stop(&world);
                world_free(&world);
                cr_skip_test("/dev/shm knows no access lists here");
        }
        cr_expect_eq(users_try(CLIENT_UID, read_page, &world), CROSSED, "a client cannot read");
        cr_expect_eq(users_try(OTHER_UID, read_page, &world), CROSSED, "a reader's group cannot read");
        cr_expect_eq(users_try(STRANGER_UID, read_page, &world), HELD, "who is no reader reads, or what is read can be written");
        world_stop(&world);
        world_free(&world);
}

Test(names, statistics_are_everybodys_where_everybody_may_attach, .timeout = 60)
{
        struct world world;

        prepare(&world, "access: {readers: ['*']}\n");
        world_start(&world);
        cr_expect_eq(users_try(STRANGER_UID, read_page, &world), CROSSED);
        world_stop(&world);
        world_free(&world);
}

/* ---- whose page a reader believes ---- */

/* The page of a runtime that lives, under another name and of another user; where no socket of the name is. */
static void forge_page(const struct world *world, uid_t owner, char ret_path[160])
{
        char command[512];

        snprintf(ret_path, 160, "/dev/shm/starling.%s-forged", world->name);
        snprintf(command, sizeof(command), "cp /dev/shm/starling.%s %s", world->name, ret_path);
        cr_assert_eq(system(command), 0);
        cr_assert_eq(chown(ret_path, owner, owner), 0);
        cr_assert_eq(chmod(ret_path, 0644), 0);
}

/* `starling COMMAND NAME-forged`: its exit status and what it said. */
static int run_reader(const struct world *world, const char *command, char ret_text[4096])
{
        char line[512];
        size_t n;
        FILE *out;
        int status;

        snprintf(line, sizeof(line), "STARLING_SOCKET_DIR=%s '%s' %s %s-forged 2>&1 </dev/null", world->folder, STARLING, command,
                world->name);
        out = popen(line, "r");
        cr_assert_not_null(out);
        n = fread(ret_text, 1, 4095, out);
        ret_text[n] = 0;
        while (fgetc(out) != EOF)
                ;
        status = pclose(out);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) < 126, "%s: wait status %#x: %s", command, status, ret_text);
        return WEXITSTATUS(status);
}

static bool is_one_line(const char *text)
{
        const char *end = strchr(text, '\n');

        return end && !end[1];
}

static const char *const readers[] = {"stats", "stats --json", "postmortem", "trace --seconds 0.1"};

Test(names, without_a_socket_a_page_is_believed_of_root_and_the_reader_alone, .timeout = 60)
{
        char text[4096], page[160];
        struct world world;

        prepare(&world, "trace: {sampling: 1}\n");
        world_start(&world);
        forge_page(&world, STRANGER_UID, page);
        for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
                cr_expect_neq(run_reader(&world, readers[i], text), 0, "%s: %s", readers[i], text);
                cr_expect(is_one_line(text) && strstr(text, page) && strstr(text, "60004"), "%s: %s", readers[i], text);
        }
        cr_assert_eq(chown(page, 0, 0), 0);
        cr_expect_eq(run_reader(&world, "stats", text), 0, "%s", text);
        unlink(page);
        world_stop(&world);
        world_free(&world);
}

/* Until it is killed: whoever reads meets the file in any length. */
static pid_t cut_off_again_and_again(const char *path)
{
        static char whole[2 << 20];
        int fd = open(path, O_RDWR | O_CLOEXEC);
        ssize_t n = pread(fd, whole, sizeof(whole), 0);
        pid_t pid = fork();

        for (unsigned seed = 1; pid == 0;) {
                (void)!ftruncate(fd, rand_r(&seed) % n);
                world_pause_us(200);
                (void)!pwrite(fd, whole, (size_t)n, 0);
                (void)!ftruncate(fd, 16 << 20);
                world_pause_us(200);
        }
        close(fd);
        return pid;
}

Test(names, a_page_that_its_owner_cuts_off_costs_a_reader_one_line, .timeout = 60)
{
        const uint32_t rounds = WORLD_SLOW ? 12 : 100;
        char text[4096], page[160];
        struct world world;
        pid_t cutter;

        prepare(&world, "trace: {sampling: 1}\n");
        world_start(&world);
        forge_page(&world, 0, page);
        cutter = cut_off_again_and_again(page);
        for (uint32_t round = 0; round < rounds; round++) {
                const char *reader = readers[round % (sizeof(readers) / sizeof(readers[0]))];

                if (run_reader(&world, reader, text) != 0)
                        cr_expect(is_one_line(text), "%s: %s", reader, text);
        }
        users_end(cutter);
        unlink(page);
        world_stop(&world);
        world_free(&world);
}
