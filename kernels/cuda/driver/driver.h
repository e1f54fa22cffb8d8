/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver as a table of functions. Nothing links libcuda: a program that does dies at its start where there is no driver.
 * The table is filled once and only read then; any thread. Tests fill it with functions of their own.
 */
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <stdbool.h>
#include <stdint.h>

struct sl_error;

/* The oldest that the module's code runs on: CUDA 13.0, which comes with driver 580. */
#define SL_CUDA_DRIVER_VERSION 13000
#define SL_CUDA_DRIVER_RELEASE "580"

/* Field, function without "cu", and the version of CUDA that its arguments are of. */
#define SL_CUDA_DRIVER_CALLS(X)                                                                                                    \
        X(get_error_name, GetErrorName, 6000)                                                                                      \
        X(get_error_string, GetErrorString, 6000)                                                                                  \
        X(init, Init, 2000)                                                                                                        \
        X(device_get_count, DeviceGetCount, 2000)                                                                                  \
        X(device_get, DeviceGet, 2000)                                                                                             \
        X(device_get_name, DeviceGetName, 2000)                                                                                    \
        X(device_get_attribute, DeviceGetAttribute, 2000)                                                                          \
        X(device_total_mem, DeviceTotalMem, 3020)                                                                                  \
        X(device_primary_ctx_retain, DevicePrimaryCtxRetain, 7000)                                                                 \
        X(device_primary_ctx_release, DevicePrimaryCtxRelease, 11000)                                                              \
        X(ctx_set_current, CtxSetCurrent, 4000)                                                                                    \
        X(ctx_get_stream_priority_range, CtxGetStreamPriorityRange, 5050)                                                          \
        X(mem_alloc, MemAlloc, 3020)                                                                                               \
        X(mem_free, MemFree, 3020)                                                                                                 \
        X(mem_get_info, MemGetInfo, 3020)                                                                                          \
        X(mem_host_alloc, MemHostAlloc, 2020)                                                                                      \
        X(mem_free_host, MemFreeHost, 2000)                                                                                        \
        X(mem_host_register, MemHostRegister, 6050)                                                                                \
        X(mem_host_unregister, MemHostUnregister, 4000)                                                                            \
        X(mem_host_get_device_pointer, MemHostGetDevicePointer, 3020)                                                              \
        X(mem_get_allocation_granularity, MemGetAllocationGranularity, 10020)                                                      \
        X(mem_address_reserve, MemAddressReserve, 10020)                                                                           \
        X(mem_address_free, MemAddressFree, 10020)                                                                                 \
        X(mem_create, MemCreate, 10020)                                                                                            \
        X(mem_release, MemRelease, 10020)                                                                                          \
        X(mem_map, MemMap, 10020)                                                                                                  \
        X(mem_unmap, MemUnmap, 10020)                                                                                              \
        X(mem_set_access, MemSetAccess, 10020)                                                                                     \
        X(memcpy_htod_async, MemcpyHtoDAsync, 3020)                                                                                \
        X(memcpy_dtoh_async, MemcpyDtoHAsync, 3020)                                                                                \
        X(memcpy_dtod_async, MemcpyDtoDAsync, 3020)                                                                                \
        X(memset_d8_async, MemsetD8Async, 3020)                                                                                    \
        X(stream_create_with_priority, StreamCreateWithPriority, 5050)                                                             \
        X(stream_destroy, StreamDestroy, 4000)                                                                                     \
        X(stream_wait_event, StreamWaitEvent, 3020)                                                                                \
        X(stream_synchronize, StreamSynchronize, 2000)                                                                             \
        X(stream_write_value64, StreamWriteValue64, 11070)                                                                         \
        X(stream_begin_capture, StreamBeginCapture, 10010)                                                                         \
        X(stream_end_capture, StreamEndCapture, 10000)                                                                             \
        X(graph_get_nodes, GraphGetNodes, 10000)                                                                                   \
        X(graph_node_get_type, GraphNodeGetType, 10000)                                                                            \
        X(graph_memcpy_node_get_params, GraphMemcpyNodeGetParams, 10000)                                                           \
        X(graph_kernel_node_get_params, GraphKernelNodeGetParams, 12000)                                                           \
        X(graph_instantiate, GraphInstantiateWithFlags, 11040)                                                                     \
        X(graph_exec_memcpy_node_set_params, GraphExecMemcpyNodeSetParams, 10020)                                                  \
        X(graph_exec_kernel_node_set_params, GraphExecKernelNodeSetParams, 12000)                                                  \
        X(graph_launch, GraphLaunch, 10000)                                                                                        \
        X(graph_exec_destroy, GraphExecDestroy, 10000)                                                                             \
        X(graph_destroy, GraphDestroy, 10000)                                                                                      \
        X(event_create, EventCreate, 2000)                                                                                         \
        X(event_destroy, EventDestroy, 4000)                                                                                       \
        X(event_record, EventRecord, 2000)                                                                                         \
        X(event_query, EventQuery, 2000)                                                                                           \
        X(event_elapsed_time, EventElapsedTime, 12080)                                                                             \
        X(library_load_data, LibraryLoadData, 12000)                                                                               \
        X(library_unload, LibraryUnload, 12000)                                                                                    \
        X(library_get_kernel, LibraryGetKernel, 12000)                                                                             \
        X(launch_kernel, LaunchKernel, 4000)                                                                                       \
        X(device_get_dev_resource, DeviceGetDevResource, 12040)                                                                    \
        X(dev_sm_resource_split_by_count, DevSmResourceSplitByCount, 12040)                                                        \
        X(dev_resource_generate_desc, DevResourceGenerateDesc, 12040)                                                              \
        X(green_ctx_create, GreenCtxCreate, 12040)                                                                                 \
        X(green_ctx_destroy, GreenCtxDestroy, 12040)                                                                               \
        X(green_ctx_stream_create, GreenCtxStreamCreate, 12050)

struct sl_cuda_driver {
#define X(field, name, version) PFN_cu##name##_v##version field;
        SL_CUDA_DRIVER_CALLS(X)
#undef X
        void *library; /* of dlopen(); NULL: the functions are somebody else's */
        int version;   /* of CUDA, 1000 x major + 10 x minor */
};

/*
 * Loads @path, or libcuda.so.1 where that is NULL. Opens no device. Return: 0; -ENOENT there is no such library; -EPROTONOSUPPORT
 * the driver is too old, the text has what was found and what is needed; -ELIBBAD it is no driver.
 */
int sl_cuda_driver_open(const char *path, struct sl_cuda_driver *ret_driver, struct sl_error *error);
void sl_cuda_driver_close(struct sl_cuda_driver *driver);

/* Its release, "580.95.05", as the kernel's part of it says it; "": it does not. Any thread. */
#define SL_CUDA_RELEASE_BYTES 32
void sl_cuda_driver_release(char ret_release[SL_CUDA_RELEASE_BYTES]);

/*
 * What a driver's answer is here: 0; -EINPROGRESS not yet; -ENOMEM; -ENODEV; -EBUSY somebody else has the device for himself;
 * -EPERM; -EIO the device, or this process's use of it, is lost (sl_cuda_is_lost()); -EINVAL everything else.
 */
int sl_cuda_errno(CUresult result);

/* Nothing that this process does on the device will work again: it has to end. */
bool sl_cuda_is_lost(CUresult result);

/* 0, or an error with the text "WHAT: CUDA_ERROR_NAME (what the driver says of it)". */
int sl_cuda_check(const struct sl_cuda_driver *driver, CUresult result, struct sl_error *error, const char *what, ...)
        __attribute__((format(printf, 4, 5)));
