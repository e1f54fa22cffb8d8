/* SPDX-License-Identifier: Apache-2.0 */
#include "digits.h"
#include "honest.h"
#include "world.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

/* Until the dead client would have been well inside its work. */
#define LIFE_US (WORLD_SLOW ? 200000u : 20000u)

static pid_t spawn_doomed(const struct world *world, uint32_t seed)
{
        char text[16];

        snprintf(text, sizeof(text), "%u", seed);
        return world_spawn((const char *const[]){DOOMED_CLIENT, world->socket_path, text, NULL});
}

/* Every now and then the runtime is looked at closely; a leak of one thing a round cannot hide. */
Test(kill_client, leaves_others_undisturbed_and_nothing_behind)
{
        uint32_t rounds = world_rounds("STARLING_KILL_CLIENT_ROUNDS", 1000), seed = 7;
        uint64_t begun_ns = starling_clock_ns();
        struct world world;
        struct footprint before;
        struct honest *honest;

        world_init(&world);
        world_start(&world);
        honest = honest_start(&world, "digits");
        honest_expect_progress(honest, 1);
        before = world_footprint(&world);
        for (uint32_t round = 0; round < rounds && world_has_time("STARLING_KILL_CLIENT_ROUNDS", round, begun_ns); round++) {
                pid_t pid = spawn_doomed(&world, round + 1);
                int status;

                world_pause_us(digits_random(&seed, LIFE_US));
                kill(pid, SIGKILL);
                cr_assert_eq(waitpid(pid, &status, 0), pid);
                cr_assert(WIFSIGNALED(status), "a client that was to be killed ended with wait status %#x\n%s", status,
                        world_log(&world));
                if (round % 50 == 0)
                        world_expect_footprint(&world, &before);
        }
        world_expect_footprint(&world, &before);
        honest_expect_progress(honest, 10);
        cr_assert_eq(world_count_log(&world, "event=client-ejected"), 0, "%s", world_log(&world));
        honest_stop(honest);
        world_stop(&world);
        world_free(&world);
}
