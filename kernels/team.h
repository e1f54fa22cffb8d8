/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * A team: threads that compute one node together. Its owner is member 0 and calls sl_team_run(); the others are threads of the
 * team, each on a CPU of its own, which wait for calls: they spin for a while, then sleep. One owner thread at a time.
 *
 * A call has parts, one for each member that takes part. Part p belongs to member p, but whoever takes it first computes it: when
 * the owner is done with part 0 it takes what nobody has begun. So a member that sleeps, or whose core is somebody else's for a
 * while, costs time and never more; only a part that has been begun is waited for. A member may be away: then parts from its rank on
 * are those of the next one.
 *
 *     owner                                             member r
 *     -----                                             --------
 *     writes the job
 *     call = number, away,   (C1) seq_cst store         call                  (C2) load-acquire, pairs with C1
 *            parts
 *     part 0                                            taken[r] = number     (T) compare-exchange, from less
 *     taken[r] = number      (T) where it is less:      part r, where it was this member that changed it
 *                            part r, in its place
 *     done[r]                (D2) load-acquire          done[r] = number      (D1) seq_cst store, pairs with D2
 *
 * A job is read behind (C2) and a won (T) alone: then the owner cannot be past that call, for it waits for done[r]. taken[r]
 * only grows, and is the number of a call before that one ends, so that a member which comes late takes nothing.
 *
 * Sleeping: (S1) sleepers += 1, seq_cst; bell is read; call is read once more, seq_cst (S2); futex wait on bell. The owner: C1,
 * then sleepers, seq_cst (S3); where there is one, bell += 1 and a futex wake. Either S2 sees the call or S3 the sleeper. The owner
 * sleeps for done[r] in the same way: caller_sleeps, caller_bell; who is away sleeps until it is recalled (R1 to R3 in team.c). Every
 * sleep has a limit besides.
 */
/* clang-format on */
#pragma once

#include <stdint.h>

struct sl_error;
struct sl_team;

#define SL_TEAM_MEMBERS_MAX 64

/* What a member spins before it sleeps: about four times of what it takes to wake it. */
#define SL_TEAM_SPIN_NS 100000u

struct sl_team_options {
        uint32_t size;    /* members, the owner included: 1 to SL_TEAM_MEMBERS_MAX */
        const int *cpus;  /* @size of them: member i runs on cpus[i], but for the owner, who is where it is. NULL: anywhere */
        uint64_t spin_ns; /* nobody spins where there are fewer CPUs than members */
};

/* Part @part of a call, computed by member @member; the owner is member 0. No two parts of a call at once have the same member. */
typedef void sl_team_task(void *context, uint32_t part, uint32_t member);

/* May block. Return: 0; -EINVAL a size or a CPU out of range; -ENOMEM; -errno of a thread that was not made. */
int sl_team_new(const struct sl_team_options *options, struct sl_team **ret_team, struct sl_error *error);

/* Ends and joins the threads. No call is under way. NULL is fine. Returns NULL. */
struct sl_team *sl_team_free(struct sl_team *team);

uint32_t sl_team_size(const struct sl_team *team);

/*
 * Between calls: looks, every 20 ms, whether a member waits for its CPU while somebody else has it (team_watch.h); such a one takes
 * no part from now on, until it is tried again. Returns how many do: the team's size, or one less.
 */
uint32_t sl_team_gather(struct sl_team *team);

/* Between calls: so many take part. */
uint32_t sl_team_present(const struct sl_team *team);

/* Between calls: this member, and for good; 0: none. Nobody looks from now on. */
void sl_team_send_away(struct sl_team *team, uint32_t member);

/* Runs parts 0 to @parts - 1 (as many as are present, at most) side by side; what they wrote is seen by the owner when it returns.
 */
void sl_team_run(struct sl_team *team, uint32_t parts, sl_team_task *task, void *context);

/* There will be nothing to do for a while: members that spin go to sleep at once. Between calls. */
void sl_team_rest(struct sl_team *team);

/* Parts of other members that the owner has computed, since the team was made. The owner's thread. */
uint64_t sl_team_taken_over(const struct sl_team *team);
