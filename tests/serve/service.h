/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole runtime in this process, with the digits networks, and clients of it: for tests of the path from submit to completion.
 */
#pragma once

#include "runtime.h"
#include "starling.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <unistd.h>

#define SERVICE_MODELS_MAX 16
/* For what must come: a start takes a minute under ThreadSanitizer where many others have the processors. */
#define SERVICE_LIMIT_NS   240000000000ull
#define DIGITS_SAMPLES     599u
#define DIGITS_PIXELS      64u
#define DIGITS_CLASSES     10u

/* Waits until @condition holds: what does not come in that time hangs. */
#define SERVICE_AWAIT(service, condition)                                                                                          \
        do {                                                                                                                       \
                uint64_t await_end_ns = starling_clock_ns() + SERVICE_LIMIT_NS;                                                    \
                                                                                                                                   \
                for (; !(condition); usleep(1000))                                                                                 \
                        cr_assert_lt(starling_clock_ns(), await_end_ns, "in vain: %s\n%s", #condition, (service)->log);            \
        } while (0)

struct service {
        struct sl_runtime *runtime;
        struct sl_runtime_options options;
        struct sl_model_spec specs[SERVICE_MODELS_MAX];  /* the test's; changed with service_touch() once it runs */
        struct sl_model_spec served[SERVICE_MODELS_MAX]; /* the runtime's: as of the last scan */
        pthread_mutex_t specs_lock;
        uint32_t n_specs;
        char directory[64], socket_path[96];
        int stop_fd, reload_fd;
        pthread_t thread;
        char log[65536]; /* every line */
        pthread_mutex_t log_lock;
};

/* The five digits networks and their mean, "digits". Change options or specs, then start. */
void service_init(struct service *service);

/* Of the five these alone, separated by spaces and in their old order; without their mean. Each costs a start a load. */
void service_keep(struct service *service, const char *names);
void service_start(struct service *service);

/* As SIGTERM. */
void service_ask_to_stop(struct service *service);

/* Waits for the end. */
void service_join(struct service *service);

/* Both; when it has been asked before, without grace from now on. */
void service_stop(struct service *service);

/* Every model's file has changed, though not what is in it. */
void service_touch(struct service *service);

/* As SIGHUP, with the specs as they are now. */
void service_reload(struct service *service);

/* Whether the log has @text by now; how often. */
bool service_has_logged(struct service *service, const char *text);
uint32_t service_count_logged(struct service *service, const char *text);

/* Waits until the log has @text. */
void service_expect_log(struct service *service, const char *text);

struct starling_client *service_connect(struct service *service, enum starling_role role);

/* Test images and expected predictions: one tensor each, in the client's arena. */
struct digits {
        struct starling_tensor images, probabilities;
        float *expected;
};
void digits_load(struct digits *digits, struct starling_client *client, const char *model);
void digits_free(struct digits *digits);

/* Infers samples [start, start + n) in one request and fails unless they agree with the expected ones to 1e-5. */
void digits_check(struct digits *digits, struct starling_queue *queue, struct starling_model *model, uint32_t start, uint32_t n);

/* A request for samples [start, start + n); the tensors are the caller's. */
struct starling_request digits_request(struct digits *digits, struct starling_model *model, uint32_t start, uint32_t n,
        struct starling_tensor *ret_input, struct starling_tensor *ret_output);
