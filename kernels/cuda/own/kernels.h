/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off: the lists below are tables */
/*
 * The own kernels, by family: a .cu file, compiled and loaded as one. Each kernel has one argument, a struct of arguments.h.
 */
#pragma once

#define SL_OWN_FAMILIES(X) X(elementwise)

/* family, kernel, its argument */
#define SL_OWN_KERNELS(X)                                                                                                          \
        X(elementwise, chain_f32, struct sl_own_chain)                                                                             \
        X(elementwise, chain_f16, struct sl_own_chain)                                                                             \
        X(elementwise, chain_bf16, struct sl_own_chain)                                                                            \
        X(elementwise, integers, struct sl_own_chain)

enum sl_own_family {
#define X(family) SL_OWN_FAMILY_##family,
        SL_OWN_FAMILIES(X)
#undef X
        SL_OWN_FAMILY_COUNT,
};

enum sl_own_kernel {
#define X(family, name, argument) SL_OWN_KERNEL_##name,
        SL_OWN_KERNELS(X)
#undef X
        SL_OWN_KERNEL_COUNT,
};
