/* SPDX-License-Identifier: Apache-2.0 */
#include "team_room.h"

#include "base/bytes.h"
#include "executable.h"

#include <errno.h>
#include <stddef.h>

/* Members write into pages of their own. */
int sl_team_room_init(struct sl_team_room *room, struct sl_team *team, uint64_t scratch_bytes)
{
        uint64_t each = sl_align_up(scratch_bytes, SL_PAGE_BYTES), bytes = each * (sl_team_size(team) - 1);
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

void sl_team_room_deinit(struct sl_team_room *room)
{
        sl_workspace_deinit(&room->scratch);
        room->team = NULL;
}

struct team_launch {
        const struct sl_team_room *room;
        const struct sl_executable_step *step;
        int64_t stage;
        int results[SL_TEAM_MEMBERS_MAX]; /* of each part */
};

static void launch_part(void *context, uint32_t index, uint32_t member)
{
        struct team_launch *launch = context;
        const struct sl_executable_step *step = launch->step;
        struct sl_part part = sl_part_of(step->split.axis, step->units, index, step->split.members);
        struct sl_binding binding = step->binding;

        part.stage = launch->stage;
        binding.part = &part;
        binding.pace = NULL; /* it belongs to one thread, and only whole launches look at it */
        if (member && step->stages == 1)
                binding.scratch = launch->room->scratch.bytes + (member - 1) * launch->room->member_bytes;
        launch->results[index] = step->session->backend->runner->launch(step->kernel, &binding);
}

int sl_team_room_launch(const struct sl_team_room *room, const struct sl_executable_step *step)
{
        struct team_launch launch = {.room = room, .step = step};

        for (; launch.stage < step->stages; launch.stage++) {
                sl_team_run(room->team, step->split.members, launch_part, &launch);
                for (uint32_t i = 0; i < step->split.members; i++)
                        if (launch.results[i])
                                return launch.results[i];
        }
        return 0;
}
