/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sleep and wake between one client and its dispatcher, after shm/doorbell.h, with time limits left out: a lost wake-up is then a
 * deadlock, which spin reports as an invalid end state. Stores go through a store buffer per thread (as on x86, and as release and
 * acquire allow), so that a missing fence shows. Both orders are there: the client sleeps and the dispatcher wakes, and the reverse.
 *
 * -DCLIENT_FD            the client sleeps in its event loop, on the completion fd, and not on the futex
 * Mutants, each of which must be reported:
 * -DNO_CLIENT_K1         the client rings without a fence behind its publication
 * -DNO_DISPATCHER_K1     the dispatcher wakes without a fence behind its publication
 * -DNO_DISPATCHER_W2     the dispatcher sleeps without looking once more
 * -DNO_DISPATCHER_FENCE  the dispatcher looks once more before its "I sleep" is out
 * -DNO_CLIENT_FENCE      the client looks once more before its "I sleep" is out
 */
#define ROUNDS 3

/* Shared words. */
#define SEQ      0 /* entry.seq: client writes */
#define LAP      1 /* laps of the completions' slots, counted: dispatcher writes, who is awake looks here */
#define TAIL     2 /* completion tail: dispatcher writes, who sleeps looks here */
#define C_SLEEPS 3 /* sl_queue_request.sleep: client writes */
#define D_SLEEPS 4 /* sl_dispatcher_line.sleeping: dispatcher writes */
byte memory[5];

/* Stores on their way to memory, in order. */
chan client_stores = [3] of { byte, byte };
chan dispatcher_stores = [4] of { byte, byte };

bool futex_waits;    /* the client is in FUTEX_WAIT on TAIL */
bool doorbell;       /* eventfd of the dispatcher */
bool completion_fd;  /* eventfd of the client */

#define FENCE(stores) empty(stores)

active proctype drain_client()
{
        byte word, value;
end:
        do
        :: atomic { client_stores?word, value -> memory[word] = value }
        od
}

active proctype drain_dispatcher()
{
        byte word, value;
end:
        do
        :: atomic { dispatcher_stores?word, value -> memory[word] = value }
        od
}

active proctype client()
{
        byte i, seen;

        for (i : 1 .. ROUNDS) {
                client_stores!SEQ, i; /* S1 */
#ifndef NO_CLIENT_K1
                FENCE(client_stores); /* K1 */
#endif
                if
                :: memory[D_SLEEPS] == 1 -> doorbell = true /* K2 */
                :: else -> skip
                fi;

                do
                :: memory[LAP] == i -> break /* C2 */
                :: memory[LAP] != i ->
                        client_stores!C_SLEEPS, 1; /* W1 */
#ifndef NO_CLIENT_FENCE
                        FENCE(client_stores);
#endif
                        seen = memory[TAIL]; /* W2, E2: it may be behind what was reaped */
                        if
                        :: seen == i -> skip
#ifdef CLIENT_FD
                        :: seen != i -> completion_fd -> completion_fd = false /* W3 */
#else
                        :: seen != i ->
                                /* W3: the kernel compares once more, in one step with going to sleep. */
                                atomic {
                                        if
                                        :: memory[TAIL] == seen -> futex_waits = true
                                        :: else -> skip
                                        fi
                                };
                                !futex_waits
#endif
                        fi;
                        client_stores!C_SLEEPS, 0
                od
        }
}

active proctype dispatcher()
{
        byte head = 0;

        do
        :: head == ROUNDS -> break
        :: head < ROUNDS && memory[SEQ] == head + 1 ->
                head++;
                dispatcher_stores!LAP, head; /* C1 */
                dispatcher_stores!TAIL, head; /* E1 */
#ifndef NO_DISPATCHER_K1
                FENCE(dispatcher_stores); /* K1 */
#endif
                if
                :: memory[C_SLEEPS] == 1 -> /* K2 */
#ifdef CLIENT_FD
                        completion_fd = true
#else
                        futex_waits = false
#endif
                :: else -> skip
                fi
        :: head < ROUNDS && memory[SEQ] != head + 1 ->
                dispatcher_stores!D_SLEEPS, 1; /* W1 */
#ifndef NO_DISPATCHER_FENCE
                FENCE(dispatcher_stores);
#endif
                if
#ifndef NO_DISPATCHER_W2
                :: memory[SEQ] == head + 1 -> skip /* W2 */
                :: memory[SEQ] != head + 1 ->
#else
                :: true ->
#endif
                        doorbell; /* W3 */
                        doorbell = false
                fi;
                dispatcher_stores!D_SLEEPS, 0
        od
}
