/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backends of this build; the build file says which (SL_BACKENDS_BUILT). Immutable; any thread.
 */
#include "backend.h"

#include <string.h>

static const struct sl_backend *const backends[] = {SL_BACKENDS_BUILT};

const struct sl_backend *sl_backend_find(const char *name)
{
        for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++)
                if (!strcmp(backends[i]->name, name))
                        return backends[i];
        return NULL;
}
