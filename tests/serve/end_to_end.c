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
