/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest whole program: one request to one model, with ones for input.
 *
 *     cc hello.c $(pkg-config --cflags --libs starling) -o hello && ./hello digits
 *
 * It works with any model whose inputs have no free size but the batch.
 */
#include <starling.h>

#include <stdio.h>
#include <string.h>

#define TENSORS_MAX 8

/* A tensor for one sample of @port. */
static int make_tensor(struct starling_client *client, const struct starling_port *port, struct starling_tensor *ret_tensor)
{
        uint32_t dims[STARLING_RANK_MAX];

        for (uint32_t i = 0; i < port->rank; i++)
                dims[i] = port->dims[i] < 0 ? 1 : (uint32_t)port->dims[i];
        return starling_tensor_alloc(client, port->dtype, port->rank, dims, ret_tensor);
}

static void fill_with_ones(struct starling_tensor *tensor)
{
        memset(tensor->data, 0, tensor->bytes);
        if (tensor->dtype == STARLING_F32)
                for (size_t i = 0; i < tensor->bytes / sizeof(float); i++)
                        ((float *)tensor->data)[i] = 1;
}

static void print(const struct starling_port *port, const struct starling_tensor *tensor)
{
        printf("%s:", port->name);
        for (size_t i = 0; port->dtype == STARLING_F32 && i < tensor->bytes / sizeof(float); i++)
                printf(" %.4f", ((float *)tensor->data)[i]);
        printf("\n");
}

static int infer_once(struct starling_client *client, struct starling_queue *queue, struct starling_model *model)
{
        const struct starling_model_info *info = starling_model_describe(model);
        struct starling_tensor inputs[TENSORS_MAX], outputs[TENSORS_MAX];
        struct starling_completion completion;
        int r = info->n_inputs > TENSORS_MAX || info->n_outputs > TENSORS_MAX ? -1 : 0;

        for (uint32_t i = 0; r == 0 && i < info->n_inputs; i++) {
                r = make_tensor(client, &info->inputs[i], &inputs[i]);
                if (r == 0)
                        fill_with_ones(&inputs[i]);
        }
        for (uint32_t i = 0; r == 0 && i < info->n_outputs; i++)
                r = make_tensor(client, &info->outputs[i], &outputs[i]);
        if (r < 0)
                return r;

        struct starling_request request = {
                .model = model,
                .inputs = inputs,
                .n_inputs = info->n_inputs,
                .outputs = outputs,
                .n_outputs = info->n_outputs,
        };

        r = starling_infer(queue, &request, &completion);
        if (r < 0) {
                fprintf(stderr, "%s: %s %s\n", info->name, starling_strerror(r), starling_queue_error(queue));
                return r;
        }
        for (uint32_t i = 0; i < info->n_outputs; i++)
                print(&info->outputs[i], &outputs[i]);
        printf("computed in %.1f us\n", (double)completion.computing_ns / 1000);
        return 0;
}

int main(int argc, char **argv)
{
        const char *name = argc > 1 ? argv[1] : "digits";
        struct starling_options options = {.runtime = argc > 2 ? argv[2] : NULL, .timeout_ns = 5000000000};
        struct starling_client *client = NULL;
        struct starling_model *model;
        struct starling_queue *queue;
        struct starling_error error = {""};
        int r = starling_connect(&options, &client, &error);

        if (r == 0)
                r = starling_model_open(client, name, &model, &error);
        if (r == 0)
                r = starling_queue_open(client, &queue, &error);
        if (r < 0)
                fprintf(stderr, "%s\n", error.text);
        else
                r = infer_once(client, queue, model);
        starling_close(client);
        return r < 0;
}
