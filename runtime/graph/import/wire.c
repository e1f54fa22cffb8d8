/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk keeps one frame for each level of nesting. A frame's `seen` has a bit for each singular message field that was met;
 * members of a oneof share the last bit.
 *
 * A walk that thins copies what it passes, but for the data of tensors: of each the file's place takes 16 bytes in the copy. The
 * lengths of the messages around it are written again, in as many bytes as they had, which the format allows.
 */
#include "import/wire.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

#define ONEOF_BIT      63u
#define RAW_DATA_FIELD 9u /* of a TensorProto */
#define ROOM_MIN       (64u << 10)

/* A file and a copy of it; of the file, what lies before `next` is in the copy. */
struct thinning {
        uint8_t *copy;
        size_t n_bytes, room;
        const uint8_t *next;
};

struct frame {
        const ProtobufCMessageDescriptor *type;
        const uint8_t *end;
        uint64_t seen;
        bool is_thinner;                /* than in the file */
        size_t length_at, length_bytes; /* of its length in the copy */
};

/* What stands in the copy for the data of a tensor. */
struct place {
        uint64_t offset, bytes;
};

struct walk {
        const uint8_t *start, *at;
        struct frame frames[SL_WIRE_DEPTH_MAX];
        uint32_t depth; /* frames in use */
        uint64_t nodes, messages;
        struct thinning *thinning; /* NULL: nothing is copied */
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

static int make_room(struct walk *walk, size_t n_bytes)
{
        struct thinning *thinning = walk->thinning;
        size_t room = thinning->room ? thinning->room : ROOM_MIN;
        uint8_t *grown;

        while (room - thinning->n_bytes < n_bytes)
                room *= 2;
        grown = room == thinning->room ? thinning->copy : realloc(thinning->copy, room);
        if (!grown)
                return sl_error_set(walk->error, ENOMEM, "no memory for %zu bytes of the file", room);
        thinning->copy = grown;
        thinning->room = room;
        return 0;
}

/* Copies what lies before @end, and makes room for @more bytes. */
static int copy_until(struct walk *walk, const uint8_t *end, size_t more)
{
        struct thinning *thinning = walk->thinning;
        size_t n = (size_t)(end - thinning->next);
        int result = make_room(walk, n + more);

        if (result < 0)
                return result;
        memcpy(thinning->copy + thinning->n_bytes, thinning->next, n);
        thinning->n_bytes += n;
        thinning->next = end;
        return 0;
}

/* A number in so many bytes: all but the last say that there are more. */
static void write_varint(uint8_t *to, size_t n_bytes, uint64_t value)
{
        for (size_t i = 0; i < n_bytes; i++, value >>= 7)
                to[i] = (uint8_t)((value & 0x7f) | (i + 1 < n_bytes ? 0x80 : 0));
        SL_ASSERT(value == 0);
}

/* Remembers where the copy has the length that was read last, from @start on. */
static void note_length(struct walk *walk, const uint8_t *start)
{
        struct frame *frame = &walk->frames[walk->depth - 1];

        if (!walk->thinning)
                return;
        frame->length_at = walk->thinning->n_bytes + (size_t)(start - walk->thinning->next);
        frame->length_bytes = (size_t)(walk->at - start);
}

static int pop(struct walk *walk)
{
        struct frame *frame = &walk->frames[--walk->depth];
        const struct thinning *thinning = walk->thinning;

        if (!frame->is_thinner)
                return 0;
        if (!walk->depth)
                return copy_until(walk, walk->at, 0);
        /* The copy has all of this message up to the data that were left out, its length among it. */
        size_t copied = thinning->n_bytes - frame->length_at - frame->length_bytes;

        write_varint(thinning->copy + frame->length_at, frame->length_bytes, copied + (size_t)(walk->at - thinning->next));
        walk->frames[walk->depth - 1].is_thinner = true;
        return 0;
}

/* The data of a tensor, @n_bytes from here; their length was read from @start on. */
static int thin_out(struct walk *walk, struct frame *frame, const uint8_t *start, uint64_t n_bytes)
{
        const struct place place = {.offset = (uint64_t)(walk->at - walk->start), .bytes = n_bytes};
        size_t length_bytes = (size_t)(walk->at - start);
        struct thinning *thinning = walk->thinning;
        int result = copy_until(walk, walk->at, sizeof(place));

        if (result < 0)
                return result;
        frame->is_thinner = true;
        write_varint(thinning->copy + thinning->n_bytes - length_bytes, length_bytes, sizeof(place));
        memcpy(thinning->copy + thinning->n_bytes, &place, sizeof(place));
        thinning->n_bytes += sizeof(place);
        thinning->next = walk->at + n_bytes;
        return 0;
}

static bool is_tensor_data(const struct frame *frame, const ProtobufCFieldDescriptor *field)
{
        return field && field->id == RAW_DATA_FIELD && frame->type == &onnx__tensor_proto__descriptor;
}

static int walk_bytes(struct walk *walk, struct frame *frame, const ProtobufCFieldDescriptor *field)
{
        const uint8_t *start = walk->at;
        uint64_t length;
        int result = read_varint(walk, frame->end, &length);

        if (result < 0)
                return result;
        if (!field || field->type != PROTOBUF_C_TYPE_MESSAGE) {
                if (walk->thinning && is_tensor_data(frame, field) && length >= sizeof(struct place) &&
                        length <= (uint64_t)(frame->end - walk->at))
                        result = thin_out(walk, frame, start, length);
                return result < 0 ? result : skip(walk, frame->end, length);
        }
        if (length > (uint64_t)(frame->end - walk->at))
                return malformed(walk, "a message is longer than what holds it");
        result = note_singular(walk, frame, field);
        if (result == 0)
                result = push(walk, field->descriptor, walk->at + length);
        if (result == 0)
                note_length(walk, start);
        return result;
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

static int walk_all(struct walk *walk, const ProtobufCMessageDescriptor *type, size_t n_bytes)
{
        int result = push(walk, type, walk->at + n_bytes);

        while (result == 0 && walk->depth) {
                struct frame *frame = &walk->frames[walk->depth - 1];

                result = walk->at == frame->end ? pop(walk) : walk_field(walk, frame);
        }
        return result;
}

int sl_wire_check(const ProtobufCMessageDescriptor *type, const void *bytes, size_t n_bytes, const struct sl_wire_limits *limits,
        struct sl_error *error)
{
        struct walk walk = {.start = bytes, .at = bytes, .limits = limits, .error = error};

        return walk_all(&walk, type, n_bytes);
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

int sl_wire_read_model(const void *bytes, size_t n_bytes, const struct sl_wire_limits *limits, Onnx__ModelProto **ret_model,
        struct sl_error *error)
{
        struct walk walk = {.start = bytes, .at = bytes, .limits = limits, .error = error};
        struct thinning thinning = {.next = bytes};
        int result;

        walk.thinning = &thinning;
        result = walk_all(&walk, &onnx__model_proto__descriptor, n_bytes);
        if (result == 0 && thinning.n_bytes)
                result = sl_wire_parse_model(thinning.copy, thinning.n_bytes, ret_model, error);
        else if (result == 0)
                result = sl_wire_parse_model(bytes, n_bytes, ret_model, error);
        free(thinning.copy);
        return result;
}

struct sl_wire_data sl_wire_data_of(const Onnx__TensorProto *tensor, const void *file_bytes, size_t n_file_bytes)
{
        struct place place;

        if (tensor->raw_data.len != sizeof(place))
                return (struct sl_wire_data){.bytes = tensor->raw_data.data, .n_bytes = tensor->raw_data.len};
        memcpy(&place, tensor->raw_data.data, sizeof(place));
        if (!sl_range_inside(place.offset, place.bytes, n_file_bytes))
                return (struct sl_wire_data){0};
        return (struct sl_wire_data){.bytes = (const uint8_t *)file_bytes + place.offset, .n_bytes = place.bytes, .in_file = true};
}

void sl_wire_free_model(Onnx__ModelProto *model)
{
        struct budget budget = {0};
        ProtobufCAllocator allocator = {.alloc = budget_alloc, .free = budget_free, .allocator_data = &budget};

        if (model)
                onnx__model_proto__free_unpacked(model, &allocator);
}
