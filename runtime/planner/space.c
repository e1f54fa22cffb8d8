/* SPDX-License-Identifier: Apache-2.0 */
#include "space.h"
#include "matrix.h"

#include <math.h>

double sl_space_matrices(uint32_t n_devices, uint32_t n_batches, uint32_t n_models)
{
        return pow(pow(n_batches + 1.0, n_devices) - 1, n_models);
}

uint32_t sl_space_forbidden(const struct sl_matrix *matrix)
{
        uint32_t n = 0;

        for (uint32_t m = 0; m < matrix->n_models; m++)
                n += sl_matrix_workers_of(matrix, m) == 1;
        return n;
}

uint64_t sl_space_neighbours(uint32_t n_devices, uint32_t n_batches, uint32_t n_models, uint32_t forbidden)
{
        return (n_batches + 1ull) * ((uint64_t)n_devices * n_models) - forbidden;
}

uint64_t sl_space_changes(uint32_t n_devices, uint32_t n_batches, uint32_t n_models, uint32_t forbidden)
{
        return n_batches * ((uint64_t)n_devices * n_models) - forbidden;
}
