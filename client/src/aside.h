/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Off the dispatcher's core. Where a client and the dispatcher share one while another is free, each answer costs two switches
 * between them, and what the dispatcher spins for, the client is kept from sending. The system's scheduler leaves them there for
 * long: neither waits for the other to sleep.
 */
#pragma once

struct starling_queue;

/*
 * The calling thread, the owner of the queue pair, moves to another core where it may run on another, is on the dispatcher's, and
 * nobody else wants the others; at most a hundred times a second. Its affinity is what it was when this returns.
 */
void sl_step_aside(struct starling_queue *queue);
