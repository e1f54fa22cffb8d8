/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA module is taken when it is of this program's version and release; whatever else is there is one line that says what it
 * is. */
#include "cuda_front/module.h"

#include "backend.h"
#include "base/error.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static void expect_refused(const char *path, int wanted, const char *words)
{
        const struct sl_cuda_module *module = NULL;
        struct sl_error error = {""};

        cr_expect_eq(sl_cuda_module_open_at(path, &module, &error), wanted, "%s: %s", path, error.text);
        cr_expect_null(module);
        cr_expect_not_null(strstr(error.text, words), "%s: %s", path, error.text);
        cr_expect_null(strchr(error.text, '\n'), "%s", error.text);
}

Test(cuda_module, of_this_program_is_taken)
{
        const struct sl_cuda_module *module;
        struct sl_error error = {""};

        cr_assert_eq(sl_cuda_module_open_at(MADE "/made-module-whole.so", &module, &error), 0, "%s", error.text);
        cr_expect_eq(module->version, SL_CUDA_MODULE_VERSION);
}

Test(cuda_module, of_another_version_is_refused)
{
        expect_refused(
                MADE "/made-module-newer.so", -EPROTONOSUPPORT, "made-module-newer.so has version 99, and this program wants 4");
}

Test(cuda_module, of_another_release_is_refused)
{
        expect_refused(MADE "/made-module-elsewhere.so", -EPROTONOSUPPORT, "made-module-elsewhere.so is of Starling 0.0.7");
}

Test(cuda_module, that_is_another_library_is_refused)
{
        expect_refused(MADE "/made-module-none.so", -ELIBBAD, "made-module-none.so is no CUDA module");
        expect_refused(MADE "/not-there.so", -ELIBBAD, "the CUDA module cannot be opened");
}

/* Nobody who only asks what there is opens it. */
Test(cuda_backend_front, is_known_without_the_module)
{
        char key[SL_BACKEND_KEY_BYTES] = "?";

        cr_expect_str_eq(sl_backend_cuda.name, "cuda");
        cr_expect(sl_backend_cuda.planner->traits & SL_PLANNER_ALONE);
        cr_expect_not_null(sl_backend_cuda.runner->memory);
        cr_expect_eq(sl_backend_cuda.key(NULL, key), -ENODEV);
        cr_expect_null(strchr(key, '?'));
}
