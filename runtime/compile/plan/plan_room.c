/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_room.h"

#include "base/bytes.h"
#include "plan.h"

uint32_t sl_plan_programs_up_to(const struct sl_plan *plan, uint32_t batch_max)
{
        uint32_t n = 0;

        while (n < plan->info->n_batches && plan->info->batches[n] <= batch_max)
                n++;
        return n;
}

uint64_t sl_plan_workspace_bytes(const struct sl_plan *plan, uint32_t batch_max)
{
        uint32_t n_programs = sl_plan_programs_up_to(plan, batch_max);
        uint64_t most = 0;

        for (uint32_t i = 0; i < n_programs; i++)
                most = plan->programs[i].workspace_bytes > most ? plan->programs[i].workspace_bytes : most;
        return most;
}

/* Of its steps that a team of @members cuts, or one of one less. */
static uint64_t largest_scratch(const struct sl_plan *plan, uint64_t number, uint32_t members)
{
        const struct sl_plan_program *source = &plan->programs[number];
        uint64_t largest = 0;

        for (uint64_t i = 0; i < source->n_steps; i++) {
                const struct sl_plan_step *step = &plan->steps[source->first_step + i];

                if ((sl_split_for(step->splits, members).members || sl_split_for(step->splits, members - 1).members) &&
                        step->scratch_bytes > largest)
                        largest = step->scratch_bytes;
                for (uint64_t b = 0; b < step->n_bodies; b++) {
                        uint64_t inside = largest_scratch(plan, step->first_body + b, members);

                        largest = inside > largest ? inside : largest;
                }
        }
        return largest;
}

uint64_t sl_instance_team_bytes(const struct sl_plan *plan, uint32_t batch_max, uint32_t members)
{
        uint64_t largest = 0;

        for (uint32_t i = 0, n = sl_plan_programs_up_to(plan, batch_max); i < n && members > 1; i++) {
                uint64_t scratch = largest_scratch(plan, i, members);

                largest = scratch > largest ? scratch : largest;
        }
        return members > 1 ? sl_align_up(largest, SL_PAGE_BYTES) * members : 0;
}
