/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_libraries.h"
#include "fake_loops.h"

#include <stdlib.h>
#include <string.h>

#define WORKSPACE 1024

struct desc {
        cublasOperation_t a, b;
        cublasLtEpilogue_t epilogue;
        const void *bias;
        int64_t bias_step;
        cublasComputeType_t compute;
        cudaDataType_t scale;
};

struct preference {
        uint32_t reductions;
};

static void *make(size_t bytes)
{
        fake_libraries_count(1);
        return calloc(1, bytes);
}

static cublasStatus_t drop(void *made)
{
        fake_libraries_count(-1);
        free(made);
        return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t CUBLASWINAPI create(cublasLtHandle_t *ret_handle)
{
        *ret_handle = make(1);
        return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t CUBLASWINAPI destroy(cublasLtHandle_t handle)
{
        return drop(handle);
}

static cublasStatus_t CUBLASWINAPI desc_create(cublasLtMatmulDesc_t *ret_desc, cublasComputeType_t type, cudaDataType_t scale)
{
        struct desc *desc = make(sizeof(*desc));

        desc->compute = type;
        desc->scale = scale;
        *ret_desc = (cublasLtMatmulDesc_t)desc;
        return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t CUBLASWINAPI desc_destroy(cublasLtMatmulDesc_t desc)
{
        return drop(desc);
}

static cublasStatus_t CUBLASWINAPI desc_set(
        cublasLtMatmulDesc_t made, cublasLtMatmulDescAttributes_t name, const void *value, size_t bytes)
{
        struct desc *desc = (struct desc *)made;
        const struct {
                cublasLtMatmulDescAttributes_t name;
                void *field;
                size_t bytes;
        } rows[] = {
                {CUBLASLT_MATMUL_DESC_TRANSA, &desc->a, sizeof(desc->a)},
                {CUBLASLT_MATMUL_DESC_TRANSB, &desc->b, sizeof(desc->b)},
                {CUBLASLT_MATMUL_DESC_EPILOGUE, &desc->epilogue, sizeof(desc->epilogue)},
                {CUBLASLT_MATMUL_DESC_BIAS_POINTER, &desc->bias, sizeof(desc->bias)},
                {CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &desc->bias_step, sizeof(desc->bias_step)},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                if (rows[i].name == name) {
                        if (bytes != rows[i].bytes)
                                return CUBLAS_STATUS_INVALID_VALUE;
                        memcpy(rows[i].field, value, bytes);
                }
        return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t CUBLASWINAPI layout_create(
        cublasLtMatrixLayout_t *ret_layout, cudaDataType type, uint64_t rows, uint64_t columns, int64_t row)
{
        struct fake_matrix *matrix = make(sizeof(*matrix));

        *matrix = (struct fake_matrix){.type = type, .rows = (int64_t)rows, .columns = (int64_t)columns, .row = row, .batch = 1};
        *ret_layout = (cublasLtMatrixLayout_t)matrix;
        return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t CUBLASWINAPI layout_destroy(cublasLtMatrixLayout_t layout)
{
        return drop(layout);
}

static cublasStatus_t CUBLASWINAPI layout_set(
        cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name, const void *value, size_t bytes)
{
        struct fake_matrix *matrix = (struct fake_matrix *)layout;

        if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
                memcpy(&matrix->batch, value, bytes);
        else
                memcpy(&matrix->step, value, bytes);
        return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t CUBLASWINAPI preference_create(cublasLtMatmulPreference_t *ret_preference)
{
        struct preference *preference = make(sizeof(*preference));

        preference->reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
        *ret_preference = (cublasLtMatmulPreference_t)preference;
        return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t CUBLASWINAPI preference_destroy(cublasLtMatmulPreference_t preference)
{
        return drop(preference);
}

static cublasStatus_t CUBLASWINAPI preference_set(
        cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name, const void *value, size_t bytes)
{
        if (name == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
                memcpy(&((struct preference *)preference)->reductions, value, bytes);
        return CUBLAS_STATUS_SUCCESS;
}

/* Products of int8 want int32 everywhere else, a turned first matrix, and multiples of 4. */
static bool is_possible(
        const struct desc *desc, const struct fake_matrix *a, const struct fake_matrix *b, const struct fake_matrix *d)
{
        if (a->type != CUDA_R_8I)
                return desc->compute != CUBLAS_COMPUTE_32I && desc->scale == CUDA_R_32F;
        return b->type == CUDA_R_8I && d->type == CUDA_R_32I && desc->compute == CUBLAS_COMPUTE_32I && desc->scale == CUDA_R_32I &&
               desc->a == CUBLAS_OP_T && desc->b == CUBLAS_OP_N && a->rows % 4 == 0 && a->row % 4 == 0 && b->row % 4 == 0 &&
               d->rows % 4 == 0 && d->row % 4 == 0;
}

static cublasStatus_t CUBLASWINAPI heuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
        cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference,
        int room, cublasLtMatmulHeuristicResult_t *results, int *ret_found)
{
        const struct fake_matrix *out = (const struct fake_matrix *)d;
        uint32_t reductions = ((const struct preference *)preference)->reductions;

        (void)handle, (void)c;
        fake_libraries.n_asked++;
        *ret_found = 0;
        if (!is_possible((const struct desc *)desc, (const struct fake_matrix *)a, (const struct fake_matrix *)b, out))
                return CUBLAS_STATUS_NOT_SUPPORTED;
        if ((out->type == CUDA_R_16F || out->type == CUDA_R_16BF) && reductions != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
                return CUBLAS_STATUS_NOT_SUPPORTED; /* sums of parts would be halves */
        while (!fake_libraries.lacks_products && *ret_found < room && *ret_found < FAKE_ALGORITHM_LAST) {
                results[*ret_found] = (cublasLtMatmulHeuristicResult_t){.workspaceSize = WORKSPACE, .state = CUBLAS_STATUS_SUCCESS};
                results[*ret_found].algo.data[0] = FAKE_ALGORITHM_FIRST + (uint64_t)*ret_found;
                ++*ret_found;
        }
        return CUBLAS_STATUS_SUCCESS;
}

static bool is_algorithm(const cublasLtMatmulAlgo_t *algo)
{
        return algo->data[0] >= FAKE_ALGORITHM_FIRST && algo->data[0] <= FAKE_ALGORITHM_LAST;
}

static cublasStatus_t CUBLASWINAPI algo_check(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
        cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo,
        cublasLtMatmulHeuristicResult_t *result)
{
        (void)handle, (void)desc, (void)a, (void)b, (void)c, (void)d;
        if (!is_algorithm(algo))
                return CUBLAS_STATUS_NOT_SUPPORTED;
        *result = (cublasLtMatmulHeuristicResult_t){.workspaceSize = WORKSPACE, .state = CUBLAS_STATUS_SUCCESS};
        return CUBLAS_STATUS_SUCCESS;
}

uint64_t fake_algorithm_ns(const void *product)
{
        static const uint64_t takes_ns[] = {300000, 150000, 250000};

        return takes_ns[((const struct fake_product *)product)->algorithm - FAKE_ALGORITHM_FIRST];
}

static cublasStatus_t CUBLASWINAPI matmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t made, const void *alpha, const void *a,
        cublasLtMatrixLayout_t layout_a, const void *b, cublasLtMatrixLayout_t layout_b, const void *beta, const void *c,
        cublasLtMatrixLayout_t layout_c, void *d, cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t *algo,
        void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
        const struct desc *desc = (const struct desc *)made;
        struct fake_product p = {.a = *(const struct fake_matrix *)layout_a,
                .b = *(const struct fake_matrix *)layout_b,
                .c = *(const struct fake_matrix *)layout_c,
                .d = *(const struct fake_matrix *)layout_d,
                .turn_a = desc->a == CUBLAS_OP_T,
                .turn_b = desc->b == CUBLAS_OP_T,
                .epilogue = desc->epilogue ? desc->epilogue : CUBLASLT_EPILOGUE_DEFAULT,
                .alpha = desc->scale == CUDA_R_32I ? (float)*(const int32_t *)alpha : *(const float *)alpha,
                .beta = desc->scale == CUDA_R_32I ? (float)*(const int32_t *)beta : *(const float *)beta,
                .bias_step = desc->bias_step,
                .at_a = a,
                .at_b = b,
                .at_c = c,
                .bias = desc->bias,
                .at_d = d};

        (void)handle;
        if (!is_algorithm(algo))
                return CUBLAS_STATUS_NOT_SUPPORTED;
        if (fake_libraries.multiplies_nothing)
                return CUBLAS_STATUS_INTERNAL_ERROR;
        p.algorithm = algo->data[0];
        if (!fake_cuda_is_device((CUdeviceptr)(uintptr_t)workspace, workspace_bytes))
                return CUBLAS_STATUS_INVALID_VALUE;
        fake_libraries.n_int8 += p.a.type == CUDA_R_8I;
        fake_libraries_launch(FAKE_MULTIPLY, &p, (CUstream)stream);
        return CUBLAS_STATUS_SUCCESS;
}

const struct sl_cublaslt fake_cublaslt = {.create = create,
        .destroy = destroy,
        .desc_create = desc_create,
        .desc_destroy = desc_destroy,
        .desc_set = desc_set,
        .layout_create = layout_create,
        .layout_destroy = layout_destroy,
        .layout_set = layout_set,
        .preference_create = preference_create,
        .preference_destroy = preference_destroy,
        .preference_set = preference_set,
        .heuristic = heuristic,
        .algo_check = algo_check,
        .matmul = matmul,
        .version = 130000};
