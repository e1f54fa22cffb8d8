/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs and outputs of the graph. A leading dimension that has no size is the batch, and one for all inputs; every other open
 * dimension needs one.
 */
#include "base/utf8.h"
#include "import/importer.h"
#include "signature.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_BYTES 48 /* of a name that is too long */

/* What exporters write for a dimension of which they know nothing: Paddle's and Keras' own. Two of them are not the same one. */
static bool says_nothing(const char *parameter)
{
        return !strcmp(parameter, "?") || !strcmp(parameter, "-1") || !strcmp(parameter, "None");
}

const char *sl_onnx_dim_parameter(const Onnx__TensorShapeProto__Dimension *dim)
{
        bool named = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && dim->dim_param;

        return named && !says_nothing(dim->dim_param) ? dim->dim_param : "";
}

bool sl_onnx_dim_is_open(const Onnx__TensorShapeProto__Dimension *dim)
{
        return dim->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE || dim->dim_value < 0;
}

/* A dimension beside the batch has to have a size. */
static int refuse_open(struct sl_importer *im, const char *input, uint32_t index, const char *name)
{
        return sl_error_set(im->error, ENOTSUP,
                "input \"%s\": dimension %u is open, and only the batch may be: give it a size, as in \"%s=SIZE\"", input, index,
                name);
}

/* @batch: the name of the parameter that led an earlier input, NULL before the first. */
static int read_dim(struct sl_importer *im, const char *input, uint32_t index, const Onnx__TensorShapeProto__Dimension *dim,
        const char **batch, int64_t *ret_dim)
{
        const char *parameter = sl_onnx_dim_parameter(dim);
        char name[SL_SYMBOL_BYTES];
        int64_t size;

        if (!sl_onnx_dim_is_open(dim)) {
                *ret_dim = dim->dim_value;
                return 0;
        }
        size = sl_dim_sizes_find(im->sizes, sl_symbol_name(parameter, input, index, name));
        if (size == SL_DIM_SIZE_NONE && (im->limits->sizes_unknown || im->limits->any_size)) {
                *ret_dim = SL_DIM_UNKNOWN;
                return 0;
        }
        if (size == SL_DIM_SIZE_NONE && (index > 0 || (*batch && strcmp(*batch, parameter))))
                return refuse_open(im, input, index, name);
        if (size != SL_DIM_SIZE_NONE)
                im->sized = true;
        else
                *batch = parameter;
        *ret_dim = size != SL_DIM_SIZE_NONE ? size : SL_DIM_BATCH;
        return 0;
}

const Onnx__TypeProto__Tensor *sl_onnx_tensor_of(const Onnx__ValueInfoProto *info)
{
        const Onnx__TypeProto *type = info->type;

        if (type && type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE && type->optional_type)
                type = type->optional_type->elem_type;
        return type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? type->tensor_type : NULL;
}

/* A sequence, or an optional one. */
static bool is_listed(const Onnx__TypeProto *type)
{
        if (type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE && type->optional_type && type->optional_type->elem_type)
                type = type->optional_type->elem_type;
        return type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
}

static int read_type(struct sl_importer *im, const Onnx__ValueInfoProto *info, const char **batch, struct sl_tensor *tensor)
{
        const Onnx__TypeProto__Tensor *type = sl_onnx_tensor_of(info);
        bool strings = sl_vocabulary_is_of_strings(info);
        int result = 0;

        if (!type)
                return sl_error_set(im->error, ENOTSUP, "input \"%s\" is no dense tensor%s", info->name,
                        info->type && is_listed(info->type) ? ", but a sequence, whose length a request alone would say" : "");
        if (!type->has_elem_type || type->elem_type < 0 || (!sl_dtype_bytes((uint32_t)type->elem_type) && !strings))
                return sl_error_set(
                        im->error, ENOTSUP, "input \"%s\": element type %d is not supported", info->name, type->elem_type);
        if (!type->shape)
                return sl_error_set(im->error, ENOTSUP, "input \"%s\" has no shape", info->name);
        if (type->shape->n_dim > SL_RANK_MAX)
                return sl_error_set(
                        im->error, E2BIG, "input \"%s\": rank %zu, at most %d", info->name, type->shape->n_dim, SL_RANK_MAX);
        *tensor = (struct sl_tensor){
                .dtype = strings ? SL_DTYPE_I64 : (uint32_t)type->elem_type, .shape.rank = (uint32_t)type->shape->n_dim};
        for (uint32_t i = 0; i < tensor->shape.rank && result == 0; i++)
                result = read_dim(im, info->name, i, type->shape->dim[i], batch, &tensor->shape.dims[i]);
        return result;
}

/* An input that an initializer gives a value is none. */
static bool is_given(const struct sl_importer *im, const Onnx__ValueInfoProto *info)
{
        const struct sl_symbol *symbol = sl_symbols_find(&im->symbols, info->name ? info->name : "");

        return !symbol || symbol->value != SL_VALUE_NONE;
}

static const Onnx__TensorShapeProto *shape_of(const Onnx__ValueInfoProto *info)
{
        const Onnx__TypeProto__Tensor *type = sl_onnx_tensor_of(info);

        return type ? type->shape : NULL;
}

/* Whoever lists a model meets the names of its ports, whole. */
static int check_name(struct sl_importer *im, const char *kind, size_t index, const char *name)
{
        size_t good = sl_utf8_printable(name), bytes = strlen(name);
        char shown[SHOWN_BYTES];

        if (name[good])
                return sl_error_set(im->error, EBADMSG,
                        "%s %zu: byte %zu of its name, 0x%02x, is of a control character or no UTF-8", kind, index, good,
                        (unsigned char)name[good]);
        if (bytes > SL_NAME_MAX)
                return sl_error_set(im->error, E2BIG, "%s %zu, \"%s...\": its name has %zu bytes, the limit is %d", kind, index,
                        sl_utf8_clean(name, shown, sizeof(shown)), bytes, SL_NAME_MAX);
        return 0;
}

int sl_import_check_port(struct sl_importer *im, const char *kind, size_t index, const Onnx__ValueInfoProto *info)
{
        const Onnx__TensorShapeProto *shape = shape_of(info);
        int result = check_name(im, kind, index, info->name ? info->name : "");
        char shown[SHOWN_BYTES];

        for (size_t i = 0; shape && i < shape->n_dim && result == 0; i++) {
                const char *name = sl_onnx_dim_parameter(shape->dim[i]);

                if (strlen(name) > SL_NAME_MAX)
                        result = sl_error_set(im->error, E2BIG,
                                "%s %zu: the name of its dimension %zu, \"%s...\", has %zu bytes, the limit is %d", kind, index, i,
                                sl_utf8_clean(name, shown, sizeof(shown)), strlen(name), SL_NAME_MAX);
        }
        return result;
}

static bool has_dimension(const Onnx__ValueInfoProto *info, const char *wanted)
{
        const Onnx__TensorShapeProto *shape = shape_of(info);
        char name[SL_SYMBOL_BYTES];

        for (size_t i = 0; shape && i < shape->n_dim; i++)
                if (sl_onnx_dim_is_open(shape->dim[i]) &&
                        !strcmp(wanted, sl_symbol_name(sl_onnx_dim_parameter(shape->dim[i]), info->name, (uint32_t)i, name)))
                        return true;
        return false;
}

/* "x [batch,sequence], mask [batch,64]", as far as there is room. */
static void print_inputs(const struct sl_importer *im, char *text, size_t bytes)
{
        char name[SL_SYMBOL_BYTES];
        size_t used = 0;

        for (size_t k = 0; k < im->proto->n_input && used < bytes; k++) {
                const Onnx__ValueInfoProto *info = im->proto->input[k];
                const Onnx__TensorShapeProto *shape = shape_of(info);

                if (!shape || is_given(im, info))
                        continue;
                used += (size_t)snprintf(text + used, bytes - used, "%s%s [", used ? ", " : "", info->name);
                for (size_t i = 0; i < shape->n_dim && used < bytes; i++) {
                        const char *parameter = sl_onnx_dim_parameter(shape->dim[i]);

                        used += sl_onnx_dim_is_open(shape->dim[i])
                                        ? (size_t)snprintf(text + used, bytes - used, "%s%s", i ? "," : "",
                                                  sl_symbol_name(parameter, info->name, (uint32_t)i, name))
                                        : (size_t)snprintf(
                                                  text + used, bytes - used, "%s%" PRId64, i ? "," : "", shape->dim[i]->dim_value);
                }
                if (used < bytes)
                        used += (size_t)snprintf(text + used, bytes - used, "]");
        }
}

static int check_sizes(struct sl_importer *im)
{
        const struct sl_dim_sizes *sizes = im->sizes;
        char inputs[256] = "";

        for (uint32_t s = 0; sizes && s < sizes->n; s++) {
                bool found = false;

                for (size_t i = 0; i < im->proto->n_input && !found; i++)
                        found = !is_given(im, im->proto->input[i]) &&
                                has_dimension(im->proto->input[i], sl_dim_sizes_name(sizes, s));
                if (found)
                        continue;
                im->size_refused = true;
                print_inputs(im, inputs, sizeof(inputs));
                return sl_error_set(im->error, EINVAL, "shapes: no input has an open dimension \"%s\": %s",
                        sl_dim_sizes_name(sizes, s), inputs[0] ? inputs : "there are no inputs");
        }
        return 0;
}

/* For passes that ask which dimensions of several inputs are one. */
static int keep_symbols(struct sl_importer *im, const Onnx__ValueInfoProto *info, struct sl_value *value)
{
        const Onnx__TypeProto__Tensor *type = sl_onnx_tensor_of(info);
        const char **symbols = sl_graph_alloc(im->graph, (value->tensor.shape.rank + 1u) * sizeof(*symbols));
        char name[SL_SYMBOL_BYTES];

        for (uint32_t i = 0; symbols && i < value->tensor.shape.rank; i++) {
                const char *symbol = sl_symbol_name(sl_onnx_dim_parameter(type->shape->dim[i]), info->name, i, name);
                size_t bytes = strlen(symbol) + 1;
                char *copy = value->tensor.shape.dims[i] == SL_DIM_UNKNOWN ? sl_graph_alloc(im->graph, bytes) : NULL;

                if (copy)
                        memcpy(copy, symbol, bytes);
                symbols[i] = copy;
        }
        value->symbols = symbols;
        return symbols ? 0 : sl_error_set(im->error, ENOMEM, "input \"%s\": no memory for the names of its dimensions", info->name);
}

static int import_input(struct sl_importer *im, size_t index, const char **batch)
{
        const Onnx__ValueInfoProto *info = im->proto->input[index];
        struct sl_symbol *symbol = sl_symbols_find(&im->symbols, info->name ? info->name : "");
        char shape[SL_SHAPE_TEXT_BYTES];
        struct sl_tensor tensor;
        int result;

        if (is_given(im, info))
                return 0;
        result = sl_import_check_port(im, "input", index, info);
        if (result == 0)
                result = read_type(im, info, batch, &tensor);
        if (result < 0)
                return result;
        if (sl_graph_least_bytes(&tensor) > im->limits->tensor_bytes)
                return sl_error_set(im->error, -sl_import_misfit_status(im, -E2BIG),
                        "input \"%s\", %s %s, is larger than %" PRIu64 " bytes (tensor_bytes_max)", info->name,
                        sl_dtype_name(tensor.dtype), sl_shape_print(&tensor.shape, shape), im->limits->tensor_bytes);
        result = sl_graph_add_value(im->graph, info->name, SL_VALUE_INPUT, &tensor, &symbol->value);
        if (result == 0 && (im->limits->any_size || im->limits->sizes_unknown))
                result = keep_symbols(im, info, &im->graph->values[symbol->value]);
        if (result == 0 && info->type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE)
                result = sl_import_held(im, symbol->value, &symbol->sequence);
        return result == 0 && sl_vocabulary_is_of_strings(info) ? sl_vocabulary_input(im, symbol->value) : result;
}

static bool agrees_with(const struct sl_tensor *data, const Onnx__ValueInfoProto *info)
{
        const Onnx__TensorShapeProto *shape = shape_of(info);

        if (!info->type || info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !info->type->tensor_type ||
                info->type->tensor_type->elem_type != (int32_t)data->dtype || (shape && shape->n_dim != data->shape.rank))
                return false;
        for (size_t i = 0; shape && i < shape->n_dim; i++)
                if (!sl_onnx_dim_is_open(shape->dim[i]) && shape->dim[i]->dim_value != data->shape.dims[i])
                        return false;
        return true;
}

/* An input with an initializer is of the initializer's type and shape, whatever it leaves open. */
static int import_optional(struct sl_importer *im, const Onnx__ValueInfoProto *info, uint32_t *ret_value)
{
        struct sl_symbol *symbol = sl_symbols_find(&im->symbols, info->name);
        struct sl_value *value = &im->graph->values[symbol->value];
        char text[SL_SHAPE_TEXT_BYTES];

        if (value->kind == SL_VALUE_INPUT)
                return sl_error_set(im->error, EBADMSG, "input \"%s\" is there twice", info->name);
        if (!agrees_with(&value->tensor, info))
                return sl_error_set(im->error, EBADMSG, "input \"%s\" is declared otherwise than its initializer, which is %s %s",
                        info->name, sl_dtype_name(value->tensor.dtype), sl_shape_print(&value->tensor.shape, text));
        value->kind = SL_VALUE_INPUT;
        *ret_value = symbol->value;
        return 0;
}

/* Behind all others, in the order of the file. */
static int import_optionals(struct sl_importer *im, uint32_t n_values, uint32_t *inputs, uint32_t *n_inputs)
{
        int result = 0;

        for (size_t i = 0; i < im->proto->n_input && result == 0 && sl_import_has_optionals(im); i++) {
                const struct sl_symbol *symbol = sl_symbols_find(&im->symbols, im->proto->input[i]->name);

                if (!symbol || symbol->value >= n_values)
                        continue;
                result = sl_import_check_port(im, "input", i, im->proto->input[i]);
                if (result == 0)
                        result = import_optional(im, im->proto->input[i], &inputs[(*n_inputs)++]);
        }
        return result;
}

/* Before version 4 of the representation all initializers had to be inputs. */
bool sl_import_has_optionals(const struct sl_importer *im)
{
        return im->limits->optional_inputs && !im->outer && im->model->ir_version >= 4;
}

bool sl_import_names_optionals(const struct sl_importer *im, const Onnx__GraphProto *proto)
{
        return im->limits->names_optionals && !im->outer && im->model->ir_version >= 4 &&
               proto->n_input + proto->n_output <= SL_SIGNATURE_PORTS_MAX;
}

int sl_import_check_ports(struct sl_importer *im, size_t n_inputs, size_t n_outputs)
{
        if (n_inputs + n_outputs <= SL_SIGNATURE_PORTS_MAX)
                return 0;
        return sl_error_set(im->error, E2BIG, "the model has %zu inputs and %zu outputs, %zu together, the limit is %d", n_inputs,
                n_outputs, n_inputs + n_outputs, SL_SIGNATURE_PORTS_MAX);
}

/* What a request could give: of a name, and of a size, that one can have. */
static bool can_be_given(struct sl_importer *im, size_t index)
{
        const Onnx__ValueInfoProto *info = im->proto->input[index];
        const struct sl_tensor *tensor = &im->graph->values[sl_symbols_find(&im->symbols, info->name)->value].tensor;
        struct sl_error *error = im->error, ignored;
        bool named;

        im->error = &ignored;
        named = sl_import_check_port(im, "input", index, info) == 0;
        im->error = error;
        return named && agrees_with(tensor, info) && sl_shape_elements(&tensor->shape);
}

static int name_optionals(struct sl_importer *im, uint32_t n_inputs)
{
        const Onnx__GraphProto *proto = im->proto;
        struct sl_graph *graph = im->graph;
        size_t most = proto->n_input - n_inputs;

        if (!most || !sl_import_names_optionals(im, proto))
                return 0;
        graph->optionals = sl_graph_alloc(graph, most * sizeof(*graph->optionals));
        if (!graph->optionals)
                return -ENOMEM;
        for (size_t i = 0; i < proto->n_input; i++) {
                const struct sl_symbol *symbol = sl_symbols_find(&im->symbols, proto->input[i]->name ? proto->input[i]->name : "");
                const struct sl_value *value = symbol && symbol->value != SL_VALUE_NONE ? &graph->values[symbol->value] : NULL;

                if (value && value->kind == SL_VALUE_CONSTANT && graph->n_optionals < most && can_be_given(im, i))
                        graph->optionals[graph->n_optionals++] = (struct sl_graph_optional){value->name, value->tensor};
        }
        return 0;
}

static int check_ports(struct sl_importer *im)
{
        size_t n_inputs = 0;

        for (size_t i = 0; i < im->proto->n_input && !im->outer; i++)
                n_inputs += !is_given(im, im->proto->input[i]) || sl_import_has_optionals(im);
        return im->outer ? 0 : sl_import_check_ports(im, n_inputs, im->proto->n_output);
}

int sl_import_inputs(struct sl_importer *im)
{
        const Onnx__GraphProto *proto = im->proto;
        uint32_t *inputs = calloc(proto->n_input + 1, sizeof(*inputs));
        const char *batch = NULL;
        uint32_t n_inputs = 0, n_initializers = im->graph->n_values;
        int result = !inputs ? -ENOMEM : im->limits->sizes_known ? check_sizes(im) : 0;

        if (result == 0)
                result = check_ports(im);

        for (size_t i = 0; i < proto->n_input && result == 0; i++) {
                uint32_t n_before = im->graph->n_values;

                result = import_input(im, i, &batch);
                if (im->graph->n_values > n_before)
                        inputs[n_inputs++] = n_before;
        }
        if (result == 0)
                result = import_optionals(im, n_initializers, inputs, &n_inputs);
        if (result == 0)
                result = name_optionals(im, n_inputs);
        if (result == 0)
                result = sl_graph_set_ports(im->graph, inputs, n_inputs, NULL, 0);
        free(inputs);
        return result;
}

bool sl_import_has_batch(const struct sl_importer *im)
{
        while (im->outer)
                im = im->outer;
        return sl_graph_has_batch(im->graph);
}

int sl_import_misfit_status(const struct sl_importer *im, int otherwise)
{
        return im->sized && !im->limits->sizes_unknown ? -ERANGE : otherwise;
}

/* An output that is an input, a constant, or an output already gets a node of its own, so that every output is computed once. */
static int own_output(struct sl_importer *im, const char *name, const uint32_t *outputs, size_t n_outputs, uint32_t *value)
{
        bool taken = im->graph->values[*value].kind != SL_VALUE_COMPUTED;
        struct sl_tensor tensor = im->graph->values[*value].tensor;
        uint32_t copy, made;
        int result;

        for (size_t i = 0; i < n_outputs; i++)
                taken |= outputs[i] == *value;
        if (!taken) /* what a branch made in place of its If has another name there */
                return sl_graph_rename_value(im->graph, *value, name);
        result = sl_graph_add_value(im->graph, name, SL_VALUE_COMPUTED, &tensor, &copy);
        if (result == 0)
                result = sl_graph_add_node(im->graph, SL_OP_IDENTITY, name, value, 1, &copy, 1, &made);
        if (result == 0)
                *value = copy;
        return result;
}

/* What the model gives as that output: one value, or those of a sequence, each an output of its own. */
struct output {
        const char *name;
        const uint32_t *values;
        uint32_t n, value;
        bool listed;
};

static int find_output(struct sl_importer *im, const char *name, struct output *ret_output)
{
        bool known = sl_import_knows(im, name);
        uint32_t sequence = im->outer ? 0 : sl_import_find_sequence(im, name);
        const struct sl_sequence *list = sequence ? &im->sequences->items[sequence - 1] : NULL;

        if (list && list->inner)
                list = &im->sequences->items[list->inner - 1];
        if (list && !list->optional && im->sized)
                return sl_error_set(
                        im->error, ENOTSUP, "output \"%s\" is a sequence, of a model with open dimensions beside the batch", name);
        if (list && list->optional && !list->n)
                return sl_error_set(im->error, ENOTSUP, "output \"%s\" is an optional that holds nothing", name);
        *ret_output =
                (struct output){.name = name, .n = list ? list->n : 1, .value = list ? SL_VALUE_NONE : sl_import_find(im, name)};
        ret_output->values = list ? list->values : NULL;
        ret_output->listed = list && !list->optional;
        if (!list && ret_output->value == SL_VALUE_NONE)
                return sl_error_set(im->error, known ? ENOTSUP : EBADMSG, "output \"%s\" is made by nothing%s", name,
                        known ? " that Starling computes" : "");
        return 0;
}

/* "pieces[3]" */
static int name_element(struct sl_importer *im, const char *name, uint32_t index, const char **ret_name)
{
        size_t bytes = strlen(name) + sizeof("[4294967295]");
        char *text = sl_graph_alloc(im->graph, bytes);

        if (!text)
                return -ENOMEM;
        if (snprintf(text, bytes, "%s[%u]", name, index) > SL_NAME_MAX)
                return sl_error_set(im->error, E2BIG, "an element of output \"%.*s...\" has a name of more than %d bytes",
                        SHOWN_BYTES, name, SL_NAME_MAX);
        *ret_name = text;
        return 0;
}

static int add_output(struct sl_importer *im, const struct output *output, uint32_t *outputs, uint32_t *n)
{
        int result = 0;

        for (uint32_t i = 0; i < output->n && result == 0; i++) {
                uint32_t value = output->values ? output->values[i] : output->value;
                const char *name = output->name;

                if (output->listed)
                        result = name_element(im, output->name, i, &name);
                if (result == 0 && sl_vocabulary_of(im, value))
                        result = sl_vocabulary_label(im, name, sl_vocabulary_of(im, value));
                if (result == 0)
                        result = own_output(im, name, outputs, *n, &value);
                outputs[(*n)++] = value;
        }
        return result;
}

/* Of all outputs together; each is found. */
static int count_outputs(struct sl_importer *im, uint64_t *ret_n)
{
        const Onnx__GraphProto *proto = im->proto;
        struct output output;
        int result = 0;

        *ret_n = 0;
        for (size_t i = 0; i < proto->n_output && result == 0; i++) {
                result = sl_import_check_port(im, "output", i, proto->output[i]);
                if (result == 0)
                        result = find_output(im, proto->output[i]->name ? proto->output[i]->name : "", &output);
                *ret_n += result == 0 ? output.n : 0;
        }
        if (result == 0 && !*ret_n)
                result = sl_error_set(im->error, proto->n_output ? ENOTSUP : EBADMSG,
                        proto->n_output ? "the outputs of the graph are empty sequences" : "the graph has no outputs");
        return result == 0 && !im->outer ? sl_import_check_ports(im, im->graph->n_inputs, *ret_n) : result;
}

int sl_import_outputs(struct sl_importer *im)
{
        const Onnx__GraphProto *proto = im->proto;
        uint32_t *outputs = NULL, n = 0;
        uint64_t n_outputs;
        int result = count_outputs(im, &n_outputs);

        if (result == 0)
                result = sl_vocabulary_label_inputs(im);
        if (result < 0)
                return result;
        outputs = calloc(n_outputs + 1, sizeof(*outputs));
        if (!outputs)
                return -ENOMEM;
        for (size_t i = 0; i < proto->n_output && result == 0; i++) {
                struct output output;

                result = find_output(im, proto->output[i]->name ? proto->output[i]->name : "", &output);
                if (result == 0)
                        result = add_output(im, &output, outputs, &n);
        }
        if (result == 0)
                result = sl_graph_set_ports(im->graph, im->graph->inputs, im->graph->n_inputs, outputs, n);
        free(outputs);
        return result;
}
