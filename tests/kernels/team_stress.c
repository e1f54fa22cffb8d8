/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of a team that write and read plain memory, for ThreadSanitizer, which must be silent; and the mutants, in which the order
 * of one kind of access is weakened: -DSL_MUTANT_RELEASE   C1 and D1 publish without release
 *   -DSL_MUTANT_ACQUIRE   C2, D2 and T look without acquire
 */
#include <stdatomic.h>

#ifdef SL_MUTANT_RELEASE
#undef atomic_store
#define atomic_store(object, value) atomic_store_explicit(object, value, memory_order_relaxed)
#endif
#ifdef SL_MUTANT_ACQUIRE
#define memory_order_acquire memory_order_relaxed
#define memory_order_acq_rel memory_order_relaxed
#endif
#include "team.c"

#include <stdio.h>

#define CALLS 20000
#define SIZE  4

struct chain {
        uint64_t cells[SIZE * 16];
        uint32_t wrong;
};

/* Each part adds one to its own cell and looks at its neighbour's, which the call before has written. */
static void add_one(void *context, uint32_t part, uint32_t member)
{
        uint64_t *cells = context;

        (void)member;
        cells[part * 16]++;
}

static void compare(void *context, uint32_t part, uint32_t member)
{
        struct chain *chain = context;

        (void)member;
        if (chain->cells[part * 16] != chain->cells[(part + 1) % SIZE * 16])
                chain->wrong++;
}

int main(void)
{
        const struct sl_team_options options = {.size = SIZE, .spin_ns = SL_TEAM_SPIN_NS};
        struct sl_error error = {""};
        struct chain chain = {.wrong = 0};
        struct sl_team *team;

        if (sl_team_new(&options, &team, &error) < 0) {
                fprintf(stderr, "%s\n", error.text);
                return 1;
        }
        for (int i = 0; i < CALLS; i++) {
                sl_team_run(team, SIZE, add_one, chain.cells);
                if (i % 1000 == 0)
                        sl_team_rest(team);
                if (chain.cells[0] != (uint64_t)i + 1)
                        chain.wrong++;
                sl_team_run(team, SIZE, compare, &chain);
        }
        sl_team_free(team);
        return chain.wrong > 0;
}
