/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stages of an import, in order: look at the bytes, parse them, replace calls of the model's own functions, collect the names,
 * order the nodes, bring each into canonical form, settle what depends on the batch, check. One owner thread; nothing outlives the
 * call but the graph.
 */
#include "import.h"

#include "arena.h"
#include "base/cleanup.h"
#include "import/importer.h"
#include "model_file.h"
#include "pass.h"
#include "signature.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PROPERTY_PREFIX "starling."
#define PROPERTY_BYTES  2048
#define PROPERTIES_MAX  32

/* Messages beside the nodes: attributes, tensors, dimensions. A real model has about ten for each node. */
#define MESSAGES_PER_NODE 64

static int find_opset(struct sl_importer *im)
{
        const Onnx__ModelProto *model = im->model;
        size_t n_others = 0;

        im->graph->opset = 0;
        for (size_t i = 0; i < model->n_opset_import; i++) {
                const char *domain = model->opset_import[i]->domain;

                if (domain && *domain && strcmp(domain, "ai.onnx")) {
                        n_others++;
                        continue;
                }
                if (im->graph->opset && im->graph->opset != model->opset_import[i]->version)
                        return sl_error_set(im->error, EBADMSG,
                                "domain ai.onnx is imported in opset %" PRId64 " and in opset %" PRId64, im->graph->opset,
                                (int64_t)model->opset_import[i]->version);
                im->graph->opset = model->opset_import[i]->version;
        }
        /* A file of nothing but trees may import ai.onnx.ml alone. */
        if (!im->graph->opset && n_others && n_others == model->n_opset_import)
                im->graph->opset = SL_IMPORT_OPSET_MAX;
        if (!im->graph->opset)
                return sl_error_set(im->error, ENOTSUP, "the model imports no opset of domain ai.onnx");
        if (im->graph->opset < SL_IMPORT_OPSET_MIN || im->graph->opset > SL_IMPORT_OPSET_MAX)
                return sl_error_set(im->error, ENOTSUP, "opset %" PRId64 " of domain ai.onnx, supported are %d to %d",
                        im->graph->opset, SL_IMPORT_OPSET_MIN, SL_IMPORT_OPSET_MAX);
        return 0;
}

static int check_model(struct sl_importer *im)
{
        const Onnx__ModelProto *model = im->model;

        if (!model->graph)
                return sl_error_set(im->error, EBADMSG, "the model has no graph");
        im->graph->ir_version = model->ir_version;
        if (sl_graph_rename(im->graph, model->graph->name) < 0)
                return sl_error_set(im->error, ENOMEM, "no memory for the name of the graph");
        return find_opset(im);
}

static int count_names(struct sl_importer *im, uint32_t *ret_count)
{
        const Onnx__GraphProto *proto = im->proto;
        uint64_t count = proto->n_initializer + proto->n_sparse_initializer + proto->n_input;

        for (size_t i = 0; i < proto->n_node; i++)
                count += proto->node[i]->n_output;
        if (count > im->limits->values || proto->n_output > im->limits->values)
                return sl_error_set(im->error, E2BIG, "%" PRIu64 " values and %zu outputs, at most %u", count, proto->n_output,
                        im->limits->values);
        *ret_count = (uint32_t)count;
        return 0;
}

static void add_inputs(struct sl_importer *im, struct sl_symbols *initializers)
{
        const Onnx__GraphProto *proto = im->proto;

        for (size_t i = 0; i < proto->n_input; i++) {
                const char *name = proto->input[i]->name ? proto->input[i]->name : "";

                if (!sl_symbols_find(initializers, name))
                        sl_symbols_add(&im->symbols, name, SL_SYMBOL_NO_NODE);
        }
}

static const char *name_of_sparse(const Onnx__SparseTensorProto *proto)
{
        return proto->values && proto->values->name ? proto->values->name : "";
}

/* No input may have one for a default: its name would be there twice. */
static int add_sparse(struct sl_importer *im)
{
        const Onnx__GraphProto *proto = im->proto;

        for (size_t i = 0; i < proto->n_sparse_initializer; i++) {
                const char *name = name_of_sparse(proto->sparse_initializer[i]);

                if (!*name)
                        return sl_error_set(im->error, EBADMSG, "sparse initializer %zu has no name", i);
                sl_symbols_add(&im->symbols, name, SL_SYMBOL_NO_NODE);
        }
        return 0;
}

static void add_outputs(struct sl_importer *im)
{
        const Onnx__GraphProto *proto = im->proto;

        for (size_t i = 0; i < proto->n_node; i++)
                for (size_t k = 0; k < proto->node[i]->n_output; k++)
                        if (*proto->node[i]->output[k])
                                sl_symbols_add(&im->symbols, proto->node[i]->output[k], (uint32_t)i);
}

static int collect_names(struct sl_importer *im)
{
        const Onnx__GraphProto *proto = im->proto;
        uint32_t count = 0;
        int result = count_names(im, &count);

        if (result == 0)
                result = sl_symbols_init(&im->symbols, count);
        if (result < 0)
                return result;
        for (size_t i = 0; i < proto->n_initializer; i++) {
                if (!proto->initializer[i]->name || !*proto->initializer[i]->name)
                        return sl_error_set(im->error, EBADMSG, "initializer %zu has no name", i);
                sl_symbols_add(&im->symbols, proto->initializer[i]->name, SL_SYMBOL_NO_NODE);
        }
        /* Sorted once so that inputs which are initializers too can be told, and again with everything. */
        result = sl_symbols_sort(&im->symbols, im->error);
        if (result < 0)
                return result;
        struct sl_symbols initializers = im->symbols;

        add_inputs(im, &initializers);
        result = add_sparse(im);
        if (result < 0)
                return result;
        add_outputs(im);
        return sl_symbols_sort(&im->symbols, im->error);
}

static int import_initializers(struct sl_importer *im)
{
        const Onnx__GraphProto *proto = im->proto;
        int result = 0;

        for (size_t i = 0; i < proto->n_initializer && result == 0; i++) {
                Onnx__TensorProto *tensor = proto->initializer[i];
                struct sl_symbol *symbol = sl_symbols_find(&im->symbols, tensor->name);

                result = sl_import_tensor(im, tensor, tensor->name, &symbol->value);
        }
        for (size_t i = 0; i < proto->n_sparse_initializer && result == 0; i++) {
                const char *name = name_of_sparse(proto->sparse_initializer[i]);

                result = sl_import_sparse(im, proto->sparse_initializer[i], name, &sl_symbols_find(&im->symbols, name)->value);
        }
        return result;
}

static int import_nodes(struct sl_importer *im)
{
        const Onnx__GraphProto *proto = im->proto;
        SL_CLEANUP(sl_cleanup_free) uint32_t *order = calloc(proto->n_node + 1, sizeof(*order));
        int result = order ? sl_import_order(im, order) : -ENOMEM;

        for (size_t i = 0; i < proto->n_node && result == 0; i++)
                result = sl_import_node(im, proto->node[order[i]]);
        return result;
}

static char *keep_text(struct sl_importer *im, const char *text)
{
        size_t bytes = strlen(text) + 1;
        char *copy = sl_graph_alloc(im->graph, bytes);

        return copy ? memcpy(copy, text, bytes) : NULL;
}

static bool is_property(const Onnx__StringStringEntryProto *entry)
{
        return entry->key && entry->value && !strncmp(entry->key, PROPERTY_PREFIX, strlen(PROPERTY_PREFIX)) &&
               strlen(entry->key) < PROPERTY_BYTES && strlen(entry->value) < PROPERTY_BYTES;
}

/* Others, longer ones and more of them say nothing that anybody here reads. */
static int import_properties(struct sl_importer *im)
{
        struct sl_graph_property *kept = sl_graph_alloc(im->graph, PROPERTIES_MAX * sizeof(*kept));

        im->graph->properties = kept;
        for (size_t i = 0; kept && i < im->model->n_metadata_props && im->graph->n_properties < PROPERTIES_MAX; i++) {
                const Onnx__StringStringEntryProto *entry = im->model->metadata_props[i];
                struct sl_graph_property *property = &kept[im->graph->n_properties];

                if (!is_property(entry))
                        continue;
                property->key = keep_text(im, entry->key);
                property->value = keep_text(im, entry->value);
                if (!property->key || !property->value)
                        return -ENOMEM;
                im->graph->n_properties++;
        }
        return kept ? 0 : -ENOMEM;
}

int sl_import_contents(struct sl_importer *im)
{
        bool own_graph = !im->outer || im->graph != im->outer->graph;
        int result = collect_names(im);

        if (result == 0)
                result = import_initializers(im);
        if (result == 0)
                result = im->outer ? sl_import_formals(im) : sl_import_inputs(im);
        if (!im->outer)
                im->budget = sl_fold_budget_of(im->graph);
        if (result == 0)
                result = import_nodes(im);
        return result == 0 && own_graph ? sl_import_outputs(im) : result;
}

static int import_graph(struct sl_importer *im)
{
        int result = check_model(im);

        if (result == 0)
                result = sl_import_functions(im);
        if (result == 0)
                result = sl_import_check_operators(im);
        if (result == 0)
                result = import_properties(im);
        if (result == 0) {
                im->proto = im->model->graph;
                result = sl_import_contents(im);
        }
        if (result == 0)
                result = sl_import_resolve(im);
        if (result == 0)
                result = sl_pass_remove_dead(im->graph, im->error);
        if (result == 0)
                result = sl_graph_check(im->graph, im->error);
        return result == -EINVAL && !im->size_refused ? -EBADMSG : result;
}

static int parse(struct sl_importer *im)
{
        size_t n_bytes = im->file.n_bytes;
        const struct sl_wire_limits limits = {
                .nodes = im->limits->nodes,
                .messages = ((uint64_t)im->limits->nodes + im->limits->values) * MESSAGES_PER_NODE,
        };

        if (n_bytes > im->limits->file_bytes)
                return sl_error_set(im->error, E2BIG, "the file has %zu bytes, at most %" PRIu64, n_bytes, im->limits->file_bytes);
        return sl_wire_read_model(im->file.bytes, n_bytes, &limits, &im->model, im->error);
}

static int import_bytes(const struct sl_import_file *file, struct sl_external_files *external, const struct sl_graph_limits *limits,
        const struct sl_dim_sizes *sizes, struct sl_graph **ret_graph, struct sl_error *error)
{
        struct sl_vocabularies vocabularies = {0};
        struct sl_sequences sequences = {0};
        struct sl_error own = {0};
        struct sl_importer im = {
                .sequences = &sequences,
                .vocabularies = &vocabularies,
                .file = *file,
                .limits = limits ? limits : &sl_graph_limits_default,
                .sizes = sizes,
                .external = external,
                .error = error ? error : &own,
        };
        int result;

        im.error->text[0] = 0;
        result = sl_graph_new(&im.graph);
        vocabularies.graph = im.graph;
        if (result == 0)
                result = parse(&im);
        if (result == 0)
                result = import_graph(&im);
        if (result == -EBADMSG && (im.limits->sizes_unknown || im.limits->any_size) && !im.contradicts)
                result = -ENOTSUP;
        sl_symbols_deinit(&im.symbols);
        sl_function_opsets_deinit(&im.function_opsets);
        sl_sequences_deinit(&sequences);
        sl_vocabularies_deinit(&vocabularies);
        sl_wire_free_model(im.model);
        if (result < 0) {
                sl_graph_free(im.graph);
                /* Only a lack of memory comes without a text. */
                return im.error->text[0] ? result : sl_error_set(im.error, -result, "import: %s", strerror(-result));
        }
        *ret_graph = im.graph;
        return 0;
}

int sl_import_onnx_bytes(const void *bytes, size_t n_bytes, const struct sl_graph_limits *limits, struct sl_graph **ret_graph,
        struct sl_error *error)
{
        return sl_import_onnx_bytes_bound(bytes, n_bytes, limits, NULL, ret_graph, error);
}

int sl_import_onnx_bytes_bound(const void *bytes, size_t n_bytes, const struct sl_graph_limits *limits,
        const struct sl_dim_sizes *sizes, struct sl_graph **ret_graph, struct sl_error *error)
{
        const struct sl_import_file file = {.bytes = bytes, .n_bytes = n_bytes};

        return import_bytes(&file, NULL, limits, sizes, ret_graph, error);
}

/* The whole file, read-only. */
static int map_file(
        const struct sl_model_file *file, const struct sl_graph_limits *limits, const void **ret_bytes, struct sl_error *error)
{
        void *bytes;

        if (file->bytes > limits->file_bytes)
                return sl_error_set(error, E2BIG,
                        "%s: the file has %" PRIu64 " bytes, at most %" PRIu64
                        " (model_bytes_max, and 2 GiB: the rest is external data)",
                        file->path, file->bytes, limits->file_bytes);
        bytes = mmap(NULL, file->bytes, PROT_READ, MAP_PRIVATE, file->fd, 0);
        if (bytes == MAP_FAILED)
                return sl_error_set(error, errno == ENOMEM ? ENOMEM : EIO, "%s: cannot map it: %s", file->path, strerror(errno));
        *ret_bytes = bytes;
        return 0;
}

static void unmap_file(void *bytes, size_t n_bytes)
{
        munmap(bytes, n_bytes);
}

static int keep_mapped(struct sl_graph *graph, const struct sl_import_file *file)
{
        return sl_graph_arena_adopt(graph->arena, (void *)file->bytes, file->n_bytes, unmap_file);
}

int sl_import_onnx_file(const struct sl_model_file *file, const struct sl_graph_limits *limits, const struct sl_dim_sizes *sizes,
        struct sl_graph **ret_graph, struct sl_error *error)
{
        struct sl_external_files external = {.model = file};
        struct sl_import_file bytes = {.n_bytes = file->bytes, .stays = true};
        struct sl_graph *graph;
        int result;

        limits = limits ? limits : &sl_graph_limits_default;
        result = map_file(file, limits, &bytes.bytes, error);
        if (result < 0)
                return result;
        result = import_bytes(&bytes, file->open_external ? &external : NULL, limits, sizes, &graph, error);
        sl_external_files_deinit(&external);
        if (result == 0 && keep_mapped(graph, &bytes) < 0) {
                sl_graph_free(graph);
                result = sl_error_set(error, ENOMEM, "no memory to keep it mapped");
        }
        if (result < 0) {
                unmap_file((void *)bytes.bytes, bytes.n_bytes);
                return sl_error_prefix(error, result, "%s", file->path);
        }
        *ret_graph = graph;
        return 0;
}

int sl_import_onnx_bound(const char *path, const struct sl_graph_limits *limits, const struct sl_dim_sizes *sizes,
        struct sl_graph **ret_graph, struct sl_error *error)
{
        struct sl_model_file file;
        int result = sl_model_file_open(path, &file, error);

        if (result < 0)
                return result;
        sl_model_file_use_folder(&file, (limits ? limits : &sl_graph_limits_default)->data_folders);
        result = sl_import_onnx_file(&file, limits, sizes, ret_graph, error);
        sl_model_file_close(&file);
        return result;
}

int sl_import_onnx(const char *path, const struct sl_graph_limits *limits, struct sl_graph **ret_graph, struct sl_error *error)
{
        return sl_import_onnx_bound(path, limits, NULL, ret_graph, error);
}

/* The head of a file is what its ports say; only they are read, but all of it is checked and parsed. */
static int signature_of(const struct sl_import_file *file, const struct sl_graph_limits *limits, struct sl_signature *signature,
        struct sl_error *error)
{
        struct sl_importer im = {.file = *file, .limits = limits, .error = error};
        int result = parse(&im);

        if (result == 0)
                result = sl_import_ports_signature(&im, signature);
        sl_symbols_deinit(&im.symbols);
        sl_wire_free_model(im.model);
        return result;
}

int sl_import_signature_bytes(const void *bytes, size_t n_bytes, const struct sl_graph_limits *limits,
        struct sl_signature *ret_signature, struct sl_error *error)
{
        const struct sl_import_file file = {.bytes = bytes, .n_bytes = n_bytes};
        struct sl_signature signature = {0};
        struct sl_error own = {0};
        int result = signature_of(&file, limits ? limits : &sl_graph_limits_default, &signature, error ? error : &own);

        if (result == 0)
                *ret_signature = signature;
        else
                sl_signature_deinit(&signature);
        return result;
}

int sl_import_signature(const struct sl_model_file *file, const struct sl_graph_limits *limits, struct sl_signature *ret_signature,
        struct sl_error *error)
{
        const void *bytes;
        int result = map_file(file, limits ? limits : &sl_graph_limits_default, &bytes, error);

        if (result < 0)
                return result;
        result = sl_import_signature_bytes(bytes, file->bytes, limits, ret_signature, error);
        munmap((void *)bytes, file->bytes);
        return result < 0 ? sl_error_prefix(error, result, "%s", file->path) : 0;
}
