/* SPDX-License-Identifier: Apache-2.0 */
#include "simulated.h"

#define SLOT(number) ((number) % (sizeof(((struct simulated *)0)->queue) / sizeof(((struct simulated *)0)->queue[0])))

static uint64_t simulated_now(void *of)
{
        return ((struct simulated *)of)->now_ns;
}

static uint64_t end_of(const struct simulated *server, uint64_t begins_ns, uint64_t work_ns)
{
        uint64_t ends_ns = begins_ns + work_ns;

        return ends_ns > server->stall_from_ns && begins_ns < server->stall_until_ns
                       ? ends_ns + (server->stall_until_ns - server->stall_from_ns)
                       : ends_ns;
}

static int simulated_submit(void *of, const struct sl_load_request *request, uint32_t place)
{
        struct simulated *server = of;
        uint64_t begins_ns = server->now_ns > server->free_ns ? server->now_ns : server->free_ns, slot = SLOT(server->n_submitted);

        server->queue[slot].place = place;
        server->queue[slot].came_ns = server->now_ns;
        server->queue[slot].begins_ns = begins_ns;
        server->free_ns = server->queue[slot].done_ns = end_of(server, begins_ns, request->samples * server->service_ns);
        server->n_submitted++;
        server->now_ns += server->submit_ns;
        if (server->n_submitted - server->n_reaped > server->most_in_flight)
                server->most_in_flight = server->n_submitted - server->n_reaped;
        return 0;
}

static int simulated_reap(void *of, struct sl_load_answer *ret_answers, uint32_t max, uint64_t until_ns)
{
        struct simulated *server = of;
        int n = 0;

        if (server->n_reaped < server->n_submitted) {
                uint64_t done_ns = server->queue[SLOT(server->n_reaped)].done_ns;

                until_ns = done_ns < until_ns ? done_ns : until_ns;
        }
        server->now_ns = until_ns > server->now_ns ? until_ns : server->now_ns;
        for (; n < (int)max && server->n_reaped < server->n_submitted; n++) {
                uint64_t slot = SLOT(server->n_reaped), done_ns = server->queue[slot].done_ns;

                if (done_ns > server->now_ns)
                        break;
                server->n_reaped++;
                ret_answers[n] = (struct sl_load_answer){
                        .place = server->queue[slot].place,
                        .status = server->fail_every && server->n_reaped % server->fail_every == 0 ? server->status : 0,
                        .queued_ns = server->queue[slot].begins_ns - server->queue[slot].came_ns,
                        .computing_ns = done_ns - server->queue[slot].begins_ns,
                };
        }
        return n;
}

static bool simulated_is_interrupted(void *of)
{
        (void)of;
        return false;
}

struct sl_load_target simulated_target(struct simulated *server)
{
        return (struct sl_load_target){
                .of = server,
                .now_ns = simulated_now,
                .submit = simulated_submit,
                .reap = simulated_reap,
                .is_interrupted = simulated_is_interrupted,
        };
}
