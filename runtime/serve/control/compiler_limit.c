/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler_limit.h"

#include "compile.h"
#include "memory.h"
#include "runtime_options.h"

uint64_t sl_compiler_limit_configured(const struct sl_runtime_options *runtime)
{
        return runtime->compile_memory_bytes ? runtime->compile_memory_bytes : SL_COMPILE_MEMORY_BYTES_DEFAULT;
}

uint64_t sl_compiler_limit(const struct sl_runtime_options *runtime, const struct sl_memory *memory)
{
        uint64_t wanted = sl_compiler_limit_configured(runtime);
        uint64_t jobs = runtime->compile_jobs ? runtime->compile_jobs : 1;
        uint64_t fits = sl_compile_fits(sl_memory_left(memory) / 4 * 3 / jobs), limit = fits < wanted ? fits : wanted;

        return limit > SL_COMPILE_MEMORY_BYTES_MIN ? limit : SL_COMPILE_MEMORY_BYTES_MIN;
}
