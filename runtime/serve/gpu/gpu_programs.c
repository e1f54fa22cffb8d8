/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_programs.h"

#include "base/error.h"
#include "process_link.h"
#include "gpu_worker.h"

#include <errno.h>
#include <string.h>

/* Samples in a pool: twice the largest batch, and of no less than this; what a mirror takes beyond that is bounded. */
#define POOL_SLOTS_MIN 64
#define POOL_BYTES_MIN (64ull << 20)

#define NO_LET UINT32_MAX

int sl_gpu_programs_init(struct sl_gpu_programs *programs, struct sl_gpu *gpu, struct sl_error *error)
{
        *programs = (struct sl_gpu_programs){.gpu = gpu};
        return sl_greens_init(&programs->greens, gpu->device, error);
}

static int open_plans(int plan_fd, int base_fd, struct sl_plan **ret_plan, struct sl_plan **ret_base, struct sl_error *error)
{
        int r = base_fd >= 0 ? sl_plan_open_intact(base_fd, NULL, ret_base, error) : 0;

        if (r == 0)
                r = sl_plan_open_intact(plan_fd, *ret_base, ret_plan, error);
        if (r < 0)
                *ret_base = sl_plan_free(*ret_base);
        return r;
}

static int make_program(struct sl_gpu *gpu, const struct sl_plan *plan, struct sl_gpu_program **ret_program, struct sl_error *error)
{
        const struct sl_plan_info *info = sl_plan_info(plan);
        uint32_t n_slots = info->n_batches ? 2 * info->batches[info->n_batches - 1] : 1;
        struct sl_gpu_program_options options = {.gpu = gpu, .plan = plan};

        options.n_slots = n_slots > POOL_SLOTS_MIN ? n_slots : POOL_SLOTS_MIN;
        for (uint32_t i = 0; i < info->n_inputs; i++)
                options.pool_bytes_max += 4 * options.n_slots * sl_gpu_port_bytes(&info->inputs[i], 1);
        if (options.pool_bytes_max < POOL_BYTES_MIN)
                options.pool_bytes_max = POOL_BYTES_MIN;
        return sl_gpu_program_new(&options, ret_program, error);
}

static bool is_same(const struct sl_plan *a, const struct sl_plan *b)
{
        struct sl_plan_identity one = sl_plan_identity(a), other = sl_plan_identity(b);

        return one.checksum == other.checksum && one.bytes == other.bytes;
}

static int take_plan(struct sl_gpu_programs *programs, int plan_fd, int base_fd, uint32_t *ret_row, struct sl_error *error)
{
        struct sl_plan *plan = NULL, *base = NULL;
        struct sl_gpu_program *program;
        uint32_t free_row = SL_GPU_PROGRAMS_MAX;
        int r = open_plans(plan_fd, base_fd, &plan, &base, error);

        for (uint32_t i = 0; i < SL_GPU_PROGRAMS_MAX && r == 0; i++) {
                if (!programs->plans[i].n_workers)
                        free_row = free_row < i ? free_row : i;
                else if (is_same(programs->plans[i].plan, plan)) {
                        sl_plan_free(plan);
                        sl_plan_free(base);
                        programs->plans[i].n_workers++;
                        *ret_row = i;
                        return 0;
                }
        }
        if (r == 0 && free_row == SL_GPU_PROGRAMS_MAX)
                r = sl_error_set(error, ENOMEM, "a GPU has room for %d plans", SL_GPU_PROGRAMS_MAX);
        if (r == 0)
                r = make_program(programs->gpu, plan, &program, error);
        if (r < 0) {
                sl_plan_free(plan);
                sl_plan_free(base);
                return r;
        }
        programs->plans[free_row].n_workers = 1;
        programs->plans[free_row].plan = plan;
        programs->plans[free_row].base = base;
        programs->plans[free_row].program = program;
        *ret_row = free_row;
        return 0;
}

static void give_back_plan(struct sl_gpu_programs *programs, uint32_t row)
{
        if (--programs->plans[row].n_workers)
                return;
        sl_gpu_program_free(programs->plans[row].program);
        sl_plan_free(programs->plans[row].plan);
        sl_plan_free(programs->plans[row].base);
}

static int take_let(struct sl_gpu_programs *programs, uint32_t percent, uint32_t *ret_row, struct sl_error *error)
{
        uint32_t free_row = SL_LET_ATOMS_MAX;
        int r;

        *ret_row = NO_LET;
        if (percent == 0 || percent >= 100)
                return 0;
        for (uint32_t i = 0; i < SL_LET_ATOMS_MAX; i++) {
                if (!programs->lets[i].n_workers)
                        free_row = free_row < i ? free_row : i;
                else if (programs->lets[i].percent == percent) {
                        programs->lets[i].n_workers++;
                        *ret_row = i;
                        return 0;
                }
        }
        if (free_row == SL_LET_ATOMS_MAX)
                return sl_error_set(error, EBUSY, "a GPU has room for %d lets", SL_LET_ATOMS_MAX);
        r = sl_green_new(&programs->greens, percent, NULL, &programs->lets[free_row].green, error);
        if (r < 0)
                return r;
        programs->lets[free_row].n_workers = 1;
        programs->lets[free_row].percent = percent;
        *ret_row = free_row;
        return 0;
}

int sl_gpu_programs_take(struct sl_gpu_programs *programs, int plan_fd, int base_fd, uint32_t percent,
        struct sl_gpu_share *ret_share, struct sl_error *error)
{
        int r = take_plan(programs, plan_fd, base_fd, &ret_share->plan, error);

        if (r < 0)
                return r;
        r = take_let(programs, percent, &ret_share->let, error);
        if (r < 0)
                give_back_plan(programs, ret_share->plan);
        return r;
}

void sl_gpu_programs_give_back(struct sl_gpu_programs *programs, const struct sl_gpu_share *share)
{
        give_back_plan(programs, share->plan);
        if (share->let != NO_LET && --programs->lets[share->let].n_workers == 0)
                programs->lets[share->let].green = sl_green_drop(programs->lets[share->let].green);
}

struct sl_gpu_program *sl_gpu_programs_program(const struct sl_gpu_programs *programs, const struct sl_gpu_share *share)
{
        return programs->plans[share->plan].program;
}

struct sl_green *sl_gpu_programs_green(const struct sl_gpu_programs *programs, const struct sl_gpu_share *share)
{
        return share->let == NO_LET ? NULL : programs->lets[share->let].green;
}
