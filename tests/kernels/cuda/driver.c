/* SPDX-License-Identifier: Apache-2.0 */
/* What is said when there is no driver, or one that does not do, and of devices that cannot be opened. */
#include "base/error.h"
#include "cuda/driver/device.h"
#include "fake_driver.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void check_refused(const char *path, int expected, const char *words)
{
        struct sl_cuda_driver driver;
        struct sl_error error = {""};

        cr_assert_eq(sl_cuda_driver_open(path, &driver, &error), expected, "%s: %s", path, error.text);
        cr_assert_not_null(strstr(error.text, words), "%s", error.text);
        cr_assert_null(strchr(error.text, '\n'));
}

Test(driver, that_is_missing_is_named)
{
        check_refused("/nowhere/libcuda.so.1", -ENOENT, "there is no NVIDIA driver, 580 or newer is needed: /nowhere/libcuda.so.1");
}

Test(driver, that_is_too_old_is_told_with_both_versions)
{
        check_refused(MADE_OLD, -EPROTONOSUPPORT, "is for CUDA 12.4, and CUDA 13.0 is needed: driver 580 or newer");
}

Test(driver, that_lacks_a_function_is_told_which)
{
        check_refused(MADE_PARTIAL, -ELIBBAD, "lacks cuMemMap of CUDA 10.2");
}

Test(driver, that_is_another_library_is_refused)
{
        check_refused(MADE_OTHER, -ELIBBAD, "is no CUDA driver: it lacks cuDriverGetVersion");
}

Test(driver, that_has_all_functions_is_loaded)
{
        struct sl_cuda_driver driver;
        struct sl_error error = {""};

        cr_assert_eq(sl_cuda_driver_open(MADE_WHOLE, &driver, &error), 0, "%s", error.text);
        cr_assert_eq(driver.version, 13000);
        cr_assert_eq(driver.init(0), CUDA_ERROR_NO_DEVICE);
        sl_cuda_driver_close(&driver);
        cr_assert_null(driver.library);
        cr_assert_null(driver.init);
}

static void check_no_device(uint32_t index, int expected, const char *words)
{
        struct sl_cuda_driver driver;
        struct sl_cuda_device device;
        struct sl_error error = {""};
        struct fake_cuda_options options = fake_cuda_defaults();

        options.major = index == 7 ? 7 : 9;
        options.n_devices = index == 7 ? 8 : index == 9 ? 0 : 1;
        fake_cuda_begin(&options, &driver);
        if (index == 0)
                fake_cuda_fail(FAKE_CUDA_device_primary_ctx_retain, 1, CUDA_ERROR_DEVICE_UNAVAILABLE);
        cr_assert_eq(sl_cuda_device_open(&driver, index, &device, &error), expected, "%s", error.text);
        cr_assert_not_null(strstr(error.text, words), "%s", error.text);
        cr_assert_eq(fake_cuda_held(), 0);
}

Test(device, that_is_missing_busy_or_too_old_is_named)
{
        unsetenv("CUDA_VISIBLE_DEVICES");
        check_no_device(9, -ENODEV, "there is no CUDA device");
        check_no_device(2, -ENODEV, "there is no CUDA device 2: there is 1");
        check_no_device(7, -EPROTONOSUPPORT, "CUDA device 7 (Fake 7) has compute capability 7.0, and 8.0 is needed");
        check_no_device(0, -EBUSY, "CUDA device 0 (Fake 0) is busy");
        setenv("CUDA_VISIBLE_DEVICES", "5", 1);
        check_no_device(9, -ENODEV, "with CUDA_VISIBLE_DEVICES=5");
}

Test(device, that_is_opened_is_given_back)
{
        struct sl_cuda_driver driver;
        struct sl_cuda_device device;
        struct sl_error error = {""};
        struct fake_cuda_options options = fake_cuda_defaults();

        fake_cuda_begin(&options, &driver);
        cr_assert_eq(sl_cuda_device_open(&driver, 0, &device, &error), 0, "%s", error.text);
        cr_assert_eq(device.n_processors, 132);
        cr_assert_eq(device.memory_bytes, options.memory_bytes);
        cr_assert_eq(fake_cuda_held(), 1);
        sl_cuda_device_close(&device);
        cr_assert_eq(fake_cuda_held(), 0);
}

/* Each call in turn: nothing stays, and there is a text. */
Test(device, whose_opening_fails_anywhere_leaves_nothing)
{
        static const enum fake_cuda_call calls[] = {FAKE_CUDA_init, FAKE_CUDA_device_get_count, FAKE_CUDA_device_get,
                FAKE_CUDA_device_get_name, FAKE_CUDA_device_get_attribute, FAKE_CUDA_device_total_mem,
                FAKE_CUDA_device_primary_ctx_retain, FAKE_CUDA_ctx_set_current};
        struct sl_cuda_driver driver;
        struct sl_cuda_device device;
        struct fake_cuda_options options = fake_cuda_defaults();

        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
                struct sl_error error = {""};

                fake_cuda_begin(&options, &driver);
                fake_cuda_fail(calls[i], 1, CUDA_ERROR_OUT_OF_MEMORY);
                cr_assert_eq(sl_cuda_device_open(&driver, 0, &device, &error), -ENOMEM, "call %zu: %s", i, error.text);
                cr_assert_not_null(strstr(error.text, "CUDA_ERROR_OUT_OF_MEMORY (out of memory)"), "%s", error.text);
                cr_assert_eq(fake_cuda_held(), 0);
        }
}

Test(driver, results_that_end_the_process_are_told_from_others)
{
        cr_assert(sl_cuda_is_lost(CUDA_ERROR_ILLEGAL_ADDRESS));
        cr_assert_eq(sl_cuda_errno(CUDA_ERROR_ILLEGAL_ADDRESS), -EIO);
        cr_assert_not(sl_cuda_is_lost(CUDA_ERROR_OUT_OF_MEMORY));
        cr_assert_eq(sl_cuda_errno(CUDA_ERROR_OUT_OF_MEMORY), -ENOMEM);
        cr_assert_eq(sl_cuda_errno(CUDA_ERROR_NOT_READY), -EINPROGRESS);
        cr_assert_eq(sl_cuda_errno(CUDA_SUCCESS), 0);
}
