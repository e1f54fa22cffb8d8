/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of other domains than ONNX's, served: cases that tests/conformance/made makes, one in so many, as files of a repository. A
 * client gets what ONNX Runtime computed.
 */
#include "broken.h"
#include "tensor_file.h"
#include "world.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
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

static void run_cases(const struct world *world, const struct cases *cases)
{
        struct starling_client *client = world_connect(world, STARLING_ROLE_CLIENT);
        struct starling_queue *queue;

        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
        for (uint32_t i = 0; i < cases->n; i++)
                run_case(client, queue, cases->names[i]);
        starling_close(client);
}

Test(domains, a_model_of_another_domain_is_served_as_onnx_runtime_computes_it, .timeout = 60)
{
        static struct cases cases;
        struct world world;

        find_cases(&cases);
        if (!cases.n) {
                fprintf(stderr, "no cases in %s: nothing is tested\n", MADE_CASES);
                return;
        }
        world_init(&world);
        world_keep(&world, "");
        for (uint32_t i = 0; i < cases.n; i++)
                add_case(&world, cases.names[i]);
        world_start(&world);
        run_cases(&world, &cases);
        world_stop(&world);
        world_free(&world);
}

/* Version 2 of the case: open, and with a node that nobody can compute. False: nothing of it can be open. */
static bool break_case(const struct world *world, const char *name, uint32_t at)
{
        char folder[600], path[600], command[700];
        size_t bytes = 0;
        uint8_t *file;
        FILE *stream;

        snprintf(folder, sizeof(folder), "%s/%s", MADE_CASES, name);
        file = broken_case(folder, (enum broken_form)(at % N_BROKEN_FORMS), at, &bytes);
        if (!file)
                return false;
        snprintf(command, sizeof(command), "mkdir '%s/%s/2'", world->repository, name);
        cr_assert_eq(system(command), 0);
        snprintf(path, sizeof(path), "%s/%s/2/model.onnx", world->repository, name);
        stream = fopen(path, "wb");
        cr_assert(stream && fwrite(file, bytes, 1, stream) == 1);
        fclose(stream);
        free(file);
        return true;
}

static void expect_refused(struct world *world, const char *event, const char *name)
{
        char head[256], line[1024];
        const char *at;

        snprintf(head, sizeof(head), "event=%s model=%s version=2 ", event, name);
        world_expect_log(world, head);
        at = strstr(world_log(world), head);
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
        cr_expect_not_null(strstr(line, "operator " BROKEN_OPERATOR " of domain"), "%s", line);
}

Test(domains, a_version_that_nobody_can_compute_replaces_none_that_serves_and_is_counted_at_a_start, .timeout = 60)
{
        static struct cases cases, broken;
        char line[64];
        struct world world;

        find_cases(&cases);
        world_init(&world);
        world_keep(&world, "");
        for (uint32_t i = 0; i < cases.n; i++)
                add_case(&world, cases.names[i]);
        world_start(&world);
        for (uint32_t i = 0; i < cases.n; i++)
                if (break_case(&world, cases.names[i], i))
                        memcpy(broken.names[broken.n++], cases.names[i], sizeof(broken.names[0]));
        kill(world.pid, SIGHUP);
        for (uint32_t i = 0; i < broken.n; i++)
                expect_refused(&world, "model-not-replaced", broken.names[i]);
        run_cases(&world, &cases);
        world_stop(&world);
        world_start(&world);
        snprintf(line, sizeof(line), "event=ready failed_models=%u", broken.n);
        world_expect_log(&world, line);
        for (uint32_t i = 0; i < broken.n; i++)
                expect_refused(&world, "model-failed", broken.names[i]);
        world_stop(&world);
        world_free(&world);
}
