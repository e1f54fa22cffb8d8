/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backends of this build; the build file says which (SL_BACKENDS_BUILT). Immutable; any thread.
 */
#include "backend.h"

#include <string.h>

static const struct sl_backend *const backends[] = {SL_BACKENDS_BUILT};

const struct sl_backend *sl_backend_at(uint32_t index)
{
        return index < sizeof(backends) / sizeof(backends[0]) ? backends[index] : NULL;
}

const struct sl_backend *sl_backend_find(const char *name)
{
        const struct sl_backend *backend;
        uint32_t i = 0;

        while ((backend = sl_backend_at(i++)) && strcmp(backend->name, name))
                ;
        return backend;
}
