/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk keeps one frame for each level of nesting. A frame's `seen` has a bit for each singular message field that was met;
 * members of a oneof share the last bit.
 */
#include "import/wire.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

#define ONEOF_BIT 63u

struct frame {
        const ProtobufCMessageDescriptor *type;
        const uint8_t *end;
        uint64_t seen;
};

struct walk {
        const uint8_t *start, *at;
        struct frame frames[SL_WIRE_DEPTH_MAX];
        uint32_t depth; /* frames in use */
        uint64_t nodes, messages;
        const struct sl_wire_limits *limits;
        struct sl_error *error;
};

static int malformed(const struct walk *walk, const char *what)
{
        return sl_error_set(walk->error, EBADMSG, "not an ONNX file: %s at byte %zu", what, (size_t)(walk->at - walk->start));
}

static int read_varint(struct walk *walk, const uint8_t *end, uint64_t *ret_value)
{
        uint64_t value = 0;

        for (uint32_t shift = 0; shift < 70; shift += 7) {
                if (walk->at == end)
                        return malformed(walk, "a number is cut off");
                uint8_t byte = *walk->at++;

                if (shift < 64)
                        value |= (uint64_t)(byte & 0x7f) << shift;
                if (!(byte & 0x80)) {
                        *ret_value = value;
                        return 0;
                }
        }
        return malformed(walk, "a number is longer than 10 bytes");
}

static int skip(struct walk *walk, const uint8_t *end, uint64_t n_bytes)
{
        if (n_bytes > (uint64_t)(end - walk->at))
                return malformed(walk, "a field is longer than what holds it");
        walk->at += n_bytes;
        return 0;
}

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *type, uint64_t number)
{
        for (unsigned i = 0; i < type->n_fields; i++)
                if (type->fields[i].id == number)
                        return &type->fields[i];
        return NULL;
}

static int note_singular(struct walk *walk, struct frame *frame, const ProtobufCFieldDescriptor *field)
{
        bool oneof = field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
        uint64_t bit = 1ull << (oneof ? ONEOF_BIT : (uint32_t)(field - frame->type->fields));

        if (field->label == PROTOBUF_C_LABEL_REPEATED)
                return 0;
        if (frame->seen & bit)
                return malformed(walk, "a field comes twice that may come once");
        frame->seen |= bit;
        return 0;
}

static int count(struct walk *walk, const ProtobufCMessageDescriptor *type)
{
        if (++walk->messages > walk->limits->messages)
                return sl_error_set(walk->error, E2BIG, "more than %" PRIu64 " messages in the file", walk->limits->messages);
        if (type == &onnx__node_proto__descriptor && ++walk->nodes > walk->limits->nodes)
                return sl_error_set(walk->error, E2BIG, "more than %" PRIu64 " nodes in the file", walk->limits->nodes);
        return 0;
}

static int push(struct walk *walk, const ProtobufCMessageDescriptor *type, const uint8_t *end)
{
        if (walk->depth == SL_WIRE_DEPTH_MAX)
                return sl_error_set(walk->error, EBADMSG, "messages are nested deeper than %d", SL_WIRE_DEPTH_MAX);
        walk->frames[walk->depth++] = (struct frame){.type = type, .end = end};
        return count(walk, type);
}

static int walk_bytes(struct walk *walk, struct frame *frame, const ProtobufCFieldDescriptor *field)
{
        uint64_t length;
        int result = read_varint(walk, frame->end, &length);

        if (result < 0)
                return result;
        if (!field || field->type != PROTOBUF_C_TYPE_MESSAGE)
                return skip(walk, frame->end, length);
        if (length > (uint64_t)(frame->end - walk->at))
                return malformed(walk, "a message is longer than what holds it");
        result = note_singular(walk, frame, field);
        return result < 0 ? result : push(walk, field->descriptor, walk->at + length);
}

static int walk_field(struct walk *walk, struct frame *frame)
{
        uint64_t tag, ignored;
        int result = read_varint(walk, frame->end, &tag);

        if (result < 0)
                return result;
        if (tag >> 3 == 0 || tag > UINT32_MAX)
                return malformed(walk, "a field has an impossible number");
        switch (tag & 7) {
        case WIRE_VARINT:
                return read_varint(walk, frame->end, &ignored);
        case WIRE_64:
                return skip(walk, frame->end, 8);
        case WIRE_32:
                return skip(walk, frame->end, 4);
        case WIRE_BYTES:
                return walk_bytes(walk, frame, find_field(frame->type, tag >> 3));
        default:
                return malformed(walk, "a field has an unknown wire type");
        }
}

int sl_wire_check(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n_bytes, const struct sl_wire_limits *limits,
        struct sl_error *error)
{
        struct walk walk = {.start = bytes, .at = bytes, .limits = limits, .error = error};
        int result = push(&walk, type, walk.at + n_bytes);

        while (result == 0 && walk.depth) {
                struct frame *frame = &walk.frames[walk.depth - 1];

                if (walk.at == frame->end)
                        walk.depth--;
                else
                        result = walk_field(&walk, frame);
        }
        return result;
}

/*
 * Varints of one byte become numbers of eight, and a message costs more in memory than on the wire. Forests of many trees are all
 * attributes, so that a file of 136 MB takes 2 GB; beyond that the limits of the process hold.
 */
#define EXPANSION     14
#define EXPANSION_MAX (4ull << 30)
#define BUDGET_FREE   (16ull << 20)

struct budget {
        uint64_t left_bytes;
        bool exceeded;
};

static void *budget_alloc(void *data, size_t bytes)
{
        struct budget *budget = data;

        if (bytes > budget->left_bytes) {
                budget->exceeded = true;
                return NULL;
        }
        budget->left_bytes -= bytes;
        return malloc(bytes);
}

static void budget_free(void *data, void *pointer)
{
        (void)data;
        free(pointer);
}

int sl_wire_parse_model(const void *bytes, size_t n_bytes, Onnx__ModelProto **ret_model, struct sl_error *error)
{
        uint64_t expansion = (uint64_t)n_bytes * EXPANSION;
        uint64_t most = 2 * (uint64_t)n_bytes + (expansion < EXPANSION_MAX ? expansion : EXPANSION_MAX) + BUDGET_FREE;
        struct budget budget = {.left_bytes = most};
        ProtobufCAllocator allocator = {.alloc = budget_alloc, .free = budget_free, .allocator_data = &budget};
        Onnx__ModelProto *model = onnx__model_proto__unpack(&allocator, n_bytes, bytes);

        if (!model && budget.exceeded)
                return sl_error_set(error, E2BIG, "a file of %zu bytes wants more than %llu bytes of memory to be parsed", n_bytes,
                        (unsigned long long)most);
        if (!model)
                return sl_error_set(error, EBADMSG, "not an ONNX file: the parser refuses it");
        *ret_model = model;
        return 0;
}

void sl_wire_free_model(Onnx__ModelProto *model)
{
        struct budget budget = {0};
        ProtobufCAllocator allocator = {.alloc = budget_alloc, .free = budget_free, .allocator_data = &budget};

        if (model)
                onnx__model_proto__free_unpacked(model, &allocator);
}
