/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cudnn/execution.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>

static cudnnStatus_t load(struct sl_cudnn_execution *e, const char *text, uint64_t text_bytes, int64_t *ret_workspace_bytes)
{
        const struct sl_cudnn *library = e->library;
        int64_t count = 0;
        cudnnStatus_t status = library->create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &e->plan);

        if (status == CUDNN_STATUS_SUCCESS)
                status = library->set(e->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &e->handle);
        if (status == CUDNN_STATUS_SUCCESS)
                status = library->set(
                        e->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)text_bytes, text);
        if (status == CUDNN_STATUS_SUCCESS)
                status = library->finalize(e->plan);
        if (status == CUDNN_STATUS_SUCCESS)
                status = library->get(
                        e->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, ret_workspace_bytes);
        return status;
}

int sl_cudnn_execution_init(const struct sl_cudnn *library, cudnnHandle_t handle, const char *text, uint64_t text_bytes,
        uint64_t workspace_bytes, struct sl_cudnn_execution *ret_execution, struct sl_error *error)
{
        struct sl_cudnn_execution e = {.library = library, .handle = handle};
        char words[256] = "";
        int64_t wanted = -1;
        cudnnStatus_t status = load(&e, text, text_bytes, &wanted);

        if (status == CUDNN_STATUS_SUCCESS && wanted >= 0 && (uint64_t)wanted <= workspace_bytes) {
                e.workspace_bytes = workspace_bytes;
                *ret_execution = e;
                return 0;
        }
        sl_cudnn_execution_deinit(&e);
        if (status == CUDNN_STATUS_SUCCESS)
                return sl_error_set(error, EBADMSG, "a plan of cuDNN wants %lld bytes of workspace, and has %llu",
                        (long long)wanted, (unsigned long long)workspace_bytes);
        library->get_last_error_string(words, sizeof(words));
        words[strcspn(words, "\n")] = 0;
        return sl_error_set(error, status == CUDNN_STATUS_ALLOC_FAILED ? ENOMEM : EBADMSG,
                "cuDNN does not take a plan on this device: status %d%s%s", (int)status, *words ? ", " : "", words);
}

static void drop_pack(struct sl_cudnn_execution *e)
{
        if (e->pack)
                e->library->destroy(e->pack);
        e->pack = NULL;
}

void sl_cudnn_execution_deinit(struct sl_cudnn_execution *e)
{
        drop_pack(e);
        if (e->plan)
                e->library->destroy(e->plan);
        *e = (struct sl_cudnn_execution){.library = NULL};
}

static cudnnStatus_t fill_pack(struct sl_cudnn_execution *e, const CUdeviceptr addresses[SL_CUDNN_OPERANDS], CUdeviceptr workspace)
{
        const struct sl_cudnn *library = e->library;
        void *pointers[SL_CUDNN_OPERANDS], *room = (void *)(uintptr_t)workspace;
        int64_t numbers[SL_CUDNN_OPERANDS], n = 0;
        cudnnStatus_t status;

        for (uint32_t i = 0; i < SL_CUDNN_OPERANDS; i++) {
                if (!addresses[i])
                        continue;
                pointers[n] = (void *)(uintptr_t)addresses[i];
                numbers[n++] = SL_CUDNN_X + i;
        }
        status = library->create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &e->pack);
        if (status == CUDNN_STATUS_SUCCESS)
                status = library->set(e->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointers);
        if (status == CUDNN_STATUS_SUCCESS)
                status = library->set(e->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, numbers);
        if (status == CUDNN_STATUS_SUCCESS)
                status = library->set(e->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &room);
        return status == CUDNN_STATUS_SUCCESS ? library->finalize(e->pack) : status;
}

cudnnStatus_t sl_cudnn_execution_launch(
        struct sl_cudnn_execution *e, const CUdeviceptr addresses[SL_CUDNN_OPERANDS], CUdeviceptr workspace)
{
        cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

        if (!e->pack || e->workspace != workspace || memcmp(e->addresses, addresses, sizeof(e->addresses)) != 0) {
                drop_pack(e);
                status = fill_pack(e, addresses, workspace);
                memcpy(e->addresses, addresses, sizeof(e->addresses));
                e->workspace = workspace;
        }
        if (status == CUDNN_STATUS_SUCCESS)
                status = e->library->execute(e->handle, e->plan, e->pack);
        if (status != CUDNN_STATUS_SUCCESS)
                drop_pack(e);
        return status;
}
