/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `starling postmortem` tells of a runtime that was killed in the middle, that lives, and of files that are none of its.
 */
#include "digits.h"
#include "freeze.h"
#include "stats.h"
#include "world.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct world world;
static struct digits_data data;

static void set_up(void)
{
        world_init(&world);
        cr_assert(digits_read(&data, "lenet"));
        world_configure(&world, "models: [lenet]\nmodel_defaults: {warmup_ms: 0}\nthreads: {inline_us: 0}\n");
        world_start(&world);
}

static void tear_down(void)
{
        digits_release(&data);
        world_free(&world);
}

TestSuite(postmortem, .init = set_up, .fini = tear_down, .timeout = 60);

/* `starling postmortem ARGUMENTS`, with what it complains about; the caller frees. */
static char *run_postmortem(const char *arguments, int *ret_status)
{
        char command[512], *text = NULL;
        size_t bytes = 0;
        FILE *out, *copy = open_memstream(&text, &bytes);
        int status;

        snprintf(command, sizeof(command), "'%s' postmortem %s 2>&1", STARLING, arguments);
        out = popen(command, "r");
        cr_assert(out && copy);
        for (int c; (c = fgetc(out)) != EOF;)
                fputc(c, copy);
        fclose(copy);
        status = pclose(out);
        cr_assert(WIFEXITED(status), "killed: %s", text);
        *ret_status = WEXITSTATUS(status);
        return text;
}

static json_t *read_json(const char *arguments)
{
        char line[256];
        int status;

        snprintf(line, sizeof(line), "--json %s %s", arguments, world.name);
        char *text = run_postmortem(line, &status);
        json_t *root = json_loads(text, 0, NULL);

        cr_assert(status == 0 && root, "%d: %s", status, text);
        free(text);
        return root;
}

static int64_t number_of(const json_t *object, const char *key)
{
        return json_integer_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

struct requester {
        struct starling_client *client;
        struct starling_model *model;
        struct starling_queue *queue;
        struct digits_job job;
};

static void attach(struct requester *r)
{
        r->client = world_connect(&world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(r->client, &r->queue, NULL), 0);
        cr_assert_eq(starling_model_open(r->client, "lenet", &r->model, NULL), 0);
        cr_assert_eq(digits_job_alloc(&r->job, &data, r->client), 0);
}

/* All samples. */
static struct starling_request whole(struct requester *r)
{
        uint32_t seed = 1;
        struct starling_request request = digits_fill(&r->job, r->model, &seed);

        r->job.in = r->job.input;
        r->job.out = r->job.output;
        return request;
}

static bool is_in_flight(const char *stage)
{
        json_t *root = read_json("--last 0"), *entry = json_array_get(json_object_get(root, "in_flight"), 0);
        bool found = entry && (!stage || strcmp(text_of(entry, "stage"), stage) == 0);

        json_decref(root);
        return found;
}

/* Requests are asked until one is met on its way: the runtime is stopped, looked at, and goes on when none is. */
static void catch_in_flight(struct requester *r)
{
        struct starling_completion done;

        for (;;) {
                struct starling_request request = whole(r);

                cr_assert_eq(starling_submit(r->queue, &request, NULL), 0);
                world_pause_us(200);
                cr_assert(freeze(world.pid));
                if (is_in_flight("given"))
                        return;
                kill(world.pid, SIGCONT);
                cr_assert_eq(starling_wait(r->queue, &done, 1, STARLING_FOREVER), 1);
        }
}

Test(postmortem, a_killed_runtime_says_what_was_in_flight_where_and_since_when)
{
        struct requester r;
        struct starling_request request;
        json_t *root, *entry, *place, *ended;

        attach(&r);
        for (int i = 0; i < 5; i++) {
                request = whole(&r);
                cr_assert_eq(starling_infer(r.queue, &request, NULL), 0);
        }
        catch_in_flight(&r);
        world_kill(&world);

        root = read_json("");
        cr_expect(json_is_false(json_object_get(root, "live")));
        cr_expect_str_eq(text_of(root, "state"), "ended without saying so");
        cr_assert_eq(number_of(root, "n_in_flight"), 1);
        cr_expect_eq(number_of(root, "damaged"), 0);
        entry = json_array_get(json_object_get(root, "in_flight"), 0);
        cr_expect_str_eq(text_of(entry, "model"), "lenet");
        cr_expect_str_eq(text_of(entry, "stage"), "given");
        cr_expect(number_of(entry, "pid") == getpid() && number_of(entry, "uid") == (int64_t)getuid());
        cr_expect_eq(number_of(entry, "samples"), request.inputs->dims[0]);
        cr_expect(number_of(entry, "since_ns") >= number_of(entry, "taken_ns") &&
                  number_of(entry, "since_ns") == number_of(entry, "assigned_ns"));
        place = json_array_get(json_object_get(entry, "places"), 0);
        cr_expect(number_of(place, "pieces") >= 1 && strstr(text_of(place, "words"), "of lenet (thread"), "%s",
                text_of(place, "words"));
        ended = json_object_get(root, "ended");
        cr_assert_geq(json_array_size(ended), 5);
        for (size_t i = 0; i < json_array_size(ended); i++) {
                const json_t *one = json_array_get(ended, i);

                cr_expect(number_of(one, "status") == 0 && number_of(one, "answered") >= 1);
                cr_expect_eq(json_array_size(json_object_get(one, "places")), 0, "a worker that has answered it has it still");
                cr_expect(number_of(one, "taken_ns") <= number_of(one, "assigned_ns") &&
                          number_of(one, "assigned_ns") <= number_of(one, "started_ns") &&
                          number_of(one, "started_ns") <= number_of(one, "staged_ns") &&
                          number_of(one, "staged_ns") <= number_of(one, "since_ns"));
                if (i)
                        cr_expect_leq(number_of(one, "since_ns"), number_of(json_array_get(ended, i - 1), "since_ns"));
        }
        json_decref(root);
        starling_close(r.client);
}

Test(postmortem, as_text_a_request_is_named_with_its_client_and_worker)
{
        struct requester r;
        char *text, who[64];
        int status;

        attach(&r);
        catch_in_flight(&r);
        world_kill(&world);
        text = run_postmortem(world.name, &status);
        cr_assert_eq(status, 0, "%s", text);
        snprintf(who, sizeof(who), "(pid %d, uid %u) queue 0", getpid(), getuid());
        cr_expect(strstr(text, "ended without saying so") && strstr(text, "\nin flight 1\n") && strstr(text, who) &&
                          strstr(text, "given since ") && strstr(text, "pieces with worker "),
                "%s", text);
        free(text);
        starling_close(r.client);
}

Test(postmortem, a_runtime_that_lives_is_shown_as_it_is)
{
        struct requester r;
        struct starling_request request;
        json_t *root;

        attach(&r);
        request = whole(&r);
        cr_assert_eq(starling_infer(r.queue, &request, NULL), 0);
        root = read_json("--last 3");
        cr_expect(json_is_true(json_object_get(root, "live")) && number_of(root, "n_in_flight") == 0);
        cr_expect(number_of(root, "n_ended") == 1 && json_array_size(json_object_get(root, "ended")) == 1);
        json_decref(root);
        starling_close(r.client);
        world_stop(&world);
}

/* ---- a runtime that crashed, and serves again ---- */

static void restart(void)
{
        world_kill(&world);
        world_start(&world);
}

Test(postmortem, after_a_restart_the_runtime_that_crashed_is_shown)
{
        pid_t crashed = world.pid;
        char *text, pid[32], last[160];
        struct requester r;
        int status;

        attach(&r);
        catch_in_flight(&r);
        restart();
        text = run_postmortem(world.name, &status);
        snprintf(pid, sizeof(pid), "  pid %d  ", crashed);
        cr_expect(status == 0 && strstr(text, "serves again") && strstr(text, "ended without saying so") && strstr(text, pid) &&
                          strstr(text, "\nin flight 1\n"),
                "%d: %s", status, text);
        free(text);
        snprintf(last, sizeof(last), "--live %s", world.name);
        text = run_postmortem(last, &status);
        snprintf(pid, sizeof(pid), "  pid %d  ", world.pid);
        cr_expect(status == 0 && strstr(text, "lives") && strstr(text, pid) && strstr(text, "\nin flight 0\n"), "%d: %s", status,
                text);
        free(text);
        starling_close(r.client);
        world_stop(&world);
        snprintf(last, sizeof(last), "/dev/shm/starling.%s~last", world.name);
        cr_expect_neq(access(last, F_OK), 0, "what is kept goes with a runtime that ends as it should");
}

/* Under its name lies something that cannot be replaced: the start goes on without. */
Test(postmortem, what_cannot_be_kept_hinders_no_start)
{
        char last[160];

        snprintf(last, sizeof(last), "/dev/shm/starling.%s~last", world.name);
        cr_assert_eq(mkdir(last, 0755), 0);
        restart();
        cr_expect_eq(rmdir(last), 0);
        restart();
        cr_expect_eq(access(last, F_OK), 0, "one is kept");
        restart();
        world_stop(&world);
        cr_expect_neq(access(last, F_OK), 0);
}

/* ---- files that are none ---- */

static char path[128];

/* A copy of the page of a runtime that was killed. */
static void copy_page(void)
{
        char command[512];

        snprintf(path, sizeof(path), "%s/page", world.folder);
        snprintf(command, sizeof(command), "cp /dev/shm/starling.%s %s", world.name, path);
        cr_assert_eq(system(command), 0);
}

static void expect_refused(int with, const char *says)
{
        int status;
        char *text = run_postmortem(path, &status);

        cr_expect(status == with && strstr(text, says) && strchr(text, '\n') == text + strlen(text) - 1, "%d: %s", status, text);
        free(text);
}

static void scribble(off_t offset, const void *bytes, size_t n)
{
        int fd = open(path, O_WRONLY | O_CLOEXEC);

        cr_assert_eq(pwrite(fd, bytes, n, offset), (ssize_t)n);
        close(fd);
}

Test(postmortem, a_file_that_is_cut_off_foreign_or_of_another_version_is_refused_with_one_line)
{
        const uint32_t version = 1;
        char wanted[64];

        world_kill(&world);
        copy_page();
        scribble(offsetof(struct sl_stats_header, version), &version, sizeof(version));
        snprintf(wanted, sizeof(wanted), "has version 1, wants %u", SL_STATS_VERSION);
        expect_refused(1, wanted);
        copy_page();
        cr_assert_eq(truncate(path, 65536), 0);
        expect_refused(1, "is damaged: section");
        cr_assert_eq(truncate(path, 100), 0);
        expect_refused(1, "is no stats page");
        cr_assert_eq(truncate(path, 0), 0);
        expect_refused(1, "is no stats page");
        copy_page();
        scribble(0,
                "\x7f"
                "ELF....",
                8);
        expect_refused(1, "is no stats page");
        unlink(path);
        expect_refused(3, "No such file");
}

/* Every byte anew, of a seed. */
static void scribble_everything_behind_the_header(uint32_t seed)
{
        static unsigned char noise[1 << 20];
        struct stat status;

        for (size_t i = 0; i < sizeof(noise); i++)
                noise[i] = (unsigned char)digits_random(&seed, 256);
        cr_assert_eq(stat(path, &status), 0);
        for (off_t at = 4096; at + (off_t)sizeof(noise) <= status.st_size; at += (off_t)sizeof(noise))
                scribble(at, noise, sizeof(noise));
}

Test(postmortem, a_status_that_cannot_be_is_none_of_an_error)
{
        struct requester r;
        struct starling_request request;
        struct sl_stats_header header;
        char *text;
        int status;

        attach(&r);
        request = whole(&r);
        cr_assert_eq(starling_infer(r.queue, &request, NULL), 0);
        world_kill(&world);
        copy_page();
        int fd = open(path, O_RDWR | O_CLOEXEC);
        cr_assert_eq(pread(fd, &header, sizeof(header), 0), (ssize_t)sizeof(header));
        for (uint32_t i = 0; i < header.sections[SL_STATS_RECORDS].count; i++) {
                off_t at =
                        (off_t)(header.sections[SL_STATS_RECORDS].offset + (uint64_t)i * header.sections[SL_STATS_RECORDS].stride);
                struct sl_flight_record record;

                cr_assert_eq(pread(fd, &record, sizeof(record), at), (ssize_t)sizeof(record));
                record.status = INT32_MIN;
                atomic_fetch_or(&record.slot.seq, 1); /* torn: nothing in it need be possible */
                cr_assert_eq(pwrite(fd, &record, sizeof(record), at), (ssize_t)sizeof(record));
        }
        close(fd);
        text = run_postmortem(path, &status);
        cr_expect(status == 0 && strstr(text, "failed at "), "%d: %s", status, text);
        free(text);
        unlink(path);
        starling_close(r.client);
}

Test(postmortem, whatever_lies_in_records_the_reader_ends_and_counts_what_cannot_be)
{
        world_kill(&world);
        for (uint32_t seed = 1; seed <= 3; seed++) {
                int status;
                char *text;

                copy_page();
                scribble_everything_behind_the_header(seed);
                text = run_postmortem(path, &status);
                cr_expect(status == 0 && strstr(text, "  damaged ") && !strstr(text, "  damaged 0"), "%d: %.300s", status, text);
                for (const char *c = text; *c; c++)
                        cr_assert((*c >= ' ' && *c <= '~') || *c == '\n', "byte %d", *c);
                free(text);
        }
        unlink(path);
}
