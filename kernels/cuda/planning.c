/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/planning.h"

#include "base/error.h"

#include <string.h>

/* Candidates of a convolution. */
#define WHOLE_MAX 4u
#define BARE_MAX  1u
_Static_assert(WHOLE_MAX + BARE_MAX <= SL_CUDNN_PLANS_MAX, "they have room");

/* Networks repeat their blocks. */
#define KNOWN_MAX 64u

static struct {
        struct sl_cudnn library;
        bool open;
        struct sl_cudnn_planner *planner; /* for the figures; NULL */
        struct sl_cuda_figures figures;
        uint32_t n_known; /* ever, with this planner; the last ones are there */
        struct {
                struct sl_cudnn_convolution convolution;
                bool tf32;
                uint32_t n;
                struct sl_cudnn_plan plans[SL_CUDNN_PLANS_MAX];
        } known[KNOWN_MAX];
} planning;

static void forget_plans(void)
{
        for (uint32_t i = 0; i < planning.n_known && i < KNOWN_MAX; i++) {
                sl_cudnn_plans_deinit(planning.known[i].plans, planning.known[i].n);
                planning.known[i].n = 0;
        }
        planning.n_known = 0;
}

static void drop_planner(void)
{
        forget_plans();
        planning.planner = sl_cudnn_planner_free(planning.planner);
}

const struct sl_cuda_figures *sl_cuda_planning_figures(const struct sl_target *target)
{
        return target && target->gpu.capability ? &target->gpu : &sl_cuda_figures_h100;
}

static int open_library(struct sl_error *error)
{
        int r = planning.open ? 0 : sl_cudnn_open(NULL, &planning.library, error);

        planning.open = r == 0;
        return r;
}

int sl_cuda_planning_open(const struct sl_target *target, struct sl_cudnn_planner **ret_planner, struct sl_error *error)
{
        const struct sl_cuda_figures *figures = sl_cuda_planning_figures(target);
        int r = open_library(error);

        if (r < 0)
                return r;
        if (planning.planner && memcmp(&planning.figures, figures, sizeof(*figures)))
                drop_planner();
        if (!planning.planner) {
                r = sl_cudnn_planner_new(&planning.library, figures, &planning.planner, error);
                planning.figures = *figures;
        }
        if (r == 0)
                *ret_planner = planning.planner;
        return r;
}

static bool is_known(uint32_t i, const struct sl_cudnn_convolution *convolution, bool tf32)
{
        return planning.known[i].tf32 == tf32 && !memcmp(&planning.known[i].convolution, convolution, sizeof(*convolution));
}

/* The row in which they are. */
static int make_plans(struct sl_cudnn_planner *planner, const struct sl_cudnn_convolution *convolution, bool tf32,
        uint32_t *ret_row, struct sl_error *error)
{
        const struct sl_cudnn_wish wish = {
                .tf32 = tf32, .n_whole = WHOLE_MAX, .n_bare = BARE_MAX, .workspace_bytes_max = SL_CUDA_SCRATCH_MAX};
        struct sl_cudnn_plan plans[SL_CUDNN_PLANS_MAX];
        uint32_t n, row = planning.n_known % KNOWN_MAX;
        int r = sl_cudnn_plans_make(planner, convolution, &wish, plans, &n, error);

        if (r < 0)
                return r;
        sl_cudnn_plans_deinit(planning.known[row].plans, planning.known[row].n);
        memcpy(planning.known[row].plans, plans, n * sizeof(plans[0]));
        planning.known[row].n = n;
        planning.known[row].convolution = *convolution;
        planning.known[row].tf32 = tf32;
        planning.n_known++;
        *ret_row = row;
        return 0;
}

int sl_cuda_planning_plans(const struct sl_target *target, const struct sl_cudnn_convolution *convolution, bool tf32,
        const struct sl_cudnn_plan **ret_plans, uint32_t *ret_n, struct sl_error *error)
{
        struct sl_cudnn_planner *planner;
        uint32_t row = 0;
        int r = sl_cuda_planning_open(target, &planner, error);

        if (r < 0)
                return r;
        while (row < planning.n_known && row < KNOWN_MAX && !is_known(row, convolution, tf32))
                row++;
        if (row >= planning.n_known || row == KNOWN_MAX)
                r = make_plans(planner, convolution, tf32, &row, error);
        if (r < 0)
                return r;
        *ret_plans = planning.known[row].plans;
        *ret_n = planning.known[row].n;
        return 0;
}

int sl_cuda_planning_version(void)
{
        return open_library(NULL) == 0 ? planning.library.version : 0;
}

void sl_cuda_planning_use(const struct sl_cudnn *library)
{
        drop_planner();
        if (planning.open)
                sl_cudnn_close(&planning.library);
        planning.open = library != NULL;
        if (library)
                planning.library = *library;
}
