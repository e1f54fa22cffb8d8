/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each policy of batching serves: clients of `starling serve` get every answer, rightly, while a reload goes from one to the next.
 */
#include "honest.h"
#include "world.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define MODEL   "lenet"
#define CLIENTS 3

static const char *const policies[] = {
        "instances: 2\nbatching: work_conserving\n",
        "instances: 2\nbatching: starling\n",
        "instances: 2\nbatching: single\n",
        "instances: 2\nbatching: no_wait\n",
        "instances: 2\nbatching: opt_wait\nbatching_delay_us: 2000\n",
        "instances: 1\nbatching: static\nbatching_delay_us: 2000\n",
        "instances: 2\nbatching: triton\nbatching_delay_us: 2000\nbatching_sizes: [4, 8]\n",
        "instances: 2\nbatching: triton\nbatching_in_order: yes\n",
        "instances: 2\nbatching: aimd\nbatching_latency_ms: 5\n",
        "batch_sizes: [1, 1, 2, 4, 8, 16]\nbatching: n_ebird\n",
        "batch_sizes: [1, 2, 4, 4, 8, 16]\nbatching: e_ebird\nbatching_rows: [\"0,0,1\", \"0,0,0,1\", \"0,0,2,1\", \"0,0,2,1,1\"]\n",
};

Test(batching, each_policy_answers_every_request_rightly, .timeout = 60)
{
        struct starling_error error = {""};
        struct starling_client *admin;
        struct honest *honest[CLIENTS];
        struct world world;

        world_init(&world);
        world_remove_model(&world, MODEL);
        world_copy_model(&world, MODEL, MODEL, policies[0]);
        world_configure(&world, "models: [" MODEL "]\nthreads: {inline_us: 0}\n");
        world_start(&world);
        admin = world_connect(&world, STARLING_ROLE_ADMIN);
        for (int i = 0; i < CLIENTS; i++)
                honest[i] = honest_start(&world, MODEL);
        for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
                world_add_model_config(&world, MODEL, policies[i]);
                cr_assert_eq(starling_admin_reload(admin, MODEL, &error), 0, "%s: %s", policies[i], error.text);
                for (int k = 0; k < CLIENTS; k++)
                        honest_expect_progress(honest[k], 30);
        }
        for (int i = 0; i < CLIENTS; i++)
                honest_stop(honest[i]);
        starling_close(admin);
        world_stop(&world);
        world_free(&world);
}
