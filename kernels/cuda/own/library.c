/* SPDX-License-Identifier: Apache-2.0 */
/* The code of the own kernels lies in this library, family by family, and goes to the driver from here. */
#include "base/error.h"
#include "cuda/own/own.h"

#include <string.h>

/* SL_OWN_CODE is the folder of the compiled families. */
#define X(family)                                                                                                                  \
        extern const unsigned char sl_own_code_##family[];                                                                         \
        __asm__(".section .rodata\n.balign 16\nsl_own_code_" #family ":\n.incbin \"" SL_OWN_CODE "/" #family                       \
                ".fatbin\"\n.byte 0\n.previous\n");
SL_OWN_FAMILIES(X)
#undef X

static const struct {
        const char *name;
        const unsigned char *code;
} families[SL_OWN_FAMILY_COUNT] = {
#define X(family) {#family, sl_own_code_##family},
        SL_OWN_FAMILIES(X)
#undef X
};

static const struct {
        uint32_t family;
        const char *name;
} kernels[SL_OWN_KERNEL_COUNT] = {
#define X(family, name, argument) {SL_OWN_FAMILY_##family, "sl_" #name},
        SL_OWN_KERNELS(X)
#undef X
};

int sl_cuda_own_open(const struct sl_cuda_driver *driver, struct sl_cuda_own *ret_own, struct sl_error *error)
{
        struct sl_cuda_own own = {.driver = driver};
        int r = 0;

        for (uint32_t i = 0; i < SL_OWN_FAMILY_COUNT && !r; i++)
                r = sl_cuda_check(driver,
                        driver->library_load_data(&own.libraries[i], families[i].code, NULL, NULL, 0, NULL, NULL, 0), error,
                        "loading the %s kernels", families[i].name);
        for (uint32_t i = 0; i < SL_OWN_KERNEL_COUNT && !r; i++)
                r = sl_cuda_check(driver,
                        driver->library_get_kernel(&own.kernels[i], own.libraries[kernels[i].family], kernels[i].name), error,
                        "looking for kernel %s", kernels[i].name);
        if (r)
                sl_cuda_own_close(&own);
        else
                *ret_own = own;
        return r;
}

void sl_cuda_own_close(struct sl_cuda_own *own)
{
        for (uint32_t i = 0; i < SL_OWN_FAMILY_COUNT; i++)
                if (own->libraries[i])
                        own->driver->library_unload(own->libraries[i]);
        *own = (struct sl_cuda_own){.driver = NULL};
}

static CUdeviceptr address_of(const struct sl_own_slot *slot, const struct sl_own_binding *binding)
{
        switch ((enum sl_own_source)slot->source) {
        case SL_OWN_INPUT:
                return binding->inputs[slot->index];
        case SL_OWN_OUTPUT:
                return binding->outputs[slot->index];
        case SL_OWN_SCRATCH:
                return binding->scratch;
        case SL_OWN_ERROR:
                return binding->error_word;
        case SL_OWN_MADE:
                return binding->made;
        }
        return 0;
}

CUresult sl_cuda_own_queue(const struct sl_cuda_own *own, const struct sl_own_launch *launch, void *arguments[1], CUstream stream)
{
        return own->driver->launch_kernel((CUfunction)own->kernels[launch->kernel], launch->grid[0], launch->grid[1],
                launch->grid[2], launch->block[0], launch->block[1], launch->block[2], launch->shared_bytes, stream, arguments,
                NULL);
}

static CUresult queue_all(const struct sl_cuda_own *own, const struct sl_own_launch *launch, uint8_t *argument, CUstream stream)
{
        CUresult result = CUDA_SUCCESS;

        if (!launch->repeats)
                return sl_cuda_own_queue(own, launch, (void *[]){argument}, stream);
        for (uint32_t i = 0; i < launch->repeats && result == CUDA_SUCCESS; i++) {
                memcpy(argument + launch->counter, &i, sizeof(i));
                result = sl_cuda_own_queue(own, launch, (void *[]){argument}, stream);
        }
        return result;
}

CUresult sl_cuda_own_launch(
        const struct sl_cuda_own *own, const struct sl_own_plan *plan, const struct sl_own_binding *binding, CUstream stream)
{
        CUresult result = CUDA_SUCCESS;

        for (uint32_t i = 0; i < plan->n_launches && result == CUDA_SUCCESS; i++) {
                const struct sl_own_launch *launch = &plan->launches[i];
                _Alignas(16) uint8_t argument[SL_OWN_ARGUMENT_BYTES];

                memcpy(argument, launch->argument, sizeof(argument));
                for (uint32_t k = 0; k < launch->n_slots; k++) {
                        CUdeviceptr address = address_of(&launch->slots[k], binding);

                        address += address ? launch->slots[k].bytes : 0;
                        memcpy(argument + launch->slots[k].offset, &address, sizeof(address));
                }
                result = queue_all(own, launch, argument, stream);
        }
        return result;
}
