/* SPDX-License-Identifier: Apache-2.0 */
#include "cbc.h"
#include "base/error.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define LIBRARY "libCbcSolver.so.3"

static const struct {
        const char *name;
        size_t offset;
} functions[] = {
        {"Cbc_newModel", offsetof(struct sl_cbc, new_model)},
        {"Cbc_deleteModel", offsetof(struct sl_cbc, delete_model)},
        {"Cbc_addCol", offsetof(struct sl_cbc, add_col)},
        {"Cbc_addRow", offsetof(struct sl_cbc, add_row)},
        {"Cbc_setObjSense", offsetof(struct sl_cbc, set_sense)},
        {"Cbc_setLogLevel", offsetof(struct sl_cbc, set_log_level)},
        {"Cbc_solve", offsetof(struct sl_cbc, solve)},
        {"Cbc_isProvenOptimal", offsetof(struct sl_cbc, is_optimal)},
        {"Cbc_getObjValue", offsetof(struct sl_cbc, objective)},
        {"Cbc_getColSolution", offsetof(struct sl_cbc, solution)},
};

int sl_cbc_open(struct sl_cbc *cbc, struct sl_error *error)
{
        cbc->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
        if (!cbc->library)
                return sl_error_set(error, ENOSYS, "bound: %s is not installed (coinor-libcbc3)", LIBRARY);
        for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
                void *function = dlsym(cbc->library, functions[i].name);

                if (!function) {
                        sl_cbc_close(cbc);
                        return sl_error_set(error, ENOSYS, "bound: %s has no %s", LIBRARY, functions[i].name);
                }
                memcpy((char *)cbc + functions[i].offset, &function, sizeof(function));
        }
        return 0;
}

void sl_cbc_close(struct sl_cbc *cbc)
{
        dlclose(cbc->library);
        cbc->library = NULL;
}
