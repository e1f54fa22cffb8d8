# SPDX-License-Identifier: Apache-2.0
"""Handlers of signals that raise, at random moments of every call: what they interrupt is given up, and the client serves on.

The moment is drawn anew each time, from no time at all to about how long the call takes, so that over the rounds it falls everywhere.
"""

import asyncio
import concurrent.futures
import random
import signal
import threading
import unittest

import numpy as np
import starling
from world import LIMIT, WorldCase, counting

ROUNDS = 400
SECONDS = LIMIT  # to wait for what comes at once


class Interrupt(KeyboardInterrupt):
    """Of a handler. Event loops end by it, and keep other exceptions of their callbacks to themselves."""


class Interrupted(WorldCase):
    def setUp(self):
        super().setUp()
        self.random = random.Random(1)
        self.longest = 0.0005
        self.armed = False
        before = signal.signal(signal.SIGALRM, self.handle)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)

    def handle(self, *_):
        if self.armed:
            self.armed = False
            raise Interrupt

    def interrupt(self, call):
        """Whether it was interrupted: every other one is, however long some of them take."""
        try:
            self.armed = True
            signal.setitimer(signal.ITIMER_REAL, max(1e-6, self.random.uniform(0, self.longest)))
            call()
            self.armed = False
            self.longest /= 1.05
            return False
        except Interrupt:
            self.longest *= 1.05
            return True
        finally:
            self.armed = False

    def serves(self, client):
        """Of another thread, as a lock that was left is often its owner's to take again."""
        x, answers = counting(3), []

        def ask():
            answers.append(client.submit("echo", x).result(SECONDS))
            answers.append(client.infer("echo", x, timeout=SECONDS))
            answers.append(asyncio.run(client.infer_async("echo", x)))

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(SECONDS)
        self.assertFalse(thread.is_alive(), "the client serves no more")
        for answer in answers:
            np.testing.assert_array_equal(answer, x)
        self.assertEqual(len(answers), 3)

    def rounds(self, client, call, rounds=ROUNDS):
        interrupted = 0
        for i in range(rounds):
            interrupted += self.interrupt(call)
            if i % 20 == 0:
                self.serves(client)
        self.serves(client)
        self.assertGreater(interrupted, rounds // 50)

    def test_submit(self):
        x, futures = counting(2), []
        self.rounds(self.client, lambda: futures.append(self.client.submit("echo", x)), 4 * ROUNDS)
        done, pending = concurrent.futures.wait(futures, SECONDS)
        self.assertFalse(pending)
        for future in done:
            np.testing.assert_array_equal(future.result(), x)

    def test_submit_into_a_full_queue_pair(self):
        client = self.connect(queue_pairs=2, queue_depth=2)
        self.addCleanup(client.close)
        x, futures = counting(2), []

        def submit():
            for _ in range(8):
                futures.append(client.submit("echo", x))

        self.rounds(client, submit)
        done, pending = concurrent.futures.wait(futures, SECONDS)
        self.assertFalse(pending)

    def test_the_first_submit(self):
        def submit():
            clients.append(self.connect())
            self.interrupt(lambda: clients[-1].submit("echo", counting(2)))

        clients = []
        for _ in range(ROUNDS // 8):
            submit()
            self.serves(clients[-1])
            clients.pop().close()

    def test_result(self):
        self.rounds(self.client, lambda: self.client.submit("echo", counting(2)).result(SECONDS))

    def test_cancel(self):
        self.rounds(self.client, lambda: self.client.submit("echo", counting(2)).cancel())

    def test_infer(self):
        self.rounds(self.client, lambda: self.client.infer("echo", counting(2)), 2 * ROUNDS)

    def test_infer_on_the_only_queue_pair(self):
        client = self.connect(queue_pairs=1)
        self.addCleanup(client.close)
        self.rounds(client, lambda: client.infer("echo", counting(2)), ROUNDS // 2)  # that of the reaper from the first round on

    def test_infer_async(self):
        async def many():
            await asyncio.gather(*(self.client.infer_async("echo", counting(2)) for _ in range(4)))

        for i in range(ROUNDS // 2):
            loop = asyncio.new_event_loop()
            loop.set_exception_handler(lambda *_: None)  # what is under way is lost with the loop
            self.interrupt(lambda: loop.run_until_complete(many()))
            loop.close()
            if i % 20 == 0:
                self.serves(self.client)
        self.serves(self.client)

    def test_arrays(self):
        def make():
            self.client.array(counting(2))

        self.rounds(self.client, make)

    def test_reconnect(self):
        self.rounds(self.client, lambda: self.client.reconnect(SECONDS) if self.client else None, ROUNDS // 8)

    def test_close_is_taken_up_again(self):
        for _ in range(ROUNDS // 8):
            client = self.connect()
            futures = [client.submit("echo", counting(2)) for _ in range(4)]
            self.interrupt(client.close)
            client.close()
            done, pending = concurrent.futures.wait(futures, SECONDS)
            self.assertFalse(pending)
            with self.assertRaises(starling.RuntimeGone):
                client.submit("echo", counting(2))


class Handlers(WorldCase):
    """What handlers do, beside raising."""

    def setUp(self):
        super().setUp()
        before = signal.signal(signal.SIGALRM, self.handle)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)

    def arm(self):
        """For the next one. A timer that repeats would interrupt each handler by another, without end, where one takes longer than that."""
        if len(self.futures) < 200 and self.nested < 3:
            signal.setitimer(signal.ITIMER_REAL, 0.0005)

    def handle(self, *_):
        self.nested += 1
        self.arm()
        self.futures.append(self.client.submit("echo", counting(1)))
        self.nested -= 1
        self.arm()

    def test_a_handler_may_submit_while_another_call_is_under_way(self):
        self.futures, self.nested, own = [], 0, []
        self.arm()
        while len(self.futures) < 200:
            own.append(self.client.submit("echo", counting(1)))
            own[-1].result(SECONDS)
        done, pending = concurrent.futures.wait(self.futures + own, SECONDS)
        self.assertFalse(pending)


if __name__ == "__main__":
    unittest.main()
