/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_ground.h"

#include "base/error.h"
#include "cuda/libraries.h"
#include "cuda/planning.h"
#include "cuda/session_device.h"
#include "fake_libraries.h"
#include "host/kernels.h"
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct sl_instance_ground *fake_ground(void)
{
        static struct fake_cuda_kernel kernels[SL_OWN_KERNEL_COUNT + FAKE_LIBRARY_KERNELS];
        static struct sl_cuda_driver driver;
        static struct sl_cuda_device gpu;
        static struct sl_device device = {.cuda = &gpu};
        static const struct sl_instance_ground ground = {.device = &device};
        struct fake_cuda_options options = fake_cuda_defaults();
        struct sl_error error = {""};

        if (driver.launch_kernel)
                return &ground;
        memcpy(kernels, host_kernels, sizeof(host_kernels));
        memcpy(kernels + SL_OWN_KERNEL_COUNT, fake_library_kernels, sizeof(fake_library_kernels));
        options.kernels = kernels;
        options.n_kernels = SL_OWN_KERNEL_COUNT + FAKE_LIBRARY_KERNELS;
        fake_cuda_begin(&options, &driver);
        fake_libraries_begin(&driver);
        sl_cuda_libraries_use(&fake_cudnn, &fake_cublaslt);
        sl_cuda_planning_use(&fake_cudnn);
        if (sl_cuda_device_open(&driver, 0, &gpu, &error) == 0)
                return &ground;
        fprintf(stderr, "%s\n", error.text);
        abort();
}
