/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts: groups of multiprocessors, described, and streams on them. Nothing runs on a multiprocessor here. */
#include "fake_state.h"

#include <string.h>

/* Of compute capability 9.0. */
#define GROUP_LEAST 8

CUresult CUDAAPI fake_device_get_dev_resource(CUdevice device, CUdevResource *ret_resource, CUdevResourceType type)
{
        (void)device;
        ENTER(device_get_dev_resource);
        if (type != CU_DEV_RESOURCE_TYPE_SM)
                return fake_leave(CUDA_ERROR_INVALID_RESOURCE_TYPE);
        *ret_resource = (CUdevResource){.type = type};
        ret_resource->sm.smCount = (unsigned int)fake.options.n_processors;
        ret_resource->sm.minSmPartitionSize = ret_resource->sm.smCoscheduledAlignment = GROUP_LEAST;
        return fake_leave(CUDA_SUCCESS);
}

/* A group remembers its number, in what is the driver's own. 0: it is none. */
static void make_group(CUdevResource *group, uint32_t number, uint32_t n_processors)
{
        *group = (CUdevResource){.type = CU_DEV_RESOURCE_TYPE_SM};
        group->sm.smCount = n_processors;
        memcpy(group->_internal_padding, &number, sizeof(number));
}

CUresult CUDAAPI fake_dev_sm_resource_split_by_count(CUdevResource *ret_groups, unsigned int *n_groups, const CUdevResource *whole,
        CUdevResource *ret_rest, unsigned int flags, unsigned int least)
{
        uint32_t size = ((least < GROUP_LEAST ? GROUP_LEAST : least) + GROUP_LEAST - 1) / GROUP_LEAST * GROUP_LEAST;
        uint32_t n = whole->sm.smCount / size;

        (void)flags;
        ENTER(dev_sm_resource_split_by_count);
        if (!n)
                return fake_leave(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
        if (ret_groups) {
                n = *n_groups < n ? *n_groups : n;
                for (uint32_t i = 0; i < n; i++)
                        make_group(&ret_groups[i], i + 1, size);
                if (ret_rest)
                        make_group(ret_rest, 0, whole->sm.smCount - n * size);
        }
        *n_groups = n;
        return fake_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI fake_dev_resource_generate_desc(CUdevResourceDesc *ret_desc, CUdevResource *resources, unsigned int n_resources)
{
        struct object *share;
        uint64_t groups = 0;

        ENTER(dev_resource_generate_desc);
        for (unsigned int i = 0; i < n_resources; i++) {
                uint32_t number;

                memcpy(&number, resources[i]._internal_padding, sizeof(number));
                if (!number || number > 64 || groups & 1ull << (number - 1))
                        return fake_leave(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
                groups |= 1ull << (number - 1);
        }
        share = fake_add_object(OBJECT_SHARE);
        share->groups = groups;
        *ret_desc = (CUdevResourceDesc)share;
        return fake_leave(CUDA_SUCCESS);
}

/* A description has no end of its own in the driver: here it ends with its use. */
CUresult CUDAAPI fake_green_ctx_create(CUgreenCtx *ret_context, CUdevResourceDesc desc, CUdevice device, unsigned int flags)
{
        struct object *share, *green;
        uint64_t groups;
        CUresult result;

        (void)device;
        result = fake_enter(FAKE_CUDA_green_ctx_create);
        share = fake_get_object((void *)desc, OBJECT_SHARE);
        groups = share->groups;
        share->kind = OBJECT_NONE;
        if (result != CUDA_SUCCESS)
                return fake_leave(result);
        if (flags != CU_GREEN_CTX_DEFAULT_STREAM)
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        green = fake_add_object(OBJECT_GREEN);
        green->groups = groups;
        *ret_context = (CUgreenCtx)green;
        return fake_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI fake_green_ctx_destroy(CUgreenCtx handle)
{
        struct object *green;

        ENTER(green_ctx_destroy);
        green = fake_get_object(handle, OBJECT_GREEN);
        if (green->n_streams)
                fake_die("a green context is destroyed before its streams");
        green->kind = OBJECT_NONE;
        return fake_leave(CUDA_SUCCESS);
}

CUresult CUDAAPI fake_green_ctx_stream_create(CUstream *ret_stream, CUgreenCtx handle, unsigned int flags, int priority)
{
        struct object *green, *stream;

        (void)priority;
        ENTER(green_ctx_stream_create);
        if (flags != CU_STREAM_NON_BLOCKING)
                return fake_leave(CUDA_ERROR_INVALID_VALUE);
        green = fake_get_object(handle, OBJECT_GREEN);
        stream = fake_add_object(OBJECT_STREAM);
        stream->green = green;
        green->n_streams++;
        *ret_stream = (CUstream)stream;
        return fake_leave(CUDA_SUCCESS);
}

uint64_t fake_cuda_stream_groups(CUstream stream)
{
        const struct object *green;
        uint64_t groups;

        pthread_mutex_lock(&fake.lock);
        green = fake_get_object(stream, OBJECT_STREAM)->green;
        groups = green ? green->groups : UINT64_MAX;
        pthread_mutex_unlock(&fake.lock);
        return groups;
}
