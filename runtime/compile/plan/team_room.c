/* SPDX-License-Identifier: Apache-2.0 */
#include "team_room.h"

#include "base/bytes.h"
#include "cpu/base/threads.h"
#include "executable.h"

#include <errno.h>
#include <stddef.h>

/* Members write into pages of their own. */
int sl_team_room_init(struct sl_team_room *room, struct sl_team *team, uint64_t scratch_bytes)
{
        uint64_t each = sl_align_up(scratch_bytes, SL_PAGE_BYTES), bytes = each * sl_team_size(team);
        struct sl_workspace scratch;

        if (sl_workspace_init(&scratch, bytes) < 0)
                return -ENOMEM;
        if (sl_workspace_populate(&scratch, bytes, UINT64_MAX) < 0) {
                sl_workspace_deinit(&scratch);
                return -ENOMEM;
        }
        sl_workspace_deinit(&room->scratch);
        *room = (struct sl_team_room){.team = team, .scratch = scratch, .member_bytes = each};
        return 0;
}

void sl_team_room_begin(struct sl_team_room *room)
{
        if (room->team)
                room->cut = sl_team_gather(room->team) < sl_team_size(room->team) ? SL_CUT_LESS : SL_CUT_ALL;
}

void sl_team_room_deinit(struct sl_team_room *room)
{
        sl_workspace_deinit(&room->scratch);
        room->team = NULL;
        room->cut = SL_CUT_ALL;
}

/* Steps of a chain, or one. */
struct team_launch {
        const struct sl_team_room *room;
        const struct sl_executable_step *steps;
        uint32_t n;
        int64_t stage;
        int results[SL_TEAM_MEMBERS_MAX];                             /* of each part */
        const struct sl_executable_step *failed[SL_TEAM_MEMBERS_MAX]; /* of a part with an error */
};

static uint8_t *scratch_of(const struct team_launch *launch, uint32_t member)
{
        return launch->room->scratch.bytes + member * launch->room->member_bytes;
}

/*
 * What the team's member @index has of a step, computed by @member. In a chain the scratch that the owner has in the workspace may
 * be what others read.
 */
static int launch_part_of(const struct team_launch *launch, const struct sl_executable_step *step, uint32_t index, uint32_t member)
{
        const struct sl_step_cut *cut = &step->cuts[launch->room->cut];
        struct sl_binding binding = step->binding;
        struct sl_part part;
        bool whole = cut->split.axis == SL_AXIS_NONE;

        if (!sl_split_part(cut->split, cut->units, index, &part))
                return 0;
        part.stage = launch->stage;
        binding.part = whole ? NULL : &part;
        binding.pace = NULL; /* it belongs to one thread */
        if (whole)
                sl_cpu_use_one_thread(); /* the member's own setting */
        if (whole || (step->stages == 1 && (member || launch->n > 1)))
                binding.scratch = scratch_of(launch, member);
        return step->session->backend->runner->launch(step->kernel, &binding);
}

static void launch_part(void *context, uint32_t index, uint32_t member)
{
        struct team_launch *launch = context;
        int r = 0;

        for (uint32_t i = 0; i < launch->n && r == 0; i++) {
                launch->failed[index] = &launch->steps[i];
                r = launch_part_of(launch, &launch->steps[i], index, member);
        }
        launch->results[index] = r;
}

/* Of the team: as far as some step reaches. */
static uint32_t members_of(const struct sl_executable_step *steps, uint32_t n, uint32_t cut)
{
        uint32_t end = 1;

        for (uint32_t i = 0; i < n; i++) {
                struct sl_split split = steps[i].cuts[cut].split;

                end = split.first + split.members > end ? split.first + split.members : end;
        }
        return end;
}

int sl_team_room_launch(const struct sl_team_room *room, const struct sl_executable_step *steps, uint32_t n,
        const struct sl_executable_step **ret_failed)
{
        struct team_launch launch = {.room = room, .steps = steps, .n = n};
        uint32_t members = members_of(steps, n, room->cut);
        int64_t stages = n > 1 ? 1 : steps->stages;

        for (; launch.stage < stages; launch.stage++) {
                sl_team_run(room->team, members, launch_part, &launch);
                for (uint32_t i = 0; i < members; i++)
                        if (launch.results[i]) {
                                *ret_failed = launch.failed[i];
                                return launch.results[i];
                        }
        }
        return 0;
}
