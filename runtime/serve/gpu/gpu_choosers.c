/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_choosers.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "cuda/libraries.h"
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

/* ---- memory for what is timed ---- */

static void take_back(struct sl_gpu_choosers *choosers)
{
        if (choosers->lent)
                sl_gpu_release(choosers->gpu, SL_GPU_WORKSPACES, choosers->lent_bytes, choosers->lent);
        choosers->lent = 0;
        choosers->lent_bytes = 0;
}

static int lend(void *context, uint64_t bytes, CUdeviceptr *ret_address)
{
        struct sl_gpu_choosers *choosers = context;

        if (bytes > choosers->lent_bytes) {
                take_back(choosers);
                if (sl_gpu_allocate(choosers->gpu, SL_GPU_WORKSPACES, bytes, "what is timed", &choosers->lent, NULL) < 0) {
                        choosers->lent = 0;
                        return -ENOMEM;
                }
                choosers->lent_bytes = bytes;
        }
        *ret_address = choosers->lent;
        return 0;
}

static void breathe(void *context)
{
        const struct sl_gpu_choosers *choosers = context;

        if (choosers->breathe)
                choosers->breathe(choosers->context);
}

/* ---- rows ---- */

static struct sl_cuda_chooser_options options_of(
        struct sl_gpu_choosers *choosers, const struct sl_gpu_chooser_wish *wish, const struct sl_cuda_libraries *libraries)
{
        struct sl_plan_identity plan = sl_plan_identity(wish->plan);
        struct sl_cuda_chooser_options options = {.plan = {plan.checksum, plan.bytes},
                .times = true,
                .compiles = wish->tuning.tune == SL_GPU_TUNE_COMPILED,
                .bound_ns = wish->tuning.bound_ns,
                .room = lend,
                .breathe = breathe,
                .context = choosers};

        sl_cuda_chooser_identify(choosers->gpu->device, libraries, wish->percent < 100 ? wish->percent : 0, &options.identity);
        return options;
}

/* The row of such a plan on such a let, else a free one, else none. */
static uint32_t find_row(const struct sl_gpu_choosers *choosers, const struct sl_cuda_chooser_options *wanted)
{
        uint32_t free_row = SL_GPU_NO_CHOOSER;

        for (uint32_t i = SL_GPU_CHOOSERS_MAX; i-- > 0;) {
                const struct sl_cuda_chooser_options *has =
                        choosers->rows[i].n_holders ? sl_cuda_chooser_options(choosers->rows[i].chooser) : NULL;

                if (has && !memcmp(has->plan, wanted->plan, sizeof(has->plan)) &&
                        has->identity.percent == wanted->identity.percent && has->compiles == wanted->compiles)
                        return i;
                free_row = has ? free_row : i;
        }
        return free_row;
}

static int read_file(int fd, struct sl_cuda_chooser *chooser, struct sl_error *error)
{
        SL_CLEANUP(sl_cleanup_free) void *data = NULL;
        struct stat status;

        if (fstat(fd, &status) < 0 || status.st_size <= 0 || (uint64_t)status.st_size > SL_GPU_CHOICES_BYTES_MAX)
                return sl_error_set(error, EBADMSG, "the file of a GPU's choices has another size than one has");
        data = malloc((size_t)status.st_size);
        if (!data)
                return sl_error_set(error, ENOMEM, "no memory for %lld bytes of a GPU's choices", (long long)status.st_size);
        if (pread(fd, data, (size_t)status.st_size, 0) != status.st_size)
                return sl_error_set(error, EBADMSG, "the file of a GPU's choices cannot be read");
        return sl_cuda_chooser_read(chooser, data, (uint64_t)status.st_size, error);
}

void sl_gpu_choosers_take(
        struct sl_gpu_choosers *choosers, const struct sl_gpu_chooser_wish *wish, uint32_t *ret_row, struct sl_error *ret_ignored)
{
        const struct sl_cuda_libraries *libraries = sl_cuda_libraries_held();
        struct sl_cuda_chooser_options options;
        uint32_t row;

        ret_ignored->text[0] = 0;
        *ret_row = SL_GPU_NO_CHOOSER;
        if (!libraries || wish->tuning.tune == SL_GPU_TUNE_OFF)
                return;
        options = options_of(choosers, wish, libraries);
        row = find_row(choosers, &options);
        if (row == SL_GPU_NO_CHOOSER)
                return;
        if (!choosers->rows[row].n_holders) {
                if (sl_cuda_chooser_new(&options, &choosers->rows[row].chooser) < 0)
                        return;
                if (wish->fd >= 0)
                        (void)read_file(wish->fd, choosers->rows[row].chooser, ret_ignored);
        }
        choosers->rows[row].n_holders++;
        *ret_row = row;
}

void sl_gpu_choosers_give_back(struct sl_gpu_choosers *choosers, uint32_t row)
{
        if (row != SL_GPU_NO_CHOOSER && --choosers->rows[row].n_holders == 0)
                choosers->rows[row].chooser = sl_cuda_chooser_free(choosers->rows[row].chooser);
}

struct sl_cuda_chooser *sl_gpu_choosers_chooser(const struct sl_gpu_choosers *choosers, uint32_t row)
{
        return row == SL_GPU_NO_CHOOSER ? NULL : choosers->rows[row].chooser;
}

/* ---- what is new ---- */

static int write_sealed(const void *data, uint64_t bytes)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = memfd_create("starling-choices", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        uint64_t at = 0;
        ssize_t n = 1;

        while (fd >= 0 && at < bytes && n > 0) {
                n = pwrite(fd, (const char *)data + at, bytes - at, (off_t)at);
                at += n > 0 ? (uint64_t)n : 0;
        }
        if (fd < 0 || at < bytes || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
                return -1;
        return sl_take_fd(&fd);
}

int sl_gpu_choosers_news(struct sl_gpu_choosers *choosers, uint32_t row)
{
        SL_CLEANUP(sl_cleanup_free) void *data = NULL;
        struct sl_cuda_chooser *chooser = sl_gpu_choosers_chooser(choosers, row);
        uint64_t bytes;
        int fd = -1;

        take_back(choosers);
        if (chooser && sl_cuda_chooser_has_news(chooser) && sl_cuda_chooser_write(chooser, &data, &bytes) == 0)
                fd = write_sealed(data, bytes);
        if (fd >= 0)
                sl_cuda_chooser_told(chooser);
        return fd;
}
