/* SPDX-License-Identifier: Apache-2.0 */
#include "offline_model.h"

#include "needs_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define RANGE_SAMPLES_MAX 64u
#define RANGE_BYTES_MAX   (4u << 20)

int offline_model_open(struct starling_client *client, const struct offline_description *d, struct starling_model **ret_model,
        struct starling_error *error)
{
        struct sl_needs needs = {0};
        struct sl_error text = {""};
        uint32_t samples;

        if (!d->is_task)
                return starling_model_open(client, d->model, ret_model, error);
        if (d->needs[0] && sl_needs_parse(d->needs, &needs, &samples, &text) < 0) {
                snprintf(error->text, sizeof(error->text), "%s", text.text);
                return -EINVAL;
        }
        const struct starling_query query = {.accuracy = needs.accuracy,
                .accuracy_least = needs.accuracy_least,
                .cost = needs.cost,
                .latency_ns = needs.latency_ns,
                .flags = needs.closest ? STARLING_QUERY_CLOSEST : 0};
        return starling_query_open(client, d->model, &query, ret_model, error);
}

static int check_port(const char *model, const char *kind, uint32_t n, const struct starling_port *port, struct sl_error *error)
{
        if (n != 1)
                return sl_error_set(
                        error, ENOTSUP, "model \"%s\" has %" PRIu32 " %ss, and a job takes models with one", model, n, kind);
        if (port->batch_axis != 0)
                return sl_error_set(error, ENOTSUP, "%s \"%s\" of model \"%s\": its first axis does not count samples", kind,
                        port->name, model);
        return 0;
}

static int check_input(const char *model, const struct starling_port *port, const struct offline_shape *shape, const char *path,
        struct sl_error *error)
{
        if (shape->dtype != port->dtype)
                return sl_error_set(error, EINVAL, "%s: elements are %s, input \"%s\" of model \"%s\" wants %s", path,
                        starling_dtype_name(shape->dtype), port->name, model, starling_dtype_name(port->dtype));
        if (shape->rank != port->rank)
                return sl_error_set(error, EINVAL, "%s: it has %" PRIu32 " axes, input \"%s\" of model \"%s\" wants %" PRIu32, path,
                        shape->rank, port->name, model, port->rank);
        for (uint32_t i = 1; i < port->rank; i++)
                if (port->dims[i] >= 0 && (uint64_t)port->dims[i] != shape->dims[i])
                        return sl_error_set(error, EINVAL,
                                "%s: axis %" PRIu32 " has %" PRIu64 ", input \"%s\" of model \"%s\" wants %" PRId32, path, i,
                                shape->dims[i], port->name, model, port->dims[i]);
        return 0;
}

/* Of all samples of the job. */
static int shape_output(const char *model, const struct starling_port *port, uint64_t samples, struct offline_shape *ret_shape,
        struct sl_error *error)
{
        char header[512];

        *ret_shape = (struct offline_shape){.dtype = port->dtype, .rank = port->rank, .dims = {samples}};
        for (uint32_t i = 1; i < port->rank; i++) {
                if (port->dims[i] < 0)
                        return sl_error_set(error, ENOTSUP,
                                "output \"%s\" of model \"%s\": axis %" PRIu32 " has no size of its own", port->name, model, i);
                ret_shape->dims[i] = (uint64_t)port->dims[i];
        }
        if (!offline_header(ret_shape, header, sizeof(header)))
                return sl_error_set(error, ENOTSUP, "output \"%s\" of model \"%s\" is %s, which .npy has no type for", port->name,
                        model, starling_dtype_name(port->dtype));
        return 0;
}

int offline_model_check(const struct starling_model *model, const struct offline_description *d, const struct offline_data *data,
        struct offline_shape *ret_output, struct sl_error *error)
{
        const struct starling_model_info *info = starling_model_describe(model);
        int r = check_port(d->model, "input", info->n_inputs, info->inputs, error);

        if (r == 0)
                r = check_port(d->model, "output", info->n_outputs, info->outputs, error);
        if (r == 0)
                r = check_input(d->model, info->inputs, &data->shape, d->input, error);
        return r < 0 ? r : shape_output(d->model, info->outputs, data->shape.dims[0], ret_output, error);
}

static uint32_t choose_range(const struct offline_data *data, uint32_t samples_max)
{
        uint64_t most = RANGE_BYTES_MAX / data->sample_bytes;

        most = most > RANGE_SAMPLES_MAX ? RANGE_SAMPLES_MAX : most ? most : 1;
        return samples_max && samples_max < most ? samples_max : (uint32_t)most;
}

/* Axes of the input tell samples from files of them: the data are opened once the model is known. */
int offline_check(struct offline_description *d, struct offline_shape *ret_output, struct sl_error *error)
{
        struct starling_options options = {.runtime = d->runtime[0] ? d->runtime : NULL, .label = "offline"};
        struct starling_error why = {""};
        struct starling_client *client;
        struct starling_model *model;
        struct offline_data data = {0};
        int r = starling_connect(&options, &client, &why);

        if (r < 0) {
                bool is_refused = r == -EACCES || r == -EPERM;

                sl_error_set(error, -r, "%s", why.text);
                return is_refused ? -EPERM : -ENOTCONN;
        }
        r = offline_model_open(client, d, &model, &why);
        if (r < 0) {
                sl_error_set(error, -r, "%s", why.text);
        } else {
                const struct starling_model_info *info = starling_model_describe(model);

                r = offline_data_open(d->input, info->n_inputs ? info->inputs->rank : 0, &data, error);
                if (r == 0)
                        r = offline_model_check(model, d, &data, ret_output, error);
                if (r == 0) {
                        d->samples = data.shape.dims[0];
                        d->stamp = data.stamp;
                        d->rank = data.shape.rank;
                        d->range_samples = choose_range(&data, info->samples_max);
                }
                offline_data_close(&data);
        }
        starling_close(client);
        return r;
}
