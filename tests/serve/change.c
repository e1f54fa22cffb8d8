/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is served changes while it is served: members that come back, askers who meet, hangups one after the other. A runtime in
 * this process with the digits networks.
 */
#include "builder.h"
#include "gate.h"
#include "service.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NO_MODEL DIGITS "/models/none/1/model.onnx"

static void expect_lines(struct service *service, const char *text, uint32_t n)
{
        SERVICE_AWAIT(service, service_count_logged(service, text) >= n);
}

/* The test's specs are read by the runtime at the next scan. */
static void set_path(struct service *service, uint32_t spec, const char *path)
{
        pthread_mutex_lock(&service->specs_lock);
        service->specs[spec].path = path;
        pthread_mutex_unlock(&service->specs_lock);
}

static void set_count(struct service *service, uint32_t n)
{
        pthread_mutex_lock(&service->specs_lock);
        service->n_specs = n;
        pthread_mutex_unlock(&service->specs_lock);
}

static void check(struct service *service, const char *model, const char *expected)
{
        struct starling_client *client = service_connect(service, STARLING_ROLE_CLIENT);
        struct starling_queue *queue;
        struct starling_model *handle;
        struct digits digits;

        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        cr_assert_eq(starling_model_open(client, model, &handle, NULL), 0, "%s", service->log);
        digits_load(&digits, client, expected);
        digits_check(&digits, queue, handle, 0, DIGITS_SAMPLES);
        digits_free(&digits);
        starling_close(client);
}

Test(change, an_ensemble_that_failed_for_want_of_a_member_comes_up_with_it, .timeout = 60)
{
        struct service service;
        struct starling_client *admin;
        const char *mlp;

        service_init(&service);
        mlp = service.specs[4].path;
        service.n_specs = 4;
        service_start(&service);
        admin = service_connect(&service, STARLING_ROLE_ADMIN);
        set_path(&service, 4, NO_MODEL);
        set_count(&service, 6);
        cr_assert_lt(starling_admin_load(admin, "digits", NULL), 0);
        set_path(&service, 4, mlp);
        cr_assert_eq(starling_admin_load(admin, "mlp", NULL), 0, "%s", service.log);
        service_expect_log(&service, "ensemble-ready");
        check(&service, "digits", "digits");
        starling_close(admin);
        service_stop(&service);
}

Test(change, a_hangup_while_models_load_has_nothing_to_say_of_those_that_load, .timeout = 60)
{
        struct service service;

        service_init(&service);
        service_start(&service);
        check(&service, "digits", "digits");
        service_touch(&service);
        service_reload(&service);
        expect_lines(&service, "model-replaced", 1);
        service_reload(&service);
        expect_lines(&service, "model-replaced", 5);
        cr_expect_eq(service_count_logged(&service, "model-not-loaded"), 0, "%s", service.log);
        service_stop(&service);
}

struct asker {
        struct service *service;
        const char *model;
        int result;
        pthread_t thread;
};

static void *ask(void *argument)
{
        struct asker *asker = argument;
        struct starling_client *admin = service_connect(asker->service, STARLING_ROLE_ADMIN);

        asker->result = starling_admin_reload(admin, asker->model, NULL);
        starling_close(admin);
        return NULL;
}

/* One model is compiled at a time: those who ask for the next meet while it waits. */
Test(change, whoever_asks_for_a_reload_is_answered, .timeout = 60)
{
        static const char *const models[6] = {"resnet", "densenet", "mlp", "mlp", "mlp", "mlp"};
        struct service service;
        struct asker askers[6];

        service_init(&service);
        service_start(&service);
        check(&service, "digits", "digits");
        for (int i = 0; i < 6; i++) {
                askers[i] = (struct asker){.service = &service, .model = models[i]};
                pthread_create(&askers[i].thread, NULL, ask, &askers[i]);
        }
        for (int i = 0; i < 6; i++) {
                pthread_join(askers[i].thread, NULL);
                cr_expect(askers[i].result == 0 || askers[i].result == -EBUSY, "%s: %d", models[i], askers[i].result);
        }
        check(&service, "digits", "digits");
        service_stop(&service);
}

static void copy_file(const char *from, const char *to)
{
        char command[1024];

        snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
        cr_assert_eq(system(command), 0);
}

/* "lenet" and "lenet:1" are one file, loaded once. */
Test(change, a_forced_reload_loads_again_what_also_serves_under_another_name, .timeout = 60)
{
        struct service service;
        struct starling_client *admin;
        char path[128];

        service_init(&service);
        snprintf(path, sizeof(path), "%s/model.onnx", service.directory);
        copy_file(service.specs[0].path, path);
        service.specs[0].path = service.specs[1].path = path;
        service.specs[1].name = "lenet:1";
        service.n_specs = 2;
        service_start(&service);
        check(&service, "lenet", "lenet");
        check(&service, "lenet:1", "lenet");
        copy_file(DIGITS "/models/mlp/1/model.onnx", path);
        admin = service_connect(&service, STARLING_ROLE_ADMIN);
        cr_assert_eq(starling_admin_reload(admin, "lenet", NULL), 0);
        check(&service, "lenet", "mlp");
        check(&service, "lenet:1", "lenet");
        starling_close(admin);
        unlink(path);
        service_stop(&service);
}

/* Threads of this process with this name; the CPUs of one of them. */
static uint32_t find_threads(const char *name, cpu_set_t *ret_cpus)
{
        DIR *tasks = opendir("/proc/self/task");
        uint32_t n = 0;

        cr_assert_not_null(tasks);
        for (struct dirent *task; (task = readdir(tasks));) {
                char path[300], comm[32] = "";
                snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
                FILE *file = fopen(path, "re");

                if (file && fscanf(file, "%31s", comm) == 1 && strcmp(comm, name) == 0)
                        n += sched_getaffinity(atoi(task->d_name), sizeof(*ret_cpus), ret_cpus) == 0;
                if (file)
                        fclose(file);
        }
        closedir(tasks);
        return n;
}

/* The replaced model's thread ends when nothing of it is in flight. */
static void find_thread(struct service *service, const char *name, cpu_set_t *ret_cpus)
{
        SERVICE_AWAIT(service, find_threads(name, ret_cpus) == 1);
}

/* The first two CPUs that this process may use; false when it has but one. */
static bool two_cpus(cpu_set_t *ret_cpus)
{
        cpu_set_t mine;

        CPU_ZERO(ret_cpus);
        cr_assert_eq(sched_getaffinity(0, sizeof(mine), &mine), 0);
        for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(ret_cpus) < 2; cpu++)
                if (CPU_ISSET(cpu, &mine))
                        CPU_SET(cpu, ret_cpus);
        return CPU_COUNT(ret_cpus) == 2;
}

Test(change, a_model_that_is_loaded_again_does_not_move_in_with_another, .timeout = 60)
{
        struct service service;
        struct starling_client *admin;
        cpu_set_t lenet, resnet, both;

        service_init(&service);
        bool enough = two_cpus(&service.options.worker_cpus);
        service.n_specs = 2;
        service_start(&service);
        admin = service_connect(&service, STARLING_ROLE_ADMIN);
        for (int i = 0; i < 4 && enough; i++) {
                cr_assert_eq(starling_admin_reload(admin, "lenet", NULL), 0);
                find_thread(&service, "sl-lenet-0", &lenet);
                find_thread(&service, "sl-resnet-0", &resnet);
                CPU_AND(&both, &lenet, &resnet);
                cr_expect_eq(CPU_COUNT(&both), 0, "after reload %d both are on one CPU", i);
        }
        starling_close(admin);
        service_stop(&service);
}

/* Takes the images as the networks do, and gives them back doubled. */
static void write_other_ports(const char *path)
{
        struct builder *b = builder_new(13);
        size_t n_bytes;
        const uint8_t *bytes;
        FILE *file = fopen(path, "wb");

        builder_input(b, "x", SL_DTYPE_F32, DIMS(-1, 1, 8, 8));
        builder_node(b, "Add", "x,x", "y");
        builder_output(b, "y");
        bytes = builder_pack(b, &n_bytes);
        cr_assert(file && fwrite(bytes, 1, n_bytes, file) == n_bytes);
        fclose(file);
        builder_free(b);
}

/* A client whose handle was opened before the changes. */
struct opener {
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *model;
        struct digits digits;
};

static void opener_init(struct opener *opener, struct service *service, const char *model)
{
        opener->client = service_connect(service, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(opener->client, &opener->queue, NULL), 0);
        cr_assert_eq(starling_model_open(opener->client, model, &opener->model, NULL), 0, "%s", service->log);
        digits_load(&opener->digits, opener->client, "mlp");
}

static void opener_deinit(struct opener *opener)
{
        digits_free(&opener->digits);
        starling_close(opener->client);
}

static int opener_infer(struct opener *opener)
{
        struct starling_tensor input, output;
        struct starling_request request = digits_request(&opener->digits, opener->model, 0, 8, &input, &output);

        return starling_infer(opener->queue, &request, NULL);
}

/* The dispatcher hears of a change a little later than who asked for it: until then the old model answers. */
static void expect_stale(struct opener *opener)
{
        uint64_t end_ns = starling_clock_ns() + SERVICE_LIMIT_NS;
        int r = 0;

        while (r == 0 && starling_clock_ns() < end_ns)
                r = opener_infer(opener);
        cr_expect_eq(r, -ESTALE, "%s", starling_strerror(r));
}

/* A request says which generation of a model it was made for: what it was checked against is what it runs on. */
Test(change, a_handle_is_stale_once_ports_have_changed_and_only_then, .timeout = 60)
{
        struct service service;
        struct starling_client *admin;
        struct opener opener;
        char path[128];

        service_init(&service);
        snprintf(path, sizeof(path), "%s/model.onnx", service.directory);
        copy_file(service.specs[0].path, path);
        service.specs[0].path = path;
        service.n_specs = 1;
        service_start(&service);
        admin = service_connect(&service, STARLING_ROLE_ADMIN);
        opener_init(&opener, &service, "lenet");
        copy_file(DIGITS "/models/mlp/1/model.onnx", path);
        cr_assert_eq(starling_admin_reload(admin, "lenet", NULL), 0);
        for (int i = 0; i < 100; i++)
                cr_assert_eq(opener_infer(&opener), 0, "its ports are the same");
        write_other_ports(path);
        cr_assert_eq(starling_admin_reload(admin, "lenet", NULL), 0, "%s", service.log);
        expect_stale(&opener);
        copy_file(DIGITS "/models/mlp/1/model.onnx", path);
        cr_assert_eq(starling_admin_reload(admin, "lenet", NULL), 0);
        cr_expect_eq(opener_infer(&opener), -ESTALE, "what comes back is another generation");
        opener_deinit(&opener);
        starling_close(admin);
        unlink(path);
        service_stop(&service);
}

Test(change, a_handle_is_stale_once_its_model_was_unloaded_though_another_has_its_place, .timeout = 60)
{
        struct service service;
        struct starling_client *admin;
        struct opener opener;

        service_init(&service);
        service.n_specs = 1;
        service_start(&service);
        admin = service_connect(&service, STARLING_ROLE_ADMIN);
        opener_init(&opener, &service, "lenet");
        cr_assert_eq(starling_admin_unload(admin, "lenet", NULL), 0);
        expect_stale(&opener);
        cr_assert_eq(starling_admin_load(admin, "lenet", NULL), 0, "%s", service.log);
        cr_expect_eq(opener_infer(&opener), -ESTALE);
        check(&service, "lenet", "lenet");
        opener_deinit(&opener);
        starling_close(admin);
        service_stop(&service);
}

struct unloader {
        struct starling_client *admin;
        const char *model;
        int result;
        pthread_t thread;
};

static void *unload(void *argument)
{
        struct unloader *unloader = argument;

        unloader->result = starling_admin_unload(unloader->admin, unloader->model, NULL);
        return NULL;
}

static bool drains(struct starling_client *client, const char *model)
{
        struct starling_model_entry entries[SERVICE_MODELS_MAX];
        int n = starling_model_list(client, entries, SERVICE_MODELS_MAX);

        for (int k = 0; k < n; k++)
                if (strcmp(entries[k].name, model) == 0 && entries[k].state == STARLING_MODEL_DRAINING)
                        return true;
        return false;
}

/* The member drains for as long as a request is in flight for it. */
Test(change, an_ensemble_is_not_built_upon_a_member_that_drains, .timeout = 60)
{
        struct starling_tensor input, output;
        struct starling_error error = {""};
        struct starling_request request;
        struct starling_completion done;
        struct starling_client *admin;
        struct service service;
        struct unloader unloader = {.model = "densenet"};
        struct opener opener;

        service_init(&service);
        service.options.inline_ns = 0;
        service.n_specs = 5;
        service_start(&service);
        admin = service_connect(&service, STARLING_ROLE_ADMIN);
        unloader.admin = service_connect(&service, STARLING_ROLE_ADMIN);
        set_count(&service, 6);
        opener_init(&opener, &service, unloader.model);
        gate_shut();
        request = digits_request(&opener.digits, opener.model, 0, 8, &input, &output);
        cr_assert_eq(starling_submit(opener.queue, &request, NULL), 0);
        cr_assert_eq(starling_infer(opener.queue, &(struct starling_request){.flags = STARLING_NOOP}, NULL), 0, "it is taken now");
        pthread_create(&unloader.thread, NULL, unload, &unloader);
        SERVICE_AWAIT(&service, drains(opener.client, unloader.model));
        cr_expect_lt(starling_admin_load(admin, "digits", &error), 0);
        cr_expect_not_null(strstr(error.text, "\"densenet\" is not loaded"), "%s", error.text);
        gate_open();
        cr_assert_eq(starling_wait(opener.queue, &done, 1, SERVICE_LIMIT_NS), 1);
        cr_expect_eq(done.status, 0);
        pthread_join(unloader.thread, NULL);
        cr_expect_eq(unloader.result, 0);
        opener_deinit(&opener);
        starling_close(unloader.admin);
        starling_close(admin);
        service_stop(&service);
}
