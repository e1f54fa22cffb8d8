/* SPDX-License-Identifier: Apache-2.0 */
#include "variant_note.h"

#include "backend.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "compile.h"
#include "lower_options.h"
#include "plan.h"
#include "precision_cost.h"

#include <stdio.h>
#include <unistd.h>

SL_DEFINE_CLEANUP(struct sl_plan *, sl_plan_free)

/* As serve has them: what is given stands, and where nothing may be measured nothing is known. */
static struct sl_core_figures figures_of(const struct sl_lower_options *lowering)
{
        const struct sl_backend *backend = sl_backend_find(sl_lower_options_backend(lowering));
        struct sl_target target = {.core = lowering->core};

        if (lowering->core_measured && !sl_lower_options_have_core(lowering) && backend && backend->planner->measure)
                (void)backend->planner->measure(&target);
        return target.core;
}

/* Of figures that make no difference, so that nobody measures for a plan of float32. */
static bool is_variant(const struct sl_plan *plan)
{
        struct sl_precision_cost cost;

        return sl_precision_cost(plan, &sl_target_typical.core, &cost) == 0 && cost.products;
}

void note_if_slower(const char *command, int plan_fd, const struct sl_lower_options *lowering)
{
        SL_CLEANUP(sl_cleanup_sl_plan_free) struct sl_plan *plan = NULL;
        struct sl_core_figures core;
        struct sl_precision_cost cost;
        char text[SL_PRECISION_TEXT_BYTES];
        struct sl_error error;

        if (sl_plan_open(plan_fd, &plan, &error) < 0 || !is_variant(plan))
                return;
        core = figures_of(lowering);
        if (sl_precision_cost(plan, &core, &cost) == 0 && sl_precision_is_slower(&cost, text))
                fprintf(stderr, "starling %s: note: %s\n", command, text);
}

void note_if_model_is_slower(
        const char *command, const char *path, const struct sl_data_folders *data_folders, const struct sl_lower_options *lowering)
{
        SL_CLEANUP(sl_cleanup_fd) int fd = -1;
        struct sl_error error = {""};

        if (sl_compile(&(struct sl_compile_options){.model_path = path, .lowering = lowering, .data_folders = data_folders}, &fd,
                    &error) == 0)
                note_if_slower(command, fd, lowering);
}
