/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an instance has of a team (kernels/team.h): the team, and scratch for each of its members; of a step by itself the owner
 * uses the scratch that the plan has for it. A step whose plan says so is launched in parts, one for each member that takes part,
 * several of them at once where they are a chain (chains.h); the others are the owner's.
 *
 * The team is the caller's. Thread: that of the instance, who is the team's owner while it runs.
 */
#pragma once

#include "team.h"
#include "workspace.h"

#include <stdint.h>

struct sl_executable_step;

struct sl_team_room {
        struct sl_team *team; /* NULL: none */
        struct sl_workspace scratch;
        uint64_t member_bytes; /* of scratch, for each member */
        uint32_t cut;          /* of the run: of each step (executable.h) */
};

/* Scratch of @scratch_bytes for each member, faulted. Return: 0; -ENOMEM, and the room is as it was. */
int sl_team_room_init(struct sl_team_room *room, struct sl_team *team, uint64_t scratch_bytes);

/* Before a run: who takes part in it. */
void sl_team_room_begin(struct sl_team_room *room);

/* A zeroed room is fine. */
void sl_team_room_deinit(struct sl_team_room *room);

/*
 * All parts of @n steps that are one chain, or of one that is cut (split.members > 1). Return: 0; what the first part that failed
 * says, and its step.
 */
int sl_team_room_launch(const struct sl_team_room *room, const struct sl_executable_step *steps, uint32_t n,
        const struct sl_executable_step **ret_failed);
