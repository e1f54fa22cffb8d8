/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/driver/driver.h"

#include "base/error.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int load_version(struct sl_cuda_driver *driver, const char *path, struct sl_error *error)
{
        PFN_cuDriverGetVersion_v2020 get_version = (PFN_cuDriverGetVersion_v2020)dlsym(driver->library, "cuDriverGetVersion");
        CUresult result;

        if (!get_version)
                return sl_error_set(error, ELIBBAD, "%s is no CUDA driver: it lacks cuDriverGetVersion", path);
        result = get_version(&driver->version);
        if (result == CUDA_ERROR_STUB_LIBRARY)
                return sl_error_set(error, ELIBBAD, "%s is the stub of a CUDA toolkit, to link with, and no driver", path);
        if (result != CUDA_SUCCESS)
                return sl_error_set(error, ELIBBAD, "%s does not say its version: CUDA error %d", path, (int)result);
        if (driver->version < SL_CUDA_DRIVER_VERSION)
                return sl_error_set(error, EPROTONOSUPPORT,
                        "the NVIDIA driver is for CUDA %d.%d, and CUDA %d.%d is needed: driver " SL_CUDA_DRIVER_RELEASE " or newer",
                        driver->version / 1000, driver->version % 1000 / 10, SL_CUDA_DRIVER_VERSION / 1000,
                        SL_CUDA_DRIVER_VERSION % 1000 / 10);
        return 0;
}

static int load_call(PFN_cuGetProcAddress_v12000 find, const char *name, int version, void **ret_function, struct sl_error *error)
{
        CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        CUresult result = find(name, ret_function, version, CU_GET_PROC_ADDRESS_DEFAULT, &found);

        if (result == CUDA_SUCCESS && found == CU_GET_PROC_ADDRESS_SUCCESS && *ret_function)
                return 0;
        return sl_error_set(error, ELIBBAD, "the NVIDIA driver lacks %s of CUDA %d.%d", name, version / 1000, version % 1000 / 10);
}

static int load_calls(struct sl_cuda_driver *driver, const char *path, struct sl_error *error)
{
        PFN_cuGetProcAddress_v12000 find = (PFN_cuGetProcAddress_v12000)dlsym(driver->library, "cuGetProcAddress_v2");
        void *function = NULL;
        int r = find ? 0 : sl_error_set(error, ELIBBAD, "%s is no CUDA driver: it lacks cuGetProcAddress_v2", path);

#define X(field, name, number)                                                                                                     \
        if (r == 0 && (r = load_call(find, "cu" #name, number, &function, error)) == 0)                                            \
                driver->field = (PFN_cu##name##_v##number)function;
        SL_CUDA_DRIVER_CALLS(X)
#undef X
        return r;
}

int sl_cuda_driver_open(const char *path, struct sl_cuda_driver *ret_driver, struct sl_error *error)
{
        struct sl_cuda_driver driver = {.library = NULL};
        int r;

        path = path ? path : "libcuda.so.1";
        driver.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!driver.library)
                return sl_error_set(
                        error, ENOENT, "there is no NVIDIA driver, " SL_CUDA_DRIVER_RELEASE " or newer is needed: %s", dlerror());
        r = load_version(&driver, path, error);
        if (r == 0)
                r = load_calls(&driver, path, error);
        if (r < 0) {
                sl_cuda_driver_close(&driver);
                return r;
        }
        *ret_driver = driver;
        return 0;
}

void sl_cuda_driver_close(struct sl_cuda_driver *driver)
{
        if (driver->library)
                dlclose(driver->library);
        *driver = (struct sl_cuda_driver){.library = NULL};
}

bool sl_cuda_is_lost(CUresult result)
{
        switch (result) {
        case CUDA_ERROR_ILLEGAL_ADDRESS:
        case CUDA_ERROR_LAUNCH_TIMEOUT:
        case CUDA_ERROR_ASSERT:
        case CUDA_ERROR_HARDWARE_STACK_ERROR:
        case CUDA_ERROR_ILLEGAL_INSTRUCTION:
        case CUDA_ERROR_MISALIGNED_ADDRESS:
        case CUDA_ERROR_INVALID_ADDRESS_SPACE:
        case CUDA_ERROR_INVALID_PC:
        case CUDA_ERROR_LAUNCH_FAILED:
        case CUDA_ERROR_ECC_UNCORRECTABLE:
        case CUDA_ERROR_CONTAINED:
        case CUDA_ERROR_NVLINK_UNCORRECTABLE:
        case CUDA_ERROR_DEINITIALIZED:
        case CUDA_ERROR_CONTEXT_IS_DESTROYED:
        case CUDA_ERROR_EXTERNAL_DEVICE:
        case CUDA_ERROR_MPS_CLIENT_TERMINATED:
        case CUDA_ERROR_UNKNOWN:
                return true;
        default:
                return false;
        }
}

static bool is_release(const char *word)
{
        return *word >= '0' && *word <= '9' && strchr(word, '.') && strspn(word, "0123456789.") == strlen(word);
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Release Build": the first word that is one. */
void sl_cuda_driver_release(char ret_release[SL_CUDA_RELEASE_BYTES])
{
        FILE *file = fopen("/proc/driver/nvidia/version", "re");
        char line[256] = "", *rest, *word;

        memset(ret_release, 0, SL_CUDA_RELEASE_BYTES);
        if (!file)
                return;
        if (!fgets(line, sizeof(line), file))
                line[0] = 0;
        fclose(file);
        for (word = strtok_r(line, " \n", &rest); word && !is_release(word); word = strtok_r(NULL, " \n", &rest))
                ;
        if (word)
                snprintf(ret_release, SL_CUDA_RELEASE_BYTES, "%s", word);
}

int sl_cuda_errno(CUresult result)
{
        if (sl_cuda_is_lost(result))
                return -EIO;
        switch (result) {
        case CUDA_SUCCESS:
                return 0;
        case CUDA_ERROR_NOT_READY:
                return -EINPROGRESS;
        case CUDA_ERROR_OUT_OF_MEMORY:
                return -ENOMEM;
        case CUDA_ERROR_NO_DEVICE:
        case CUDA_ERROR_INVALID_DEVICE:
        case CUDA_ERROR_STUB_LIBRARY:
                return -ENODEV;
        case CUDA_ERROR_DEVICE_UNAVAILABLE:
                return -EBUSY;
        case CUDA_ERROR_NOT_PERMITTED:
        case CUDA_ERROR_OPERATING_SYSTEM:
                return -EPERM;
        default:
                return -EINVAL;
        }
}

int sl_cuda_check(const struct sl_cuda_driver *driver, CUresult result, struct sl_error *error, const char *what, ...)
{
        const char *name = NULL, *text = NULL;
        char thing[256];
        va_list arguments;

        if (result == CUDA_SUCCESS)
                return 0;
        va_start(arguments, what);
        vsnprintf(thing, sizeof(thing), what, arguments);
        va_end(arguments);
        if (driver->get_error_name(result, &name) != CUDA_SUCCESS || driver->get_error_string(result, &text) != CUDA_SUCCESS)
                return sl_error_set(error, -sl_cuda_errno(result), "%s: CUDA error %d", thing, (int)result);
        return sl_error_set(error, -sl_cuda_errno(result), "%s: %s (%s)", thing, name, text);
}
