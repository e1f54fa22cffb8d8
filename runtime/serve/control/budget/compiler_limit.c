/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler_limit.h"

#include "base/error.h"
#include "compile.h"
#include "memory.h"
#include "runtime_options.h"

#include <errno.h>
#include <stdbool.h>

#define MIB (1ull << 20)

uint64_t sl_compiler_limit_configured(const struct sl_runtime_options *runtime)
{
        return runtime->compile_memory_bytes ? runtime->compile_memory_bytes : SL_COMPILE_MEMORY_BYTES_DEFAULT;
}

uint64_t sl_compiler_limit(const struct sl_runtime_options *runtime, const struct sl_memory *memory, uint64_t need)
{
        uint64_t wanted = sl_compiler_limit_configured(runtime);
        uint64_t jobs = runtime->compile_jobs ? runtime->compile_jobs : 1;
        uint64_t share = sl_compile_fits(sl_memory_left(memory) / 4 * 3 / jobs), all = sl_compile_fits(sl_memory_left(memory));
        uint64_t least = need < all ? need : all, fits = share > least ? share : least, limit = fits < wanted ? fits : wanted;

        return limit > SL_COMPILE_MEMORY_BYTES_MIN ? limit : SL_COMPILE_MEMORY_BYTES_MIN;
}

static unsigned long long in_mib(uint64_t bytes)
{
        return bytes / MIB + (bytes % MIB != 0);
}

int sl_compiler_limit_passed(const struct sl_runtime_options *runtime, const struct sl_memory *memory,
        const struct sl_compiler_share *share, struct sl_error *error)
{
        bool by_key = share->limit >= sl_compiler_limit_configured(runtime);
        uint64_t files = share->files, need = share->need, left = sl_memory_left(memory) + share->promised;
        const char *about = need > share->limit ? "about" : "more than";

        if (need <= share->limit)
                need = share->limit;
        if (by_key)
                return sl_error_prefix(error, -ENOMEM,
                        "compiling it takes %s %llu MiB (its files have %llu), and compile.memory_bytes is %llu MiB", about,
                        in_mib(need), in_mib(files), in_mib(share->limit));
        return sl_error_prefix(error, -ENOMEM,
                "compiling it takes %s %llu MiB (its files have %llu), and %llu are left for that: of limits.memory_max, which is "
                "%llu MiB, %llu are in use",
                about, in_mib(need), in_mib(files), in_mib(share->limit), in_mib(memory->limit_bytes),
                in_mib(memory->limit_bytes - left));
}
