/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_lets.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>

#define NO_ROW UINT32_MAX

struct sl_gpu_claim {
        struct sl_gpu_claim *older;
        struct sl_gpu_part part;
        uint32_t row; /* of its let; NO_ROW */
};

int sl_gpu_lets_init(struct sl_gpu_lets *lets, const struct sl_cuda_device *device, struct sl_error *error)
{
        *lets = (struct sl_gpu_lets){.newest = NULL};
        return sl_greens_init(&lets->greens, device, error);
}

struct sl_gpu_claim *sl_gpu_lets_claim(struct sl_gpu_lets *lets, const struct sl_gpu_part *part)
{
        struct sl_gpu_claim *claim = calloc(1, sizeof(*claim));

        if (!claim)
                return NULL;
        *claim = (struct sl_gpu_claim){.older = lets->newest, .part = *part, .row = NO_ROW};
        lets->newest = claim;
        return claim;
}

/* Of another crew, which came first only because both came again. NULL: there is none. */
static const struct sl_gpu_claim *successor_of(const struct sl_gpu_lets *lets, const struct sl_gpu_claim *claim)
{
        for (const struct sl_gpu_claim *other = lets->newest; other; other = other->older)
                if (other->part.crew != claim->part.crew &&
                        sl_gpu_part_replaces(&other->part, claim->part.crew, claim->part.percent))
                        return other;
        return NULL;
}

/* Somebody is there who takes its place: of its own crew who has come later. */
static bool leaves(const struct sl_gpu_lets *lets, const struct sl_gpu_claim *claim)
{
        for (const struct sl_gpu_claim *later = lets->newest; later != claim; later = later->older)
                if (sl_gpu_part_replaces(&later->part, claim->part.crew, claim->part.percent))
                        return true;
        return successor_of(lets, claim);
}

static bool all_leave(const struct sl_gpu_lets *lets, uint32_t row)
{
        for (const struct sl_gpu_claim *claim = lets->newest; claim; claim = claim->older)
                if (claim->row == row && !leaves(lets, claim))
                        return false;
        return true;
}

static void retire(struct sl_gpu_lets *lets, uint32_t row)
{
        lets->rows[row].retired = true;
        sl_green_retire(lets->rows[row].green);
}

/* Those that somebody stays on have what they had. */
static void restore(struct sl_gpu_lets *lets)
{
        for (uint32_t i = 0; i < SL_LET_ATOMS_MAX; i++)
                if (lets->rows[i].n_workers && lets->rows[i].retired && !all_leave(lets, i)) {
                        lets->rows[i].retired = false;
                        sl_green_restore(lets->rows[i].green);
                }
}

/* Of what is free, and of what those have on which all leave: of as few of them as are needed. */
static int make_green(struct sl_gpu_lets *lets, uint32_t percent, struct sl_green **ret_green, struct sl_error *error)
{
        int r = sl_green_new(&lets->greens, percent, ret_green, error);
        uint64_t retired = 0; /* here, by bits */

        for (uint32_t i = 0; i < SL_LET_ATOMS_MAX && r == -EBUSY; i++) {
                if (!lets->rows[i].n_workers || lets->rows[i].retired || !all_leave(lets, i))
                        continue;
                retire(lets, i);
                retired |= 1ull << i;
                r = sl_green_new(&lets->greens, percent, ret_green, error);
        }
        for (uint32_t i = 0; i < SL_LET_ATOMS_MAX && r < 0; i++)
                if (retired >> i & 1) {
                        lets->rows[i].retired = false;
                        sl_green_restore(lets->rows[i].green);
                }
        return r;
}

int sl_gpu_lets_take(struct sl_gpu_lets *lets, struct sl_gpu_claim *claim, struct sl_error *error)
{
        const struct sl_gpu_claim *successor = successor_of(lets, claim);
        uint32_t percent = claim->part.percent, free_row = NO_ROW;
        int r;

        if (successor && successor->row != NO_ROW) {
                claim->row = successor->row;
                lets->rows[claim->row].n_workers++;
                return 0;
        }
        if (percent == 0 || percent >= 100)
                return 0;
        for (uint32_t i = SL_LET_ATOMS_MAX; i-- > 0;) {
                if (!lets->rows[i].n_workers) {
                        free_row = i;
                } else if (lets->rows[i].percent == percent && !lets->rows[i].retired) {
                        lets->rows[i].n_workers++;
                        claim->row = i;
                        return 0;
                }
        }
        if (free_row == NO_ROW)
                return sl_error_set(error, EBUSY, "a GPU has room for %d lets", SL_LET_ATOMS_MAX);
        r = make_green(lets, percent, &lets->rows[free_row].green, error);
        if (r < 0)
                return r;
        lets->rows[free_row].n_workers = 1;
        lets->rows[free_row].percent = percent;
        lets->rows[free_row].retired = false;
        claim->row = free_row;
        return 0;
}

struct sl_green *sl_gpu_lets_green(const struct sl_gpu_lets *lets, const struct sl_gpu_claim *claim)
{
        return claim->row == NO_ROW ? NULL : lets->rows[claim->row].green;
}

struct sl_gpu_claim *sl_gpu_lets_release(struct sl_gpu_lets *lets, struct sl_gpu_claim *claim)
{
        struct sl_gpu_claim **link = &lets->newest;

        if (!claim)
                return NULL;
        while (*link != claim)
                link = &(*link)->older;
        *link = claim->older;
        if (claim->row != NO_ROW && --lets->rows[claim->row].n_workers == 0)
                lets->rows[claim->row].green = sl_green_drop(lets->rows[claim->row].green);
        free(claim);
        restore(lets);
        return NULL;
}
