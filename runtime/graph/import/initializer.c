/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorProto -> constant. The size that the shape claims is compared with the bytes that are there before any memory is taken.
 * Large raw bytes stay in the file, which is mapped as long as the graph lives, and so do external data.
 */
#include "arena.h"
#include "base/bytes.h"
#include "import/importer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Smaller data are not worth it that somebody may have to align them each time. */
#define VIEW_BYTES_MIN (256u << 10)

static int read_shape(struct sl_importer *im, const Onnx__TensorProto *proto, const char *name, struct sl_tensor *tensor)
{
        uint32_t dtype = proto->has_data_type && proto->data_type > 0 ? (uint32_t)proto->data_type : 0;

        if (!sl_dtype_bytes(dtype))
                return sl_error_set(im->error, ENOTSUP, "tensor \"%s\": element type %d is not supported", name, proto->data_type);
        if (proto->n_dims > SL_RANK_MAX)
                return sl_error_set(im->error, E2BIG, "tensor \"%s\": rank %zu, at most %d", name, proto->n_dims, SL_RANK_MAX);
        *tensor = (struct sl_tensor){.dtype = dtype, .shape.rank = (uint32_t)proto->n_dims};
        for (uint32_t i = 0; i < tensor->shape.rank; i++) {
                if (proto->dims[i] < 0)
                        return sl_error_set(im->error, EBADMSG, "tensor \"%s\": dimension %u is %" PRId64, name, i, proto->dims[i]);
                tensor->shape.dims[i] = proto->dims[i];
        }
        return 0;
}

static int check_limits(struct sl_importer *im, const char *name, uint64_t bytes)
{
        if (bytes > im->limits->tensor_bytes)
                return sl_error_set(im->error, E2BIG, "tensor \"%s\": %" PRIu64 " bytes, at most %" PRIu64 " (tensor_bytes_max)",
                        name, bytes, im->limits->tensor_bytes);
        if (sl_add_overflows(im->constant_bytes, bytes, &im->constant_bytes) || im->constant_bytes > im->limits->constant_bytes)
                return sl_error_set(im->error, E2BIG,
                        "tensor \"%s\": with it constants take %" PRIu64 " bytes, at most %" PRIu64 " (model_bytes_max)", name,
                        im->constant_bytes, im->limits->constant_bytes);
        return 0;
}

/* Truth values are 0 and 1 from here on, whatever the file had. */
static void normalise_bools(uint8_t *data, uint64_t n)
{
        for (uint64_t i = 0; i < n; i++)
                data[i] = data[i] != 0;
}

static int copy_bytes(struct sl_importer *im, const struct sl_tensor *tensor, const void *bytes, const void **ret_data)
{
        uint64_t n_bytes = sl_tensor_bytes(tensor);
        uint8_t *copy = sl_graph_alloc(im->graph, n_bytes);

        if (!copy)
                return -ENOMEM;
        memcpy(copy, bytes, n_bytes);
        if (tensor->dtype == SL_DTYPE_BOOL)
                normalise_bools(copy, n_bytes);
        *ret_data = copy;
        return 0;
}

/* A file has several elements of fewer than 8 bits in a byte, the first one in the lowest bits. */
static bool is_packed(const struct sl_tensor *tensor)
{
        return sl_dtype_bits(tensor->dtype) < 8;
}

static uint64_t bytes_in_file(const struct sl_tensor *tensor)
{
        uint64_t bytes = sl_tensor_bytes(tensor), each = is_packed(tensor) ? 8 / sl_dtype_bits(tensor->dtype) : 1;

        return bytes / each + (bytes % each != 0);
}

/* A byte for each element; of @step bytes the first one counts. */
static int unpack(struct sl_importer *im, const struct sl_tensor *tensor, const uint8_t *packed, size_t step, const void **ret_data)
{
        uint64_t n = sl_tensor_bytes(tensor);
        uint32_t bits = sl_dtype_bits(tensor->dtype), each = 8 / bits, mask = (1u << bits) - 1, sign = 0;
        uint8_t *data = sl_graph_alloc(im->graph, n);

        if (!data)
                return -ENOMEM;
        if (tensor->dtype == SL_DTYPE_I4 || tensor->dtype == SL_DTYPE_I2)
                sign = 1u << (bits - 1);
        for (uint64_t i = 0; i < n; i++) {
                uint32_t low = (uint32_t)packed[i / each * step] >> (i % each * bits) & mask;

                data[i] = (uint8_t)((low ^ sign) - sign);
        }
        *ret_data = data;
        return 0;
}

static bool is_worth_a_view(const struct sl_tensor *tensor)
{
        return !is_packed(tensor) && tensor->dtype != SL_DTYPE_BOOL && sl_tensor_bytes(tensor) >= VIEW_BYTES_MIN;
}

static int take_raw(struct sl_importer *im, const Onnx__TensorProto *proto, const char *name, const struct sl_tensor *tensor,
        const void **ret_data)
{
        const struct sl_wire_data raw = sl_wire_data_of(proto, im->file.bytes, im->file.n_bytes);
        uint64_t bytes = bytes_in_file(tensor);

        if (raw.n_bytes != bytes)
                return sl_error_set(im->error, EBADMSG, "tensor \"%s\": %" PRIu64 " bytes of data, its shape wants %" PRIu64, name,
                        raw.n_bytes, bytes);
        if (!bytes || !raw.bytes)
                return 0;
        if (is_packed(tensor))
                return unpack(im, tensor, raw.bytes, 1, ret_data);
        if (!im->file.stays || !raw.in_file || !is_worth_a_view(tensor))
                return copy_bytes(im, tensor, raw.bytes, ret_data);
        *ret_data = raw.bytes;
        return 0;
}

/* Where a typed tensor has its elements, and how many. */
struct typed {
        const void *data;
        size_t n;
        size_t element_bytes;
};

static struct typed find_typed(const Onnx__TensorProto *proto, uint32_t dtype)
{
        switch (dtype) {
        case SL_DTYPE_F32:
                return (struct typed){proto->float_data, proto->n_float_data, sizeof(float)};
        case SL_DTYPE_F64:
                return (struct typed){proto->double_data, proto->n_double_data, sizeof(double)};
        case SL_DTYPE_I64:
                return (struct typed){proto->int64_data, proto->n_int64_data, sizeof(int64_t)};
        case SL_DTYPE_U64:
        case SL_DTYPE_U32:
                return (struct typed){proto->uint64_data, proto->n_uint64_data, sizeof(uint64_t)};
        default:
                return (struct typed){proto->int32_data, proto->n_int32_data, sizeof(int32_t)};
        }
}

/* Little-endian, so the low bytes of a wide element are the narrow one. */
static void narrow(const struct typed *typed, size_t element_bytes, uint8_t *data)
{
        for (size_t i = 0; i < typed->n; i++)
                memcpy(data + i * element_bytes, (const uint8_t *)typed->data + i * typed->element_bytes, element_bytes);
}

static int take_typed(struct sl_importer *im, const Onnx__TensorProto *proto, const char *name, const struct sl_tensor *tensor,
        const void **ret_data)
{
        struct typed typed = find_typed(proto, tensor->dtype);
        uint64_t elements = is_packed(tensor) ? bytes_in_file(tensor) : sl_shape_elements(&tensor->shape);
        uint8_t *data;

        if (typed.n != elements)
                return sl_error_set(im->error, EBADMSG, "tensor \"%s\": %zu elements of data, its shape wants %" PRIu64, name,
                        typed.n, elements);
        if (!elements)
                return 0;
        if (is_packed(tensor))
                return unpack(im, tensor, typed.data, typed.element_bytes, ret_data);
        data = sl_graph_alloc(im->graph, sl_tensor_bytes(tensor));
        if (!data)
                return -ENOMEM;
        narrow(&typed, sl_dtype_bytes(tensor->dtype), data);
        if (tensor->dtype == SL_DTYPE_BOOL)
                normalise_bools(data, elements);
        *ret_data = data;
        return 0;
}

struct external {
        const char *location;
        uint64_t offset, length;
        bool has_length;
};

static int read_number(struct sl_importer *im, const char *name, const char *key, const char *text, uint64_t *ret_number)
{
        char *end;

        errno = 0;
        *ret_number = strtoull(text, &end, 10);
        if (errno || !*text || *end || strchr(text, '-'))
                return sl_error_set(im->error, EBADMSG, "tensor \"%s\": external %s \"%s\" is no number", name, key, text);
        return 0;
}

static int read_external(struct sl_importer *im, const Onnx__TensorProto *proto, const char *name, struct external *external)
{
        int result = 0;

        *external = (struct external){0};
        for (size_t i = 0; i < proto->n_external_data && result == 0; i++) {
                const char *key = proto->external_data[i]->key, *value = proto->external_data[i]->value;

                if (!key || !value)
                        return sl_error_set(im->error, EBADMSG, "tensor \"%s\": an entry of external data is empty", name);
                if (!strcmp(key, "location"))
                        external->location = value;
                else if (!strcmp(key, "offset"))
                        result = read_number(im, name, key, value, &external->offset);
                else if (!strcmp(key, "length"))
                        result = read_number(im, name, key, value, &external->length);
                external->has_length |= !strcmp(key, "length");
        }
        if (result == 0 && !external->location)
                return sl_error_set(im->error, EBADMSG, "tensor \"%s\": external data without a location", name);
        return result;
}

/* Truth values are normalised in a copy, and what is small is aligned there once and for all. */
static int settle_region(
        struct sl_importer *im, const struct sl_tensor *tensor, struct sl_external_region *region, const void **ret_data)
{
        bool aligned = (uintptr_t)region->data % sl_dtype_bytes(tensor->dtype) == 0;
        int result;

        if (is_worth_a_view(tensor) || (aligned && tensor->dtype != SL_DTYPE_BOOL && !is_packed(tensor))) {
                *ret_data = region->data;
                return sl_graph_arena_adopt(im->graph->arena, region->mapping, region->mapping_bytes, sl_external_unmap);
        }
        result = is_packed(tensor) ? unpack(im, tensor, region->data, 1, ret_data) : copy_bytes(im, tensor, region->data, ret_data);
        if (result == 0) {
                sl_external_unmap(region->mapping, region->mapping_bytes);
                region->mapping = NULL;
        }
        return result;
}

static int take_external(struct sl_importer *im, const Onnx__TensorProto *proto, const char *name, const struct sl_tensor *tensor,
        const void **ret_data)
{
        uint64_t bytes = bytes_in_file(tensor);
        struct sl_external_region region;
        struct external external;
        int result = read_external(im, proto, name, &external);

        if (result < 0)
                return result;
        if (!im->external)
                return sl_error_set(im->error, EACCES, "tensor \"%s\": external data \"%s\" of a model that has no folder", name,
                        external.location);
        if (external.has_length && external.length != bytes)
                return sl_error_set(im->error, EBADMSG, "tensor \"%s\": external length %" PRIu64 ", its shape wants %" PRIu64,
                        name, external.length, bytes);
        result = sl_external_map(im->external, external.location, external.offset, bytes, &region, im->error);
        if (result < 0)
                return sl_error_prefix(im->error, result, "tensor \"%s\"", name);
        if (!bytes)
                return 0;
        result = settle_region(im, tensor, &region, ret_data);
        if (result < 0)
                sl_external_unmap(region.mapping, region.mapping_bytes);
        return result;
}

int sl_import_check_size(struct sl_importer *im, const char *name, const struct sl_tensor *tensor)
{
        if (sl_graph_least_bytes(tensor) == UINT64_MAX)
                return sl_error_set(im->error, E2BIG, "tensor \"%s\": its dimensions overflow", name);
        return check_limits(im, name, sl_tensor_bytes(tensor));
}

int sl_import_load(struct sl_importer *im, const Onnx__TensorProto *proto, const char *name, struct sl_tensor *ret_tensor,
        const void **ret_data)
{
        static const uint8_t nothing[8];
        int result = read_shape(im, proto, name, ret_tensor);

        *ret_data = nothing;
        if (result == 0)
                result = sl_import_check_size(im, name, ret_tensor);
        if (result < 0)
                return result;
        if (proto->segment)
                return sl_error_set(im->error, ENOTSUP, "tensor \"%s\" is a segment of another", name);
        if (proto->has_data_location && proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
                return take_external(im, proto, name, ret_tensor, ret_data);
        if (proto->has_raw_data)
                return take_raw(im, proto, name, ret_tensor, ret_data);
        return take_typed(im, proto, name, ret_tensor, ret_data);
}

int sl_import_tensor(struct sl_importer *im, const Onnx__TensorProto *proto, const char *name, uint32_t *ret_value)
{
        struct sl_tensor tensor;
        const void *data;
        int result;

        if (proto->has_data_type && proto->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING)
                return sl_vocabulary_tensor(im, proto, name, ret_value);
        result = sl_import_load(im, proto, name, &tensor, &data);
        return result < 0 ? result : sl_graph_add_constant(im->graph, name, &tensor, data, ret_value);
}

int sl_import_ints(struct sl_importer *im, const char *name, const int64_t *ints, uint32_t count, bool scalar, uint32_t *ret_value)
{
        struct sl_tensor tensor = {.dtype = SL_DTYPE_I64, .shape = {.rank = scalar ? 0 : 1, .dims = {scalar ? 0 : count}}};
        int64_t *data = sl_graph_alloc(im->graph, sizeof(*data) * (count + 1));

        if (!data)
                return -ENOMEM;
        if (count)
                memcpy(data, ints, sizeof(*data) * count);
        return sl_graph_add_constant(im->graph, name, &tensor, data, ret_value);
}

int sl_import_room(struct sl_importer *im, const char *name, const struct sl_tensor *tensor, void **ret_data, uint32_t *ret_value)
{
        uint64_t bytes = sl_tensor_bytes(tensor);
        void *data;
        int result = bytes == UINT64_MAX ? -E2BIG : check_limits(im, name, bytes);

        if (result < 0)
                return result;
        data = sl_graph_alloc(im->graph, bytes);
        if (!data)
                return -ENOMEM;
        result = sl_graph_add_constant(im->graph, name, tensor, data, ret_value);
        if (result == 0)
                *ret_data = data;
        return result;
}
