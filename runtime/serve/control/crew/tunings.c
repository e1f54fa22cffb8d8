/* SPDX-License-Identifier: Apache-2.0 */
#include "tunings.h"

#include "base/error.h"
#include "gpu_let.h"
#include "plan.h"
#include "plan_cache.h"
#include "process_executor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK)

static struct sl_plan_choices_key key_of(const struct sl_process_executor_options *options)
{
        return (struct sl_plan_choices_key){.plan = sl_plan_identity(options->plan),
                .gpu = options->gpu->gpu,
                .percent = options->gpu->percent,
                .compiles = options->gpu_tuning.tune == SL_GPU_TUNE_COMPILED,
                .asked = options->asked,
                .uid = options->uid};
}

static bool is_abandoned(const struct sl_tunings *tunings, const struct sl_process_executor_options *options)
{
        struct sl_plan_identity plan = sl_plan_identity(options->plan);

        for (uint32_t i = 0; i < tunings->n_abandoned && i < SL_TUNINGS_ABANDONED_MAX; i++)
                if (tunings->abandoned[i].plan[0] == plan.checksum && tunings->abandoned[i].plan[1] == plan.bytes &&
                        tunings->abandoned[i].gpu == options->gpu->gpu)
                        return true;
        return false;
}

void sl_tunings_abandon(struct sl_tunings *tunings, const struct sl_process_executor_options *options)
{
        struct sl_plan_identity plan = sl_plan_identity(options->plan);
        uint32_t place = tunings->n_abandoned % SL_TUNINGS_ABANDONED_MAX;

        if (is_abandoned(tunings, options))
                return;
        tunings->abandoned[place].plan[0] = plan.checksum;
        tunings->abandoned[place].plan[1] = plan.bytes;
        tunings->abandoned[place].gpu = options->gpu->gpu;
        tunings->n_abandoned++;
}

void sl_tunings_begin(struct sl_tunings *tunings, struct sl_process_executor_options *options)
{
        struct sl_plan_choices_key key;

        options->choices_fd = -1;
        if (!options->gpu || options->gpu_tuning.tune == SL_GPU_TUNE_OFF)
                return;
        if (is_abandoned(tunings, options)) {
                options->gpu_tuning.tune = SL_GPU_TUNE_OFF;
                return;
        }
        key = key_of(options);
        if (tunings->cache && sl_plan_cache_find_choices(tunings->cache, &key, &options->choices_fd) < 0)
                options->choices_fd = -1;
}

/* Nobody can change it any more, so that what was checked is what is kept. */
static int map_sealed(int fd, void **ret_data, uint64_t *ret_bytes, struct sl_error *error)
{
        struct stat status;
        int seals = fcntl(fd, F_GET_SEALS);

        if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &status) < 0)
                return sl_error_set(error, EBADMSG, "the GPU's choices are in no sealed memory file");
        if (status.st_size <= 0 || (uint64_t)status.st_size > SL_GPU_CHOICES_BYTES_MAX)
                return sl_error_set(error, EBADMSG, "the GPU's choices have %lld bytes, at most %llu are taken",
                        (long long)status.st_size, SL_GPU_CHOICES_BYTES_MAX);
        *ret_data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        *ret_bytes = (uint64_t)status.st_size;
        return *ret_data == MAP_FAILED ? sl_error_set(error, errno, "the GPU's choices: %s", strerror(errno)) : 0;
}

static int check(
        const struct sl_process_executor_options *options, int fd, struct sl_gpu_choices_facts *ret_facts, struct sl_error *error)
{
        struct sl_plan_identity plan = sl_plan_identity(options->plan);
        uint64_t bytes = 0;
        void *data;
        int r = map_sealed(fd, &data, &bytes, error);

        if (r < 0)
                return r;
        r = sl_gpu_choices_check(data, bytes, ret_facts, error);
        munmap(data, bytes);
        if (r == 0 && (ret_facts->plan[0] != plan.checksum || ret_facts->plan[1] != plan.bytes))
                r = sl_error_set(error, EBADMSG, "the GPU's choices are of another plan");
        return r;
}

int sl_tunings_keep(struct sl_tunings *tunings, const struct sl_process_executor_options *options, int fd,
        struct sl_gpu_choices_facts *ret_facts, struct sl_error *error)
{
        struct sl_plan_choices_key key = key_of(options);
        int r = check(options, fd, ret_facts, error);

        return r == 0 && tunings->cache ? sl_plan_cache_store_choices(tunings->cache, &key, fd, error) : r;
}
