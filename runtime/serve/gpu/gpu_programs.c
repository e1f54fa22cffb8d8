/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_programs.h"

#include "base/error.h"
#include "gpu_worker.h"
#include "process_link.h"

#include <errno.h>
#include <string.h>

/* Samples in a pool: twice the largest batch, and of no less than this; what a mirror takes beyond that is bounded. */
#define POOL_SLOTS_MIN 64
#define POOL_BYTES_MIN (64ull << 20)

int sl_gpu_programs_init(struct sl_gpu_programs *programs, struct sl_gpu *gpu, struct sl_error *error)
{
        *programs = (struct sl_gpu_programs){.gpu = gpu};
        return sl_gpu_lets_init(&programs->lets, gpu->device, error);
}

static int make_pool(struct sl_gpu_program *program, struct sl_error *error)
{
        const struct sl_plan_info *info = sl_plan_info(sl_gpu_program_plan(program));
        uint32_t n_slots = 2 * info->batches[info->n_batches - 1];
        uint64_t bytes_max = 0;

        n_slots = n_slots > POOL_SLOTS_MIN ? n_slots : POOL_SLOTS_MIN;
        for (uint32_t i = 0; i < info->n_inputs; i++)
                bytes_max += 4 * n_slots * sl_gpu_port_bytes(&info->inputs[i], 1);
        return sl_gpu_program_need_pool(program, n_slots, bytes_max > POOL_BYTES_MIN ? bytes_max : POOL_BYTES_MIN, error);
}

static bool is_same(const struct sl_plan *a, const struct sl_plan *b)
{
        struct sl_plan_identity one = sl_plan_identity(a), other = sl_plan_identity(b);

        return one.checksum == other.checksum && one.bytes == other.bytes;
}

/* The row of such a plan, else a free one, else SL_GPU_NO_ROW. */
static uint32_t find_row(const struct sl_gpu_programs *programs, const struct sl_plan *plan)
{
        uint32_t free_row = SL_GPU_NO_ROW;

        for (uint32_t i = SL_GPU_PROGRAMS_MAX; i-- > 0;) {
                if (programs->plans[i].n_holders && is_same(programs->plans[i].plan, plan))
                        return i;
                free_row = programs->plans[i].n_holders ? free_row : i;
        }
        return free_row;
}

void sl_gpu_programs_give_back(struct sl_gpu_programs *programs, uint32_t row)
{
        if (row == SL_GPU_NO_ROW || --programs->plans[row].n_holders)
                return;
        sl_gpu_program_free(programs->plans[row].program);
        sl_plan_free(programs->plans[row].plan);
        sl_gpu_programs_give_back(programs, programs->plans[row].base);
}

/* A row for the plan, which is the row's then; and so is the hold on the row of its base. */
static int fill_row(struct sl_gpu_programs *programs, uint32_t row, struct sl_plan *plan, uint32_t base, struct sl_error *error)
{
        struct sl_gpu_program_options options = {.gpu = programs->gpu, .plan = plan};
        int r;

        if (row == SL_GPU_NO_ROW)
                return sl_error_set(error, ENOMEM, "a GPU has room for %d plans", SL_GPU_PROGRAMS_MAX);
        options.base = base == SL_GPU_NO_ROW ? NULL : programs->plans[base].program;
        r = sl_gpu_program_new(&options, &programs->plans[row].program, error);
        if (r < 0)
                return r;
        programs->plans[row].n_holders = 1;
        programs->plans[row].plan = plan;
        programs->plans[row].base = base;
        return 0;
}

/* @base: a row that is held for it; SL_GPU_NO_ROW. It is given back where it is not needed. */
static int take_file(struct sl_gpu_programs *programs, int fd, uint32_t base, uint32_t *ret_row, struct sl_error *error)
{
        struct sl_plan *plan = NULL;
        int r = sl_plan_open_intact(fd, base == SL_GPU_NO_ROW ? NULL : programs->plans[base].plan, &plan, error);

        if (r == 0) {
                *ret_row = find_row(programs, plan);
                if (*ret_row == SL_GPU_NO_ROW || !programs->plans[*ret_row].n_holders)
                        r = fill_row(programs, *ret_row, plan, base, error);
                else { /* which has its base already */
                        programs->plans[*ret_row].n_holders++;
                        sl_plan_free(plan);
                        sl_gpu_programs_give_back(programs, base);
                        return 0;
                }
        }
        if (r < 0) {
                sl_plan_free(plan);
                sl_gpu_programs_give_back(programs, base);
        }
        return r;
}

int sl_gpu_programs_take(struct sl_gpu_programs *programs, int plan_fd, int base_fd, uint32_t *ret_row, struct sl_error *error)
{
        uint32_t base = SL_GPU_NO_ROW;
        int r = base_fd >= 0 ? take_file(programs, base_fd, SL_GPU_NO_ROW, &base, error) : 0;

        if (r == 0)
                r = take_file(programs, plan_fd, base, ret_row, error);
        if (r < 0)
                return r;
        r = make_pool(programs->plans[*ret_row].program, error);
        if (r < 0)
                sl_gpu_programs_give_back(programs, *ret_row);
        return r;
}

struct sl_gpu_program *sl_gpu_programs_program(const struct sl_gpu_programs *programs, uint32_t row)
{
        return programs->plans[row].program;
}
