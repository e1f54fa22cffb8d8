/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/planning.h"

#include "base/error.h"

#include <stdbool.h>
#include <string.h>

static struct {
        struct sl_cudnn library;
        bool open;
        struct sl_cudnn_planner *planner; /* for the figures; NULL */
        struct sl_cuda_figures figures;
} planning;

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
                planning.planner = sl_cudnn_planner_free(planning.planner);
        if (!planning.planner) {
                r = sl_cudnn_planner_new(&planning.library, figures, &planning.planner, error);
                planning.figures = *figures;
        }
        if (r == 0)
                *ret_planner = planning.planner;
        return r;
}

int sl_cuda_planning_version(void)
{
        return open_library(NULL) == 0 ? planning.library.version : 0;
}

void sl_cuda_planning_use(const struct sl_cudnn *library)
{
        planning.planner = sl_cudnn_planner_free(planning.planner);
        if (planning.open)
                sl_cudnn_close(&planning.library);
        planning.open = library != NULL;
        if (library)
                planning.library = *library;
}
