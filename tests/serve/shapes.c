/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model whose inputs have open dimensions beside the batch: each request brings its sizes, which are compiled when they are asked
 * for. A runtime in this process.
 */
#include "base/clock.h"
#include "base/error.h"
#include "open_scene.h"
#include "plan_cache.h"
#include "stats.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

Test(shapes, each_request_brings_its_own_sizes, .timeout = 60)
{
        struct scene s;

        scene_begin(&s, write_model);
        scene_start(&s);
        expect_sum(&s, 3, 4);
        expect_sum(&s, 2, 1);
        expect_sum(&s, 8, 4);
        scene_end(&s);
}

Test(shapes, sizes_that_the_model_cannot_have_are_refused_each_time, .timeout = 60)
{
        struct starling_completion done;
        struct scene s;

        scene_begin(&s, write_model);
        scene_start(&s);
        cr_assert_eq(scene_infer(&s, 1, 7, &done), -EINVAL);
        service_expect_log(&s.service, "open[7]");
        cr_assert_eq(scene_infer(&s, 1, 7, &done), -EINVAL);
        expect_sum(&s, 1, 4);
        scene_end(&s);
}

Test(shapes, an_output_that_is_too_small_is_told_what_its_sizes_need, .timeout = 60)
{
        struct starling_completion done;
        struct scene s;

        scene_begin(&s, write_model);
        scene_start(&s);
        s.output.bytes = 64;
        cr_assert_eq(scene_infer(&s, 2, 4, &done), -EMSGSIZE);
        cr_assert_eq(done.bytes_needed, 2 * 4 * 3 * sizeof(float));
        cr_assert_eq(scene_infer(&s, 2, 4, &done), -EMSGSIZE);
        cr_assert_eq(done.bytes_needed, 2 * 4 * 3 * sizeof(float));
        scene_end(&s);
}

Test(shapes, the_sizes_used_longest_ago_make_room, .timeout = 60)
{
        struct starling_completion done;
        struct scene s;

        scene_begin(&s, write_easy_model);
        scene_start(&s);
        for (uint32_t size = 1; size <= 5; size++) {
                cr_assert_eq(scene_infer(&s, 1, size, &done), 0, "%s", s.service.log);
                cr_assert_eq(((float *)s.output.data)[3 * size - 1], -(float)(3 * size - 1));
        }
        service_expect_log(&s.service, "model-unloaded model=\"open[3]\"");
        cr_assert_not(scene_has_logged(&s, "model-unloaded model=\"open[5]\""));
        cr_assert_eq(scene_infer(&s, 1, 1, &done), 0, "%s", s.service.log);
        scene_end(&s);
}

Test(shapes, get_as_many_workers_as_the_model_is_to_have, .timeout = 60)
{
        struct scene s;

        scene_begin(&s, write_model);
        scene_start(&s);
        expect_sum(&s, 3, 4);
        pthread_mutex_lock(&s.service.specs_lock);
        s.service.specs[1].workers.n = 2;
        pthread_mutex_unlock(&s.service.specs_lock);
        service_reload(&s.service);
        service_expect_log(&s.service, "workers-changed model=\"open[4]\"");
        expect_sum(&s, 3, 4);
        cr_expect_not(scene_has_logged(&s, "model-replaced"), "%s", s.service.log);
        scene_end(&s);
}

static void set_specs(struct scene *s, uint32_t n)
{
        pthread_mutex_lock(&s->service.specs_lock);
        s->service.n_specs = n;
        pthread_mutex_unlock(&s->service.specs_lock);
        service_reload(&s->service);
}

/* A compiler that does so before. */
static void write_program(struct scene *s, const char *before)
{
        char text[1024];
        int n = snprintf(text, sizeof(text), "#!/bin/sh\n%s\nexec %s \"$@\"\n", before, COMPILE_CHILD);

        unlink(s->program); /* who is running it goes on */
        scene_write_file(s->program, text, (size_t)n, 0700);
}

static void hang_for_none(struct scene *s)
{
        write_program(s, ":");
}

/* A compiler that never comes to an end for one size. */
static void hang_for_nine(struct scene *s)
{
        write_program(s, "case \"$*\" in *M=9*) exec sleep 1000;; esac");
        s->service.options.compile_program = s->program;
        s->service.options.compile_jobs = 2;
}

Test(shapes, requests_that_wait_for_theirs_hold_up_nobody_and_can_be_cancelled, .timeout = 60)
{
        struct starling_completion done;
        struct starling_request waits;
        uint64_t id;
        struct scene s;

        scene_begin(&s, write_easy_model);
        hang_for_nine(&s);
        scene_start(&s);
        waits = scene_request(&s, 1, 9);
        cr_assert_eq(starling_submit(s.queue, &waits, &id), 0);
        for (uint32_t size = 1; size <= 3; size++)
                cr_assert_eq(scene_infer(&s, 1, size, &done), 0, "%s", s.service.log);
        cr_assert_eq(starling_cancel(s.queue, id), 0);
        cr_assert_eq(starling_wait(s.queue, &done, 1, -1), 1);
        cr_assert_eq(done.id, id);
        cr_assert_eq(done.status, -ECANCELED);
        scene_end(&s);
}

Test(shapes, requests_that_wait_for_theirs_take_places_of_the_models_queue, .timeout = 60)
{
        struct starling_request waits[8];
        struct starling_completion done;
        uint64_t ids[8];
        struct scene s;

        scene_begin(&s, write_easy_model);
        s.service.specs[1].queue_requests = 3;
        hang_for_nine(&s);
        scene_start(&s);
        for (int i = 0; i < 8; i++)
                waits[i] = scene_request(&s, 1, 9);
        cr_assert_eq(starling_submit_many(s.queue, waits, 8, ids), 8);
        for (int i = 0; i < 5; i++) {
                cr_assert_eq(starling_wait(s.queue, &done, 1, -1), 1);
                cr_expect_eq(done.status, -EBUSY);
        }
        for (int i = 0; i < 3; i++)
                cr_assert_eq(starling_cancel(s.queue, ids[i]), 0, "the first three wait");
        for (int i = 0; i < 3; i++) {
                cr_assert_eq(starling_wait(s.queue, &done, 1, -1), 1);
                cr_expect_eq(done.status, -ECANCELED);
        }
        scene_end(&s);
}

Test(shapes, a_request_that_waited_for_its_sizes_has_one_record, .timeout = 60)
{
        struct starling_completion done;
        struct sl_flight_record record;
        struct sl_stats_view *stats;
        uint32_t n_records = 0;
        struct scene s;

        scene_begin(&s, write_easy_model);
        scene_start(&s);
        for (uint32_t size = 1; size <= 2; size++)
                cr_assert_eq(scene_infer(&s, 1, size, &done), 0, "%s", s.service.log);
        cr_assert_eq(sl_stats_open(s.service.options.name, NULL, &stats, NULL), 0);
        for (uint32_t i = 0; i < sl_stats_count(stats, SL_STATS_RECORDS); i++) {
                if (sl_stats_read_record(stats, SL_STATS_RECORDS, i, &record) < 0)
                        continue;
                cr_expect(record.stage == SL_FLIGHT_ENDED && record.status == 0 && record.answered == 1);
                n_records++;
        }
        cr_expect_eq(n_records, 2);
        sl_stats_close(stats);
        scene_end(&s);
}

Test(shapes, requests_that_wait_end_with_the_model, .timeout = 60)
{
        struct starling_completion done;
        struct starling_request waits;
        uint64_t id;
        struct scene s;

        scene_begin(&s, write_easy_model);
        hang_for_nine(&s);
        scene_start(&s);
        waits = scene_request(&s, 1, 9);
        cr_assert_eq(starling_submit(s.queue, &waits, &id), 0);
        cr_assert_eq(
                starling_infer(s.queue, &(struct starling_request){.flags = STARLING_NOOP}, NULL), 0, "behind it: it waits now");
        set_specs(&s, 1);
        cr_assert_eq(starling_wait(s.queue, &done, 1, -1), 1);
        cr_assert_eq(done.status, -ECANCELED);
        scene_end(&s);
}

/* Sizes that are wanted from the start; @second NULL: there are none. */
static void prepare(struct scene *s, const char *first, const char *second)
{
        static struct sl_dim_sizes sizes[2];

        s->service.specs[1].prepared = sizes;
        s->service.specs[1].n_prepared = second ? 2 : 1;
        cr_assert_eq(sl_dim_sizes_parse(first, &sizes[0], NULL), 0);
        if (second)
                cr_assert_eq(sl_dim_sizes_parse(second, &sizes[1], NULL), 0);
}

Test(shapes, prepared_sizes_are_ready_before_anybody_asks, .timeout = 60)
{
        struct starling_completion done;
        struct scene s;

        scene_begin(&s, write_easy_model);
        prepare(&s, "M=6", "K=6");
        scene_start(&s);
        cr_assert(scene_has_logged(&s, "model-ready model=\"open[6]\""));
        cr_assert(scene_has_logged(&s, "shape-not-loaded"));
        cr_assert_eq(scene_infer(&s, 1, 6, &done), 0, "%s", s.service.log);
        for (uint32_t round = 2; round < 4; round++) { /* and behind a reload, when the earlier ones have gone */
                service_touch(&s.service);
                service_reload(&s.service);
                SERVICE_AWAIT(&s.service, scene_count_logged(&s, "model-ready model=\"open[6]\"") >= round);
                cr_assert_eq(scene_count_logged(&s, "model-ready model=\"open[6]\""), round, "%s", s.service.log);
        }
        scene_end(&s);
}

Test(shapes, each_combination_of_sizes_takes_as_many_requests_as_its_queue, .timeout = 60)
{
        struct starling_request many[8];
        struct starling_completion done;
        uint32_t refused = 0;
        struct scene s;

        scene_begin(&s, write_easy_model);
        s.service.specs[1].queue_requests = 1;
        scene_start(&s);
        cr_assert_eq(scene_infer(&s, 1, 5, &done), 0, "%s", s.service.log);
        for (int i = 0; i < 8; i++)
                many[i] = scene_request(&s, 1, 5);
        cr_assert_eq(starling_submit_many(s.queue, many, 8, NULL), 8);
        for (int i = 0; i < 8; i++) {
                cr_assert_eq(starling_wait(s.queue, &done, 1, -1), 1);
                cr_assert(done.status == 0 || done.status == -EBUSY);
                refused += done.status == -EBUSY;
        }
        cr_assert_gt(refused, 0);
        scene_end(&s);
}

/* Two requests at once: the first one's sizes take the place of those that the second one wants. */
Test(shapes, that_are_wanted_again_while_they_make_room_are_loaded_again, .timeout = 60)
{
        static const uint32_t pairs[][2] = {{5, 3}, {4, 5}, {3, 4}};
        struct starling_tensor outputs[2];
        struct starling_completion done[2];
        struct scene s;

        scene_begin(&s, write_doubling_model);
        scene_start(&s);
        for (uint32_t i = 0; i < 2; i++)
                cr_assert_eq(starling_tensor_alloc(s.client, STARLING_F32, 3, (uint32_t[]){8, 16, 3}, &outputs[i]), 0);
        expect_scaled(&s, 1, 3, 2);
        expect_scaled(&s, 1, 4, 2);
        for (uint32_t round = 0; round < 6; round++) {
                for (uint32_t i = 0; i < 2; i++) {
                        struct starling_request wanted = scene_request(&s, 1, pairs[round % 3][i]);

                        wanted.outputs = &outputs[i];
                        wanted.user_data = i;
                        cr_assert_eq(starling_submit(s.queue, &wanted, NULL), 0);
                }
                for (int n = 0; n < 2;) {
                        int more = starling_wait(s.queue, done, 2, SERVICE_LIMIT_NS);

                        cr_assert_gt(more, 0, "%s", s.service.log);
                        for (int i = 0; i < more; i++)
                                cr_expect_eq(done[i].status, 0, "round %u: request %u: %d\n%s", round, (uint32_t)done[i].user_data,
                                        done[i].status, s.service.log);
                        n += more;
                }
        }
        scene_end(&s);
}

Test(shapes, sizes_share_the_weights_of_the_first, .timeout = 60)
{
        struct scene s;

        scene_begin(&s, write_doubling_model);
        scene_start(&s);
        expect_scaled(&s, 2, 4, 2);
        cr_assert_not(scene_has_logged(&s, "plan-derived"));
        expect_scaled(&s, 3, 6, 2);
        service_expect_log(&s.service, "plan-derived model=\"open[6]\"");
        scene_end(&s);
}

Test(shapes, sizes_go_on_when_the_first_has_made_room, .timeout = 60)
{
        struct scene s;

        scene_begin(&s, write_doubling_model);
        scene_start(&s);
        for (uint32_t size = 4; size <= 8; size++)
                expect_scaled(&s, 2, size, 2);
        service_expect_log(&s.service, "model-unloaded model=\"open[4]\"");
        service_expect_log(&s.service, "plan-derived model=\"open[8]\"");
        expect_scaled(&s, 2, 4, 2);
        scene_end(&s);
}

/* Sizes of the old model, which share the old weights, end while its successor's come up. */
Test(shapes, a_replaced_model_has_weights_of_its_own, .timeout = 60)
{
        struct starling_request many[32];
        struct starling_completion done;
        struct scene s;

        scene_begin(&s, write_doubling_model);
        scene_start(&s);
        expect_scaled(&s, 2, 4, 2);
        expect_scaled(&s, 2, 6, 2);
        for (uint32_t i = 0; i < 32; i++)
                many[i] = scene_request(&s, 8, 6);
        cr_assert_eq(starling_submit_many(s.queue, many, 32, NULL), 32);
        write_scaling_model(&s, 3);
        service_touch(&s.service);
        service_reload(&s.service);
        for (uint32_t i = 0; i < 32; i++)
                cr_assert_eq(starling_wait(s.queue, &done, 1, -1), 1);
        service_expect_log(&s.service, "model-replaced model=open ");
        service_expect_log(&s.service, "model-unloaded model=\"open[4]\"");
        service_expect_log(&s.service, "model-unloaded model=\"open[6]\"");
        expect_scaled(&s, 2, 6, 3);
        expect_scaled(&s, 2, 4, 3);
        service_expect_log(&s.service, "plan-derived model=\"open[4]\"");
        scene_end(&s);
}

/* What is gone before it was there is not served, and what is newer is loaded behind it. */
static long file_bytes(const char *path)
{
        struct stat file;

        return stat(path, &file) == 0 ? (long)file.st_size : 0;
}

/* The program has been started @n times more than @before says: each writes one byte. */
static void expect_starts(struct scene *s, const char *starts, long before, long n)
{
        SERVICE_AWAIT(&s->service, file_bytes(starts) >= before + n);
}

static void write_hold(const char *hold)
{
        scene_write_file(hold, "", 0, 0600);
}

Test(shapes, that_change_while_they_are_loaded_are_loaded_or_unloaded_again, .timeout = 60)
{
        char starts[128], hold[128], counts[400];
        struct scene s;
        long before;

        scene_begin(&s, write_doubling_model);
        snprintf(starts, sizeof(starts), "%s.starts", s.program);
        snprintf(hold, sizeof(hold), "%s.hold", s.program);
        snprintf(counts, sizeof(counts), "printf . >>%s\nwhile [ -e %s ]; do sleep 0.02; done", starts, hold);
        write_program(&s, counts);
        s.service.options.compile_program = s.program;
        s.service.n_specs = 1;
        service_start(&s.service);
        service_expect_log(&s.service, "model-ready model=lenet ");
        before = file_bytes(starts);
        write_hold(hold);
        set_specs(&s, 2);
        expect_starts(&s, starts, before, 1);
        service_touch(&s.service);
        service_reload(&s.service);
        expect_starts(&s, starts, before, 2);
        cr_assert_eq(unlink(hold), 0);
        service_expect_log(&s.service, "model-ready model=open ");
        before = file_bytes(starts);
        write_hold(hold);
        service_touch(&s.service);
        service_reload(&s.service);
        expect_starts(&s, starts, before, 1);
        set_specs(&s, 1);
        service_expect_log(&s.service, "model-unloaded model=open ");
        cr_assert_eq(unlink(hold), 0);
        unlink(s.model);
        unlink(s.program);
        unlink(starts);
        service_stop(&s.service);
}

/* Who asks for what is being prepared waits for it. */
Test(shapes, that_are_being_prepared_are_waited_for, .timeout = 60)
{
        struct starling_completion done;
        struct scene s;

        scene_begin(&s, write_easy_model);
        write_program(&s, "case \"$*\" in *M=6*) sleep 1;; esac");
        s.service.options.compile_program = s.program;
        prepare(&s, "M=6", NULL);
        scene_start(&s);
        cr_assert_eq(scene_infer(&s, 1, 6, &done), 0, "%s", s.service.log);
        service_touch(&s.service);
        service_reload(&s.service);
        service_expect_log(&s.service, "model-unloaded model=\"open[6]\"");
        cr_expect_eq(scene_infer(&s, 1, 6, &done), 0, "%s", s.service.log);
        scene_end(&s);
}

/* Whatever the repository has in its place, and cannot be loaded. */
Test(shapes, that_are_new_are_of_the_model_that_serves, .timeout = 60)
{
        struct scene s;

        scene_begin(&s, write_doubling_model);
        scene_start(&s);
        expect_scaled(&s, 1, 2, 2);
        pthread_mutex_lock(&s.service.specs_lock);
        s.service.specs[1].path = "/no/such/model.onnx";
        pthread_mutex_unlock(&s.service.specs_lock);
        service_touch(&s.service);
        service_reload(&s.service);
        service_expect_log(&s.service, "model-not-replaced model=open ");
        expect_scaled(&s, 1, 5, 2);
        scene_end(&s);
}

/* By the model that there is then, and at once: nobody waits for what is compiled for the one before. */
Test(shapes, that_are_compiled_when_the_model_is_replaced_are_compiled_anew, .timeout = 60)
{
        struct starling_completion done;
        struct starling_request waits;
        uint64_t id;
        struct scene s;

        scene_begin(&s, write_doubling_model);
        hang_for_nine(&s);
        scene_start(&s);
        expect_scaled(&s, 1, 2, 2);
        waits = scene_request(&s, 1, 9);
        cr_assert_eq(starling_submit(s.queue, &waits, &id), 0);
        cr_assert_eq(
                starling_infer(s.queue, &(struct starling_request){.flags = STARLING_NOOP}, NULL), 0, "behind it: it waits now");
        write_scaling_model(&s, 3);
        service_touch(&s.service);
        service_reload(&s.service);
        cr_assert_eq(starling_wait(s.queue, &done, 1, -1), 1);
        cr_assert_eq(done.status, -ECANCELED);
        service_expect_log(&s.service, "model-replaced model=open ");
        hang_for_none(&s);
        expect_scaled(&s, 1, 9, 3);
        scene_end(&s);
}

struct kept {
        char folder[112], model[112];
        struct sl_plan_cache *cache;
};

static void open_cache(struct kept *kept, struct scene *s)
{
        struct sl_error error;

        if (!kept->folder[0])
                snprintf(kept->folder, sizeof(kept->folder), "/tmp/starling-shapes-%d", getpid());
        cr_assert_eq(sl_plan_cache_new(kept->folder, 1 << 24, &kept->cache, &error), 0);
        s->service.options.cache = kept->cache;
}

static void close_cache(struct kept *kept)
{
        cr_assert_eq(sl_plan_cache_wait(kept->cache, NULL), 0);
        kept->cache = sl_plan_cache_free(kept->cache);
}

/* The files whose names end so; removes them too, if that is wanted. */
static uint32_t count_files(const struct kept *kept, const char *suffix, bool and_remove)
{
        DIR *folder = opendir(kept->folder);
        uint32_t n = 0;

        cr_assert_not_null(folder);
        for (const struct dirent *found; (found = readdir(folder));) {
                const char *dot = strrchr(found->d_name, '.');

                if (found->d_name[0] == '.' || !dot || (*suffix && strcmp(dot, suffix)))
                        continue;
                n++;
                if (and_remove)
                        unlinkat(dirfd(folder), found->d_name, 0);
        }
        closedir(folder);
        return n;
}

/* Serves two sizes of one model and ends; then begins again with the second. The model stays where it was. */
static void serve_twice(struct scene *s, struct kept *kept, void (*between)(struct scene *s, struct kept *kept))
{
        scene_begin(s, write_doubling_model);
        snprintf(kept->model, sizeof(kept->model), "/tmp/starling-shapes-%d.onnx", getpid());
        cr_assert_eq(rename(s->model, kept->model), 0);
        s->service.specs[1].path = kept->model;
        open_cache(kept, s);
        scene_start(s);
        expect_scaled(s, 2, 4, 2);
        expect_scaled(s, 2, 6, 2);
        scene_end(s);
        close_cache(kept);
        between(s, kept);
        scene_begin(s, write_easy_model);
        s->service.specs[1].path = kept->model;
        open_cache(kept, s);
        scene_start(s);
        expect_scaled(s, 2, 6, 2);
}

static void end_twice(struct scene *s, struct kept *kept)
{
        scene_end(s);
        close_cache(kept);
        count_files(kept, "", true);
        unlink(kept->model);
        rmdir(kept->folder);
}

static void leave(struct scene *s, struct kept *kept)
{
        (void)s;
        cr_assert_eq(count_files(kept, ".base", false), 1);
}

Test(shapes, cached_sizes_find_the_base_that_they_were_derived_from, .timeout = 60)
{
        struct kept kept = {0};
        struct scene s;

        serve_twice(&s, &kept, leave);
        cr_assert(scene_has_logged(&s, "cache-used model=\"open[6]\""), "%s", s.service.log);
        cr_assert(scene_has_logged(&s, "plan-derived model=\"open[6]\""));
        expect_scaled(&s, 2, 4, 2);
        cr_assert_not(scene_has_logged(&s, "plan-derived model=\"open[4]\""), "%s", s.service.log);
        end_twice(&s, &kept);
}

/* The base is the plan that the record names: with the name of a plan that is gone. */
static void remove_base(struct scene *s, struct kept *kept)
{
        char name[256], plan[64] = "";
        DIR *folder = opendir(kept->folder);
        FILE *file;

        (void)s;
        for (const struct dirent *found; (found = readdir(folder));) {
                if (!strstr(found->d_name, ".base"))
                        continue;
                snprintf(name, sizeof(name), "%s/%.100s", kept->folder, found->d_name);
                file = fopen(name, "rb");
                cr_assert(file && fseek(file, 8, SEEK_SET) == 0 && fread(plan, 1, 48, file) == 48);
                fclose(file);
        }
        cr_assert_eq(unlinkat(dirfd(folder), plan, 0), 0);
        closedir(folder);
}

Test(shapes, without_the_base_cached_sizes_are_compiled_again, .timeout = 60)
{
        struct kept kept = {0};
        struct scene s;

        serve_twice(&s, &kept, remove_base);
        cr_assert(scene_has_logged(&s, "cache-ignored model=\"open[6]\""), "%s", s.service.log);
        cr_assert(scene_has_logged(&s, "the base of other sizes, is gone"));
        cr_assert_not(scene_has_logged(&s, "cache-used model=\"open[6]\""));
        expect_scaled(&s, 2, 4, 2);
        cr_assert(scene_has_logged(&s, "plan-derived model=\"open[4]\""), "%s", s.service.log);
        end_twice(&s, &kept);
}
