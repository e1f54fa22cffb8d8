/* SPDX-License-Identifier: Apache-2.0 */
#include "import/vocabulary.h"

#include "base/labels.h"
#include "base/utf8.h"
#include "import/importer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void sl_vocabularies_deinit(struct sl_vocabularies *vocabularies)
{
        for (uint32_t i = 0; i < vocabularies->n; i++) {
                free(vocabularies->items[i].text);
                free(vocabularies->items[i].begins);
                free(vocabularies->items[i].sorted);
        }
        free(vocabularies->items);
        free(vocabularies->of_values);
        *vocabularies = (struct sl_vocabularies){0};
}

static struct sl_vocabulary *vocabulary_at(const struct sl_importer *im, uint32_t vocabulary)
{
        return &im->vocabularies->items[vocabulary - 1];
}

int sl_vocabulary_new(struct sl_importer *im, uint32_t *ret_vocabulary)
{
        struct sl_vocabularies *all = im->vocabularies;
        uint32_t room = all->n < all->room ? all->room : 2 * all->room + 8;
        struct sl_vocabulary *grown = room == all->room ? all->items : realloc(all->items, room * sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        all->items = grown;
        all->room = room;
        all->items[all->n] = (struct sl_vocabulary){0};
        *ret_vocabulary = ++all->n;
        return 0;
}

static int compare(const struct sl_vocabulary *v, uint32_t place, const ProtobufCBinaryData *word)
{
        uint32_t bytes = v->begins[place + 1] - v->begins[place] - 1;
        size_t both = bytes < word->len ? bytes : word->len;
        int order = both ? memcmp(v->text + v->begins[place], word->data, both) : 0;

        return order ? order : (bytes > word->len) - (bytes < word->len);
}

/* Where it stands among the sorted ones, or would; *ret_found says which. */
static uint32_t search(const struct sl_vocabulary *v, const ProtobufCBinaryData *word, bool *ret_found)
{
        uint32_t low = 0, high = v->n;

        *ret_found = false;
        while (low < high && !*ret_found) {
                uint32_t middle = low + (high - low) / 2;
                int order = compare(v, v->sorted[middle], word);

                *ret_found = order == 0;
                if (order >= 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return high;
}

static int check_word(struct sl_importer *im, const char *owner, const ProtobufCBinaryData *word)
{
        size_t bytes = 0, next;

        do {
                next = bytes < word->len && word->data[bytes] && word->data[bytes] != SL_LABEL_END
                               ? sl_utf8_bytes((const char *)word->data + bytes, word->len - bytes)
                               : 0;
                bytes += next;
        } while (next);
        return bytes == word->len ? 0
                                  : sl_error_set(im->error, EBADMSG,
                                            "\"%s\": byte %zu of one of its strings, 0x%02x, is no UTF-8 or not allowed in a label",
                                            owner, bytes, word->data[bytes]);
}

static int make_room(struct sl_vocabulary *v, size_t bytes)
{
        if (v->used + bytes + 2 > v->room) {
                uint32_t room = 2 * v->room + (uint32_t)bytes + 256;
                char *text = realloc(v->text, room);

                if (!text)
                        return -ENOMEM;
                v->text = text;
                v->room = room;
        }
        if (v->n + 1 >= v->n_room) {
                uint32_t room = 2 * v->n_room + 16;
                uint32_t *begins = realloc(v->begins, (room + 1u) * sizeof(*begins)), *sorted;

                if (!begins)
                        return -ENOMEM;
                v->begins = begins;
                v->begins[0] = 0;
                sorted = realloc(v->sorted, room * sizeof(*sorted));
                if (!sorted)
                        return -ENOMEM;
                v->sorted = sorted;
                v->n_room = room;
        }
        return 0;
}

int sl_vocabulary_add(
        struct sl_importer *im, uint32_t vocabulary, const char *owner, const ProtobufCBinaryData *word, int64_t *ret_place)
{
        struct sl_vocabulary *v = vocabulary_at(im, vocabulary);
        bool found;
        uint32_t at = search(v, word, &found);
        int result;

        if (found) {
                *ret_place = v->sorted[at];
                return 0;
        }
        if (v->n == SL_LABELS_MAX || word->len >= SL_LABELS_BYTES_MAX || v->used + word->len + 1 > SL_LABELS_BYTES_MAX)
                return sl_error_set(im->error, E2BIG, "\"%s\": more than %u strings, or than %u bytes of them", owner,
                        SL_LABELS_MAX, SL_LABELS_BYTES_MAX);
        result = check_word(im, owner, word);
        if (result == 0)
                result = make_room(v, word->len);
        if (result < 0)
                return result;
        memmove(v->sorted + at + 1, v->sorted + at, (v->n - at) * sizeof(*v->sorted));
        v->sorted[at] = v->n;
        if (word->len)
                memcpy(v->text + v->used, word->data, word->len);
        v->used += (uint32_t)word->len;
        v->text[v->used++] = SL_LABEL_END;
        v->text[v->used] = 0;
        *ret_place = v->n;
        v->begins[++v->n] = v->used;
        return 0;
}

int sl_vocabulary_add_all(struct sl_importer *im, uint32_t vocabulary, const char *owner, const ProtobufCBinaryData *words,
        size_t n, int64_t **ret_places)
{
        int64_t *places = sl_graph_alloc(im->graph, (n + 1) * sizeof(*places));
        int result = places ? 0 : -ENOMEM;

        for (size_t i = 0; i < n && result == 0; i++)
                result = sl_vocabulary_add(im, vocabulary, owner, &words[i], &places[i]);
        *ret_places = places;
        return result;
}

int sl_vocabulary_find_all(struct sl_importer *im, uint32_t vocabulary, const char *owner, const ProtobufCBinaryData *words,
        size_t n, int64_t **ret_places)
{
        const struct sl_vocabulary *v = vocabulary_at(im, vocabulary);
        int64_t *places;

        if (v->grows)
                return sl_vocabulary_add_all(im, vocabulary, owner, words, n, ret_places);
        places = sl_graph_alloc(im->graph, (n + 1) * sizeof(*places));
        for (size_t i = 0; i < n && places; i++) {
                bool found;
                uint32_t at = search(v, &words[i], &found);

                places[i] = found ? (int64_t)v->sorted[at] : SL_WORD_NOWHERE;
        }
        *ret_places = places;
        return places ? 0 : -ENOMEM;
}

uint32_t sl_vocabulary_of(const struct sl_importer *im, uint32_t value)
{
        const struct sl_vocabularies *all = im->vocabularies;

        return im->graph == all->graph && value < all->n_values ? all->of_values[value] : 0;
}

int sl_vocabulary_assign(struct sl_importer *im, uint32_t value, uint32_t vocabulary)
{
        struct sl_vocabularies *all = im->vocabularies;

        if (value >= all->n_values) {
                uint32_t n = im->graph->n_values + 64;
                uint32_t *grown = realloc(all->of_values, n * sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                memset(grown + all->n_values, 0, (n - all->n_values) * sizeof(*grown));
                all->of_values = grown;
                all->n_values = n;
        }
        all->of_values[value] = vocabulary;
        return 0;
}

int sl_vocabulary_tensor(struct sl_importer *im, const Onnx__TensorProto *proto, const char *name, uint32_t *ret_value)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_I64, .shape = {.rank = (uint32_t)proto->n_dims}};
        uint32_t vocabulary = 0;
        int64_t *places = NULL;
        int result = 0;

        if (im->graph != im->vocabularies->graph)
                return sl_error_set(im->error, ENOTSUP, "tensor \"%s\": a tensor of strings in a body", name);
        if (proto->n_dims > SL_RANK_MAX)
                return sl_error_set(im->error, E2BIG, "tensor \"%s\": rank %zu, at most %d", name, proto->n_dims, SL_RANK_MAX);
        for (uint32_t i = 0; i < tensor.shape.rank; i++) {
                if (proto->dims[i] < 0)
                        return sl_error_set(im->error, EBADMSG, "tensor \"%s\": dimension %u is %" PRId64, name, i, proto->dims[i]);
                tensor.shape.dims[i] = proto->dims[i];
        }
        if (sl_tensor_bytes(&tensor) == UINT64_MAX || sl_shape_elements(&tensor.shape) != proto->n_string_data)
                return sl_error_set(im->error, EBADMSG, "tensor \"%s\": %zu strings, its shape wants another number", name,
                        proto->n_string_data);
        result = sl_import_check_size(im, name, &tensor);
        if (result == 0)
                result = sl_vocabulary_new(im, &vocabulary);
        if (result == 0)
                result = sl_vocabulary_add_all(im, vocabulary, name, proto->string_data, proto->n_string_data, &places);
        if (result == 0)
                result = sl_graph_add_constant(im->graph, name, &tensor, places, ret_value);
        return result < 0 ? result : sl_vocabulary_assign(im, *ret_value, vocabulary);
}

/* Operators that only move elements of their first input, or of all. */
static bool only_moves(const struct sl_onnx_node *node, bool *ret_all)
{
        static const char *const movers[] = {"ArrayFeatureExtractor", "Concat", "Expand", "Flatten", "Gather", "Identity",
                "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"};

        *ret_all = !strcmp(node->proto->op_type, "Concat");
        for (size_t i = 0; i < sizeof(movers) / sizeof(*movers); i++)
                if (!strcmp(movers[i], node->proto->op_type))
                        return true;
        return false;
}

int sl_vocabulary_behind(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t *ret_vocabulary)
{
        uint32_t first = node->n_inputs ? sl_vocabulary_of(im, node->inputs[0]) : 0;
        bool all, moves = only_moves(node, &all), any = first;

        for (uint32_t i = 1; i < node->n_inputs; i++) {
                uint32_t vocabulary = node->inputs[i] == SL_VALUE_NONE ? 0 : sl_vocabulary_of(im, node->inputs[i]);

                any |= vocabulary != 0;
                moves &= vocabulary == (all ? first : 0);
        }
        *ret_vocabulary = first;
        return !any || moves ? 0 : sl_import_refuse(im, node, "it works on strings");
}

static ProtobufCBinaryData word_at(const struct sl_importer *im, uint32_t vocabulary, uint32_t place)
{
        const struct sl_vocabulary *v = vocabulary_at(im, vocabulary);

        return (ProtobufCBinaryData){v->begins[place + 1] - v->begins[place] - 1, (uint8_t *)v->text + v->begins[place]};
}

/* The same words in a list of its own, in their order. */
static int copy_vocabulary(struct sl_importer *im, const char *owner, uint32_t from, uint32_t *ret_vocabulary)
{
        int64_t place;
        int result = sl_vocabulary_new(im, ret_vocabulary);

        for (uint32_t i = 0; result == 0 && i < vocabulary_at(im, from)->n; i++) {
                ProtobufCBinaryData word = word_at(im, from, i);

                result = sl_vocabulary_add(im, *ret_vocabulary, owner, &word, &place);
        }
        return result;
}

/* A constant of strings by another list, which gets the words that it lacks if it @grows. */
static int read_anew(struct sl_importer *im, const char *owner, uint32_t vocabulary, bool grows, uint32_t *value)
{
        struct sl_tensor tensor = im->graph->values[*value].tensor;
        uint64_t n = sl_shape_elements(&tensor.shape);
        const int64_t *places = sl_graph_constant(im->graph, *value);
        int64_t *anew = sl_graph_alloc(im->graph, (n + 1) * sizeof(*anew));
        int result = places && anew ? 0 : -ENOMEM;

        for (uint64_t i = 0; i < n && result == 0; i++) {
                ProtobufCBinaryData word = word_at(im, sl_vocabulary_of(im, *value), (uint32_t)places[i]);
                bool found;
                uint32_t at = search(vocabulary_at(im, vocabulary), &word, &found);

                anew[i] = found ? (int64_t)vocabulary_at(im, vocabulary)->sorted[at] : SL_WORD_NOWHERE;
                if (!found && grows)
                        result = sl_vocabulary_add(im, vocabulary, owner, &word, &anew[i]);
        }
        return result < 0 ? result : sl_graph_add_constant(im->graph, owner, &tensor, anew, value);
}

/* Operand @constant of the node is by the list of the other one. */
static int meet_constant(
        struct sl_importer *im, struct sl_onnx_node *node, uint32_t constant, uint32_t other, bool moves, uint32_t *ret_vocabulary)
{
        uint32_t vocabulary = sl_vocabulary_of(im, node->inputs[other]);
        int result = 0;

        if (moves && !vocabulary_at(im, vocabulary)->grows)
                result = copy_vocabulary(im, node->name, vocabulary, &vocabulary);
        if (result == 0)
                result = read_anew(
                        im, node->name, vocabulary, moves || vocabulary_at(im, vocabulary)->grows, &node->inputs[constant]);
        *ret_vocabulary = moves ? vocabulary : 0;
        return result;
}

int sl_vocabulary_meet(struct sl_importer *im, struct sl_onnx_node *node, uint32_t *ret_vocabulary, bool *ret_done)
{
        bool moves = !strcmp(node->proto->op_type, "Where"), compares = !strcmp(node->proto->op_type, "Equal");
        uint32_t first = moves ? 1 : 0, second = first + 1, a, b;

        *ret_done = false;
        if ((!moves && !compares) || node->n_inputs <= second || node->inputs[first] == SL_VALUE_NONE ||
                node->inputs[second] == SL_VALUE_NONE)
                return 0;
        a = sl_vocabulary_of(im, node->inputs[first]);
        b = sl_vocabulary_of(im, node->inputs[second]);
        if (!a || !b || (moves && sl_vocabulary_of(im, node->inputs[0])))
                return 0;
        *ret_done = true;
        *ret_vocabulary = moves ? a : 0;
        if (a != b && sl_graph_is_constant(im->graph, node->inputs[second]))
                return meet_constant(im, node, second, first, moves, ret_vocabulary);
        if (a != b && sl_graph_is_constant(im->graph, node->inputs[first]))
                return meet_constant(im, node, first, second, moves, ret_vocabulary);
        if (a != b)
                return sl_import_refuse(im, node, "its strings come from two lists of words");
        /* Words that are in no list have one place, so that whether two of them are equal cannot be told. */
        if (compares && vocabulary_at(im, a)->grows)
                return sl_import_refuse(im, node, "it compares strings of a request with each other");
        return 0;
}

int sl_vocabulary_assign_outputs(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t vocabulary)
{
        int result = 0;

        for (size_t i = 0; i < node->proto->n_output && result == 0 && vocabulary; i++) {
                const struct sl_symbol *symbol = sl_symbols_find(&im->symbols, node->proto->output[i]);

                if (symbol && symbol->value != SL_VALUE_NONE)
                        result = sl_vocabulary_assign(im, symbol->value, vocabulary);
        }
        return result;
}

bool sl_vocabulary_is_of_strings(const Onnx__ValueInfoProto *info)
{
        const Onnx__TypeProto__Tensor *type = sl_onnx_tensor_of(info);

        return type && type->elem_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING;
}

static bool is_string_input(const struct sl_importer *im, const char *name)
{
        for (size_t i = 0; i < im->proto->n_input; i++)
                if (im->proto->input[i]->name && !strcmp(im->proto->input[i]->name, name))
                        return sl_vocabulary_is_of_strings(im->proto->input[i]);
        return false;
}

/* A Concat of the model reads a string input, and others; a Where two. */
static bool joins_inputs(const struct sl_importer *im)
{
        for (size_t i = 0; i < im->proto->n_node; i++) {
                const Onnx__NodeProto *node = im->proto->node[i];

                if (node->op_type && !strcmp(node->op_type, "Concat") && node->n_input > 1 && is_string_input(im, node->input[0]))
                        return true;
                if (node->op_type && !strcmp(node->op_type, "Where") && node->n_input > 2 && is_string_input(im, node->input[1]) &&
                        is_string_input(im, node->input[2]))
                        return true;
        }
        return false;
}

int sl_vocabulary_input(struct sl_importer *im, uint32_t value)
{
        struct sl_vocabularies *all = im->vocabularies;
        uint32_t vocabulary = all->of_inputs;
        int result = 0;

        if (!vocabulary) {
                result = sl_vocabulary_new(im, &vocabulary);
                if (result < 0)
                        return result;
                vocabulary_at(im, vocabulary)->grows = true;
                all->of_inputs = joins_inputs(im) ? vocabulary : 0;
        }
        return sl_vocabulary_assign(im, value, vocabulary);
}

int sl_vocabulary_label_inputs(struct sl_importer *im)
{
        const struct sl_graph *graph = im->graph;
        int result = 0;

        for (uint32_t i = 0; i < graph->n_inputs && result == 0; i++) {
                uint32_t vocabulary = sl_vocabulary_of(im, graph->inputs[i]);

                if (!vocabulary)
                        continue;
                if (!vocabulary_at(im, vocabulary)->n)
                        return sl_error_set(im->error, ENOTSUP,
                                "input \"%s\" is of strings, and no encoder of the model says which there are",
                                graph->values[graph->inputs[i]].name);
                result = sl_vocabulary_label(im, graph->values[graph->inputs[i]].name, vocabulary);
        }
        return result;
}

int sl_vocabulary_label(struct sl_importer *im, const char *port, uint32_t vocabulary)
{
        struct sl_graph *graph = im->graph;
        const struct sl_vocabulary *v = vocabulary_at(im, vocabulary);
        struct sl_graph_labels *labels = sl_graph_alloc(graph, sizeof(*labels));
        char *text = sl_graph_alloc(graph, v->used + 1u), *name = sl_graph_alloc(graph, strlen(port) + 1);

        if (!labels || !text || !name)
                return -ENOMEM;
        if (v->used)
                memcpy(text, v->text, v->used);
        *labels = (struct sl_graph_labels){.port = strcpy(name, port), .text = text, .next = graph->labels};
        graph->labels = labels;
        return 0;
}
