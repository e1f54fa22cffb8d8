/* SPDX-License-Identifier: Apache-2.0 */
#include "service.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

/* Of the sizes of requests; the large ones take long where every access is watched. */
#ifdef __SANITIZE_THREAD__
#define SIZES 5
#else
#define SIZES 7
#endif

Test(end_to_end, every_network_and_their_mean_predict_what_onnx_runtime_predicts, .timeout = 60)
{
        static const char *const names[6] = {"lenet", "resnet", "densenet", "mobilenet", "mlp", "digits"};
        static const uint32_t sizes[7] = {1, 7, 32, 128, 129, 300, 599};
        struct service service;
        struct starling_client *client;
        struct starling_queue *queue;

        service_init(&service);
        service_start(&service);
        client = service_connect(&service, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        for (int i = 0; i < 6; i++) {
                struct starling_model *model;
                struct digits digits;

                cr_assert_eq(starling_model_open(client, names[i], &model, NULL), 0);
                digits_load(&digits, client, names[i]);
                for (int k = 0; k < SIZES; k++)
                        digits_check(&digits, queue, model, sizes[k] == 599 ? 0 : (uint32_t)(8 * k), sizes[k]);
                digits_free(&digits);
        }
        starling_close(client);
        service_stop(&service);
}

#define BACKGROUND_SAMPLES 300u

struct background {
        struct starling_queue *queue;
        struct starling_model *model;
        struct digits digits;
        struct starling_tensor input, output;
};

static void submit_background(struct background *b)
{
        struct starling_request request = digits_request(&b->digits, b->model, 0, BACKGROUND_SAMPLES, &b->input, &b->output);

        request.priority = STARLING_BACKGROUND;
        cr_assert_eq(starling_submit(b->queue, &request, NULL), 0);
}

static bool has_answered(struct background *b)
{
        struct starling_completion completion;
        const float *got = b->output.data;

        if (!starling_poll(b->queue, &completion, 1))
                return false;
        cr_assert_eq(completion.status, 0);
        for (uint32_t i = 0; i < BACKGROUND_SAMPLES * DIGITS_CLASSES; i++)
                cr_assert_float_eq(got[i], b->digits.expected[i], 1e-5);
        memset(b->output.data, 0xff, BACKGROUND_SAMPLES * DIGITS_CLASSES * sizeof(float));
        return true;
}

/* Of the model itself and of another one on the same let, requests come at any moment of what is in the background. */
Test(end_to_end, what_is_in_the_background_is_right_whenever_requests_come, .timeout = 60)
{
        static const char *const names[2] = {"resnet", "lenet"};
        struct service service;
        struct background background;
        struct starling_client *client;
        struct starling_queue *queue;
        struct starling_model *models[2];
        struct digits digits[2];

        service_init(&service);
        service_start(&service);
        client = service_connect(&service, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        cr_assert_eq(starling_queue_open(client, &background.queue, NULL), 0);
        for (int i = 0; i < 2; i++) {
                cr_assert_eq(starling_model_open(client, names[i], &models[i], NULL), 0);
                digits_load(&digits[i], client, names[i]);
        }
        background.model = models[0];
        digits_load(&background.digits, client, names[0]);
        for (int i = 0; i < 10; i++) {
                bool answered = false;

                submit_background(&background);
                for (uint32_t n = 0; n < 64 && !answered; n++, answered = has_answered(&background))
                        digits_check(&digits[n % 2], queue, models[n % 2], 400, 1 + n % 7);
                for (; !answered; answered = has_answered(&background))
                        usleep(100);
        }
        digits_free(&background.digits);
        digits_free(&digits[0]);
        digits_free(&digits[1]);
        starling_close(client);
        service_stop(&service);
}
