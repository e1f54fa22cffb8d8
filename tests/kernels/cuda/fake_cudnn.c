/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors are lists of what was set; a plan is a text of the numbers of a convolution. */
#include "cuda/cudnn/convolution.h"
#include "fake_libraries.h"
#include "fake_loops.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS_MAX 12
#define TEXT_BYTES   512
#define WORKSPACE    4096

struct setting {
        cudnnBackendAttributeName_t name;
        int64_t count;
        void *values;
};

struct descriptor {
        cudnnBackendDescriptorType_t type;
        uint32_t n_settings;
        struct setting settings[SETTINGS_MAX];
        char text[TEXT_BYTES]; /* of an engine configuration and a plan */
        int64_t engine;        /* of an engine configuration and an engine */
};

static const struct engine {
        int64_t number;
        cudnnBackendHeurMode_t mode;
        uint64_t takes_ns;
} engines[] = {
        {FAKE_ENGINE_FIRST, CUDNN_HEUR_MODE_A, 400000},
        {FAKE_ENGINE_FAST, CUDNN_HEUR_MODE_A, 200000},
        {FAKE_ENGINE_ROUGH, CUDNN_HEUR_MODE_A, 110000},
        {FAKE_ENGINE_COMPILED, CUDNN_HEUR_MODE_A, 150000},
        {FAKE_ENGINE_TENSORS, CUDNN_HEUR_MODE_A, 160000},
        {FAKE_ENGINE_FAST, CUDNN_HEUR_MODE_B, 200000},
        {FAKE_ENGINE_OTHER, CUDNN_HEUR_MODE_B, 300000},
        {FAKE_ENGINE_LAST, CUDNN_HEUR_MODE_FALLBACK, 900000},
};
#define ENGINES (sizeof(engines) / sizeof(engines[0]))

uint64_t fake_engine_ns(const void *convolution)
{
        const struct fake_convolution *c = convolution;
        uint64_t more_ns = c->bias || c->residual || c->relu ? fake_libraries.epilogue_ns : 0;

        for (size_t i = 0; i < ENGINES; i++)
                if (engines[i].number == c->engine)
                        return engines[i].takes_ns + more_ns;
        abort();
}

struct fake_libraries_control fake_libraries;
static const struct sl_cuda_driver *driver;
static uint32_t n_held, n_handles;

void fake_libraries_begin(const struct sl_cuda_driver *used)
{
        driver = used;
        fake_libraries = (struct fake_libraries_control){.lacks_all = false};
}

uint32_t fake_libraries_held(void)
{
        return n_held;
}

void fake_libraries_count(int change)
{
        n_held += (uint32_t)change;
}

void fake_libraries_launch(uint32_t kernel, void *argument, CUstream stream)
{
        void *arguments[] = {argument};

        driver->launch_kernel((CUfunction)(uintptr_t)&fake_library_kernels[kernel], 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}

static void get_words(char *words, size_t room)
{
        snprintf(words, room, "fake words");
}

static cudnnStatus_t create(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *ret_descriptor)
{
        struct descriptor *d = calloc(1, sizeof(*d));

        d->type = type;
        n_held++;
        *ret_descriptor = (cudnnBackendDescriptor_t)d;
        return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t destroy(cudnnBackendDescriptor_t descriptor)
{
        struct descriptor *d = (struct descriptor *)descriptor;

        for (uint32_t i = 0; i < d->n_settings; i++)
                free(d->settings[i].values);
        free(d);
        n_held--;
        return CUDNN_STATUS_SUCCESS;
}

static size_t bytes_of(cudnnBackendAttributeType_t type)
{
        switch (type) {
        case CUDNN_TYPE_INT64:
        case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        case CUDNN_TYPE_VOID_PTR:
        case CUDNN_TYPE_HANDLE:
                return 8;
        case CUDNN_TYPE_CHAR:
        case CUDNN_TYPE_BOOLEAN:
                return 1;
        default:
                return 4;
        }
}

static const void *setting(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
        for (uint32_t i = 0; d && i < d->n_settings; i++)
                if (d->settings[i].name == name)
                        return d->settings[i].values;
        return NULL;
}

static int64_t setting_count(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
        for (uint32_t i = 0; i < d->n_settings; i++)
                if (d->settings[i].name == name)
                        return d->settings[i].count;
        return 0;
}

static const struct descriptor *descriptor_of(const struct descriptor *d, cudnnBackendAttributeName_t name, int64_t index)
{
        const struct descriptor *const *list = setting(d, name);

        return list ? list[index] : NULL;
}

static cudnnStatus_t set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
        int64_t count, const void *values)
{
        struct descriptor *d = (struct descriptor *)descriptor;
        size_t bytes = (size_t)count * bytes_of(type);

        if (d->n_settings == SETTINGS_MAX)
                return CUDNN_STATUS_BAD_PARAM;
        d->settings[d->n_settings].name = name;
        d->settings[d->n_settings].count = count;
        d->settings[d->n_settings].values = malloc(bytes + 1);
        memcpy(d->settings[d->n_settings++].values, values, bytes);
        return CUDNN_STATUS_SUCCESS;
}

/* ---- graphs as texts ---- */

static const int64_t *dims_of(const struct descriptor *tensor)
{
        return setting(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS);
}

static void read_forward(const struct descriptor *operation, struct fake_convolution *c)
{
        const struct descriptor *x = descriptor_of(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 0);
        const struct descriptor *w = descriptor_of(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 0);
        const struct descriptor *y = descriptor_of(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 0);
        const struct descriptor *window = descriptor_of(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 0);
        const int64_t *pads = setting(window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
        const int64_t *strides = setting(window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
        const int64_t *dilations = setting(window, CUDNN_ATTR_CONVOLUTION_DILATIONS);

        c->type = *(const cudnnDataType_t *)setting(x, CUDNN_ATTR_TENSOR_DATA_TYPE);
        c->w_type = *(const cudnnDataType_t *)setting(w, CUDNN_ATTR_TENSOR_DATA_TYPE);
        c->y_type = *(const cudnnDataType_t *)setting(y, CUDNN_ATTR_TENSOR_DATA_TYPE);
        c->sums = *(const cudnnDataType_t *)setting(window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
        memcpy(c->x, dims_of(x), sizeof(c->x));
        memcpy(c->w, dims_of(w), sizeof(c->w));
        memcpy(c->y, dims_of(y), sizeof(c->y));
        for (int i = 0; i < 2; i++) {
                c->pad[i] = pads[i];
                c->stride[i] = strides[i];
                c->dilation[i] = dilations[i];
        }
}

static void read_pointwise(const struct descriptor *operation, struct fake_convolution *c)
{
        const struct descriptor *function = descriptor_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 0);
        const struct descriptor *b = descriptor_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 0);
        const int64_t *number = setting(b, CUDNN_ATTR_TENSOR_UNIQUE_ID);

        c->relu |= *(const cudnnPointwiseMode_t *)setting(function, CUDNN_ATTR_POINTWISE_MODE) == CUDNN_POINTWISE_RELU_FWD;
        c->bias |= number && *number == SL_CUDNN_BIAS;
        c->residual |= number && *number == SL_CUDNN_RESIDUAL;
}

/* Products of int8 are by int8, and int32; channels and filters are multiples of 4. */
static bool is_possible(const struct fake_convolution *c)
{
        if (c->type != CUDNN_DATA_INT8)
                return c->w_type == c->type && c->sums == CUDNN_DATA_FLOAT;
        return c->w_type == CUDNN_DATA_INT8 && c->y_type == CUDNN_DATA_INT32 && c->sums == CUDNN_DATA_INT32 && c->x[1] % 4 == 0 &&
               c->w[0] % 4 == 0;
}

static void read_graph(const struct descriptor *graph, struct fake_convolution *c)
{
        int64_t n = setting_count(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);

        for (int64_t i = 0; i < n; i++) {
                const struct descriptor *operation = descriptor_of(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, i);

                if (operation->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
                        read_forward(operation, c);
                else
                        read_pointwise(operation, c);
        }
}

#define NUMBERS(X)                                                                                                                 \
        X(type)                                                                                                                    \
        X(x[0])                                                                                                                    \
        X(x[1])                                                                                                                    \
        X(x[2])                                                                                                                    \
        X(x[3])                                                                                                                    \
        X(w[0]) X(w[1]) X(w[2]) X(w[3]) X(y[0]) X(y[1]) X(y[2]) X(y[3]) X(pad[0]) X(pad[1]) X(stride[0]) X(stride[1])              \
                X(dilation[0]) X(dilation[1]) X(bias) X(residual) X(relu) X(engine)

static void print(const struct fake_convolution *c, char *text)
{
        int used = snprintf(text, TEXT_BYTES, "convolution");

#define X(field) used += snprintf(text + used, TEXT_BYTES - (size_t)used, " %" PRId64, c->field);
        NUMBERS(X)
#undef X
}

static bool parse(const char *text, struct fake_convolution *c)
{
        char *at = (char *)text + strlen("convolution"), *end = at;

        if (strncmp(text, "convolution ", strlen("convolution ")) != 0)
                return false;
#define X(field)                                                                                                                   \
        c->field = strtoll(at, &end, 10);                                                                                          \
        if (end == at)                                                                                                             \
                return false;                                                                                                      \
        at = end;
        NUMBERS(X)
#undef X
        return !*at;
}

static cudnnStatus_t finalize(cudnnBackendDescriptor_t descriptor)
{
        struct descriptor *d = (struct descriptor *)descriptor;
        const struct descriptor *choice = descriptor_of(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0);
        const char *text = setting(d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
        struct fake_convolution c = {0};

        if (d->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
                return CUDNN_STATUS_SUCCESS;
        if (!choice && (!text || !parse(text, &c)))
                return CUDNN_STATUS_BAD_PARAM;
        if (choice && choice->engine == FAKE_ENGINE_COMPILED) {
                if (!setting(d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE))
                        return CUDNN_STATUS_NOT_SUPPORTED;
                fake_libraries.n_compiled++;
        }
        snprintf(d->text, sizeof(d->text), "%s", choice ? choice->text : text);
        return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_choices(const struct descriptor *heuristic, int64_t room, int64_t *ret_count, void *values)
{
        const struct descriptor *graph = descriptor_of(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0);
        const cudnnBackendHeurMode_t *mode = setting(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE);
        struct descriptor **list = values;
        struct fake_convolution c = {0};

        fake_libraries.n_asked++;
        read_graph(graph, &c);
        *ret_count = 0;
        if (fake_libraries.lacks_all || !is_possible(&c) || (fake_libraries.lacks_epilogues && (c.bias || c.residual || c.relu)))
                return CUDNN_STATUS_SUCCESS;
        for (size_t i = 0; i < ENGINES; i++) {
                if (engines[i].mode != *mode || (values && *ret_count == room))
                        continue;
                if (values) {
                        c.engine = list[*ret_count]->engine = engines[i].number;
                        print(&c, list[*ret_count]->text);
                }
                ++*ret_count;
        }
        return CUDNN_STATUS_SUCCESS;
}

/* A note of the one kind or the other. */
static void get_note(const struct descriptor *engine, int64_t number, int note, int64_t *ret_count, void *values)
{
        *ret_count = engine->engine == number;
        if (*ret_count)
                *(int *)values = note;
}

static cudnnStatus_t get(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
        int64_t room, int64_t *ret_count, void *values)
{
        const struct descriptor *d = (const struct descriptor *)descriptor;

        (void)type;
        *ret_count = 1;
        switch (name) {
        case CUDNN_ATTR_ENGINEHEUR_RESULTS:
                return get_choices(d, room, ret_count, values);
        case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
                *(int64_t *)values = d->engine;
                break;
        case CUDNN_ATTR_ENGINECFG_ENGINE:
                (*(struct descriptor **)values)->engine = d->engine;
                break;
        case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
                get_note(d, FAKE_ENGINE_ROUGH, CUDNN_NUMERICAL_NOTE_WINOGRAD, ret_count, values);
                if (!*ret_count)
                        get_note(d, FAKE_ENGINE_TENSORS, CUDNN_NUMERICAL_NOTE_TENSOR_CORE, ret_count, values);
                break;
        case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
                get_note(d, FAKE_ENGINE_COMPILED, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION, ret_count, values);
                break;
        case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
                *(int64_t *)values = WORKSPACE;
                break;
        case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION:
                *ret_count = (int64_t)strlen(d->text) + 1;
                if (values)
                        memcpy(values, d->text, (size_t)(room < *ret_count ? room : *ret_count));
                break;
        default:
                break;
        }
        return CUDNN_STATUS_SUCCESS;
}

/* ---- execution ---- */

/* FAKE_CUDNN_HANDLES: for so many at a time there is memory. */
static cudnnStatus_t handle_create(cudnnHandle_t *ret_handle)
{
        const char *limit = getenv("FAKE_CUDNN_HANDLES");

        if (limit && n_handles >= strtoul(limit, NULL, 10))
                return CUDNN_STATUS_ALLOC_FAILED;
        *ret_handle = calloc(1, sizeof(CUstream));
        n_handles++;
        n_held++;
        return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t handle_destroy(cudnnHandle_t handle)
{
        free(handle);
        n_handles--;
        n_held--;
        return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t handle_set_stream(cudnnHandle_t handle, cudaStream_t stream)
{
        *(cudaStream_t *)handle = stream;
        return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
        const struct descriptor *d = (const struct descriptor *)pack;
        void *const *pointers = setting(d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
        const int64_t *numbers = setting(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
        int64_t n = setting_count(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
        struct fake_convolution c = {0};

        if (!parse(((const struct descriptor *)plan)->text, &c))
                return CUDNN_STATUS_BAD_PARAM;
        if (fake_libraries.convolves_nothing)
                return CUDNN_STATUS_EXECUTION_FAILED;
        for (int64_t i = 0; i < n; i++)
                c.operands[numbers[i]] = pointers[i];
        fake_libraries.n_int8 += c.type == CUDNN_DATA_INT8;
        fake_libraries_launch(FAKE_CONVOLVE, &c, *(CUstream *)handle);
        return CUDNN_STATUS_SUCCESS;
}

const struct sl_cudnn fake_cudnn = {.get_last_error_string = get_words,
        .create = create,
        .destroy = destroy,
        .set = set,
        .get = get,
        .finalize = finalize,
        .execute = execute,
        .handle_create = handle_create,
        .handle_destroy = handle_destroy,
        .handle_set_stream = handle_set_stream,
        .version = 99900};
