/* SPDX-License-Identifier: Apache-2.0 */
#include "trial.h"

#include "any_size.h"
#include "backend.h"
#include "base/dim_sizes.h"
#include "base/error.h"
#include "evaluate.h"
#include "export.h"
#include "graph.h"
#include "import.h"
#include "lower.h"
#include "onnx/onnx.pb-c.h"
#include "pass.h"
#include "plan.h"
#include "ref/live.h"
#include "tensor_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PORTS      64
#define PATH_BYTES 700

/* The cpu backend may add up in another order than the reference. */
#define CPU_TOLERANCE 1e-5

enum form { AS_IT_IS, PARAMETERS_CONSTANT, OPEN_BATCH, ANY_SIZE };

/* A graph and the files of one data set that belong to its ports. */
struct trial {
        const char *folder;
        const struct trial_backend *backend;
        Onnx__ModelProto *model;
        struct sl_graph *graph;
        uint32_t data_set;
        int64_t batch;
        double tolerance;
        bool differs;      /* a result, not only an error */
        bool only_changed; /* a form that is the case as it is has been tried */
        struct tensor_file inputs[PORTS], outputs[PORTS];
        void *results[N_BACKENDS][PORTS];
        struct sl_error error;
};

static Onnx__ModelProto *read_model(const char *folder)
{
        char path[PATH_BYTES];
        size_t n = 0;
        uint8_t *bytes;
        Onnx__ModelProto *model;

        snprintf(path, sizeof(path), "%s/model.onnx", folder);
        bytes = read_whole_file(path, &n);
        model = bytes ? onnx__model_proto__unpack(NULL, n, bytes) : NULL;
        free(bytes);
        return model;
}

/* Of a file that imports other domains alone. */
#define OPSET_OF_OTHERS 23

/* Domains that cases may import beside ONNX's own. */
static bool is_other_domain(const char *domain)
{
        return domain && (!strcmp(domain, "com.microsoft") || !strcmp(domain, "ai.onnx.ml") || !strcmp(domain, "ai.onnx.preview"));
}

static int64_t opset_of(const Onnx__ModelProto *model)
{
        bool others = false;
        int64_t opset = 0;

        for (size_t i = 0; i < model->n_opset_import && model->graph; i++) {
                const char *domain = model->opset_import[i]->domain;

                if (is_other_domain(domain)) {
                        others = true;
                        continue;
                }
                if (opset || (domain && *domain && strcmp(domain, "ai.onnx")))
                        return 0;
                opset = model->opset_import[i]->version;
        }
        return opset || !others ? opset : OPSET_OF_OTHERS;
}

int64_t trial_opset(const char *folder)
{
        Onnx__ModelProto *model = read_model(folder);
        int64_t opset = model ? opset_of(model) : 0;

        if (model)
                onnx__model_proto__free_unpacked(model, NULL);
        return opset;
}

static bool read_port(const struct trial *trial, const char *kind, uint32_t index, struct tensor_file *ret_file)
{
        char path[PATH_BYTES];

        snprintf(path, sizeof(path), "%s/test_data_set_%u/%s_%u.pb", trial->folder, trial->data_set, kind, index);
        return tensor_file_read(path, ret_file);
}

static bool has_data_set(const char *folder, uint32_t data_set)
{
        char path[PATH_BYTES];

        snprintf(path, sizeof(path), "%s/test_data_set_%u", folder, data_set);
        return access(path, F_OK) == 0;
}

/* Some operators take nothing but parameters. */
static bool all_are_parameters(const Onnx__GraphProto *graph)
{
        const char *type = graph->n_node ? graph->node[0]->op_type : "";

        return !strcmp(type, "Range") || !strcmp(type, "ConstantOfShape") || strstr(type, "Window");
}

/* Return: whether it is one now. */
static bool make_constant(Onnx__GraphProto *graph, const char *folder, uint32_t input)
{
        char path[PATH_BYTES];
        size_t n = 0;
        uint8_t *bytes;
        Onnx__TensorProto *tensor;

        if (graph->input[input]->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
                return false;
        snprintf(path, sizeof(path), "%s/test_data_set_0/input_%u.pb", folder, input);
        bytes = read_whole_file(path, &n);
        tensor = bytes ? onnx__tensor_proto__unpack(NULL, n, bytes) : NULL;
        free(bytes);
        if (!tensor)
                return false;
        free(tensor->name);
        tensor->name = strdup(graph->input[input]->name);
        graph->initializer = realloc(graph->initializer, (graph->n_initializer + 1) * sizeof(void *));
        graph->initializer[graph->n_initializer++] = tensor;
        return true;
}

/* The shape that the file gives input @index of the model. */
static bool shape_in_file(const char *folder, uint32_t index, struct sl_shape *ret_shape)
{
        struct trial first = {.folder = folder};
        struct tensor_file file;

        if (!read_port(&first, "input", index, &file))
                return false;
        *ret_shape = file.tensor.shape;
        tensor_file_free(&file);
        return true;
}

static Onnx__TensorShapeProto *shape_of_input(const Onnx__ValueInfoProto *input)
{
        if (input->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
                return NULL;
        return input->type->tensor_type->shape;
}

static void open_dimension(Onnx__TensorShapeProto__Dimension *dim)
{
        dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        dim->dim_param = strdup("N");
}

/* All inputs that lead as the first one does. False when that leaves nothing to open. */
static bool open_batch(const Onnx__GraphProto *graph, const char *folder)
{
        int64_t leading = 0;

        for (uint32_t i = 0; i < graph->n_input; i++) {
                Onnx__TensorShapeProto *shape = shape_of_input(graph->input[i]);
                struct sl_shape actual;

                if (!shape || !shape->n_dim || shape->n_dim > SL_RANK_MAX || !shape_in_file(folder, i, &actual))
                        continue;
                if (i == 0)
                        leading = actual.dims[0];
                if (leading > 0 && shape->dim[0]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
                        actual.dims[0] == leading)
                        open_dimension(shape->dim[0]);
        }
        return leading > 0;
}

/* Those of all inputs. */
static void open_all(const Onnx__GraphProto *graph)
{
        for (uint32_t i = 0; i < graph->n_input; i++) {
                Onnx__TensorShapeProto *shape = shape_of_input(graph->input[i]);

                for (uint32_t d = 0; shape && d < shape->n_dim; d++)
                        open_dimension(shape->dim[d]);
        }
}

/* Open dimensions behind the first get the sizes that the case's files have. */
static void bind_dimensions(const Onnx__GraphProto *graph, const char *folder, struct sl_dim_sizes *bindings)
{
        for (uint32_t i = 0; i < graph->n_input; i++) {
                Onnx__TensorShapeProto *shape = shape_of_input(graph->input[i]);
                struct sl_shape actual;

                if (!shape || !shape_in_file(folder, i, &actual) || shape->n_dim != actual.rank)
                        continue;
                for (uint32_t d = 1; d < shape->n_dim; d++) {
                        bool named = shape->dim[d]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
                        char name[SL_SYMBOL_BYTES];

                        if (shape->dim[d]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
                                continue;
                        sl_symbol_name(named ? shape->dim[d]->dim_param : "", graph->input[i]->name, d, name);
                        sl_dim_sizes_add(bindings, name, strlen(name), actual.dims[d]);
                }
        }
}

static int import_form(struct trial *trial, enum form form)
{
        struct sl_graph_limits limits = sl_graph_limits_default;
        struct sl_dim_sizes bindings = {0};
        Onnx__GraphProto *graph;
        uint32_t n_constant = 0;
        uint8_t *bytes;
        size_t n_bytes;
        int result;

        trial->model = read_model(trial->folder);
        if (!trial->model || !trial->model->graph)
                return sl_error_set(&trial->error, EBADMSG, "model.onnx cannot be read");
        graph = trial->model->graph;
        for (uint32_t i = all_are_parameters(graph) ? 0 : 1; i < graph->n_input && form == PARAMETERS_CONSTANT; i++)
                n_constant += make_constant(graph, trial->folder, i);
        if (trial->only_changed && !n_constant)
                return sl_error_set(&trial->error, ENOTSUP, "it has no parameters");
        if (form == OPEN_BATCH && !open_batch(graph, trial->folder))
                return sl_error_set(&trial->error, ENOTSUP, "nothing leads");
        limits.any_size = form == ANY_SIZE;
        if (form == ANY_SIZE)
                open_all(graph);
        else
                bind_dimensions(graph, trial->folder, &bindings);
        bytes = malloc(onnx__model_proto__get_packed_size(trial->model) + 1);
        n_bytes = onnx__model_proto__pack(trial->model, bytes);
        result = sl_import_onnx_bytes_bound(bytes, n_bytes, &limits, &bindings, &trial->graph, &trial->error);
        free(bytes);
        return result;
}

/* The number that the case's files give the graph's input: the place among the inputs of the file. */
static uint32_t file_index(const struct trial *trial, const char *name)
{
        const Onnx__GraphProto *graph = trial->model->graph;

        for (uint32_t i = 0; i < graph->n_input; i++)
                if (!strcmp(graph->input[i]->name, name))
                        return i;
        return UINT32_MAX;
}

static void find_batch(struct trial *trial, const struct sl_shape *open, const struct sl_shape *actual)
{
        for (uint32_t i = 0; i < open->rank && i < actual->rank; i++)
                if (open->dims[i] == SL_DIM_BATCH)
                        trial->batch = actual->dims[i];
}

static int read_ports(struct trial *trial)
{
        const struct sl_graph *graph = trial->graph;

        trial->batch = 1;
        if (graph->n_inputs > PORTS || graph->n_outputs > PORTS)
                return sl_error_set(&trial->error, ENOTSUP, "%u inputs and %u outputs", graph->n_inputs, graph->n_outputs);
        for (uint32_t i = 0; i < graph->n_inputs; i++) {
                const struct sl_value *value = &graph->values[graph->inputs[i]];

                if (!read_port(trial, "input", file_index(trial, value->name), &trial->inputs[i]))
                        return sl_error_set(&trial->error, ENOTSUP, "the file of input %u cannot be read", i);
                tensor_file_retype(&trial->inputs[i], value->tensor.dtype);
                find_batch(trial, &value->tensor.shape, &trial->inputs[i].tensor.shape);
        }
        for (uint32_t i = 0; i < graph->n_outputs; i++) {
                if (!read_port(trial, "output", i, &trial->outputs[i]))
                        return sl_error_set(&trial->error, ENOTSUP, "the file of output %u cannot be read", i);
                tensor_file_retype(&trial->outputs[i], graph->values[graph->outputs[i]].tensor.dtype);
        }
        return 0;
}

static void free_ports(struct trial *trial)
{
        for (uint32_t i = 0; i < PORTS; i++) {
                tensor_file_free(&trial->inputs[i]);
                tensor_file_free(&trial->outputs[i]);
                for (uint32_t b = 0; b < N_BACKENDS; b++) {
                        free(trial->results[b][i]);
                        trial->results[b][i] = NULL;
                }
        }
}

/* What the case feeds must be what the model takes. */
static int check_inputs(struct trial *trial, const struct sl_graph *graph, const void **ret_inputs)
{
        for (uint32_t i = 0; i < graph->n_inputs; i++) {
                const struct sl_tensor *tensor = &graph->values[graph->inputs[i]].tensor, *file = &trial->inputs[i].tensor;

                if (tensor->dtype != file->dtype || !sl_shape_equal(&tensor->shape, &file->shape))
                        return sl_error_set(&trial->error, EINVAL, "input %u has another shape than its file", i);
                ret_inputs[i] = trial->inputs[i].data;
        }
        return 0;
}

static int differ(struct trial *trial, uint32_t output, const char *text)
{
        trial->differs = true;
        return sl_error_set(&trial->error, EINVAL, "output %u: %s", output, text);
}

static int check_outputs(struct trial *trial, enum backend backend, const struct sl_tensor *tensors[PORTS])
{
        char want_text[SL_SHAPE_TEXT_BYTES], got_text[SL_SHAPE_TEXT_BYTES], text[120];

        for (uint32_t i = 0; i < trial->graph->n_outputs; i++) {
                const struct sl_tensor *want = &trial->outputs[i].tensor, *got = tensors[i];

                if (want->dtype != got->dtype || !sl_shape_equal(&want->shape, &got->shape))
                        return sl_error_set(&trial->error, EINVAL, "output %u is %s %s, not %s %s", i, sl_dtype_name(got->dtype),
                                sl_shape_print(&got->shape, got_text), sl_dtype_name(want->dtype),
                                sl_shape_print(&want->shape, want_text));
                if (!tensor_agrees(got, trial->results[backend][i], trial->outputs[i].data,
                            fmax(trial->tolerance, tensor_tolerance(got->dtype)), text, sizeof(text)))
                        return differ(trial, i, text);
        }
        return 0;
}

static void allocate_results(struct trial *trial, enum backend backend, const struct sl_tensor *tensors[PORTS])
{
        for (uint32_t i = 0; i < trial->graph->n_outputs; i++) {
                uint64_t bytes = sl_tensor_bytes(tensors[i]);

                free(trial->results[backend][i]);
                trial->results[backend][i] = bytes < UINT32_MAX ? aligned_alloc(64, (bytes + 64) & ~63ull) : NULL;
        }
}

/* Shapes that the data decide are those of the values afterwards. */
static int evaluate_open(struct trial *trial, struct sl_graph *graph, const void *const *inputs)
{
        struct sl_pool pool = {.limit_bytes = 1ull << 30};
        struct sl_live outputs[PORTS] = {0};
        const struct sl_tensor *tensors[PORTS];
        int result = sl_graph_evaluate_open(graph, inputs, &pool, outputs, &trial->error);

        if (result < 0)
                return result;
        for (uint32_t i = 0; i < graph->n_outputs; i++) {
                graph->values[graph->outputs[i]].tensor = outputs[i].tensor;
                tensors[i] = &graph->values[graph->outputs[i]].tensor;
        }
        allocate_results(trial, BACKEND_REF, tensors);
        for (uint32_t i = 0; i < graph->n_outputs; i++) {
                memcpy(trial->results[BACKEND_REF][i], outputs[i].data, sl_tensor_bytes(tensors[i]));
                sl_live_drop(&pool, &outputs[i]);
        }
        return 0;
}

static int run_on_ref(struct trial *trial)
{
        const struct sl_tensor *tensors[PORTS];
        const void *inputs[PORTS];
        struct sl_graph *graph;
        int result = sl_graph_specialise(trial->graph, trial->batch, &graph, &trial->error);

        if (result < 0)
                return result;
        for (uint32_t i = 0; i < graph->n_outputs; i++)
                tensors[i] = &graph->values[graph->outputs[i]].tensor;
        result = check_inputs(trial, graph, inputs);
        if (result == 0 && !sl_graph_is_static(graph))
                result = evaluate_open(trial, graph, inputs);
        else if (result == 0) {
                allocate_results(trial, BACKEND_REF, tensors);
                result = sl_graph_evaluate(graph, inputs, trial->results[BACKEND_REF], &trial->error);
        }
        if (result == 0)
                result = check_outputs(trial, BACKEND_REF, tensors);
        sl_graph_free(graph);
        return result;
}

/* The plan of the graph; its file needs no name. */
static int compile_plan(struct trial *trial, struct sl_plan **ret_plan)
{
        struct sl_lowered *lowered = NULL;
        struct sl_lower_options options;
        char backend[40];
        int fd = memfd_create("plan", MFD_CLOEXEC);
        int result;

        sl_lower_options_init(&options);
        options.batch_max = (uint32_t)trial->batch;
        snprintf(backend, sizeof(backend), "backend=%s", trial->backend->name);
        result = fd < 0 ? -errno : sl_lower_options_parse(&options, backend, &trial->error);
        if (result == 0)
                result = sl_lowered_new(trial->graph, &options, &lowered, &trial->error);
        if (result == 0)
                result = sl_lowered_write(lowered, fd, &trial->error);
        sl_lowered_free(lowered);
        if (result == 0)
                result = sl_plan_open(fd, ret_plan, &trial->error);
        if (fd >= 0)
                close(fd);
        return result;
}

static int run_plan(struct trial *trial, const struct sl_plan *plan)
{
        const struct sl_plan_info *info = sl_plan_info(plan);
        struct sl_tensor shapes[PORTS] = {0};
        const struct sl_tensor *tensors[PORTS];
        const void *inputs[PORTS];
        struct sl_instance *instance = NULL;
        struct sl_open_output open[PORTS] = {0};
        uint32_t batch = (uint32_t)trial->batch;
        int result;

        if (batch != 1 && !info->batchable)
                return sl_error_set(&trial->error, ENOTSUP, "the case has batch %u, its plan batch 1 alone", batch);
        result = sl_instance_new_on(plan, batch, trial->backend->ground, &instance, &trial->error);
        if (result < 0)
                return result;
        for (uint32_t i = 0; i < info->n_outputs; i++) {
                shapes[i] = (struct sl_tensor){.dtype = info->outputs[i].dtype, .shape = info->outputs[i].shape};
                if (info->outputs[i].batch_axis != SL_PORT_NO_BATCH)
                        shapes[i].shape.dims[info->outputs[i].batch_axis] = batch;
                tensors[i] = &shapes[i];
        }
        for (uint32_t i = 0; i < info->n_inputs; i++)
                inputs[i] = trial->inputs[i].data;
        for (uint32_t i = 0; i < info->n_outputs; i++) {
                if (sl_port_is_open(&info->outputs[i]))
                        shapes[i] = trial->outputs[i].tensor;
                open[i].capacity_bytes = sl_tensor_bytes(&shapes[i]);
        }
        allocate_results(trial, BACKEND_CPU, tensors);
        result = sl_instance_run_open(instance, batch, inputs, trial->results[BACKEND_CPU], open, &trial->error);
        for (uint32_t i = 0; i < info->n_outputs && result == 0; i++)
                if (sl_port_is_open(&info->outputs[i]))
                        shapes[i].shape = open[i].shape;
        if (result < 0 && !trial->error.text[0])
                sl_error_set(&trial->error, -result, "the plan: %s", strerror(-result));
        if (result == 0)
                result = check_outputs(trial, BACKEND_CPU, tensors);
        sl_instance_free(instance);
        return result;
}

/* Beside ONNX's values, which bear more tolerance, those of the reference backend. */
static int compare_with_ref(struct trial *trial)
{
        char text[120];

        for (uint32_t i = 0; i < trial->graph->n_outputs; i++) {
                const struct sl_tensor *tensor = &trial->outputs[i].tensor;
                double tolerance = tensor_tolerance(tensor->dtype);

                if (!tensor_agrees(tensor, trial->results[BACKEND_CPU][i], trial->results[BACKEND_REF][i],
                            tolerance > CPU_TOLERANCE ? tolerance : CPU_TOLERANCE, text, sizeof(text)))
                        return sl_error_set(
                                &trial->error, EINVAL, "output %u of %s against ref: %s", i, trial->backend->name, text);
        }
        return 0;
}

static int run_on_cpu(struct trial *trial)
{
        struct sl_plan *plan = NULL;
        int result = compile_plan(trial, &plan);

        if (result == 0)
                result = run_plan(trial, plan);
        if (result == 0)
                result = compare_with_ref(trial);
        sl_plan_free(plan);
        return result < 0 ? sl_error_prefix(&trial->error, result, "%s", trial->backend->name) : 0;
}

static int run_all_sets(struct trial *trial, int (*run)(struct trial *trial))
{
        int result = 0;

        for (trial->data_set = 0; result == 0 && has_data_set(trial->folder, trial->data_set); trial->data_set++) {
                result = read_ports(trial);
                if (result == 0)
                        result = run(trial);
                free_ports(trial);
        }
        return result;
}

/* Each on ref and as a plan. *@ret_ref: what came of the former. */
static int run_all_sets_on_both(struct trial *trial, int *ret_ref)
{
        int result = 0;

        *ret_ref = 0;
        for (trial->data_set = 0; result == 0 && has_data_set(trial->folder, trial->data_set); trial->data_set++) {
                result = *ret_ref = read_ports(trial);
                if (result == 0)
                        result = *ret_ref = run_on_ref(trial);
                if (result == 0)
                        result = run_on_cpu(trial);
                free_ports(trial);
        }
        return result;
}

static enum outcome outcome_of(int result, enum form form)
{
        if (result == -ENOTSUP)
                return OUTCOME_REFUSED;
        if (result < 0)
                return OUTCOME_DIFFERS;
        return form == PARAMETERS_CONSTANT ? OUTCOME_CONSTANT : OUTCOME_PASSED;
}

static void release(struct trial *trial)
{
        if (trial->model)
                onnx__model_proto__free_unpacked(trial->model, NULL);
        trial->graph = sl_graph_free(trial->graph);
        trial->model = NULL;
}

static void run_form(struct trial *trial, enum form form, enum outcome outcomes[N_BACKENDS])
{
        int result = import_form(trial, form), on_ref;

        if (result == 0)
                result = run_all_sets(trial, run_on_ref);
        if (result == 0)
                result = sl_passes_run(
                        trial->graph, &(struct sl_pass_options){.backend = sl_backend_find(trial->backend->name)}, &trial->error);
        on_ref = result;
        if (result == 0)
                result = run_all_sets_on_both(trial, &on_ref);
        outcomes[BACKEND_REF] = outcome_of(on_ref, form);
        outcomes[BACKEND_CPU] = outcome_of(result, form);
        release(trial);
}

/* The shapes of a case may contradict a batch: then it is refused, in one way or another. */
static void try_open_batch(struct trial *trial, struct verdict *verdict)
{
        enum outcome outcomes[N_BACKENDS];

        run_form(trial, OPEN_BATCH, outcomes);
        verdict->open_batch = outcomes[BACKEND_CPU] == OUTCOME_PASSED ? OUTCOME_PASSED : OUTCOME_REFUSED;
        if (!trial->differs)
                return;
        verdict->open_batch = OUTCOME_DIFFERS;
        snprintf(verdict->text, sizeof(verdict->text), "with an open batch: %.*s", VERDICT_TEXT_BYTES - 30, trial->error.text);
}

/* All open dimensions of the plan have one name, which is nothing but a name. */
static int name_open(struct sl_plan_info *info)
{
        uint32_t n_open = 0;

        for (uint32_t i = 0; i < info->n_inputs; i++)
                for (uint32_t d = 0; d < info->inputs[i].shape.rank; d++)
                        if (info->inputs[i].shape.dims[d] == SL_DIM_UNKNOWN) {
                                info->inputs[i].symbols[d] = 0;
                                n_open++;
                        }
        return n_open ? sl_plan_info_add_symbol(info, "any") : 0;
}

static int compile_any_size(struct trial *trial, struct sl_plan **ret_plan)
{
        struct sl_lowered *lowered = NULL;
        struct sl_lower_options options;
        int fd = memfd_create("plan", MFD_CLOEXEC);
        int result;

        sl_lower_options_init(&options);
        options.any_size = SL_ANY_SIZE_ONLY;
        result = sl_lower_rewrite(trial->graph, &options, &trial->error);
        if (result == 0)
                result = sl_any_size_suits(trial->graph, &options, &trial->error);
        if (result == 0)
                result = sl_lowered_new(trial->graph, &options, &lowered, &trial->error);
        if (result == 0)
                result = name_open(&lowered->info);
        if (result == 0)
                result = sl_lowered_write(lowered, fd, &trial->error);
        sl_lowered_free(lowered);
        if (result == 0)
                result = sl_plan_open(fd, ret_plan, &trial->error);
        close(fd);
        return result;
}

/* Of the data set at hand. What does not run says nothing: then a plan of its sizes does. */
static enum outcome run_any_size(struct trial *trial, const struct sl_plan *plan)
{
        const struct sl_plan_info *info = sl_plan_info(plan);
        const struct sl_tensor *tensors[PORTS];
        struct sl_open_output open[PORTS] = {0};
        struct sl_tensor made[PORTS] = {0};
        struct sl_instance *instance = NULL;
        struct sl_shape shapes[PORTS];
        const void *inputs[PORTS];
        int result = sl_instance_new(plan, 1, &instance, &trial->error);

        for (uint32_t i = 0; i < info->n_inputs; i++) {
                shapes[i] = trial->inputs[i].tensor.shape;
                inputs[i] = trial->inputs[i].data;
                if (shapes[i].rank != info->inputs[i].shape.rank || trial->inputs[i].tensor.dtype != info->inputs[i].dtype)
                        result = -EINVAL;
        }
        for (uint32_t i = 0; i < info->n_outputs; i++) {
                made[i] = (struct sl_tensor){.dtype = info->outputs[i].dtype, .shape = trial->outputs[i].tensor.shape};
                tensors[i] = &made[i];
                open[i].capacity_bytes = sl_tensor_bytes(&made[i]);
        }
        allocate_results(trial, BACKEND_CPU, tensors);
        if (result == 0) {
                sl_instance_give(instance, shapes);
                result = sl_instance_run_open(instance, 1, inputs, trial->results[BACKEND_CPU], open, &trial->error);
        }
        sl_instance_free(instance);
        for (uint32_t i = 0; i < info->n_outputs && (result == 0 || result == -EMSGSIZE); i++)
                made[i].shape = sl_port_is_open(&info->outputs[i]) ? open[i].shape : info->outputs[i].shape;
        if (result < 0 && result != -EMSGSIZE)
                return OUTCOME_REFUSED;
        return result == 0 && check_outputs(trial, BACKEND_CPU, tensors) == 0 ? OUTCOME_PASSED : OUTCOME_DIFFERS;
}

/* Each dimension of each input may be any: there may be no such plan, but it gives no other result. */
static void try_any_size(struct trial *trial, struct verdict *verdict)
{
        struct sl_plan *plan = NULL;
        enum outcome outcome = OUTCOME_PASSED;
        int result = import_form(trial, ANY_SIZE);

        if (result == 0)
                result = compile_any_size(trial, &plan);
        for (trial->data_set = 0; result == 0 && outcome == OUTCOME_PASSED && has_data_set(trial->folder, trial->data_set);
                trial->data_set++) {
                result = read_ports(trial);
                if (result == 0)
                        outcome = run_any_size(trial, plan);
                free_ports(trial);
        }
        verdict->any_size = result == 0 ? outcome : OUTCOME_REFUSED;
        if (verdict->any_size == OUTCOME_DIFFERS)
                snprintf(verdict->text, sizeof(verdict->text), "of any size: %.*s", VERDICT_TEXT_BYTES - 30, trial->error.text);
        sl_plan_free(plan);
        release(trial);
}

/* Bodies, and what import made an operator of its own, have no way back. */
static bool has_way_back(const struct sl_graph *graph)
{
        for (uint32_t i = 0; i < graph->n_nodes; i++)
                if (!graph->nodes[i].dead && strchr(sl_op_name(graph->nodes[i].op), '.'))
                        return false;
        return !sl_graph_has_bodies(graph);
}

/* The graph becomes what its export says. */
static int export_and_import(struct trial *trial)
{
        struct sl_graph *back = NULL;
        uint8_t *file = NULL;
        size_t bytes;
        int result = sl_export_onnx(trial->graph, NULL, 0, &file, &bytes, &trial->error);

        if (result == 0)
                result = sl_import_onnx_bytes(file, bytes, NULL, &back, &trial->error);
        free(file);
        if (result < 0)
                return result;
        sl_graph_free(trial->graph);
        trial->graph = back;
        return 0;
}

/* What was written and read again gives the case's values, in every form in which the case itself does. @passes: it is known to. */
static void try_export(struct trial *trial, enum form form, bool passes, struct verdict *verdict)
{
        trial->only_changed = form != AS_IT_IS;
        int result = import_form(trial, form);

        if (result == 0 && !passes)
                result = run_all_sets(trial, run_on_ref);
        if (result == 0 && has_way_back(trial->graph)) {
                result = export_and_import(trial);
                if (result == 0)
                        result = run_all_sets(trial, run_on_ref);
                if (verdict->exported != OUTCOME_DIFFERS)
                        verdict->exported = result < 0 ? OUTCOME_DIFFERS : OUTCOME_PASSED;
                if (result < 0)
                        snprintf(
                                verdict->text, sizeof(verdict->text), "exported: %.*s", VERDICT_TEXT_BYTES - 20, trial->error.text);
        }
        release(trial);
}

void trial_run(const char *folder, double tolerance, const struct trial_backend *backend, struct verdict *ret_verdict)
{
        struct trial *trial = calloc(1, sizeof(*trial));
        enum outcome outcomes[N_BACKENDS];

        trial->folder = folder;
        trial->backend = backend;
        trial->tolerance = tolerance;
        run_form(trial, AS_IT_IS, outcomes);
        snprintf(ret_verdict->text, sizeof(ret_verdict->text), "%.*s", VERDICT_TEXT_BYTES - 1, trial->error.text);
        if (outcomes[BACKEND_REF] == OUTCOME_REFUSED || outcomes[BACKEND_CPU] == OUTCOME_REFUSED) {
                run_form(trial, PARAMETERS_CONSTANT, outcomes);
                if (outcomes[BACKEND_REF] == OUTCOME_CONSTANT)
                        snprintf(ret_verdict->text, sizeof(ret_verdict->text), "%.*s", VERDICT_TEXT_BYTES - 1, trial->error.text);
        } else if (outcomes[BACKEND_CPU] == OUTCOME_PASSED) {
                try_open_batch(trial, ret_verdict);
                if (!backend->ground && !strcmp(backend->name, "cpu") && ret_verdict->open_batch != OUTCOME_DIFFERS)
                        try_any_size(trial, ret_verdict);
        }
        for (uint32_t b = 0; b < N_BACKENDS; b++)
                ret_verdict->outcomes[b] = outcomes[b];
        try_export(trial, AS_IT_IS, outcomes[BACKEND_REF] == OUTCOME_PASSED, ret_verdict);
        try_export(trial, PARAMETERS_CONSTANT, outcomes[BACKEND_REF] == OUTCOME_CONSTANT, ret_verdict);
        free(trial);
}
