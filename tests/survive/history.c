/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a runtime wrote into a history while models came, went, changed and failed: the step function, asked the same again, answers
 * the same, and the log has the steps that were carried out.
 */
#include "history.h"

#include "base/clock.h"
#include "digits.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 4096

static struct world world;
static struct starling_client *admin;
static char path[128];

static void set_up(void)
{
        world_init(&world);
        snprintf(path, sizeof(path), "%s/history", world.folder);
        world.arguments[0] = "--history";
        world.arguments[1] = path;
        world.arguments[2] = "--log-level";
        world.arguments[3] = "debug";
}

static void tear_down(void)
{
        world_free(&world);
}

TestSuite(history, .init = set_up, .fini = tear_down, .timeout = 120);

static char *read_file(const char *name, size_t *ret_bytes)
{
        FILE *file = fopen(name, "re");
        char *bytes;

        cr_assert_not_null(file, "%s", name);
        fseek(file, 0, SEEK_END);
        *ret_bytes = (size_t)ftell(file);
        rewind(file);
        bytes = calloc(1, *ret_bytes + 1);
        cr_assert_eq(fread(bytes, 1, *ret_bytes, file), *ret_bytes);
        fclose(file);
        return bytes;
}

/* ---- what happens ---- */

static void expect_done(int result, const char *what, const struct starling_error *error)
{
        cr_expect_eq(result, 0, "%s: %s\n%s", what, error->text, world_log(&world));
}

static void reload(const char *model)
{
        struct starling_error error = {""};

        expect_done(starling_admin_reload(admin, model, &error), model, &error);
}

static void unload(const char *model)
{
        struct starling_error error = {""};

        expect_done(starling_admin_unload(admin, model, &error), model, &error);
}

static void load(const char *model)
{
        struct starling_error error = {""};

        expect_done(starling_admin_load(admin, model, &error), model, &error);
}

static void apply(void)
{
        static const struct starling_allotment workers[] = {{"lenet", "cpu", 1}, {"lenet", "cpu", 4}, {"mlp", "cpu", 2}};
        struct starling_error error = {""};

        expect_done(starling_admin_apply(admin, workers, 3, &error), "apply", &error);
        expect_done(starling_admin_apply(admin, NULL, 0, &error), "apply as configured", &error);
}

static void kill_worker(void)
{
        struct world_child workers[4];
        uint32_t n = world_find_children(&world, "worker", workers, 4);

        cr_assert_eq(n, 1, "%u workers have a process", n);
        kill(workers[0].pid, SIGKILL);
        world_expect_log(&world, "event=worker-");
}

static void ask(const char *name)
{
        struct starling_client *client = world_connect(&world, STARLING_ROLE_CLIENT);
        struct starling_completion completion;
        struct starling_request request;
        struct starling_model *model;
        struct starling_queue *queue;
        struct digits_data data;
        struct digits_job job;
        char wrong[256];

        cr_assert(digits_read(&data, "lenet"));
        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        cr_assert_eq(starling_model_open(client, name, &model, NULL), 0);
        cr_assert_eq(digits_job_alloc(&job, &data, client), 0);
        request = digits_ask(&job, model, 0, 8);
        cr_assert_eq(starling_submit(queue, &request, NULL), 0);
        cr_assert_eq(starling_wait(queue, &completion, 1, UINT64_MAX), 1);
        cr_expect(completion.status == 0 && digits_right(&job, &data, wrong, sizeof(wrong)), "%d %s", completion.status, wrong);
        digits_release(&data);
        starling_close(client);
}

static void change_repository(void)
{
        world_add_model(&world, "broken", "no network", 10);
        world_copy_model(&world, "mlp", "late", "instances: 2\n");
        kill(world.pid, SIGHUP);
        world_expect_log(&world, "event=model-failed model=broken");
        world_expect_log(&world, "event=model-ready model=late");
        world_add_model_config(&world, "late", "instances: 1\n");
        reload("late");
        world_remove_model(&world, "late");
        kill(world.pid, SIGHUP);
        world_expect_log(&world, "event=model-unloaded model=late");
}

static void live(void)
{
        world_copy_model(&world, "lenet", "apart", "isolation: process\n");
        world_start(&world);
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
        ask("apart");
        kill_worker();
        change_repository();
        reload("lenet");
        reload("lenet");
        unload("digits");
        unload("resnet");
        load("resnet");
        load("digits");
        apply();
        ask("lenet");
        starling_close(admin);
}

/* ---- what is left of it ---- */

/* The next step that the log has. Return: false: no more. */
static bool next_logged(FILE *log, char line[LINE_BYTES])
{
        while (fgets(line, LINE_BYTES, log))
                if (strstr(line, " event=step step="))
                        return true;
        return false;
}

/* What is written is carried out then: a runtime that was killed between the two has no lines of its last call. */
static bool was_killed, is_cut_off;

static void expect_logged(FILE *log, const struct sl_step *step)
{
        char line[LINE_BYTES] = "", kind[64], want[64];

        snprintf(kind, sizeof(kind), " step=%s ", sl_step_name(step->kind));
        snprintf(want, sizeof(want), " want=%" PRIu64, step->want);
        if (!next_logged(log, line)) {
                cr_assert(was_killed, "the log has no more steps, and%s%s follows", kind, want);
                is_cut_off = true;
                return;
        }
        cr_assert(strstr(line, kind) && strstr(line, want), "not%s%s but: %s", kind, want, line);
        cr_assert(strstr(line, sl_step_cause(step)), "not \"%s\" but: %s", sl_step_cause(step), line);
}

static bool is_same(const struct sl_step *a, const struct sl_step *b)
{
        return a->kind == b->kind && a->name == b->name && a->from == b->from && a->want == b->want &&
               a->composition == b->composition;
}

/* Asks again. What is carried out of an answer ends with the first step that may change what others can do. */
static void replay_call(const struct sl_history_call *call, FILE *log, uint32_t ret_kinds[SL_STEP_KIND_COUNT])
{
        struct sl_step steps[SL_STEPS_MAX];
        uint64_t due_ns;
        uint32_t n = sl_converge(&call->fleet, steps, NULL, &due_ns);
        bool is_on = true;

        cr_assert_not(is_cut_off, "the log lacks steps of a call that others follow");
        cr_assert_eq(n, call->n_steps);
        cr_assert_eq(due_ns, call->due_ns);
        for (uint32_t i = 0; i < n; i++) {
                cr_assert(is_same(&steps[i], &call->steps[i]), "%s, not %s", sl_step_name(steps[i].kind),
                        sl_step_name(call->steps[i].kind));
                if (is_on) {
                        expect_logged(log, &steps[i]);
                        ret_kinds[steps[i].kind]++;
                }
                is_on = is_on && !sl_step_is_wide(&steps[i]);
        }
}

static uint32_t replay(uint32_t ret_kinds[SL_STEP_KIND_COUNT])
{
        static struct sl_history_reader reader;
        struct sl_history_call call;
        char line[LINE_BYTES];
        uint32_t n = 0;
        size_t bytes;
        char *history = read_file(path, &bytes);
        FILE *log = fopen(world.log_path, "re");
        int r;

        cr_assert_not_null(log);
        cr_assert_eq(sl_history_open(&reader, history, bytes), 0);
        while ((r = sl_history_next(&reader, &call)) == 1) {
                replay_call(&call, log, ret_kinds);
                n++;
        }
        cr_expect_eq(r, 0);
        cr_expect_eq(reader.left, 0);
        cr_expect_not(next_logged(log, line), "the history lacks: %s", line);
        fclose(log);
        free(history);
        return n;
}

Test(history, what_was_seen_gives_the_same_steps_again)
{
        static const enum sl_step_kind expected[] = {SL_STEP_LOAD, SL_STEP_SERVE, SL_STEP_FAIL, SL_STEP_COMPOSE, SL_STEP_WORKERS,
                SL_STEP_SETTLE, SL_STEP_WITHDRAW, SL_STEP_FORGET};
        uint32_t kinds[SL_STEP_KIND_COUNT] = {0};
        uint32_t n;

        live();
        world_stop(&world);
        n = replay(kinds);
        for (uint32_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
                cr_expect(kinds[expected[i]], "no step \"%s\" in %u calls", sl_step_name(expected[i]), n);
}

/* A killed runtime leaves what it has written; what is cut off in the middle of a call ends before that. */
Test(history, what_a_killed_runtime_has_written_is_whole)
{
        static struct sl_history_reader reader;
        struct sl_history_call call;
        uint32_t kinds[SL_STEP_KIND_COUNT] = {0};
        uint32_t n = 0, whole;
        size_t bytes;
        char *history;

        world_start(&world);
        world_kill(&world);
        was_killed = true;
        whole = replay(kinds);
        cr_expect_gt(whole, 0);
        cr_expect_gt(kinds[SL_STEP_SERVE], 0);
        history = read_file(path, &bytes);
        cr_assert_eq(sl_history_open(&reader, history, bytes - 1), 0);
        while (sl_history_next(&reader, &call) == 1)
                n++;
        cr_expect_eq(n, whole - 1);
        memset(history, 0, 8);
        cr_expect_eq(sl_history_open(&reader, history, bytes), -EBADMSG);
        free(history);
}

Test(history, a_file_that_cannot_be_written_is_told_at_the_start)
{
        snprintf(path, sizeof(path), "%s/none/history", world.folder);
        world_launch(&world);
        cr_expect_neq(world_wait(&world), 0);
        cr_expect_not_null(strstr(world_log(&world), "/none/history\": No such file or directory"), "%s", world_log(&world));
}
