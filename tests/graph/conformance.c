/*
 * The test cases that ship with ONNX, where they are installed: import, specialise, evaluate on the reference backend, compare;
 * and once more after all passes.
 * Cases whose operator is refused are out of scope; the operators of REQUIRED may not fail or refuse any case but those of EXCEPT.
 */
#include "base/error.h"
#include "evaluate.h"
#include "graph.h"
#include "import.h"
#include "onnx/onnx.pb-c.h"
#include "pass.h"
#include "ref/half.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CASES "/usr/share/libonnx-testdata/data"
#define PORTS 64

static const char *const kinds[] = {"node", "pytorch-converted", "pytorch-operator", "simple"};

static const char *const required[] = {
#include "conformance_operators.inc"
};

static const char *const except[] = {
#include "conformance_exceptions.inc"
};

enum outcome { PASSED, REFUSED, FAILED };

struct tensor_file {
        Onnx__TensorProto *proto;
        void *data;
        size_t bytes;
};

static uint8_t *read_file(const char *path, size_t *ret_bytes)
{
        FILE *file = fopen(path, "rb");
        uint8_t *bytes;

        if (!file)
                return NULL;
        fseek(file, 0, SEEK_END);
        *ret_bytes = (size_t)ftell(file);
        rewind(file);
        bytes = malloc(*ret_bytes + 1);
        cr_assert(bytes);
        cr_assert_eq(fread(bytes, 1, *ret_bytes, file), *ret_bytes);
        fclose(file);
        return bytes;
}

/* The node tests have raw data only. */
static bool read_tensor(const char *folder, const char *kind, uint32_t index, struct tensor_file *tensor)
{
        char path[700];
        size_t n;
        uint8_t *bytes;

        snprintf(path, sizeof(path), "%s/test_data_set_0/%s_%u.pb", folder, kind, index);
        bytes = read_file(path, &n);
        if (!bytes)
                return false;
        tensor->proto = onnx__tensor_proto__unpack(NULL, n, bytes);
        free(bytes);
        if (!tensor->proto)
                return false;
        tensor->bytes = tensor->proto->raw_data.len;
        tensor->data = aligned_alloc(64, (tensor->bytes + 64) & ~(size_t)63);
        if (tensor->bytes)
                memcpy(tensor->data, tensor->proto->raw_data.data, tensor->bytes);
        return true;
}

static void free_tensor(struct tensor_file *tensor)
{
        if (tensor->proto)
                onnx__tensor_proto__free_unpacked(tensor->proto, NULL);
        free(tensor->data);
        *tensor = (struct tensor_file){0};
}

static double element(const void *data, uint32_t dtype, size_t i)
{
        switch (dtype) {
        case SL_DTYPE_F32:
                return (double)((const float *)data)[i];
        case SL_DTYPE_F64:
                return ((const double *)data)[i];
        default:
                return sl_ref_from_f16(((const uint16_t *)data)[i]);
        }
}

static bool close_to(const void *got, const void *want, const struct sl_tensor *tensor, size_t bytes)
{
        double tolerance = tensor->dtype == SL_DTYPE_F16 ? 2e-3 : 1e-5;

        if (!sl_dtype_is_float(tensor->dtype) || tensor->dtype == SL_DTYPE_BF16)
                return !memcmp(got, want, bytes);
        for (size_t i = 0; i < bytes / sl_dtype_bytes(tensor->dtype); i++) {
                double a = element(got, tensor->dtype, i), b = element(want, tensor->dtype, i);

                if (isnan(a) != isnan(b) || isinf(a) != isinf(b) || (isinf(a) && a != b))
                        return false;
                if (fabs(a - b) > tolerance + tolerance * fabs(b))
                        return false;
        }
        return true;
}

static bool matches(const struct sl_value *value, const struct tensor_file *want, const void *got)
{
        struct sl_shape shape = {.rank = (uint32_t)want->proto->n_dims};

        for (uint32_t i = 0; i < shape.rank; i++)
                shape.dims[i] = want->proto->dims[i];
        return value->tensor.dtype == (uint32_t)want->proto->data_type && sl_shape_equal(&value->tensor.shape, &shape) &&
               close_to(got, want->data, &value->tensor, want->bytes);
}

static enum outcome evaluate_case(const struct sl_graph *graph, const char *folder, struct sl_error *error)
{
        struct tensor_file inputs[PORTS] = {0}, outputs[PORTS] = {0};
        const void *in[PORTS] = {0};
        void *out[PORTS] = {0};
        enum outcome outcome = PASSED;
        bool whole = graph->n_inputs <= PORTS && graph->n_outputs <= PORTS;

        for (uint32_t i = 0; i < graph->n_inputs && whole; i++) {
                whole = read_tensor(folder, "input", i, &inputs[i]) &&
                        inputs[i].bytes == sl_tensor_bytes(&graph->values[graph->inputs[i]].tensor);
                in[i] = inputs[i].data;
        }
        for (uint32_t i = 0; i < graph->n_outputs && whole; i++) {
                whole = read_tensor(folder, "output", i, &outputs[i]);
                out[i] = aligned_alloc(64, (sl_tensor_bytes(&graph->values[graph->outputs[i]].tensor) + 64) & ~63ull);
        }
        if (!whole) {
                outcome = REFUSED;
                sl_error_set(error, ENOTSUP, "the data of the case are not in raw form");
        } else {
                int result = sl_graph_evaluate(graph, in, out, error);

                if (result < 0)
                        outcome = result == -ENOTSUP ? REFUSED : FAILED;
        }
        for (uint32_t i = 0; i < graph->n_outputs && outcome == PASSED; i++)
                if (!matches(&graph->values[graph->outputs[i]], &outputs[i], out[i])) {
                        outcome = FAILED;
                        sl_error_set(error, EINVAL, "output %u differs", i);
                }
        for (uint32_t i = 0; i < PORTS; i++) {
                free_tensor(&inputs[i]);
                free_tensor(&outputs[i]);
                free(out[i]);
        }
        return outcome;
}

/*
 * A case as it is made for all runtimes; then with the inputs behind the first as constants, since a parameter that comes with each
 * request is out of scope; then with its first output alone, since the others are optional.
 */
enum form { AS_IT_IS, PARAMETERS_CONSTANT, FIRST_OUTPUT, N_FORMS };

static Onnx__ModelProto *read_model(const char *folder)
{
        char path[700];
        size_t n;
        uint8_t *bytes;
        Onnx__ModelProto *model;

        snprintf(path, sizeof(path), "%s/model.onnx", folder);
        bytes = read_file(path, &n);
        model = bytes ? onnx__model_proto__unpack(NULL, n, bytes) : NULL;
        free(bytes);
        return model;
}

static bool all_are_parameters(const Onnx__GraphProto *graph)
{
        const char *type = graph->n_node ? graph->node[0]->op_type : "";

        return !strcmp(type, "Range") || !strcmp(type, "ConstantOfShape") || strstr(type, "Window");
}

static void make_constant(Onnx__GraphProto *graph, const char *folder, uint32_t input)
{
        struct tensor_file tensor = {0};

        if (graph->input[input]->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
                return;
        if (!read_tensor(folder, "input", input, &tensor))
                return;
        free(tensor.data);
        free(tensor.proto->name);
        tensor.proto->name = strdup(graph->input[input]->name);
        graph->initializer = realloc(graph->initializer, (graph->n_initializer + 1) * sizeof(void *));
        graph->initializer[graph->n_initializer++] = tensor.proto;
}

static void bring_into_form(Onnx__ModelProto *model, const char *folder, enum form form)
{
        Onnx__GraphProto *graph = model->graph;

        /* Some cases name the oldest opset that has their operator, which is the same in opset 7. */
        for (size_t i = 0; i < model->n_opset_import; i++)
                if (model->opset_import[i]->version < 7)
                        model->opset_import[i]->version = 7;
        if (form >= PARAMETERS_CONSTANT)
                for (uint32_t i = all_are_parameters(graph) ? 0 : 1; i < graph->n_input; i++)
                        make_constant(graph, folder, i);
        while (form >= FIRST_OUTPUT && graph->n_output > 1)
                onnx__value_info_proto__free_unpacked(graph->output[--graph->n_output], NULL);
}

static enum outcome run_graph(const struct sl_graph *graph, const char *folder, struct sl_error *error)
{
        struct sl_graph *special = NULL;
        enum outcome outcome;
        int result = sl_graph_specialise(graph, 1, &special, error);

        if (result < 0)
                return result == -ENOTSUP ? REFUSED : FAILED;
        outcome = evaluate_case(special, folder, error);
        sl_graph_free(special);
        return outcome;
}

/* As it was imported, and after all passes. */
static enum outcome run_twice(struct sl_graph *graph, const char *folder, struct sl_error *error)
{
        enum outcome outcome = run_graph(graph, folder, error);

        if (outcome != PASSED)
                return outcome;
        if (sl_passes_run(graph, 0, error) < 0)
                return FAILED;
        outcome = run_graph(graph, folder, error);
        return outcome == PASSED ? PASSED : FAILED;
}

static enum outcome run_form(const char *folder, enum form form, struct sl_error *error)
{
        Onnx__ModelProto *model = read_model(folder);
        struct sl_graph *graph = NULL;
        enum outcome outcome = FAILED;
        uint8_t *bytes;
        size_t n_bytes;
        int result;

        cr_assert(model);
        bring_into_form(model, folder, form);
        bytes = malloc(onnx__model_proto__get_packed_size(model) + 1);
        n_bytes = onnx__model_proto__pack(model, bytes);
        onnx__model_proto__free_unpacked(model, NULL);
        result = sl_import_onnx_bytes(bytes, n_bytes, NULL, &graph, error);
        if (result == 0)
                outcome = run_twice(graph, folder, error);
        else if (result == -ENOTSUP)
                outcome = REFUSED;
        sl_graph_free(graph);
        free(bytes);
        return outcome;
}

static enum outcome run_case(const char *folder, struct sl_error *error)
{
        enum outcome outcome = REFUSED;

        for (enum form form = AS_IT_IS; form < N_FORMS && outcome == REFUSED; form++)
                outcome = run_form(folder, form, error);
        return outcome;
}

/* The operators of the case's nodes; true when all of them are in the list. */
static bool is_required(const char *folder)
{
        Onnx__ModelProto *model = read_model(folder);
        bool all = true;

        if (!model)
                return false;
        for (size_t i = 0; i < model->graph->n_node && all; i++) {
                bool found = false;

                for (size_t k = 0; k < sizeof(required) / sizeof(*required); k++)
                        found |= required[k] && !strcmp(required[k], model->graph->node[i]->op_type);
                all = found;
        }
        onnx__model_proto__free_unpacked(model, NULL);
        return all;
}

static bool is_excepted(const char *name)
{
        for (size_t i = 0; i < sizeof(except) / sizeof(*except); i++)
                if (except[i] && !strcmp(except[i], name))
                        return true;
        return false;
}

struct tally {
        uint32_t passed, failed, refused, broken;
};

static void count_case(const char *folder, const char *name, struct tally *tally)
{
        struct sl_error error = {0};
        enum outcome outcome = run_case(folder, &error);
        bool excepted = is_excepted(name), must = is_required(folder);

        tally->passed += outcome == PASSED;
        tally->failed += outcome == FAILED;
        tally->refused += outcome == REFUSED;
        if (outcome == PASSED || excepted || (outcome == REFUSED && !must))
                return;
        tally->broken++;
        fprintf(stderr, "%s %s: %s\n", outcome == FAILED ? "FAILED" : "REFUSED", name, error.text);
}

static int run_kind(const char *kind, struct tally *tally)
{
        char root[300], folder[600];
        struct dirent **entries = NULL;
        int n_entries;

        snprintf(root, sizeof(root), "%s/%s", CASES, kind);
        n_entries = scandir(root, &entries, NULL, alphasort);
        for (int i = 0; i < n_entries; i++) {
                snprintf(folder, sizeof(folder), "%s/%.250s", root, entries[i]->d_name);
                if (!strncmp(entries[i]->d_name, "test_", 5))
                        count_case(folder, entries[i]->d_name, tally);
                free(entries[i]);
        }
        free(entries);
        return n_entries;
}

Test(conformance, the_cases_of_onnx_in_scope_agree)
{
        struct tally tally = {0};

        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
                if (run_kind(kinds[i], &tally) < 0)
                        cr_skip_test("no ONNX test cases in %s", CASES);
        fprintf(stderr, "%u of %u cases in scope pass, %u are refused\n", tally.passed, tally.passed + tally.failed, tally.refused);
        cr_assert_eq(tally.broken, 0u, "%u cases that must pass do not", tally.broken);
}
