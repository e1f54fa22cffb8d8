/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models whose workers compute each batch with several cores, beside others, and changed while they serve. A runtime in this
 * process.
 */
#include "service.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MODELS 5

/* Threads of teams in this process. */
static uint32_t count_members(void)
{
        DIR *tasks = opendir("/proc/self/task");
        uint32_t n = 0;

        cr_assert_not_null(tasks);
        for (struct dirent *task; (task = readdir(tasks));) {
                char path[300], name[32] = "";
                FILE *file;

                snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
                file = fopen(path, "r");
                if (!file)
                        continue;
                n += fgets(name, sizeof(name), file) && !strcmp(name, "sl-team\n");
                fclose(file);
        }
        closedir(tasks);
        return n;
}

static uint32_t count_cores(void)
{
        cpu_set_t set;

        return sched_getaffinity(0, sizeof(set), &set) < 0 ? 0 : (uint32_t)CPU_COUNT(&set);
}

/* What can be cut is, however small. */
static void set_threads(struct service *service, uint32_t threads)
{
        pthread_mutex_lock(&service->specs_lock);
        for (uint32_t i = 0; i < MODELS; i++) {
                service->specs[i].worker.threads = threads;
                service->specs[i].lowering.core.barrier = 1e-9;
        }
        pthread_mutex_unlock(&service->specs_lock);
}

static void check_models(struct service *service)
{
        static const char *const names[] = {"lenet", "resnet", "densenet", "mobilenet", "mlp", "digits"};
        struct starling_client *client = service_connect(service, STARLING_ROLE_CLIENT);
        struct starling_queue *queue;

        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                struct starling_model *model;
                struct digits digits;

                cr_assert_eq(starling_model_open(client, names[i], &model, NULL), 0);
                digits_load(&digits, client, names[i]);
                for (uint32_t n = 1; n < 300; n = 3 * n + 1)
                        digits_check(&digits, queue, model, n % 64, n);
                digits_free(&digits);
        }
        starling_close(client);
}

Test(teams, of_all_cores_give_the_answers_of_one, .timeout = 60)
{
        struct service service;

        service_init(&service);
        service.options.inline_ns = 0;
        set_threads(&service, 0);
        service_start(&service);
        check_models(&service);
        SERVICE_AWAIT(&service, count_members() == MODELS * (count_cores() - 1));
        service_stop(&service);
        SERVICE_AWAIT(&service, count_members() == 0); /* the system shows a thread for a moment behind its end */
}

static const uint32_t samples[] = {1, 3, 32};
#define SIZES   (sizeof(samples) / sizeof(samples[0]))
#define ANSWERS (32 * DIGITS_CLASSES)

/* What a network answers for so many samples. */
static void infer_some(
        struct starling_queue *queue, struct starling_model *model, struct digits *digits, uint32_t n, float *ret_outputs)
{
        struct starling_tensor input, output;
        struct starling_completion completion;
        struct starling_request request = digits_request(digits, model, 0, n, &input, &output);

        cr_assert_eq(starling_infer(queue, &request, &completion), 0, "%s", starling_queue_error(queue));
        memcpy(ret_outputs, output.data, n * DIGITS_CLASSES * sizeof(float));
        for (uint32_t k = 0; k < n * DIGITS_CLASSES; k++)
                cr_assert_float_eq(ret_outputs[k], digits->expected[k], 0.1, "%u samples, value %u: %g, not %g", n, k,
                        ret_outputs[k], digits->expected[k]);
}

/* All networks for each number of samples, computed in bfloat16 by so many threads. */
static void compute_in_bfloat16(uint32_t threads, float ret_outputs[MODELS][SIZES][ANSWERS])
{
        struct starling_client *client;
        struct starling_queue *queue;
        struct service service;

        service_init(&service);
        service.options.inline_ns = 0;
        set_threads(&service, threads);
        for (uint32_t i = 0; i < MODELS; i++)
                service.specs[i].lowering.precision = SL_PRECISION_BF16;
        service_start(&service);
        client = service_connect(&service, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        for (uint32_t i = 0; i < MODELS; i++) {
                struct starling_model *model;
                struct digits digits;

                cr_assert_eq(starling_model_open(client, service.specs[i].name, &model, NULL), 0);
                digits_load(&digits, client, service.specs[i].name);
                for (size_t size = 0; size < SIZES; size++)
                        infer_some(queue, model, &digits, samples[size], ret_outputs[i][size]);
                digits_free(&digits);
        }
        SERVICE_AWAIT(&service, count_members() == (threads == 1 ? 0 : MODELS * (count_cores() - 1)));
        starling_close(client);
        service_stop(&service);
}

Test(teams, compute_the_bits_of_one_in_bfloat16, .timeout = 60)
{
        static float one[MODELS][SIZES][ANSWERS], team[MODELS][SIZES][ANSWERS];

        compute_in_bfloat16(1, one);
        compute_in_bfloat16(0, team);
        for (uint32_t i = 0; i < MODELS; i++)
                for (size_t size = 0; size < SIZES; size++)
                        for (uint32_t k = 0; k < samples[size] * DIGITS_CLASSES; k++)
                                cr_expect_eq(team[i][size][k], one[i][size][k], "model %u, %u samples, value %u: %.9g, not %.9g", i,
                                        samples[size], k, (double)team[i][size][k], (double)one[i][size][k]);
}

/* More than there are cores is what there is. */
Test(teams, come_and_go_with_a_reload, .timeout = 60)
{
        struct starling_client *admin;
        struct starling_error error = {""};
        struct service service;

        service_init(&service);
        service.options.inline_ns = 0;
        service_start(&service);
        cr_expect_eq(count_members(), 0);
        admin = service_connect(&service, STARLING_ROLE_ADMIN);
        for (uint32_t threads = 64; threads >= 1; threads /= 64) {
                set_threads(&service, threads);
                service_touch(&service);
                for (uint32_t i = 0; i < MODELS; i++)
                        cr_assert_eq(starling_admin_reload(admin, service.specs[i].name, &error), 0, "%s", error.text);
                check_models(&service);
                SERVICE_AWAIT(&service, count_members() == (threads == 1 ? 0 : MODELS * (count_cores() - 1)));
        }
        starling_close(admin);
        service_stop(&service);
}
