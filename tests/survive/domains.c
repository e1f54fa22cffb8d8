/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of other domains than ONNX's, served: cases that tests/conformance/made makes, one in so many, as files of a repository. A
 * client gets what ONNX Runtime computed.
 */
#include "tensor_file.h"
#include "world.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CASES_MAX 40
#define PORTS     8
#define TOLERANCE 1e-4

struct cases {
        uint32_t n;
        char names[CASES_MAX][128];
};

static int is_case(const struct dirent *entry)
{
        return !strncmp(entry->d_name, "test_", 5) && strlen(entry->d_name) < 100;
}

/* Evenly over all of them, so over all families. */
static void find_cases(struct cases *cases)
{
        struct dirent **entries = NULL;
        int n = scandir(MADE_CASES, &entries, is_case, alphasort), step = n / CASES_MAX + 1;

        for (int i = 0; i < n; i++) {
                if (i % step == 0)
                        snprintf(cases->names[cases->n++], sizeof(cases->names[0]), "%.127s", entries[i]->d_name);
                free(entries[i]);
        }
        free(entries);
}

static void add_case(const struct world *world, const char *name)
{
        char path[600];
        size_t bytes = 0;
        uint8_t *file;

        snprintf(path, sizeof(path), "%s/%s/model.onnx", MADE_CASES, name);
        file = read_whole_file(path, &bytes);
        cr_assert(file, "%s", path);
        world_add_model(world, name, file, bytes);
        free(file);
}

static uint32_t read_ports(const char *name, const char *kind, struct tensor_file files[PORTS])
{
        uint32_t n = 0;
        char path[600];

        for (; n < PORTS; n++) {
                snprintf(path, sizeof(path), "%s/%s/test_data_set_0/%s_%u.pb", MADE_CASES, name, kind, n);
                if (!tensor_file_read(path, &files[n]))
                        break;
        }
        return n;
}

static void make_tensor(struct starling_client *client, const struct tensor_file *file, struct starling_tensor *ret_tensor)
{
        const struct sl_shape *shape = &file->tensor.shape;
        uint32_t dims[SL_RANK_MAX];

        for (uint32_t i = 0; i < shape->rank; i++)
                dims[i] = (uint32_t)shape->dims[i];
        cr_assert_eq(starling_tensor_alloc(client, (int)file->tensor.dtype, shape->rank, dims, ret_tensor), 0);
}

static void expect_outputs(const char *name, const struct starling_tensor *outputs, const struct tensor_file *files, uint32_t n)
{
        char text[120] = "";

        for (uint32_t i = 0; i < n; i++)
                cr_expect(tensor_agrees(&files[i].tensor, outputs[i].data, files[i].data, TOLERANCE, text, sizeof(text)),
                        "%s: output %u: %s", name, i, text);
}

static void run_case(struct starling_client *client, struct starling_queue *queue, const char *name)
{
        struct tensor_file in[PORTS] = {0}, out[PORTS] = {0};
        struct starling_tensor inputs[PORTS], outputs[PORTS];
        struct starling_request request = {.inputs = inputs, .outputs = outputs};
        struct starling_completion done;
        struct starling_model *model;
        struct starling_error error = {""};
        uint32_t n_in = read_ports(name, "input", in), n_out = read_ports(name, "output", out);

        cr_assert_eq(starling_model_open(client, name, &model, &error), 0, "%s: %s", name, error.text);
        for (uint32_t i = 0; i < n_in; i++) {
                make_tensor(client, &in[i], &inputs[i]);
                memcpy(inputs[i].data, in[i].data, in[i].bytes);
        }
        for (uint32_t i = 0; i < n_out; i++)
                make_tensor(client, &out[i], &outputs[i]);
        request.model = model;
        request.n_inputs = n_in;
        request.n_outputs = n_out;
        cr_expect_eq(starling_infer(queue, &request, &done), 0, "%s: %s", name, starling_queue_error(queue));
        expect_outputs(name, outputs, out, n_out);
        for (uint32_t i = 0; i < PORTS; i++) {
                tensor_file_free(&in[i]);
                tensor_file_free(&out[i]);
        }
}

Test(domains, a_model_of_another_domain_is_served_as_onnx_runtime_computes_it, .timeout = 60)
{
        static struct cases cases;
        struct starling_client *client;
        struct starling_queue *queue;
        struct world world;

        find_cases(&cases);
        if (!cases.n) {
                fprintf(stderr, "no cases in %s: nothing is tested\n", MADE_CASES);
                return;
        }
        world_init(&world);
        for (uint32_t i = 0; i < cases.n; i++)
                add_case(&world, cases.names[i]);
        world_start(&world);
        client = world_connect(&world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        for (uint32_t i = 0; i < cases.n; i++)
                run_case(client, queue, cases.names[i]);
        starling_close(client);
        world_stop(&world);
        world_free(&world);
}
