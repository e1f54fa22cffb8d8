/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings are numbers: a tensor of strings is one of int64, places in a list of words. Which values are so is kept while a file is
 * imported; what is left in the end are the labels of outputs (sl_graph_labels). Lists are sorted beside their order, so that no
 * choice of words makes them slow. Private to this folder; one owner thread.
 */
#pragma once

#include "onnx/onnx.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_graph;
struct sl_importer;
struct sl_onnx_node;

struct sl_vocabulary {
        char *text; /* each word with SL_LABEL_END behind it, terminated */
        uint32_t used, room;
        uint32_t n, n_room;
        uint32_t *begins; /* [n + 1] where the words begin in the text, in their order */
        uint32_t *sorted; /* [n] their places, by their bytes */
        bool grows;       /* of an input: its words are those that encoders look for */
};

/* Of the model's own graph: bodies have no strings. */
struct sl_vocabularies {
        const struct sl_graph *graph;
        struct sl_vocabulary *items;
        uint32_t n, room;
        uint32_t of_inputs;  /* the one of all inputs, where some are joined; 0: each has its own */
        uint32_t *of_values; /* 1 and the vocabulary of a value, 0: its elements are numbers */
        uint32_t n_values;
};

void sl_vocabularies_deinit(struct sl_vocabularies *vocabularies);

/* An empty one. Return: 0; -ENOMEM. A vocabulary is named by 1 and its place, 0 is none. */
int sl_vocabulary_new(struct sl_importer *im, uint32_t *ret_vocabulary);

/*
 * The place of the word, which is added where it is not there yet. @owner: the node or tensor, for texts. Return: 0; -EBADMSG it is
 * no UTF-8, or has a byte that no label may have; -E2BIG; -ENOMEM.
 */
int sl_vocabulary_add(
        struct sl_importer *im, uint32_t vocabulary, const char *owner, const ProtobufCBinaryData *word, int64_t *ret_place);

/* The same for a list; the places are @ret_places, an array of @n that lives as long as the graph. */
int sl_vocabulary_add_all(struct sl_importer *im, uint32_t vocabulary, const char *owner, const ProtobufCBinaryData *words,
        size_t n, int64_t **ret_places);

/* Where an encoder finds its words: that of an input grows by them, in any other what is not there is SL_WORD_NOWHERE. As above. */
#define SL_WORD_NOWHERE INT64_MIN
int sl_vocabulary_find_all(struct sl_importer *im, uint32_t vocabulary, const char *owner, const ProtobufCBinaryData *words,
        size_t n, int64_t **ret_places);

/* The vocabulary of a value of the graph, 0: none. */
uint32_t sl_vocabulary_of(const struct sl_importer *im, uint32_t value);
int sl_vocabulary_assign(struct sl_importer *im, uint32_t value, uint32_t vocabulary);

/* A constant of strings. Return: as sl_import_tensor(). */
int sl_vocabulary_tensor(struct sl_importer *im, const Onnx__TensorProto *proto, const char *name, uint32_t *ret_value);

/*
 * What @node does to strings: 0 and the vocabulary of what it makes (0: it makes none, or says so itself); -ENOTSUP it takes
 * strings and does not only move them. Its inputs are found already.
 */
int sl_vocabulary_behind(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t *ret_vocabulary);

/*
 * Equal and Where of two operands that are strings: both are brought to one list, by which an operand that is a constant is read
 * anew; *ret_vocabulary is that of what a Where makes, 0 of an Equal. *ret_done: it is such a node, and sl_vocabulary_behind() is
 * not asked. Return: 0; -ENOTSUP, with the reason: both come from requests, or from two lists.
 */
int sl_vocabulary_meet(struct sl_importer *im, struct sl_onnx_node *node, uint32_t *ret_vocabulary, bool *ret_done);
int sl_vocabulary_assign_outputs(struct sl_importer *im, const struct sl_onnx_node *node, uint32_t vocabulary);

/* Inputs of the model: one is of strings; all nodes have been there, and each such input is labelled, or refused (-ENOTSUP). */
bool sl_vocabulary_is_of_strings(const Onnx__ValueInfoProto *info);
int sl_vocabulary_input(struct sl_importer *im, uint32_t value);
int sl_vocabulary_label_inputs(struct sl_importer *im);

/* The input or output called @port has these labels. Return: 0; -ENOMEM. */
int sl_vocabulary_label(struct sl_importer *im, const char *port, uint32_t vocabulary);
