/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A repository that changes while it is served: what a reload says, what comes along, and what stays as it was.
 */
#include "builder.h"
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

static void start_with_all(void)
{
        world_start(&world);
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
}

static void start(void)
{
        world_keep(&world, "mlp");
        start_with_all();
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

/* y [N, 4] = Relu(x [N, 4]), as exporters write it: the batch is open, and the output is declared. */
static struct builder *relu(int64_t opset)
{
        struct builder *b = builder_new(opset);

        builder_input(b, "x", STARLING_F32, DIMS(-1, 4));
        builder_node(b, "Relu", "x", "h");
        builder_declare_output(b, "y", STARLING_F32, DIMS(-1, 4));
        return b;
}

static struct builder *served(void)
{
        struct builder *b = relu(17);

        builder_node(b, "Relu", "h", "y");
        return b;
}

static struct builder *of_an_operator(void)
{
        struct builder *b = relu(17);

        builder_node(b, "Unheard", "h", "y");
        return b;
}

static struct builder *of_a_domain(void)
{
        struct builder *b = relu(17);

        builder_node(b, "Relu", "h", "y")->domain = (char *)"com.example";
        return b;
}

static struct builder *of_an_opset(void)
{
        struct builder *b = relu(99);

        builder_node(b, "Relu", "h", "y");
        return b;
}

static struct builder *of_another_dimension(void)
{
        struct builder *b = builder_new(17);

        builder_input(b, "x", STARLING_F32, DIMS(-1, -2));
        builder_node(b, "Unheard", "x", "y");
        builder_declare_output(b, "y", STARLING_F32, DIMS(-1, -2));
        return b;
}

static struct builder *of_a_function(void)
{
        struct builder *b = relu(17);
        Onnx__FunctionProto *function = builder_alloc(b, sizeof(*function));

        onnx__function_proto__init(function);
        function->name = (char *)"Twice";
        function->domain = (char *)"local";
        b->model.functions = builder_alloc(b, sizeof(void *));
        b->model.functions[0] = function;
        b->model.n_functions = 1;
        builder_node(b, "Twice", "h", "y")->domain = (char *)"local";
        return b;
}

static const struct {
        const char *name;
        struct builder *(*make)(void);
        const char *cause;
} unsupported[] = {
        {"operator", of_an_operator, "node \"y\": operator Unheard of domain ai.onnx, opset 17: the operator is not supported"},
        {"domain", of_a_domain, "node \"y\": operator Relu of domain com.example, opset 17: the domain is not supported"},
        {"opset", of_an_opset, "opset 99 of domain ai.onnx, supported are 1 to "},
        {"function", of_a_function, "function"},
        {"dimension", of_another_dimension,
                "node \"y\": operator Unheard of domain ai.onnx, opset 17: the operator is not supported"},
};
#define N_UNSUPPORTED (sizeof(unsupported) / sizeof(*unsupported))

/* In the place of what was there, with the folders that lead to it. */
static void write_model(const char *path, struct builder *b)
{
        char command[512];
        const uint8_t *bytes;
        size_t n_bytes;
        FILE *file;

        bytes = builder_pack(b, &n_bytes);
        snprintf(command, sizeof(command), "mkdir -p \"$(dirname '%s')\" && rm -f '%s'", path, path);
        cr_assert_eq(system(command), 0);
        file = fopen(path, "wb");
        cr_assert_not_null(file);
        cr_assert_eq(fwrite(bytes, n_bytes, 1, file), 1);
        fclose(file);
        builder_free(b);
}

static void add_version(const char *name, const char *version, struct builder *b)
{
        char path[256];

        snprintf(path, sizeof(path), "%s/%s/%s/model.onnx", world.repository, name, version);
        write_model(path, b);
}

static void expect_serves(const char *name)
{
        static const float x[4] = {-1, 2, -3, 4}, y[4] = {0, 2, 0, 4};
        struct starling_client *client = world_connect(&world, STARLING_ROLE_CLIENT);
        struct starling_tensor in, out;
        struct starling_request request = {.inputs = &in, .outputs = &out, .n_inputs = 1, .n_outputs = 1};
        struct starling_completion done = {0};
        struct starling_queue *queue;
        struct starling_error error = {""};

        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        cr_assert_eq(starling_model_open(client, name, (struct starling_model **)&request.model, &error), 0, "%s", error.text);
        cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, 2, (uint32_t[]){1, 4}, &in), 0);
        cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, 2, (uint32_t[]){1, 4}, &out), 0);
        memcpy(in.data, x, sizeof(x));
        cr_expect_eq(starling_infer(queue, &request, &done), 0, "%s: %s", name, starling_queue_error(queue));
        cr_expect_arr_eq(out.data, y, sizeof(y));
        starling_close(client);
}

Test(reload, a_version_that_is_not_supported_is_refused_and_the_one_before_it_serves_on)
{
        char line[128];

        for (size_t i = 0; i < N_UNSUPPORTED; i++)
                add_version(unsupported[i].name, "1", served());
        start();
        for (size_t i = 0; i < N_UNSUPPORTED; i++) {
                struct starling_error error = {""};

                add_version(unsupported[i].name, "2", unsupported[i].make());
                cr_expect_eq(starling_admin_reload(admin, unsupported[i].name, &error), -EIO, "%s", error.text);
                cr_expect_not_null(
                        strstr(error.text, unsupported[i].cause), "\"%s\" is not in \"%s\"", unsupported[i].cause, error.text);
                expect_serves(unsupported[i].name);
        }
        kill(world.pid, SIGHUP);
        cr_assert_eq(starling_admin_reload(admin, "mlp", NULL), 0); /* after the hangup signal */
        for (size_t i = 0; i < N_UNSUPPORTED; i++) {
                snprintf(line, sizeof(line), "event=model-not-replaced model=%s version=2 ", unsupported[i].name);
                world_expect_log(&world, line);
                snprintf(line, sizeof(line), "event=model-replaced model=%s ", unsupported[i].name);
                cr_expect_eq(world_count_log(&world, line), 0, "%s", world_log(&world));
                expect_serves(unsupported[i].name);
        }
}

Test(reload, a_model_that_is_not_supported_is_counted_and_says_why_when_it_is_opened)
{
        for (size_t i = 0; i < N_UNSUPPORTED; i++)
                add_version(unsupported[i].name, "1", unsupported[i].make());
        add_version("served", "1", served());
        start();
        world_expect_log(&world, "event=ready failed_models=5");
        expect_serves("served");
        for (size_t i = 0; i < N_UNSUPPORTED; i++) {
                struct starling_model *model;
                struct starling_error error = {""};

                cr_expect_eq(starling_model_open(admin, unsupported[i].name, &model, &error), -EIO);
                cr_expect_not_null(
                        strstr(error.text, unsupported[i].cause), "\"%s\" is not in \"%s\"", unsupported[i].cause, error.text);
        }
}

/* Links to a file of which nothing is read, as nobody asks for them. */
static void add_unread_models(uint32_t n)
{
        char path[192], name[192];
        FILE *file;

        snprintf(path, sizeof(path), "%s/unread-0000.onnx", world.repository);
        file = fopen(path, "w");
        cr_assert_not_null(file);
        fclose(file);
        for (uint32_t i = 1; i < n; i++) {
                snprintf(name, sizeof(name), "%s/unread-%04u.onnx", world.repository, i);
                cr_assert_eq(link(path, name), 0);
        }
}

/* All in the order of their names, but the ensemble, which is the last. */
Test(reload, names_beyond_those_that_a_runtime_has_are_counted_and_named)
{
        add_unread_models(4140);
        world_configure(&world, "model_defaults: {load: on_request}\n");
        start_with_all();
        world_expect_log(&world, "event=ready failed_models=50");
        world_expect_log(&world, "event=models-left-out models=50 limit=4096 ");
        world_expect_log(&world, "names=\"unread-4091, unread-4092, ");
        cr_expect_not_null(strstr(world_log(&world), ", unread-4139, digits\""), "%s", world_log(&world));
        cr_expect_eq(starling_model_list(admin, NULL, 0), 4096);
        kill(world.pid, SIGHUP);
        cr_assert_eq(starling_admin_reload(admin, "densenet", NULL), 0);
        WORLD_AWAIT(world_count_log(&world, "event=models-left-out models=50 limit=4096 ") > 1);
        cr_expect_eq(world_count_log(&world, "event=models-left-out models=50 limit=4096 "), 2, "%s", world_log(&world));
        cr_expect(is_ready("densenet"));
}

/* ---- repositories of other layouts ---- */

static const struct {
        const char *name, *path, *repository; /* within the world's folder; NULL: the repository of the world */
} layouts[] = {
        {"file", "alone/file.onnx", "alone/file.onnx"},
        {"flat", "folder/flat.onnx", "folder"},
        {"own", "apart/own/3/model.onnx", "apart/own"},
        {"named", "models/named/1/net.onnx", NULL},
        {"unversioned", "models/unversioned/net.onnx", NULL},
};
#define N_LAYOUTS (sizeof(layouts) / sizeof(*layouts))

static void write_layout(size_t i, struct builder *b)
{
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", world.folder, layouts[i].path);
        write_model(path, b);
}

static void start_layouts(void)
{
        static char paths[N_LAYOUTS][192];
        uint32_t n = 0;

        for (size_t i = 0; i < N_LAYOUTS; i++) {
                write_layout(i, served());
                if (!layouts[i].repository)
                        continue;
                snprintf(paths[n], sizeof(paths[n]), "%s/%s", world.folder, layouts[i].repository);
                world.arguments[n] = paths[n];
                n++;
        }
        start();
}

static void expect_log_of(const char *event, const char *name)
{
        char line[128];

        snprintf(line, sizeof(line), "event=%s model=%s version=", event, name);
        world_expect_log(&world, line);
}

Test(reload, acts_on_repositories_of_every_layout_alike)
{
        struct starling_error error = {""};

        start_layouts();
        for (size_t i = 0; i < N_LAYOUTS; i++) {
                expect_serves(layouts[i].name);
                write_layout(i, served());
        }
        kill(world.pid, SIGHUP);
        for (size_t i = 0; i < N_LAYOUTS; i++) {
                const char *name = layouts[i].name;

                expect_log_of("model-replaced", name);
                write_layout(i, of_an_operator());
                cr_expect_eq(starling_admin_reload(admin, name, &error), -EIO, "%s", error.text);
                expect_serves(name);
                cr_expect_eq(starling_admin_unload(admin, name, &error), 0, "%s", error.text);
                cr_expect_not(is_ready(name));
                write_layout(i, served());
                cr_expect_eq(starling_admin_load(admin, name, &error), 0, "%s", error.text);
                expect_serves(name);
        }
        cr_expect_eq(world_count_log(&world, "event=model-left-out"), 0, "%s", world_log(&world));
}

/* ---- sizes that no load tries ---- */

/* y [2, 2] = x [2, M, 3] as rows of 77 times 3, by a matrix of so many rows. */
static struct builder *of_rows_of(int64_t size)
{
        struct builder *b = builder_new(13);

        builder_input(b, "x", STARLING_F32, DIMS(2, -2, 3));
        builder_ints(b, "shape", DIMS(2), (int64_t[]){-1, 3 * size});
        builder_random(b, "w", DIMS(3 * size, 2));
        builder_node(b, "Reshape", "x,shape", "rows");
        builder_node(b, "MatMul", "rows,w", "y");
        builder_declare_output(b, "y", STARLING_F32, DIMS(2, 2));
        return b;
}

static int infer_77(void)
{
        struct starling_client *client = world_connect(&world, STARLING_ROLE_CLIENT);
        struct starling_tensor in, out;
        struct starling_request request = {.inputs = &in, .outputs = &out, .n_inputs = 1, .n_outputs = 1};
        struct starling_completion done = {0};
        struct starling_queue *queue;
        int status;

        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        cr_assert_eq(starling_model_open(client, "rows", (struct starling_model **)&request.model, NULL), 0);
        cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, 3, (uint32_t[]){2, 77, 3}, &in), 0);
        cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, 2, (uint32_t[]){2, 2}, &out), 0);
        memset(in.data, 0, 2 * 77 * 3 * sizeof(float));
        status = starling_infer(queue, &request, &done);
        starling_close(client);
        return status;
}

/* What a load cannot find out by itself, those who ask have said. */
Test(reload, a_version_that_takes_none_of_the_sizes_asked_for_is_refused)
{
        struct starling_error error = {""};

        add_version("rows", "1", of_rows_of(77));
        start();
        cr_assert_eq(infer_77(), 0);
        add_version("rows", "2", of_rows_of(79));
        cr_expect_eq(starling_admin_reload(admin, "rows", &error), -EIO, "%s", error.text);
        cr_expect_not_null(
                strstr(error.text, "none of the sizes that are tried suits it, nor those that are prepared or were asked for: "),
                "%s", error.text);
        cr_expect_eq(infer_77(), 0);
        add_version("rows", "3", of_rows_of(77));
        cr_expect_eq(starling_admin_reload(admin, "rows", &error), 0, "%s", error.text);
        cr_expect_eq(infer_77(), 0);
}
