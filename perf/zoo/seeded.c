/* SPDX-License-Identifier: Apache-2.0 */
#include "seeded.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/split_mix.h"
#include "onnx/onnx.pb-c.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKELETON_BYTES_MAX (64u << 20)
#define ELEMENTS_MAX       (1ull << 30)

/* How the values of an initializer lay. */
struct spread {
        double mean, deviation, least, most;
};

/* Four numbers of 16 bits: near enough to a normal one, and the same wherever it is computed. */
static double draw(uint64_t *state)
{
        uint64_t bits = sl_split_mix_next(state);
        int64_t sum = 0;

        for (int i = 0; i < 4; i++)
                sum += (int64_t)(bits >> 16 * i & 0xffff);
        return (double)(2 * sum - 4 * 65535) / 75674.0; /* twice the deviation of the sum */
}

static void fill(const struct spread *spread, uint64_t state, float *values, uint64_t n)
{
        for (uint64_t i = 0; i < n; i++)
                values[i] = (float)fmin(spread->most, fmax(spread->least, spread->mean + spread->deviation * draw(&state)));
}

static uint64_t state_of(uint64_t seed, const char *name)
{
        uint64_t state = seed;

        for (; name && *name; name++)
                state = sl_split_mix_scramble(state ^ (unsigned char)*name);
        return state;
}

static uint64_t elements_of(const Onnx__TensorProto *tensor)
{
        uint64_t n = 1;

        for (size_t i = 0; i < tensor->n_dims; i++) {
                if (tensor->dims[i] <= 0 || (uint64_t)tensor->dims[i] > ELEMENTS_MAX / n)
                        return 0;
                n *= (uint64_t)tensor->dims[i];
        }
        return n;
}

static int fill_tensor(Onnx__TensorProto *tensor, uint64_t seed, struct sl_error *error)
{
        const char *text = tensor->doc_string ? tensor->doc_string : "";
        uint64_t n = elements_of(tensor);
        struct spread spread;

        if (tensor->has_raw_data || tensor->n_float_data || tensor->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT ||
                strncmp(text, "seeded ", 7))
                return 0;
        if (sscanf(text, "seeded %lf %lf %lf %lf", &spread.mean, &spread.deviation, &spread.least, &spread.most) != 4 || !n)
                return sl_error_set(error, EBADMSG, "initializer \"%s\" says \"%.80s\" of its values", tensor->name, text);
        tensor->raw_data.data = malloc(n * sizeof(float));
        if (!tensor->raw_data.data)
                return sl_error_set(error, ENOMEM, "no memory for initializer \"%s\"", tensor->name);
        tensor->raw_data.len = n * sizeof(float);
        tensor->has_raw_data = 1;
        fill(&spread, state_of(seed, tensor->name), (float *)(void *)tensor->raw_data.data, n);
        return 0;
}

static int read_file(const char *path, void **ret_bytes, size_t *ret_n, struct sl_error *error)
{
        FILE *file = fopen(path, "rb");
        long n;

        if (!file)
                return sl_error_set(error, errno, "\"%s\": %s", path, strerror(errno));
        n = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
        rewind(file);
        *ret_bytes = n >= 0 && n <= SKELETON_BYTES_MAX ? malloc((size_t)n + 1) : NULL;
        *ret_n = *ret_bytes ? fread(*ret_bytes, 1, (size_t)n, file) : 0;
        fclose(file);
        if (*ret_bytes && *ret_n == (size_t)n)
                return 0;
        free(*ret_bytes);
        return sl_error_set(error, EBADMSG, "\"%s\" cannot be read, or has more than %u bytes", path, SKELETON_BYTES_MAX);
}

static int pack(const Onnx__ModelProto *model, void **ret_bytes, size_t *ret_n, struct sl_error *error)
{
        *ret_n = onnx__model_proto__get_packed_size(model);
        *ret_bytes = malloc(*ret_n + 1);
        if (!*ret_bytes)
                return sl_error_set(error, ENOMEM, "no memory for a model of %zu bytes", *ret_n);
        onnx__model_proto__pack(model, *ret_bytes);
        return 0;
}

int sl_seeded_model(const char *path, uint64_t seed, void **ret_bytes, size_t *ret_n, struct sl_error *error)
{
        Onnx__ModelProto *model;
        void *bytes = NULL;
        size_t n = 0;
        int r = read_file(path, &bytes, &n, error);

        if (r < 0)
                return r;
        model = onnx__model_proto__unpack(NULL, n, bytes);
        free(bytes);
        if (!model || !model->graph)
                r = sl_error_set(error, EBADMSG, "it is no ONNX file");
        for (size_t i = 0; r == 0 && i < model->graph->n_initializer; i++)
                r = fill_tensor(model->graph->initializer[i], seed, error);
        if (r == 0)
                r = pack(model, ret_bytes, ret_n, error);
        if (model)
                onnx__model_proto__free_unpacked(model, NULL);
        return r < 0 ? sl_error_prefix(error, r, "\"%s\"", path) : 0;
}
