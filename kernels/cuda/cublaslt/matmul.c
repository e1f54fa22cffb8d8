/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLASLt's matrices are column-major, so that it is given the transposed product: out' = right' * left', whose bias lies along
 * the columns of ours.
 */
#include "cuda/cublaslt/matmul.h"

#include "base/error.h"

#include <errno.h>

static cudaDataType_t type_of(uint32_t dtype)
{
        switch (dtype) {
        case SL_DTYPE_BF16:
                return CUDA_R_16BF;
        case SL_DTYPE_F16:
                return CUDA_R_16F;
        case SL_DTYPE_I8:
                return CUDA_R_8I;
        case SL_DTYPE_I32:
                return CUDA_R_32I;
        default:
                return CUDA_R_32F;
        }
}

static bool is_half(uint32_t dtype)
{
        return dtype == SL_DTYPE_F16 || dtype == SL_DTYPE_BF16;
}

static bool is_integer(const struct sl_cuda_product *p)
{
        return p->type == SL_DTYPE_I8;
}

static cublasComputeType_t compute_type(const struct sl_cuda_product *p)
{
        if (is_integer(p))
                return CUBLAS_COMPUTE_32I;
        return p->type == SL_DTYPE_F32 && p->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

static const void *at(CUdeviceptr address)
{
        return (const void *)(uintptr_t)address;
}

/* Each is done only while all before it went well. */
static void set_desc(
        struct sl_cublaslt_matmul *m, cublasLtMatmulDescAttributes_t name, const void *value, size_t bytes, cublasStatus_t *status)
{
        if (*status == CUBLAS_STATUS_SUCCESS)
                *status = m->library->desc_set(m->desc, name, value, bytes);
}

static cublasLtEpilogue_t epilogue_of(const struct sl_cuda_product *p)
{
        if (p->has_relu)
                return p->has_bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
        return p->has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

static cublasStatus_t make_desc(struct sl_cublaslt_matmul *m, const struct sl_cublaslt_ground *ground)
{
        const struct sl_cuda_product *p = &m->product;
        const cublasOperation_t first = p->right_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
        const cublasOperation_t second = p->left_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
        const cublasLtEpilogue_t epilogue = epilogue_of(p);
        const cudaDataType_t bias_type = type_of(p->out_type);
        const int32_t processors = ground->n_processors;
        const void *bias = at(ground->alignment); /* as no address is known yet: what the heuristics may take for granted of it */
        cublasStatus_t status = m->library->desc_create(&m->desc, compute_type(p), is_integer(p) ? CUDA_R_32I : CUDA_R_32F);

        set_desc(m, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof(first), &status);
        set_desc(m, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof(second), &status);
        set_desc(m, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue), &status);
        if (p->has_bias)
                set_desc(m, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type, sizeof(bias_type), &status);
        if (p->has_bias)
                set_desc(m, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias), &status);
        if (p->has_bias && p->bias_step)
                set_desc(m, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &p->bias_step, sizeof(p->bias_step), &status);
        if (processors)
                set_desc(m, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &processors, sizeof(processors), &status);
        return status;
}

/* A row-major matrix of @rows x @columns as a column-major one. */
struct shape {
        uint32_t dtype;
        int64_t rows, columns, row_step, step;
};

static void make_layout(
        const struct sl_cublaslt_matmul *m, const struct shape *s, cublasLtMatrixLayout_t *ret_layout, cublasStatus_t *status)
{
        const int32_t batch = (int32_t)m->product.batch;

        if (*status == CUBLAS_STATUS_SUCCESS)
                *status = m->library->layout_create(
                        ret_layout, type_of(s->dtype), (uint64_t)s->columns, (uint64_t)s->rows, s->row_step);
        if (*status == CUBLAS_STATUS_SUCCESS && batch > 1)
                *status = m->library->layout_set(*ret_layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch));
        if (*status == CUBLAS_STATUS_SUCCESS && batch > 1)
                *status =
                        m->library->layout_set(*ret_layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &s->step, sizeof(s->step));
}

static cublasStatus_t make_layouts(struct sl_cublaslt_matmul *m)
{
        const struct sl_cuda_product *p = &m->product;
        const struct shape left = {
                p->type, p->left_turned ? p->depth : p->rows, p->left_turned ? p->rows : p->depth, p->left_row, p->left_step};
        const struct shape right = {p->type, p->right_turned ? p->columns : p->depth, p->right_turned ? p->depth : p->columns,
                p->right_row, p->right_step};
        const struct shape out = {p->out_type, p->rows, p->columns, p->out_row, p->out_step};
        cublasStatus_t status = CUBLAS_STATUS_SUCCESS;

        make_layout(m, &left, &m->left, &status);
        make_layout(m, &right, &m->right, &status);
        make_layout(m, &out, &m->addend, &status);
        make_layout(m, &out, &m->out, &status);
        return status;
}

static cublasStatus_t make_preference(
        const struct sl_cublaslt_matmul *m, const struct sl_cublaslt_ground *ground, cublasLtMatmulPreference_t *ret_preference)
{
        static const cublasLtMatmulPreferenceAttributes_t alignments[] = {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
        /* Partial sums of halves are no halves. */
        const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
        const uint64_t workspace_bytes = ground->workspace_bytes;
        cublasStatus_t status = m->library->preference_create(ret_preference);

        if (status == CUBLAS_STATUS_SUCCESS)
                status = m->library->preference_set(
                        *ret_preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes, sizeof(workspace_bytes));
        if (status == CUBLAS_STATUS_SUCCESS && is_half(m->product.out_type))
                status = m->library->preference_set(
                        *ret_preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof(reductions));
        for (uint32_t i = 0; i < sizeof(alignments) / sizeof(alignments[0]) && status == CUBLAS_STATUS_SUCCESS; i++)
                status = m->library->preference_set(*ret_preference, alignments[i], &ground->alignment, sizeof(ground->alignment));
        return status;
}

/* Up to @n that fit, best first by cuBLASLt's own guess. */
static cublasStatus_t list_algorithms(const struct sl_cublaslt_matmul *m, const struct sl_cublaslt_ground *ground, uint32_t n,
        struct sl_cublaslt_algorithm *ret_algorithms, uint32_t *ret_n)
{
        cublasLtMatmulHeuristicResult_t results[SL_CUBLASLT_ALGORITHMS_MAX] = {{.state = CUBLAS_STATUS_NOT_SUPPORTED}};
        cublasLtMatmulPreference_t preference = NULL;
        cublasStatus_t status = make_preference(m, ground, &preference);
        int n_found = 0;

        *ret_n = 0;
        if (status == CUBLAS_STATUS_SUCCESS)
                status = m->library->heuristic(
                        m->handle, m->desc, m->right, m->left, m->addend, m->out, preference, (int)n, results, &n_found);
        if (preference)
                m->library->preference_destroy(preference);
        for (int i = 0; i < n_found && i < (int)n && status == CUBLAS_STATUS_SUCCESS; i++)
                if (results[i].state == CUBLAS_STATUS_SUCCESS && results[i].workspaceSize <= ground->workspace_bytes)
                        ret_algorithms[(*ret_n)++] = (struct sl_cublaslt_algorithm){results[i].algo, results[i].workspaceSize};
        return status == CUBLAS_STATUS_SUCCESS && !*ret_n ? CUBLAS_STATUS_NOT_SUPPORTED : status;
}

static cublasStatus_t choose(struct sl_cublaslt_matmul *m, const struct sl_cublaslt_ground *ground)
{
        struct sl_cublaslt_algorithm first;
        uint32_t n;
        cublasStatus_t status = list_algorithms(m, ground, 1, &first, &n);

        if (status == CUBLAS_STATUS_SUCCESS)
                sl_cublaslt_matmul_use(m, &first);
        return status;
}

uint32_t sl_cublaslt_matmul_list(const struct sl_cublaslt_matmul *m, const struct sl_cublaslt_ground *ground,
        struct sl_cublaslt_algorithm ret_algorithms[SL_CUBLASLT_ALGORITHMS_MAX])
{
        uint32_t n;

        (void)list_algorithms(m, ground, SL_CUBLASLT_ALGORITHMS_MAX, ret_algorithms, &n);
        return n;
}

void sl_cublaslt_matmul_use(struct sl_cublaslt_matmul *m, const struct sl_cublaslt_algorithm *algorithm)
{
        m->algo = algorithm->algo;
        m->workspace_bytes = algorithm->workspace_bytes;
}

bool sl_cublaslt_matmul_accepts(
        const struct sl_cublaslt_matmul *m, const struct sl_cublaslt_ground *ground, struct sl_cublaslt_algorithm *algorithm)
{
        cublasLtMatmulHeuristicResult_t result = {.state = CUBLAS_STATUS_NOT_SUPPORTED};
        cublasStatus_t status =
                m->library->algo_check(m->handle, m->desc, m->right, m->left, m->addend, m->out, &algorithm->algo, &result);

        if (status != CUBLAS_STATUS_SUCCESS || result.state != CUBLAS_STATUS_SUCCESS ||
                result.workspaceSize > ground->workspace_bytes)
                return false;
        algorithm->workspace_bytes = result.workspaceSize;
        return true;
}

int sl_cublaslt_matmul_init(const struct sl_cublaslt *library, cublasLtHandle_t handle, const struct sl_cuda_product *product,
        const struct sl_cublaslt_ground *ground, struct sl_cublaslt_matmul *ret_matmul, struct sl_error *error)
{
        struct sl_cublaslt_matmul m = {.library = library, .handle = handle, .product = *product};
        cublasStatus_t status = make_desc(&m, ground);

        if (status == CUBLAS_STATUS_SUCCESS)
                status = make_layouts(&m);
        if (status == CUBLAS_STATUS_SUCCESS)
                status = choose(&m, ground);
        if (status == CUBLAS_STATUS_SUCCESS) {
                *ret_matmul = m;
                return 0;
        }
        sl_cublaslt_matmul_deinit(&m);
        return sl_error_set(error, status == CUBLAS_STATUS_ALLOC_FAILED ? ENOMEM : ENOTSUP,
                "cuBLASLt has no algorithm for %lld products of %lldx%lld by %lldx%lld: status %d", (long long)product->batch,
                (long long)product->rows, (long long)product->depth, (long long)product->depth, (long long)product->columns,
                (int)status);
}

void sl_cublaslt_matmul_deinit(struct sl_cublaslt_matmul *m)
{
        const cublasLtMatrixLayout_t layouts[] = {m->left, m->right, m->addend, m->out};

        for (uint32_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
                if (layouts[i])
                        m->library->layout_destroy(layouts[i]);
        if (m->desc)
                m->library->desc_destroy(m->desc);
        *m = (struct sl_cublaslt_matmul){.library = NULL};
}

cublasStatus_t sl_cublaslt_matmul_launch(struct sl_cublaslt_matmul *m, const struct sl_cublaslt_operands *o, CUstream stream)
{
        const struct sl_cuda_product *p = &m->product;
        const void *bias = at(o->bias);
        const float beta = p->has_addend ? p->beta : 0;
        const int32_t one = 1, none = 0;
        cublasStatus_t status = CUBLAS_STATUS_SUCCESS;

        if (p->has_bias)
                set_desc(m, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias), &status);
        if (status != CUBLAS_STATUS_SUCCESS)
                return status;
        return m->library->matmul(m->handle, m->desc, is_integer(p) ? (const void *)&one : &p->alpha, at(o->right), m->right,
                at(o->left), m->left, is_integer(p) ? (const void *)&none : &beta, p->has_addend ? at(o->addend) : at(o->out),
                m->addend, (void *)(uintptr_t)o->out, m->out, &m->algo, (void *)(uintptr_t)o->workspace, m->workspace_bytes,
                (cudaStream_t)stream);
}
