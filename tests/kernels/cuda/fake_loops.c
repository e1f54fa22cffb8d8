/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_loops.h"
#include "fake_libraries.h"
#include "ref/element.h"

static uint32_t dtype_of_cudnn(int64_t type)
{
        if (type == CUDNN_DATA_INT8)
                return SL_DTYPE_I8;
        return type == CUDNN_DATA_HALF ? SL_DTYPE_F16 : type == CUDNN_DATA_BFLOAT16 ? SL_DTYPE_BF16 : SL_DTYPE_F32;
}

static uint32_t dtype_of_cuda(cudaDataType_t type)
{
        if (type == CUDA_R_8I || type == CUDA_R_32I)
                return type == CUDA_R_8I ? SL_DTYPE_I8 : SL_DTYPE_I32;
        return type == CUDA_R_16F ? SL_DTYPE_F16 : type == CUDA_R_16BF ? SL_DTYPE_BF16 : SL_DTYPE_F32;
}

/* Of tensors that lie as N, H, W, C. */
static int64_t offset(const int64_t dims[4], int64_t n, int64_t c, int64_t h, int64_t w)
{
        return ((n * dims[2] + h) * dims[3] + w) * dims[1] + c;
}

static double sum_window(const struct fake_convolution *v, uint32_t dtype, const int64_t at[4])
{
        int64_t group = at[1] / (v->w[0] / (v->x[1] / v->w[1]));
        double sum = 0;

        for (int64_t c = 0; c < v->w[1]; c++)
                for (int64_t i = 0; i < v->w[2]; i++)
                        for (int64_t j = 0; j < v->w[3]; j++) {
                                int64_t h = at[2] * v->stride[0] - v->pad[0] + i * v->dilation[0];
                                int64_t w = at[3] * v->stride[1] - v->pad[1] + j * v->dilation[1];

                                if (h < 0 || w < 0 || h >= v->x[2] || w >= v->x[3])
                                        continue;
                                sum += sl_ref_load(v->operands[SL_CUDNN_X], offset(v->x, at[0], group * v->w[1] + c, h, w), dtype) *
                                       sl_ref_load(v->operands[SL_CUDNN_W], offset(v->w, at[1], c, i, j), dtype);
                        }
        return sum;
}

static void convolve(const struct fake_cuda_launch *launch, const void *argument)
{
        const struct fake_convolution *v = argument;
        uint32_t dtype = dtype_of_cudnn(v->type), y_dtype = dtype == SL_DTYPE_I8 ? SL_DTYPE_I32 : dtype;
        int64_t at[4];

        (void)launch;
        for (at[0] = 0; at[0] < v->y[0]; at[0]++)
                for (at[1] = 0; at[1] < v->y[1]; at[1]++)
                        for (at[2] = 0; at[2] < v->y[2]; at[2]++)
                                for (at[3] = 0; at[3] < v->y[3]; at[3]++) {
                                        int64_t there = offset(v->y, at[0], at[1], at[2], at[3]);
                                        double sum = sum_window(v, dtype, at);

                                        if (v->residual)
                                                sum += sl_ref_load(v->operands[SL_CUDNN_RESIDUAL], there, dtype);
                                        if (v->bias)
                                                sum += sl_ref_load(v->operands[SL_CUDNN_BIAS], at[1], dtype);
                                        if (v->relu && sum < 0)
                                                sum = 0;
                                        sl_ref_store(v->operands[SL_CUDNN_Y], there, y_dtype, sum);
                                }
}

static double load(const void *data, const struct fake_matrix *m, int64_t batch, int64_t i, int64_t j)
{
        return sl_ref_load(data, batch * m->step + j * m->row + i, dtype_of_cuda(m->type));
}

static double finish(const struct fake_product *p, int64_t batch, int64_t i, int64_t j, double sum)
{
        bool relu = p->epilogue == CUBLASLT_EPILOGUE_RELU || p->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
        bool bias = p->epilogue == CUBLASLT_EPILOGUE_BIAS || p->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;

        sum *= p->alpha;
        if (p->beta != 0)
                sum += p->beta * load(p->at_c, &p->c, batch, i, j);
        if (bias)
                sum += sl_ref_load(p->bias, batch * p->bias_step + i, dtype_of_cuda(p->d.type));
        return relu && sum < 0 ? 0 : sum;
}

static void multiply(const struct fake_cuda_launch *launch, const void *argument)
{
        const struct fake_product *p = argument;
        int64_t depth = p->turn_a ? p->a.rows : p->a.columns;

        (void)launch;
        for (int64_t batch = 0; batch < p->d.batch; batch++)
                for (int64_t j = 0; j < p->d.columns; j++)
                        for (int64_t i = 0; i < p->d.rows; i++) {
                                double sum = 0;

                                for (int64_t k = 0; k < depth; k++)
                                        sum += (p->turn_a ? load(p->at_a, &p->a, batch, k, i) : load(p->at_a, &p->a, batch, i, k)) *
                                               (p->turn_b ? load(p->at_b, &p->b, batch, j, k) : load(p->at_b, &p->b, batch, k, j));
                                sl_ref_store(p->at_d, batch * p->d.step + j * p->d.row + i, dtype_of_cuda(p->d.type),
                                        finish(p, batch, i, j, sum));
                        }
}

const struct fake_cuda_kernel fake_library_kernels[FAKE_LIBRARY_KERNELS] = {
        [FAKE_CONVOLVE] = {"fake_convolve", sizeof(struct fake_convolution), convolve, fake_engine_ns},
        [FAKE_MULTIPLY] = {"fake_multiply", sizeof(struct fake_product), multiply, fake_algorithm_ns},
};
