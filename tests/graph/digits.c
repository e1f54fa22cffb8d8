/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The networks of the digits example, as they are: the whole path from file to predictions, with and without passes, against
 * the predictions that were computed when they were trained.
 */
#include "backend.h"
#include "base/error.h"
#include "builder.h"
#include "evaluate.h"
#include "import.h"
#include "inspect.h"
#include "pass.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIXELS  64
#define CLASSES 10
#define BATCH   16

static const char *const names[] = {"lenet", "resnet", "densenet", "mlp", "mobilenet"};

static bool read_floats(const char *file, float *ret_data, size_t n)
{
        char path[512];
        FILE *stream;
        bool whole;

        snprintf(path, sizeof(path), "%s/%s", DIGITS, file);
        stream = fopen(path, "rb");
        whole = stream && fread(ret_data, sizeof(float), n, stream) == n;
        if (stream)
                fclose(stream);
        return whole;
}

static float difference(const float *a, const float *b, size_t n)
{
        float worst = 0;

        for (size_t i = 0; i < n; i++)
                worst = fmaxf(worst, isnan(a[i]) ? INFINITY : fabsf(a[i] - b[i]));
        return worst;
}

static struct sl_graph *import_digits(const char *name)
{
        struct sl_graph *graph = NULL;
        struct sl_error error = {0};
        char path[512];

        snprintf(path, sizeof(path), "%s/models/%s/1/model.onnx", DIGITS, name);
        cr_assert_eq(sl_import_onnx(path, NULL, &graph, &error), 0, "%s", error.text);
        return graph;
}

Test(digits, every_network_predicts_what_it_was_trained_to)
{
        static float images[BATCH * PIXELS], want[BATCH * CLASSES], got[BATCH * CLASSES];

        cr_assert(read_floats("test-images.f32", images, BATCH * PIXELS));
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                struct sl_graph *graph = import_digits(names[i]);
                struct sl_error error = {0};
                char file[64];

                snprintf(file, sizeof(file), "expected/%s.f32", names[i]);
                cr_assert(read_floats(file, want, BATCH * CLASSES));
                evaluate_floats(graph, BATCH, images, got, BATCH * CLASSES);
                cr_assert_leq(difference(got, want, BATCH * CLASSES), 1e-4f, "%s as imported", names[i]);
                uint32_t before = count_live(graph);

                cr_assert_eq(sl_passes_run(graph, &(struct sl_pass_options){.backend = sl_backend_find("cpu")}, &error), 0,
                        "%s: %s", names[i], error.text);
                evaluate_floats(graph, BATCH, images, got, BATCH * CLASSES);
                cr_assert_leq(difference(got, want, BATCH * CLASSES), 1e-4f, "%s after passes", names[i]);
                cr_assert_leq(count_live(graph), before, "%s", names[i]);
                cr_assert_eq(graph->values[graph->outputs[0]].tensor.shape.dims[0], SL_DIM_BATCH, "%s", names[i]);
                sl_graph_free(graph);
        }
}
