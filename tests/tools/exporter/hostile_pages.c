/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that are damaged, somebody else's, or just being changed. */
#include "watch_bench.h"

#include "history.h"
#include "site.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

TestSuite(exporter_hostile_pages, .init = watch_bench_init, .fini = watch_bench_deinit);

Test(exporter_hostile_pages, a_page_that_is_damaged_is_no_runtime)
{
        for (off_t bytes = 0; bytes <= 4096; bytes += 512) {
                crash_with(1);
                cr_assert_eq(truncate(page_path(), bytes), 0);
                ask();
                cr_expect_eq(value("starling_up", ""), 0);
                cr_expect_not_null(strstr(watch.cause.text, watch.name), "%s", watch.cause.text);
                unlink(page_path());
        }
}

#define SOMEBODY 60001u

static void expect_up(double up, const char *why)
{
        ask();
        cr_expect_eq(value("starling_up", ""), up, "%s: %s", why, watch.cause.text);
}

static void skip_unless_root(void)
{
        if (geteuid() == 0)
                return;
        watch_bench_deinit();
        cr_skip("only root can give a file away");
}

Test(exporter_hostile_pages, somebody_elses_page_is_believed_of_whom_the_socket_or_its_folder_belongs_to)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        struct sl_stats *stats;

        skip_unless_root();
        stats = create_page(0);
        cr_assert_eq(chown(page_path(), SOMEBODY, SOMEBODY), 0);
        expect_up(0, "it is nobody's");
        cr_expect_not_null(strstr(watch.cause.text, "60001"), "%s", watch.cause.text);
        cr_assert_eq(chown(folder.path, SOMEBODY, SOMEBODY), 0);
        cr_assert_eq(chmod(folder.path, 0777), 0);
        expect_up(0, "all may write to the folder");
        cr_assert_eq(chmod(folder.path, 0755), 0);
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s.sock", folder.path, watch.name);
        cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
        expect_up(0, "the socket is root's");
        cr_assert_eq(chown(address.sun_path, SOMEBODY, SOMEBODY), 0);
        expect_up(1, "the socket is theirs");
        close(fd);
        sl_stats_free(stats);
}

Test(exporter_hostile_pages, somebody_elses_page_is_believed_where_the_folder_is_theirs)
{
        struct sl_stats *stats;

        skip_unless_root();
        stats = create_page(0);
        cr_assert_eq(chown(page_path(), SOMEBODY, SOMEBODY), 0);
        cr_assert_eq(chown(folder.path, SOMEBODY, SOMEBODY), 0);
        expect_up(1, "there is no socket yet");
        sl_stats_free(stats);
}

/* As if control were inside of a change, or had died there. */
static void change_sequence(enum sl_stats_section section, uint32_t index)
{
        int fd = open(page_path(), O_RDWR | O_CLOEXEC);
        struct sl_stats_header header;
        off_t at;
        uint32_t seq;

        cr_assert_eq(pread(fd, &header, sizeof(header), 0), (ssize_t)sizeof(header));
        at = (off_t)(header.sections[section].offset + (uint64_t)index * header.sections[section].stride);
        cr_assert_eq(pread(fd, &seq, sizeof(seq), at), (ssize_t)sizeof(seq));
        seq++;
        cr_assert_eq(pwrite(fd, &seq, sizeof(seq), at), (ssize_t)sizeof(seq));
        close(fd);
}

Test(exporter_hostile_pages, what_is_just_being_changed_is_as_it_was)
{
        struct sl_stats *stats = create_page(0);
        struct sl_model_counting lenet = add_model(stats, "lenet");

        sl_model_count(&lenet, requests, 5);
        ask();
        sl_model_count(&lenet, requests, 1);
        change_sequence(SL_STATS_MODELS, 1);
        ask();
        cr_expect_eq(value("starling_inference_requests_total", "model=\"lenet\""), 5);
        change_sequence(SL_STATS_MODELS, 1);
        ask();
        cr_expect_eq(value("starling_inference_requests_total", "model=\"lenet\""), 6);
        sl_stats_free(stats);
}

static int fill_with_noise(const char *path)
{
        FILE *file = fopen(path, "r+");
        struct sl_stats_header header;

        if (!file || fread(&header, sizeof(header), 1, file) != 1)
                return -1;
        srand48(11);
        fseek(file, 4096, SEEK_SET);
        for (int i = 0; i < 1 << 18; i++) {
                uint32_t noise =
                        (uint32_t)mrand48() & (i % 3 ? UINT32_MAX : 0x00000002); /* every third is even: an end of a change */

                fwrite(&noise, sizeof(noise), 1, file);
        }
        return fclose(file);
}

Test(exporter_hostile_pages, noise_in_the_place_of_slots_is_text_of_the_format)
{
        crash_with(1);
        cr_assert_eq(fill_with_noise(page_path()), 0);
        ask();
        ask();
        cr_expect_eq(value("starling_up", ""), 0);
        ask_for(EXPOSITION_OPENMETRICS);
}

/* Valid JSON, and so valid UTF-8. */
static void expect_json(struct site *site, enum site_page page)
{
        struct site_answer answer;
        json_error_t error;
        json_t *object;

        site_answer(site, page, &answer);
        cr_assert_eq(answer.status, 200);
        object = json_loadb(answer.body.bytes, answer.body.used, JSON_REJECT_DUPLICATES, &error);
        cr_expect_eq(json_array_size(json_object_get(object, "runtimes")), 1, "%s", error.text);
        json_decref(object);
        text_deinit(&answer.body);
}

Test(exporter_hostile_pages, noise_in_the_place_of_slots_is_valid_json)
{
        struct history *history = history_new(8);
        struct site site = {.watches = &watch, .n_watches = 1, .histories = &history};

        crash_with(1);
        cr_assert_eq(fill_with_noise(page_path()), 0);
        for (int i = 0; i < 2; i++) {
                site.step_ns = 0;
                site_step(&site);
                history_step(history, watch.view); /* as if it lived */
                expect_json(&site, SITE_STATS);
                expect_json(&site, SITE_HISTORY);
        }
        history_free(history);
}
