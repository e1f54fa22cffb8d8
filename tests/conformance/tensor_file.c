/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_file.h"

#include "ref/half.h"
#include "ref/small.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t *read_whole_file(const char *path, size_t *ret_bytes)
{
        FILE *file = fopen(path, "rb");
        uint8_t *bytes = NULL;
        long n = -1;

        if (!file)
                return NULL;
        if (fseek(file, 0, SEEK_END) == 0)
                n = ftell(file);
        rewind(file);
        if (n >= 0)
                bytes = malloc((size_t)n + 1);
        if (bytes && fread(bytes, 1, (size_t)n, file) != (size_t)n) {
                free(bytes);
                bytes = NULL;
        }
        fclose(file);
        *ret_bytes = (size_t)n;
        return bytes;
}

struct elements {
        const void *data;
        size_t n, each;
};

/* Where a tensor without raw data has its elements: often in a wider type than its own. */
static struct elements typed_elements(const Onnx__TensorProto *proto)
{
        switch (proto->data_type) {
        case SL_DTYPE_F32:
                return (struct elements){proto->float_data, proto->n_float_data, sizeof(float)};
        case SL_DTYPE_F64:
                return (struct elements){proto->double_data, proto->n_double_data, sizeof(double)};
        case SL_DTYPE_I64:
                return (struct elements){proto->int64_data, proto->n_int64_data, sizeof(int64_t)};
        case SL_DTYPE_U32:
        case SL_DTYPE_U64:
                return (struct elements){proto->uint64_data, proto->n_uint64_data, sizeof(uint64_t)};
        default:
                return (struct elements){proto->int32_data, proto->n_int32_data, sizeof(int32_t)};
        }
}

/* Several elements in a byte of the file, the first one in the lowest bits; of @step bytes the first one counts. */
static void unpack_elements(const struct tensor_file *file, const uint8_t *packed, size_t step)
{
        uint32_t dtype = file->tensor.dtype, bits = dtype >= SL_DTYPE_U2 ? 2 : 4;

        for (size_t i = 0; i < file->bytes; i++) {
                unsigned value = packed[i * bits / 8 * step] >> (i * bits % 8) & ((1u << bits) - 1);

                if ((dtype == SL_DTYPE_I4 || dtype == SL_DTYPE_I2) && value >> (bits - 1))
                        value |= 0xffu << bits;
                ((uint8_t *)file->data)[i] = (uint8_t)value;
        }
}

static bool copy_packed(const Onnx__TensorProto *proto, const struct tensor_file *file)
{
        size_t bytes = file->tensor.dtype >= SL_DTYPE_U2 ? (file->bytes + 3) / 4 : (file->bytes + 1) / 2;

        if (proto->raw_data.len == bytes)
                unpack_elements(file, proto->raw_data.data, 1);
        else if (proto->n_int32_data == bytes)
                unpack_elements(file, (const uint8_t *)proto->int32_data, sizeof(int32_t));
        else
                return false;
        return true;
}

static bool is_packed(uint32_t dtype)
{
        return dtype == SL_DTYPE_U4 || dtype == SL_DTYPE_I4 || dtype == SL_DTYPE_F4E2M1 || dtype == SL_DTYPE_U2 ||
               dtype == SL_DTYPE_I2;
}

static bool copy_elements(const Onnx__TensorProto *proto, const struct tensor_file *file)
{
        size_t each = sl_dtype_bytes(file->tensor.dtype);
        struct elements typed = typed_elements(proto);

        if (is_packed(file->tensor.dtype))
                return copy_packed(proto, file);
        if (proto->raw_data.len == file->bytes) {
                if (file->bytes)
                        memcpy(file->data, proto->raw_data.data, file->bytes);
                return true;
        }
        if (typed.n * each != file->bytes)
                return false;
        for (size_t i = 0; i < typed.n; i++)
                memcpy((uint8_t *)file->data + i * each, (const uint8_t *)typed.data + i * typed.each, each);
        return true;
}

static bool decode(const Onnx__TensorProto *proto, struct tensor_file *file)
{
        if (proto->data_type <= 0 || !sl_dtype_bytes((uint32_t)proto->data_type) || proto->n_dims > SL_RANK_MAX)
                return false;
        file->tensor = (struct sl_tensor){.dtype = (uint32_t)proto->data_type, .shape.rank = (uint32_t)proto->n_dims};
        for (size_t i = 0; i < proto->n_dims; i++)
                file->tensor.shape.dims[i] = proto->dims[i];
        file->bytes = sl_tensor_bytes(&file->tensor);
        if (file->bytes > UINT32_MAX)
                return false;
        file->data = aligned_alloc(64, (file->bytes + 64) & ~63ull);
        return file->data && copy_elements(proto, file);
}

bool tensor_file_read(const char *path, struct tensor_file *ret_file)
{
        size_t n = 0;
        uint8_t *bytes = read_whole_file(path, &n);
        Onnx__TensorProto *proto = bytes ? onnx__tensor_proto__unpack(NULL, n, bytes) : NULL;
        bool whole = false;

        *ret_file = (struct tensor_file){0};
        free(bytes);
        if (!proto)
                return false;
        whole = decode(proto, ret_file);
        onnx__tensor_proto__free_unpacked(proto, NULL);
        if (!whole)
                tensor_file_free(ret_file);
        return whole;
}

void tensor_file_retype(struct tensor_file *file, uint32_t dtype)
{
        if (file->tensor.dtype == SL_DTYPE_U16 && dtype == SL_DTYPE_BF16)
                file->tensor.dtype = dtype;
}

void tensor_file_free(struct tensor_file *file)
{
        free(file->data);
        *file = (struct tensor_file){0};
}

double tensor_tolerance(uint32_t dtype)
{
        switch (dtype) {
        case SL_DTYPE_F16:
                return 2e-3;
        case SL_DTYPE_BF16:
                return 1e-2;
        case SL_DTYPE_F64:
                return 1e-7;
        default:
                return 1e-5;
        }
}

static double element(const void *data, uint32_t dtype, uint64_t i)
{
        switch (dtype) {
        case SL_DTYPE_F32:
                return (double)((const float *)data)[i];
        case SL_DTYPE_F64:
                return ((const double *)data)[i];
        case SL_DTYPE_F16:
                return sl_ref_from_f16(((const uint16_t *)data)[i]);
        case SL_DTYPE_BF16:
                return sl_ref_from_bf16(((const uint16_t *)data)[i]);
        default:
                return sl_ref_from_small(((const uint8_t *)data)[i], dtype);
        }
}

static bool close_to(double got, double want, double tolerance)
{
        if (isnan(want) || isnan(got))
                return isnan(want) && isnan(got);
        if (isinf(want) || isinf(got))
                return got == want;
        return fabs(got - want) <= tolerance + tolerance * fabs(want);
}

bool tensor_agrees(
        const struct sl_tensor *tensor, const void *got, const void *want, double tolerance, char *text, size_t text_bytes)
{
        uint64_t n = sl_shape_elements(&tensor->shape);
        size_t each = sl_dtype_bytes(tensor->dtype);

        for (uint64_t i = 0; i < n; i++) {
                if (!sl_dtype_is_float(tensor->dtype)) {
                        if (!memcmp((const uint8_t *)got + i * each, (const uint8_t *)want + i * each, each))
                                continue;
                        snprintf(text, text_bytes, "element %llu differs", (unsigned long long)i);
                        return false;
                }
                double a = element(got, tensor->dtype, i), b = element(want, tensor->dtype, i);

                if (close_to(a, b, tolerance))
                        continue;
                snprintf(text, text_bytes, "element %llu is %.9g, not %.9g", (unsigned long long)i, a, b);
                return false;
        }
        return true;
}
