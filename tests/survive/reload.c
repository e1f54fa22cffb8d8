/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A repository that changes while it is served: what a reload says, what comes along, and what stays as it was.
 */
#include "digits.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct world world;
static struct starling_client *admin;

static void set_up(void)
{
        world_init(&world);
}

static void tear_down(void)
{
        starling_close(admin);
        world_stop(&world);
        world_free(&world);
}

TestSuite(reload, .init = set_up, .fini = tear_down, .timeout = 60);

/* REPOSITORY/own/VERSION/NAME as a copy of the network mlp. */
static void add_file(const char *version, const char *name)
{
        char command[512];

        snprintf(command, sizeof(command), "mkdir -p '%s/own/%s' && cp '%s/models/mlp/1/model.onnx' '%s/own/%s/%s'",
                world.repository, version, DIGITS, world.repository, version, name);
        cr_assert_eq(system(command), 0);
}

static void start(void)
{
        world_start(&world);
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
}

static bool is_ready(const char *name)
{
        struct starling_model_entry entries[32];
        int n = starling_model_list(admin, entries, 32);

        for (int i = 0; i < n; i++)
                if (strcmp(entries[i].name, name) == 0)
                        return entries[i].state == STARLING_MODEL_READY;
        return false;
}

Test(reload, what_is_wrong_with_a_configuration_is_the_answer)
{
        struct starling_error error = {""};

        add_file("1", "model.onnx");
        start();
        world_add_model_config(&world, "own", "instances: many\n");
        cr_expect_eq(starling_admin_reload(admin, "own", &error), -EINVAL, "%s", error.text);
        cr_expect_not_null(strstr(error.text, "own/config.yaml:1: instances: "), "%s", error.text);
        cr_expect_not_null(strstr(error.text, "many"), "%s", error.text);
}

Test(reload, a_model_serves_on_when_its_configuration_breaks)
{
        add_file("1", "model.onnx");
        add_file("2", "model.onnx");
        world_add_model_config(&world, "own", "version_policy: {all: true}\n");
        start();
        world_add_model_config(&world, "own", "no: such key\n");
        kill(world.pid, SIGHUP);
        world_expect_log(&world, "own/config.yaml:1: no: unknown key");
        cr_expect_eq(starling_admin_reload(admin, "mlp", NULL), 0); /* after the hangup signal */
        cr_expect(is_ready("own"), "%s", world_log(&world));
        cr_expect(is_ready("own:1"), "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "event=model-unloaded"), 0, "%s", world_log(&world));
}

Test(reload, versions_come_and_go_with_the_policy)
{
        struct starling_error error = {""};

        add_file("1", "model.onnx");
        add_file("2", "model.onnx");
        start();
        cr_assert_not(is_ready("own:1"));
        world_add_model_config(&world, "own", "version_policy: {all: true}\n");
        cr_assert_eq(starling_admin_reload(admin, "own", &error), 0, "%s", error.text);
        cr_expect(is_ready("own:1"), "it has come along with the answer:\n%s", world_log(&world));
        cr_expect(is_ready("own:2"));
        world_add_model_config(&world, "own", "version_policy: {latest: 1}\n");
        cr_assert_eq(starling_admin_reload(admin, "own", &error), 0, "%s", error.text);
        cr_expect_not(is_ready("own:1"));
        cr_expect(is_ready("own"));
}

Test(reload, a_version_that_the_policy_names_and_that_is_not_there_is_reported)
{
        add_file("1", "model.onnx");
        world_add_model_config(&world, "own", "version_policy: {specific: [1, 9]}\n");
        start();
        cr_expect(is_ready("own"));
        cr_expect_not_null(
                strstr(world_log(&world), "own: version_policy names version 9, which is not there"), "%s", world_log(&world));
}

Test(reload, a_changed_file_beside_the_model_makes_it_another)
{
        add_file("1", "model.onnx");
        add_file("1/tensors", "weights.bin");
        start();
        kill(world.pid, SIGHUP);
        cr_assert_eq(starling_admin_reload(admin, "mlp", NULL), 0);
        cr_assert_eq(world_count_log(&world, "event=model-replaced model=own"), 0, "%s", world_log(&world));
        add_file("1/tensors", "weights.bin");
        kill(world.pid, SIGHUP);
        world_expect_log(&world, "event=model-replaced model=own");
}

Test(reload, who_reads_the_catalogue_leaves_no_line_in_the_log)
{
        start();
        starling_close(world_connect(&world, STARLING_ROLE_READER));
        starling_close(world_connect(&world, STARLING_ROLE_CLIENT));
        world_expect_log(&world, "event=client-detached client=3");
        cr_expect_eq(world_count_log(&world, "event=client-attached client=2"), 0, "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "event=client-detached client=2"), 0, "%s", world_log(&world));
}

Test(reload, a_configuration_of_triton_is_mentioned_once)
{
        char path[192];
        FILE *file;

        add_file("1", "model.onnx");
        snprintf(path, sizeof(path), "%s/own/config.pbtxt", world.repository);
        file = fopen(path, "w");
        cr_assert_not_null(file);
        fputs("max_batch_size: 8\n", file);
        fclose(file);
        start();
        kill(world.pid, SIGHUP);
        cr_assert_eq(starling_admin_reload(admin, "mlp", NULL), 0);
        cr_expect_eq(world_count_log(&world, "event=triton-configuration models=1"), 1, "%s", world_log(&world));
        cr_expect_eq(world_count_log(&world, "event=triton-configuration"), 1, "%s", world_log(&world));
}
