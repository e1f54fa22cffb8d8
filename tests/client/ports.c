/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As a program of a user's would: connects without options, gives every input of a model, and prints every output. Value @e of
 * input @i is (7 i + 3 e + 1) mod 31; whoever calls it knows what comes of that.
 *
 *     ports SOCKET MODEL SAMPLES REQUESTS
 */
#include <starling.h>

#include <stdio.h>
#include <stdlib.h>

struct tensors {
        struct starling_tensor *list;
        uint32_t n;
};

static int allocate(
        struct starling_client *client, const struct starling_port *ports, uint32_t n, uint32_t samples, struct tensors *ret)
{
        ret->list = calloc(n + 1, sizeof(*ret->list));
        for (ret->n = 0; ret->list && ret->n < n; ret->n++) {
                const struct starling_port *port = &ports[ret->n];
                uint32_t dims[STARLING_RANK_MAX];
                int r;

                for (uint32_t i = 0; i < port->rank; i++)
                        dims[i] = (int32_t)i == port->batch_axis ? samples : (uint32_t)port->dims[i];
                r = starling_tensor_alloc(client, port->dtype, port->rank, dims, &ret->list[ret->n]);
                if (r < 0)
                        return r;
        }
        return ret->list ? 0 : -1;
}

static void fill(const struct tensors *inputs)
{
        for (uint32_t i = 0; i < inputs->n; i++)
                for (size_t e = 0; e < inputs->list[i].bytes / sizeof(float); e++)
                        ((float *)inputs->list[i].data)[e] = (float)((7 * i + 3 * e + 1) % 31);
}

static void print(const struct tensors *outputs, const struct starling_port *ports)
{
        for (uint32_t i = 0; i < outputs->n; i++) {
                printf("%s", ports[i].name);
                for (size_t e = 0; e < outputs->list[i].bytes / sizeof(float); e++)
                        printf(" %g", (double)((float *)outputs->list[i].data)[e]);
                printf("\n");
        }
}

static int infer(struct starling_client *client, struct starling_model *model, uint32_t samples, uint32_t requests)
{
        const struct starling_model_info *info = starling_model_describe(model);
        struct tensors inputs = {NULL}, outputs = {NULL};
        struct starling_queue *queue;
        int r = starling_queue_open(client, &queue, NULL);

        if (r == 0)
                r = allocate(client, info->inputs, info->n_inputs, samples, &inputs);
        if (r == 0)
                r = allocate(client, info->outputs, info->n_outputs, samples, &outputs);
        if (r == 0)
                fill(&inputs);
        for (uint32_t i = 0; i < requests && r == 0; i++)
                r = starling_infer(queue,
                        &(struct starling_request){.model = model,
                                .inputs = inputs.list,
                                .outputs = outputs.list,
                                .n_inputs = info->n_inputs,
                                .n_outputs = info->n_outputs},
                        NULL);
        if (r == 0)
                print(&outputs, info->outputs);
        else
                fprintf(stderr, "%s: %s %s\n", info->name, starling_strerror(r), starling_queue_error(queue));
        free(inputs.list);
        free(outputs.list);
        return r;
}

int main(int argc, char **argv)
{
        struct starling_error error = {""};
        struct starling_client *client;
        struct starling_model *model;
        int r;

        if (argc != 5)
                return 2;
        r = starling_connect(&(struct starling_options){.runtime = argv[1]}, &client, &error);
        if (r == 0)
                r = starling_model_open(client, argv[2], &model, &error);
        if (r < 0) {
                fprintf(stderr, "%s\n", error.text);
                return 1;
        }
        r = infer(client, model, (uint32_t)atoi(argv[3]), (uint32_t)atoi(argv[4]));
        starling_close(client);
        return r < 0;
}
