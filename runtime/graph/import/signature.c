/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs and outputs that a file declares. Open dimensions beside the batch are numbered by name, so that one name is one size
 * wherever it stands.
 */
#include "signature.h"

#include "arena.h"
#include "import/importer.h"

#include <stdlib.h>
#include <string.h>

/* NULL when there is no memory. */
static const char *keep(struct sl_signature *signature, const char *text)
{
        size_t bytes = strlen(text) + 1;
        char *copy = sl_graph_arena_alloc(signature->arena, bytes);

        return copy ? memcpy(copy, text, bytes) : NULL;
}

static int number_of(struct sl_signature *signature, const char *name, struct sl_error *error, uint8_t *ret_symbol)
{
        for (uint32_t i = 0; i < signature->n_symbols; i++) {
                if (strcmp(signature->symbols[i], name) == 0) {
                        *ret_symbol = (uint8_t)i;
                        return 0;
                }
        }
        if (signature->n_symbols == SL_SYMBOLS_MAX)
                return sl_error_set(error, E2BIG, "dimension \"%s\" is open: a model has at most %d such beside the batch", name,
                        SL_SYMBOLS_MAX);
        signature->symbols[signature->n_symbols] = keep(signature, name);
        if (!signature->symbols[signature->n_symbols])
                return sl_error_set(error, ENOMEM, "no memory for the name of dimension \"%s\"", name);
        *ret_symbol = (uint8_t)signature->n_symbols++;
        return 0;
}

/* @batch: as in ports.c; NULL for outputs, whose open dimensions are nobody's to bind. */
static int read_dim(struct sl_importer *im, struct sl_signature *signature, const Onnx__TensorShapeProto__Dimension *dim,
        uint32_t axis, const char **batch, struct sl_signature_port *port)
{
        char name[SL_SYMBOL_BYTES];
        int64_t *target = &port->tensor.shape.dims[axis];

        port->symbols[axis] = SL_SYMBOL_NONE;
        *target = sl_onnx_dim_is_open(dim) ? SL_DIM_UNKNOWN : dim->dim_value;
        if (!sl_onnx_dim_is_open(dim) || !batch)
                return 0;
        if (axis == 0 && (!*batch || strcmp(*batch, sl_onnx_dim_parameter(dim)) == 0)) {
                *batch = sl_onnx_dim_parameter(dim);
                *target = SL_DIM_BATCH;
                return 0;
        }
        return number_of(
                signature, sl_symbol_name(sl_onnx_dim_parameter(dim), port->name, axis, name), im->error, &port->symbols[axis]);
}

/* Return: 0; -ENOTSUP the file does not say type and rank; -E2BIG. */

static int read_port(struct sl_importer *im, struct sl_signature *signature, const Onnx__ValueInfoProto *info, const char **batch,
        struct sl_signature_port *port)
{
        const Onnx__TypeProto__Tensor *type = sl_onnx_tensor_of(info);
        const char *name = info->name ? info->name : "";
        bool strings = batch && sl_vocabulary_is_of_strings(info); /* of an input: places in its labels */
        int result = 0;

        port->name = keep(signature, name);
        if (!port->name)
                return sl_error_set(im->error, ENOMEM, "no memory for the name \"%s\"", name);
        memset(port->symbols, SL_SYMBOL_NONE, sizeof(port->symbols));
        if (!type || !type->has_elem_type || type->elem_type < 0 || (!sl_dtype_bytes((uint32_t)type->elem_type) && !strings) ||
                !type->shape)
                return sl_error_set(im->error, ENOTSUP,
                        "\"%s\" has no element type or no rank, which a model with open dimensions must say of its ports", name);
        if (type->shape->n_dim > SL_RANK_MAX)
                return sl_error_set(im->error, E2BIG, "\"%s\": rank %zu, at most %d", name, type->shape->n_dim, SL_RANK_MAX);
        port->tensor = (struct sl_tensor){
                .dtype = strings ? SL_DTYPE_I64 : (uint32_t)type->elem_type, .shape.rank = (uint32_t)type->shape->n_dim};
        for (uint32_t i = 0; i < port->tensor.shape.rank && result == 0; i++)
                result = read_dim(im, signature, type->shape->dim[i], i, batch, port);
        port->described = result == 0;
        return result;
}

/* What is computed says it better. */
static int read_output(struct sl_importer *im, struct sl_signature *signature, const Onnx__ValueInfoProto *info)
{
        struct sl_error ignored;
        struct sl_error *error = im->error;
        int result;

        im->error = &ignored;
        result = read_port(im, signature, info, NULL, &signature->outputs[signature->n_outputs++]);
        im->error = error;
        return result == -ENOTSUP ? 0 : result < 0 ? sl_error_set(error, -result, "%s", ignored.text) : 0;
}

/* An input that an initializer gives a value is none. */
static int collect_initializers(struct sl_importer *im, const Onnx__GraphProto *proto)
{
        int result = proto->n_initializer > im->limits->values ? sl_error_set(im->error, E2BIG, "%zu initializers, at most %u",
                                                                         proto->n_initializer, im->limits->values)
                                                               : sl_symbols_init(&im->symbols, (uint32_t)proto->n_initializer);

        for (size_t i = 0; i < proto->n_initializer && result == 0; i++)
                sl_symbols_add(&im->symbols, proto->initializer[i]->name ? proto->initializer[i]->name : "", SL_SYMBOL_NO_NODE);
        return result < 0 ? result : sl_symbols_sort(&im->symbols, im->error);
}

int sl_signature_open_batch(struct sl_signature *signature, struct sl_error *error)
{
        int result = 0;

        for (uint32_t i = 0; i < signature->n_inputs && result == 0; i++) {
                struct sl_signature_port *port = &signature->inputs[i];
                char name[SL_SYMBOL_BYTES];

                if (!port->tensor.shape.rank || port->tensor.shape.dims[0] != SL_DIM_BATCH)
                        continue;
                port->tensor.shape.dims[0] = SL_DIM_UNKNOWN;
                result = number_of(signature, sl_symbol_name(signature->batch, port->name, 0, name), error, &port->symbols[0]);
        }
        signature->has_batch = false;
        return result;
}

/* Each sample of a batch has a part of every input, and the batch is no size of anything else. */
static bool leads_all_inputs(const struct sl_signature *signature)
{
        for (uint32_t i = 0; i < signature->n_symbols; i++) {
                if (!strcmp(signature->symbols[i], signature->batch))
                        return false;
        }
        for (uint32_t i = 0; i < signature->n_inputs; i++) {
                const struct sl_shape *shape = &signature->inputs[i].tensor.shape;

                if (signature->inputs[i].optional) /* the same for all samples */
                        continue;
                if (!shape->rank || shape->dims[0] != SL_DIM_BATCH)
                        return false;
        }
        return signature->n_inputs > 0;
}

static const Onnx__TensorProto *initializer_of(const Onnx__GraphProto *proto, const char *name)
{
        for (size_t i = 0; i < proto->n_initializer; i++)
                if (proto->initializer[i]->name && !strcmp(proto->initializer[i]->name, name))
                        return proto->initializer[i];
        return NULL;
}

/* Whatever the input leaves open its initializer says. */
static int read_optional(
        struct sl_signature *signature, const Onnx__TensorProto *tensor, struct sl_signature_port *port, struct sl_error *error)
{
        if (tensor->n_dims > SL_RANK_MAX || !tensor->has_data_type || !sl_dtype_bytes((uint32_t)tensor->data_type))
                return sl_error_set(error, ENOTSUP, "tensor \"%s\": its type or rank is not supported", tensor->name);
        port->name = keep(signature, tensor->name);
        if (!port->name)
                return sl_error_set(error, ENOMEM, "no memory for the name \"%s\"", tensor->name);
        memset(port->symbols, SL_SYMBOL_NONE, sizeof(port->symbols));
        port->tensor = (struct sl_tensor){.dtype = (uint32_t)tensor->data_type, .shape.rank = (uint32_t)tensor->n_dims};
        for (uint32_t i = 0; i < port->tensor.shape.rank; i++) {
                if (tensor->dims[i] < 0)
                        return sl_error_set(error, EBADMSG, "tensor \"%s\": a dimension is negative", tensor->name);
                port->tensor.shape.dims[i] = tensor->dims[i];
        }
        port->optional = port->described = true;
        return 0;
}

static bool name_optional(struct sl_importer *im, struct sl_signature *signature, const Onnx__TensorProto *tensor, size_t index)
{
        struct sl_signature_port *port = &signature->inputs[signature->n_inputs + signature->n_optionals];
        struct sl_error *error = im->error, ignored;
        bool named;

        im->error = &ignored;
        named = sl_import_check_port(im, "input", index, im->model->graph->input[index]) == 0 &&
                read_optional(signature, tensor, port, &ignored) == 0 && sl_shape_elements(&port->tensor.shape);
        im->error = error;
        return named;
}

static int read_optionals(struct sl_importer *im, const Onnx__GraphProto *proto, struct sl_signature *signature)
{
        int result = 0;

        bool named = !sl_import_has_optionals(im) && sl_import_names_optionals(im, proto);

        for (size_t i = 0; i < proto->n_input && result == 0 && (named || sl_import_has_optionals(im)); i++) {
                const char *name = proto->input[i]->name ? proto->input[i]->name : "";
                const Onnx__TensorProto *tensor = sl_symbols_find(&im->symbols, name) ? initializer_of(proto, name) : NULL;

                if (!tensor)
                        continue;
                if (named) {
                        signature->n_optionals += name_optional(im, signature, tensor, i);
                        continue;
                }
                result = sl_import_check_port(im, "input", i, proto->input[i]);
                if (result == 0)
                        result = read_optional(signature, tensor, &signature->inputs[signature->n_inputs++], im->error);
        }
        return result;
}

static int read_inputs(struct sl_importer *im, const Onnx__GraphProto *proto, struct sl_signature *signature)
{
        const char *batch = NULL;
        int result = 0;

        for (size_t i = 0; i < proto->n_input && result == 0; i++) {
                if (sl_symbols_find(&im->symbols, proto->input[i]->name ? proto->input[i]->name : ""))
                        continue;
                result = sl_import_check_port(im, "input", i, proto->input[i]);
                if (result == 0)
                        result = read_port(im, signature, proto->input[i], &batch, &signature->inputs[signature->n_inputs++]);
        }
        if (result == 0)
                result = read_optionals(im, proto, signature);
        if (result < 0 || !batch)
                return result;
        signature->batch = keep(signature, batch);
        if (!signature->batch)
                return -ENOMEM;
        signature->has_batch = true;
        return leads_all_inputs(signature) ? 0 : sl_signature_open_batch(signature, im->error);
}

static struct sl_signature_port *new_ports(struct sl_signature *signature, size_t n)
{
        return sl_graph_arena_alloc(signature->arena, (n + 1) * sizeof(struct sl_signature_port));
}

static int init_signature(const Onnx__GraphProto *proto, struct sl_signature *signature)
{
        signature->batch = "";
        signature->arena = sl_graph_arena_new();
        if (!signature->arena)
                return -ENOMEM;
        signature->name = keep(signature, proto->name ? proto->name : "");
        return signature->name ? 0 : -ENOMEM;
}

/* Room for all of them. */
static int make_ports(struct sl_importer *im, const Onnx__GraphProto *proto, struct sl_signature *signature)
{
        size_t n_inputs = 0;
        int result;

        for (size_t i = 0; i < proto->n_input; i++)
                n_inputs += !sl_symbols_find(&im->symbols, proto->input[i]->name ? proto->input[i]->name : "") ||
                            sl_import_has_optionals(im);
        result = sl_import_check_ports(im, n_inputs, proto->n_output);
        if (result < 0)
                return result;
        signature->inputs = new_ports(signature, proto->n_input);
        signature->outputs = new_ports(signature, proto->n_output);
        return signature->inputs && signature->outputs ? 0 : -ENOMEM;
}

void sl_signature_deinit(struct sl_signature *signature)
{
        sl_graph_arena_free(signature->arena);
        *signature = (struct sl_signature){0};
}

int sl_import_ports_signature(struct sl_importer *im, struct sl_signature *signature)
{
        const Onnx__GraphProto *proto = im->model->graph;
        int result;

        if (!proto)
                return sl_error_set(im->error, EBADMSG, "the model has no graph");
        result = init_signature(proto, signature);
        if (result == 0)
                result = collect_initializers(im, proto);
        if (result == 0)
                result = make_ports(im, proto, signature);
        if (result == 0)
                result = read_inputs(im, proto, signature);
        for (size_t i = 0; i < proto->n_output && result == 0; i++) {
                result = sl_import_check_port(im, "output", i, proto->output[i]);
                if (result == 0)
                        result = read_output(im, signature, proto->output[i]);
        }
        return result;
}
