/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models by the GPU and by ref, on the same inputs: how far the answers are from each other. In bfloat16 a network may be further
 * from float32 than the limit by itself: then it agrees up to twice as far as ref is, with products in bfloat16, from what it
 * computes in float32. Where that is more than OWN_MAX nothing is learnt.
 */
#include "commands.h"

#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN_MAX 0.1

struct distance {
        double largest, greatest; /* difference; of the values that are right */
        bool other;               /* a number that is none, or an integer that is another */
};

static double value_at(const void *data, uint32_t dtype, uint64_t i)
{
        uint32_t wide;
        float value;

        switch (dtype) {
        case SL_DTYPE_F32:
                return (double)((const float *)data)[i];
        case SL_DTYPE_BF16:
                wide = (uint32_t)((const uint16_t *)data)[i] << 16;
                memcpy(&value, &wide, sizeof(value));
                return (double)value;
        case SL_DTYPE_I64:
                return (double)((const int64_t *)data)[i];
        case SL_DTYPE_I32:
                return (double)((const int32_t *)data)[i];
        default:
                return ((const uint8_t *)data)[i];
        }
}

static void compare(const struct sl_port *port, const void *got, const void *want, uint64_t bytes, struct distance *distance)
{
        bool is_float = port->dtype == SL_DTYPE_F32 || port->dtype == SL_DTYPE_BF16;
        uint32_t size = (uint32_t)sl_dtype_bytes(port->dtype);
        bool known = is_float || port->dtype == SL_DTYPE_I64 || port->dtype == SL_DTYPE_I32;

        for (uint64_t i = 0; i < bytes / (known ? size : 1); i++) {
                double a = value_at(got, known ? port->dtype : SL_DTYPE_U8, i),
                       b = value_at(want, known ? port->dtype : SL_DTYPE_U8, i);

                if (isnan(a) || isnan(b) || isinf(a) || isinf(b) || !is_float) {
                        distance->other |= !(a == b || (isnan(a) && isnan(b)));
                        continue;
                }
                distance->largest = fmax(distance->largest, fabs(a - b));
                distance->greatest = fmax(distance->greatest, fabs(b));
        }
}

/* One job, to its end. */
static int run_on_gpu(struct ground *ground, const struct sl_plan *plan, struct request *request, struct sl_error *error)
{
        const struct sl_gpu_program_options options = {.gpu = &ground->gpu, .plan = plan};
        struct sl_gpu_worker *worker = NULL;
        struct sl_gpu_program *program = NULL;
        int r = sl_gpu_program_new(&options, &program, error);

        if (r == 0)
                r = sl_gpu_program_need_pool(program, 2 * request->samples, 4ull << 30, error);
        if (r == 0)
                r = sl_gpu_worker_new(
                        &(struct sl_gpu_worker_options){
                                .program = program, .greens = &ground->greens, .batch_max = request->samples, .n_slots = 2},
                        &worker, error);
        if (r == 0)
                r = sl_gpu_worker_give(worker, &request->job);
        while (r == 0 && !sl_gpu_worker_poll(worker))
                r = sl_gpu_worker_lost(worker, error);
        if (r == 0)
                r = request->job.status ? request->job.status : request->statuses[0];
        sl_gpu_worker_free(worker);
        sl_gpu_program_free(program);
        return r;
}

static int run_on_ref(const struct sl_plan *plan, const struct request *request, struct sl_error *error)
{
        struct sl_instance *instance;
        int r = sl_instance_new(plan, request->samples, &instance, error);

        if (r < 0)
                return r;
        r = sl_instance_run(instance, request->samples, request->inputs, request->outputs);
        sl_instance_free(instance);
        return r;
}

/* @on_gpu: there is @plan run, else by ref. */
static int run_both(struct ground *ground, const struct sl_plan *plan, bool on_gpu, const struct sl_plan *exact, uint32_t samples,
        struct distance *distance, struct sl_error *error)
{
        const struct sl_plan_info *info = sl_plan_info(plan);
        struct request got = {NULL}, want = {NULL};
        int r = request_init(&got, ground, plan, samples, 1);

        if (r == 0)
                r = request_init(&want, ground, exact, samples, 1);
        if (r == 0)
                r = on_gpu ? run_on_gpu(ground, plan, &got, error) : run_on_ref(plan, &got, error);
        if (r == 0)
                r = run_on_ref(exact, &want, error);
        for (uint32_t i = 0; i < info->n_outputs && r == 0; i++)
                compare(&info->outputs[i], got.outputs[i], want.outputs[i], sl_gpu_port_bytes(&info->outputs[i], samples),
                        distance);
        request_deinit(&got);
        request_deinit(&want);
        return r;
}

static double relative_of(const struct distance *distance)
{
        return distance->greatest > 0 ? distance->largest / distance->greatest : distance->largest;
}

/* How far ref itself is from float32 in the precision that is wished for: some networks carry a rounding far. 0: it is not known.
 */
static double own_distance(
        struct ground *ground, const struct wish *wish, const char *path, const struct sl_plan *exact, struct sl_error *error)
{
        struct sl_lower_options rounded = wish->options;
        struct distance distance = {0};
        struct sl_plan *plan;
        int r;

        (void)sl_lower_options_parse(&rounded, "backend=ref", NULL);
        plan = ground_plan(path, &rounded, error);
        r = plan ? run_both(ground, plan, false, exact, sl_plan_info(plan)->batchable ? wish->batch : 1, &distance, error)
                 : -EINVAL;
        sl_plan_free(plan);
        return r < 0 || distance.other ? 0 : relative_of(&distance);
}

/* Return: 1 it agrees; 0 it is not run there, or says nothing in this precision; -1 it differs; -errno. */
static int try_model(struct ground *ground, const struct wish *wish, const char *path, struct sl_error *error)
{
        struct sl_lower_options exact = {0};
        struct distance distance = {0};
        struct sl_plan *plan, *reference;
        double own = 0;
        char name[128];
        int r;

        sl_lower_options_init(&exact);
        (void)sl_lower_options_parse(&exact, "backend=ref", NULL);
        exact.batch_max = wish->options.batch_max;
        plan = ground_plan(path, &wish->options, error);
        reference = plan ? ground_plan(path, &exact, error) : NULL;
        r = plan && reference
                    ? run_both(ground, plan, true, reference, sl_plan_info(plan)->batchable ? wish->batch : 1, &distance, error)
                    : 0;
        if (r == 0 && plan && reference && wish->options.precision == SL_PRECISION_BF16 && !distance.other &&
                relative_of(&distance) > wish->limit)
                own = own_distance(ground, wish, path, reference, error);
        sl_plan_free(plan);
        sl_plan_free(reference);
        if (!plan || !reference || r < 0) {
                printf("{\"model\":\"%s\",\"result\":\"%s\",\"why\":\"", name_of(path, name),
                        r < 0 && r != -ENOTSUP ? "failed" : "refused");
                for (const char *at = error->text[0] ? error->text : strerror(-r); *at; at++)
                        putchar(*at == '"' || *at == '\\' || *at == ',' || (unsigned char)*at < ' ' ? ' ' : *at);
                printf("\"}\n");
                return r == -ENOTSUP ? 0 : r;
        }
        double relative = relative_of(&distance);
        bool agrees = !distance.other && (relative <= wish->limit || (own <= OWN_MAX && relative <= 2 * own));
        bool unsure = !agrees && !distance.other && own > OWN_MAX;
        printf("{\"model\":\"%s\",\"result\":\"%s\",\"relative\":%.3g,\"limit\":%.3g", name_of(path, name),
                agrees   ? "agrees"
                : unsure ? "unsure"
                         : "differs",
                relative, wish->limit);
        if (own > 0)
                printf(",\"of_ref\":%.3g", own);
        puts("}");
        return agrees ? 1 : unsure ? 0 : -1;
}

int command_agree(struct ground *ground, const struct wish *wish, struct sl_error *error)
{
        uint32_t agree = 0, refused = 0, wrong = 0;

        for (int i = 0; i < wish->n_models; i++) {
                int r;

                *error = (struct sl_error){""};
                r = try_model(ground, wish, wish->models[i], error);
                agree += r == 1;
                refused += r == 0;
                wrong += r < 0;
                fflush(stdout);
                if (r == -EIO)
                        return r;
        }
        if (wish->n_models > 1)
                printf("{\"models\":%d,\"agree\":%u,\"refused\":%u,\"wrong\":%u}\n", wish->n_models, agree, refused, wrong);
        return wrong ? sl_error_set(error, EDOM, "%u of %d models differ from ref or failed", wrong, wish->n_models) : 0;
}
