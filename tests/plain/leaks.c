/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where leaks are searched. Criterion runs every test in a process of its own, which it tells by this variable; its runner loses
 * some memory of its own now and then, which is no fault of a test. A suppression by the library's name would cover the tests
 * too, as they are called from there.
 */
#include <sanitizer/lsan_interface.h>
#include <stdlib.h>

/* The sanitizer's library finds it by its name. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void)
{
        return getenv("BXFI_MAP") == NULL;
}
