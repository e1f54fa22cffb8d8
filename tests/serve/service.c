/* SPDX-License-Identifier: Apache-2.0 */
#include "service.h"

#include "base/clock.h"
#include "base/error.h"
#include "dead_pages.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const char *const networks[5] = {"lenet", "resnet", "densenet", "mobilenet", "mlp"};

static int scan(void *context, const struct sl_model_spec **ret_specs, uint32_t *ret_n, struct sl_error *error)
{
        struct service *service = context;

        (void)error;
        pthread_mutex_lock(&service->specs_lock);
        memcpy(service->served, service->specs, sizeof(service->served));
        *ret_specs = service->served;
        *ret_n = service->n_specs;
        pthread_mutex_unlock(&service->specs_lock);
        return 0;
}

static void keep_log(void *context, int level, const char *event, const char *fields)
{
        struct service *service = context;

        pthread_mutex_lock(&service->log_lock);
        size_t used = strlen(service->log);
        snprintf(service->log + used, sizeof(service->log) - used, "%d %s %s\n", level, event, fields);
        pthread_mutex_unlock(&service->log_lock);
}

void service_init(struct service *service)
{
        static const char *const paths[5] = {DIGITS "/models/lenet/1/model.onnx", DIGITS "/models/resnet/1/model.onnx",
                DIGITS "/models/densenet/1/model.onnx", DIGITS "/models/mobilenet/1/model.onnx", DIGITS "/models/mlp/1/model.onnx"};
        struct sl_model_spec common = {.version = 1,
                .workers = {.n = 1},
                .worker = {.threads = 1},
                .segment_samples = 128,
                .slice_ns = 10 * SL_NS_PER_MS,
                .samples_max = 1 << 20,
                .queue_requests = 1024};

        sl_lower_options_init(&common.lowering);

        memset(service, 0, sizeof(*service));
        pthread_mutex_init(&service->log_lock, NULL);
        pthread_mutex_init(&service->specs_lock, NULL);
        dead_pages_remove("starling-test-");
        strcpy(service->directory, "/tmp/starling-test-XXXXXX");
        cr_assert_not_null(mkdtemp(service->directory));
        snprintf(service->socket_path, sizeof(service->socket_path), "%s/s.sock", service->directory);
        for (int i = 0; i < 5; i++) {
                service->specs[i] = common;
                service->specs[i].name = networks[i];
                service->specs[i].path = paths[i];
        }
        service->specs[5] = common;
        service->specs[5].name = "digits";
        service->specs[5].members = networks;
        service->specs[5].n_members = 5;
        service->specs[5].rule = SL_RULE_MEAN;
        service->n_specs = 6;
        sl_runtime_options_init(&service->options);
        service->options.name = service->directory + strlen("/tmp/");
        service->options.socket_path = service->socket_path;
        service->options.compile_program = COMPILE_CHILD;
        service->options.scan = scan;
        service->options.log = keep_log;
        service->options.context = service;
        service->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        service->reload_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void service_keep(struct service *service, const char *names)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < 5; i++)
                if (strstr(names, networks[i])) /* none is a part of another's name */
                        service->specs[n++] = service->specs[i];
        service->n_specs = n;
}

static void handle_stop(void *context)
{
        struct service *service = context;
        uint64_t count;

        if (read(service->stop_fd, &count, sizeof(count)) > 0)
                sl_runtime_stop(service->runtime);
}

static void handle_reload(void *context)
{
        struct service *service = context;
        uint64_t count;

        if (read(service->reload_fd, &count, sizeof(count)) > 0)
                sl_runtime_reload(service->runtime);
}

static void *run(void *argument)
{
        struct service *service = argument;
        struct sl_error error;
        uint32_t failed;

        cr_assert_eq(sl_runtime_new(&service->options, &service->runtime, &error), 0, "%s", error.text);
        cr_assert_eq(sl_runtime_watch(service->runtime, service->stop_fd, handle_stop, service), 0);
        cr_assert_eq(sl_runtime_watch(service->runtime, service->reload_fd, handle_reload, service), 0);
        cr_assert_eq(sl_runtime_load_all(service->runtime, &failed, &error), 0, "%s", error.text);
        cr_assert_eq(failed, 0, "%s", service->log);
        cr_assert_eq(sl_runtime_listen(service->runtime, &error), 0, "%s", error.text);
        sl_runtime_run(service->runtime);
        service->runtime = sl_runtime_free(service->runtime);
        return NULL;
}

/* A client waits for a runtime that is starting. */
void service_start(struct service *service)
{
        pthread_create(&service->thread, NULL, run, service);
}

static void ring(int fd)
{
        uint64_t one = 1;

        cr_assert_eq(write(fd, &one, sizeof(one)), sizeof(one));
}

void service_ask_to_stop(struct service *service)
{
        ring(service->stop_fd);
}

void service_join(struct service *service)
{
        pthread_join(service->thread, NULL);
        close(service->stop_fd);
        close(service->reload_fd);
        cr_assert_neq(access(service->socket_path, F_OK), 0, "the socket is left behind");
        cr_assert_eq(rmdir(service->directory), 0);
}

void service_stop(struct service *service)
{
        service_ask_to_stop(service);
        service_join(service);
}

void service_touch(struct service *service)
{
        pthread_mutex_lock(&service->specs_lock);
        for (uint32_t i = 0; i < service->n_specs; i++)
                if (service->specs[i].path)
                        service->specs[i].stamp++;
        pthread_mutex_unlock(&service->specs_lock);
}

void service_reload(struct service *service)
{
        ring(service->reload_fd);
}

bool service_has_logged(struct service *service, const char *text)
{
        return service_count_logged(service, text) > 0;
}

uint32_t service_count_logged(struct service *service, const char *text)
{
        uint32_t n = 0;

        pthread_mutex_lock(&service->log_lock);
        for (const char *at = service->log; (at = strstr(at, text)); at += strlen(text))
                n++;
        pthread_mutex_unlock(&service->log_lock);
        return n;
}

void service_expect_log(struct service *service, const char *text)
{
        uint64_t end_ns = starling_clock_ns() + SERVICE_LIMIT_NS;

        for (; !service_has_logged(service, text); usleep(10000))
                cr_assert_lt(starling_clock_ns(), end_ns, "no \"%s\" in the log:\n%s", text, service->log);
}

struct starling_client *service_connect(struct service *service, enum starling_role role)
{
        struct starling_options options = {.runtime = service->socket_path, .role = role, .timeout_ns = SERVICE_LIMIT_NS};
        struct starling_client *client;
        struct starling_error error;

        cr_assert_eq(starling_connect(&options, &client, &error), 0, "%s\n%s", error.text, service->log);
        return client;
}

static void read_floats(const char *path, float *to, size_t n)
{
        FILE *file = fopen(path, "rb");

        cr_assert_not_null(file, "%s", path);
        cr_assert_eq(fread(to, sizeof(float), n, file), n, "%s is too short", path);
        fclose(file);
}

void digits_load(struct digits *digits, struct starling_client *client, const char *model)
{
        char path[512];

        cr_assert_eq(starling_tensor_alloc(client, STARLING_F32, 4, (uint32_t[]){DIGITS_SAMPLES, 1, 8, 8}, &digits->images), 0);
        cr_assert_eq(starling_tensor_alloc(
                             client, STARLING_F32, 2, (uint32_t[]){DIGITS_SAMPLES, DIGITS_CLASSES}, &digits->probabilities),
                0);
        digits->expected = malloc(DIGITS_SAMPLES * DIGITS_CLASSES * sizeof(float));
        read_floats(DIGITS "/test-images.f32", digits->images.data, DIGITS_SAMPLES * DIGITS_PIXELS);
        snprintf(path, sizeof(path), DIGITS "/expected/%s.f32", model);
        read_floats(path, digits->expected, DIGITS_SAMPLES * DIGITS_CLASSES);
}

void digits_free(struct digits *digits)
{
        free(digits->expected);
}

struct starling_request digits_request(struct digits *digits, struct starling_model *model, uint32_t start, uint32_t n,
        struct starling_tensor *ret_input, struct starling_tensor *ret_output)
{
        uint32_t at = start / 8 * 8; /* 8 rows of 10 floats are 5 lines: outputs begin on a line */

        *ret_input = digits->images;
        ret_input->data = (float *)digits->images.data + (size_t)start * DIGITS_PIXELS;
        ret_input->bytes = (uint64_t)n * DIGITS_PIXELS * sizeof(float);
        ret_input->dims[0] = n;
        *ret_output = digits->probabilities;
        ret_output->data = (float *)digits->probabilities.data + (size_t)at * DIGITS_CLASSES;
        ret_output->bytes = (uint64_t)n * DIGITS_CLASSES * sizeof(float);
        ret_output->dims[0] = n;
        return (struct starling_request){.model = model, .inputs = ret_input, .n_inputs = 1, .outputs = ret_output, .n_outputs = 1};
}

void digits_check(struct digits *digits, struct starling_queue *queue, struct starling_model *model, uint32_t start, uint32_t n)
{
        struct starling_tensor input, output;
        struct starling_request request = digits_request(digits, model, start, n, &input, &output);
        struct starling_completion completion;
        int r = starling_infer(queue, &request, &completion);

        cr_assert_eq(r, 0, "%s: %s", starling_strerror(r), starling_queue_error(queue));
        cr_assert_eq(completion.n_outputs, 1);
        cr_assert_eq(completion.outputs[0].dims[0], n);
        cr_assert_eq(completion.outputs[0].dims[1], DIGITS_CLASSES);
        const float *got = output.data, *wanted = digits->expected + (size_t)start * DIGITS_CLASSES;
        for (uint32_t i = 0; i < n * DIGITS_CLASSES; i++)
                cr_assert_float_eq(
                        got[i], wanted[i], 1e-5, "samples %u+%u, element %u: %g, expected %g", start, n, i, got[i], wanted[i]);
}
