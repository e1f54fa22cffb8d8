/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "base/dtype.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- texts; never on the way of a request that is right ---- */

struct shape_text {
        char text[128];
};

static struct shape_text text_of_dims(uint32_t dtype, uint32_t rank, const uint32_t *dims, int32_t batch_axis)
{
        struct shape_text shape;
        size_t used = (size_t)snprintf(shape.text, sizeof(shape.text), "%s [", sl_dtype_name(dtype));

        for (uint32_t i = 0; i < rank && i < STARLING_RANK_MAX && used < sizeof(shape.text); i++) {
                const char *comma = i ? "," : "";

                if (dims[i] != UINT32_MAX)
                        used += (size_t)snprintf(shape.text + used, sizeof(shape.text) - used, "%s%" PRIu32, comma, dims[i]);
                else
                        used += (size_t)snprintf(
                                shape.text + used, sizeof(shape.text) - used, "%s%s", comma, (int32_t)i == batch_axis ? "N" : "?");
        }
        if (used < sizeof(shape.text))
                snprintf(shape.text + used, sizeof(shape.text) - used, "]");
        return shape;
}

static struct shape_text text_of_port(const struct starling_port *port)
{
        uint32_t dims[STARLING_RANK_MAX];

        for (uint32_t i = 0; i < STARLING_RANK_MAX; i++)
                dims[i] = port->dims[i] < 0 ? UINT32_MAX : (uint32_t)port->dims[i];
        return text_of_dims(port->dtype, port->rank, dims, port->batch_axis);
}

struct place {
        struct starling_queue *queue;
        const struct starling_model *model;
        const struct starling_port *port;
        const char *direction; /* "input", "output" */
};

__attribute__((cold, noinline, format(printf, 2, 3))) static int refuse(const struct place *place, const char *format, ...)
{
        struct sl_error *error = &place->queue->error;
        va_list args;

        va_start(args, format);
        sl_error_print(error, format, args);
        va_end(args);
        return sl_error_prefix(
                error, -EINVAL, "model \"%s\": %s \"%s\"", place->model->info.name, place->direction, place->port->name);
}

__attribute__((cold, noinline)) static int refuse_shape(const struct place *place, const struct starling_tensor *tensor)
{
        if (tensor->rank > STARLING_RANK_MAX)
                return refuse(place, "a rank of %" PRIu32 " exceeds %d", tensor->rank, STARLING_RANK_MAX);

        struct shape_text wants = text_of_port(place->port);
        struct shape_text got = text_of_dims(tensor->dtype, tensor->rank, tensor->dims, -1);

        return refuse(place, "wants %s, got %s", wants.text, got.text);
}

static bool begins_elsewhere(const struct place *place, const struct starling_tensor *tensor)
{
        uint16_t region;
        uint64_t offset;

        return !sl_region_locate(place->queue->client, tensor->data, 1, &region, &offset);
}

__attribute__((cold, noinline)) static int refuse_memory(
        const struct place *place, const struct starling_tensor *tensor, uint64_t bytes)
{
        if (begins_elsewhere(place, tensor))
                return refuse(place, "its data at %p is not in the arena of this client: starling_alloc() gives memory there",
                        tensor->data);
        if ((uintptr_t)tensor->data % STARLING_ALIGNMENT)
                return refuse(place, "its data at %p is not aligned to %d bytes", tensor->data, STARLING_ALIGNMENT);
        return refuse(place, "%" PRIu64 " bytes at %p do not lie in the arena of this client", bytes, tensor->data);
}

/* Memory from elsewhere is what is wrong with a tensor, whatever else is. */
__attribute__((cold, noinline)) static int refuse_bytes(
        const struct place *place, const struct starling_tensor *tensor, uint64_t bytes)
{
        if (begins_elsewhere(place, tensor))
                return refuse_memory(place, tensor, bytes);
        if (tensor->bytes == 0)
                return refuse(place, "its buffer has no bytes");
        return refuse(place, "its shape takes %" PRIu64 " bytes, its buffer has %" PRIu64, bytes, tensor->bytes);
}

__attribute__((cold, noinline)) static int refuse_model(struct starling_queue *queue, const struct starling_model *model)
{
        if (model->state == -ENOENT)
                return sl_error_set(&queue->error, ENOENT, "model \"%s\": the runtime of now does not serve it", model->info.name);
        if (model->state < 0)
                return sl_error_set(
                        &queue->error, ESTALE, "model \"%s\": its inputs or outputs have changed: open it again", model->info.name);
        return sl_error_set(&queue->error, EINVAL, "model \"%s\" was opened by another client", model->info.name);
}

/* Optional inputs are the last: those behind the ones that a request lists are left out, too. */
static bool suits_inputs(const struct starling_request *request, const struct starling_model_info *info)
{
        if (request->n_inputs == info->n_inputs)
                return request->inputs || !info->n_inputs;
        return request->n_inputs < info->n_inputs && info->inputs[request->n_inputs].optional &&
               (request->inputs || !request->n_inputs);
}

__attribute__((cold, noinline)) static int refuse_counts(struct starling_queue *queue, const struct starling_request *request)
{
        const struct starling_model_info *info = &request->model->info;

        uint32_t n_required = info->n_inputs;

        while (n_required && info->inputs[n_required - 1].optional)
                n_required--;
        if (!suits_inputs(request, info) && n_required < info->n_inputs)
                return sl_error_set(&queue->error, EINVAL, "model \"%s\": wants %" PRIu32 " to %" PRIu32 " inputs, got %" PRIu32,
                        info->name, n_required, info->n_inputs, request->inputs ? request->n_inputs : 0);
        if (!suits_inputs(request, info))
                return sl_error_set(&queue->error, EINVAL, "model \"%s\": wants %" PRIu32 " inputs, got %" PRIu32, info->name,
                        info->n_inputs, request->inputs ? request->n_inputs : 0);
        return sl_error_set(&queue->error, EINVAL, "model \"%s\": wants %" PRIu32 " outputs, got %" PRIu32, info->name,
                info->n_outputs, request->outputs ? request->n_outputs : 0);
}

__attribute__((cold, noinline)) static int refuse_samples(const struct place *place, uint32_t got, uint32_t samples)
{
        if (got != samples)
                return refuse(place, "has %" PRIu32 " samples, the inputs before it %" PRIu32, got, samples);
        return refuse(place, "%" PRIu32 " samples exceed the %" PRIu32 " of one request", got, place->model->info.samples_max);
}

/* ---- checks ---- */

/* Samples, before an input has a batch. */
#define NOT_SAID UINT32_MAX

static bool suits(const struct starling_tensor *tensor, const struct starling_port *port, uint64_t *ret_bytes)
{
        uint64_t bytes = sl_dtype_bytes(port->dtype);

        if (tensor->dtype != port->dtype || tensor->rank != port->rank)
                return false;
        for (uint32_t i = 0; i < port->rank; i++) {
                uint32_t dim = tensor->dims[i];

                if (port->dims[i] < 0 ? dim > INT32_MAX : dim != (uint32_t)port->dims[i])
                        return false;
                if (sl_mul_overflows(bytes, dim, &bytes))
                        return false;
        }
        *ret_bytes = bytes;
        return true;
}

static int locate(const struct place *place, const struct starling_tensor *tensor, uint64_t bytes, struct sl_descriptor *descriptor)
{
        uint16_t region;
        uint64_t offset;

        if ((uintptr_t)tensor->data % STARLING_ALIGNMENT ||
                !sl_region_locate(place->queue->client, tensor->data, bytes, &region, &offset))
                return refuse_memory(place, tensor, bytes);
        descriptor->offset = offset;
        descriptor->bytes = bytes;
        descriptor->region = region;
        descriptor->dtype = (uint8_t)place->port->dtype;
        descriptor->rank = (uint8_t)place->port->rank;
        descriptor->batch_axis = place->port->batch_axis < 0 ? SL_NO_BATCH_AXIS : (uint8_t)place->port->batch_axis;
        return 0;
}

static int check_input(
        const struct place *place, const struct starling_tensor *tensor, struct sl_descriptor *descriptor, uint32_t *samples)
{
        const struct starling_port *port = place->port;
        uint64_t bytes;

        if (!suits(tensor, port, &bytes))
                return refuse_shape(place, tensor);
        if (tensor->bytes < bytes)
                return refuse_bytes(place, tensor, bytes);
        if (port->batch_axis >= 0) {
                uint32_t got = tensor->dims[port->batch_axis];

                if (*samples == NOT_SAID)
                        *samples = got;
                if (got != *samples || got > place->model->info.samples_max)
                        return refuse_samples(place, got, *samples);
        }
        for (uint32_t i = 0; i < port->rank; i++)
                descriptor->dims[i] = tensor->dims[i];
        return locate(place, tensor, bytes, descriptor);
}

/* As far as the model says it: there is nothing for which the output would need room. */
static bool has_none(const struct starling_port *port, uint32_t samples)
{
        bool none = port->batch_axis >= 0 && samples == 0;

        for (uint32_t i = 0; i < port->rank && !none; i++)
                none = port->dims[i] == 0;
        return none;
}

/* The dimensions that the model says, as far as it says them; the runtime knows the others. */
static int check_output(
        const struct place *place, const struct starling_tensor *tensor, struct sl_descriptor *descriptor, uint32_t samples)
{
        const struct starling_port *port = place->port;

        if (tensor->dtype != port->dtype)
                return refuse(place, "is %s, got %s", sl_dtype_name(port->dtype), sl_dtype_name(tensor->dtype));
        if (tensor->bytes == 0 && (!tensor->data || !has_none(port, samples)))
                return refuse_bytes(place, tensor, 0);
        for (uint32_t i = 0; i < port->rank; i++)
                descriptor->dims[i] = port->dims[i] >= 0 ? (uint32_t)port->dims[i] : (int32_t)i == port->batch_axis ? samples : 0;
        return locate(place, tensor, tensor->bytes, descriptor);
}

static bool is_left_out(const struct starling_request *request, uint32_t input)
{
        return input >= request->n_inputs || (!request->inputs[input].data && !request->inputs[input].bytes);
}

/* Who gives room for no output has forgotten it. */
static bool may_leave_out(const struct starling_request *request)
{
        bool any = false;

        for (uint32_t i = 0; request->model->leaves_out && i < request->n_outputs && !any; i++)
                any = request->outputs[i].data;
        return any;
}

static bool is_unwanted(const struct starling_tensor *output)
{
        return !output->data && !output->bytes && !output->dtype;
}

static void leave_out(struct sl_descriptor *descriptor)
{
        descriptor->offset = descriptor->bytes = 0;
        descriptor->region = 0;
        descriptor->dtype = SL_DTYPE_NONE;
        descriptor->rank = 0;
        descriptor->batch_axis = SL_NO_BATCH_AXIS;
}

uint32_t sl_request_inputs(const struct starling_request *request)
{
        const struct starling_model *model = request->model;
        uint32_t listed = request->inputs && request->n_inputs < model->info.n_inputs ? request->n_inputs : model->info.n_inputs;

        for (uint32_t i = model->n_required; i < listed && request->inputs; i++)
                if (!is_left_out(request, i))
                        return model->info.n_inputs;
        return model->n_required;
}

int sl_check_request(struct starling_queue *queue, const struct starling_request *request, uint32_t n_inputs,
        struct sl_descriptor *descriptors, uint32_t *ret_samples)
{
        const struct starling_model *model = request->model;
        uint32_t samples = NOT_SAID;
        int r;

        if (!model)
                return sl_error_set(&queue->error, EINVAL, "the request names no model");
        if (request->session)
                return sl_error_set(&queue->error, ENOTSUP, "model \"%s\": session %" PRIu64 ": sequences are not served",
                        model->info.name, request->session);

        const struct starling_model_info *info = &model->info;

        if (model->state < 0 || model->client != queue->client)
                return refuse_model(queue, model);
        if (!suits_inputs(request, info) || request->n_outputs != info->n_outputs || (!request->outputs && info->n_outputs))
                return refuse_counts(queue, request);
        for (uint32_t i = 0; i < n_inputs; i++) {
                struct place place = {queue, model, &info->inputs[i], "input"};

                if (info->inputs[i].optional && is_left_out(request, i)) {
                        leave_out(&descriptors[i]);
                        continue;
                }
                r = check_input(&place, &request->inputs[i], &descriptors[i], &samples);
                if (r < 0)
                        return r;
        }
        if (samples == NOT_SAID)
                samples = 1;

        bool may_leave = may_leave_out(request);

        for (uint32_t i = 0; i < info->n_outputs; i++) {
                struct place place = {queue, model, &info->outputs[i], "output"};

                if (may_leave && is_unwanted(&request->outputs[i])) {
                        leave_out(&descriptors[n_inputs + i]);
                        continue;
                }
                r = check_output(&place, &request->outputs[i], &descriptors[n_inputs + i], samples);
                if (r < 0)
                        return r;
        }
        *ret_samples = samples;
        return model->state;
}
