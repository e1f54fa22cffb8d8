# SPDX-License-Identifier: Apache-2.0
"""What is held and let go: references, memory of the arena and of the interpreter, threads that meet in one client."""

import asyncio
import concurrent.futures
import gc
import os
import resource
import signal
import sys
import threading
import time
import tracemalloc
import unittest
import weakref

import numpy as np
import starling
from starling import form
from starling.block import Core
from starling.gate import Lease
from starling.loops import LoopLine
from test_client import counting, used_bytes
from world import LIMIT, WorldCase


def setUpModule():
    """Each collection looks at what the tests make alone: the modules' own objects take most of the time."""
    gc.collect()
    gc.freeze()


def tearDownModule():
    gc.unfreeze()


class References(WorldCase):
    def ways(self):
        """Calls that end well and badly, by the three ways; each leaves nothing."""
        client, x, ids = self.client, counting(5), np.zeros((5, 3), np.int64)
        arena, room, small = client.array(x), client.empty((5, 4)), client.empty((1, 4))
        model = client.model("echo")
        requests = [
            (("echo", x), {}),
            ((model, arena), {}),
            ((model, arena), {"outputs": room, "timeout": 5.0, "priority": 1}),
            (("echo", x[::-1]), {}),
            (("echo", [[1, 2, 3, 4]]), {"timeout": 5}),
            (("pair", {"x": x[:, :2].copy(), "ids": ids}), {}),
            (("pair", [x[:, :2].copy(), ids]), {}),
            (("first3", counting(9, 2)), {}),
            (("echo", counting(5, 3)), {}),
            (("echo", x.astype(np.float64)), {}),
            (("echo", x), {"outputs": small}),
            (("echo", x), {"outputs": x}),
            (("echo", x), {"timeout": "soon"}),
            (("echo", x), {"priority": 9}),
            (("pair", {"x": x}), {}),
            (("broken", [[1.0]]), {}),
            (("resnet", x), {}),
        ]
        held = [x, arena, room, small, ids, model, x.dtype, ids.dtype, client, client._pool, client._core, np.ndarray]
        return requests, held

    @staticmethod
    def repeat(times, way, arguments, options):
        for _ in range(times):
            try:
                way(*arguments, **options)
            except (starling.StarlingError, TypeError, ValueError):
                pass

    @staticmethod
    def count_requests():
        """Calls and futures that live; the reaper may hold the last one for a moment."""
        gc.collect()
        return sum(type(item).__name__ in ("Call", "Future") for item in gc.get_objects())

    def check(self, way, rounds, *more):
        requests, held = self.ways()
        held.extend(more)
        for arguments, options in requests:
            self.repeat(10, way, arguments, options)  # until what is kept for all of them is there
            arena_bytes, requests_alive = used_bytes(self.client), self.count_requests()
            counts = [sys.getrefcount(item) for item in held]
            self.repeat(rounds, way, arguments, options)
            with self.subTest(arguments=arguments, options=options):  # nothing that each round leaves behind
                self.assertLess(self.count_requests() - requests_alive, 3)
                for _ in range(100 * LIMIT):  # the reaper may hold the last one for a moment
                    if used_bytes(self.client) <= arena_bytes:
                        break
                    time.sleep(0.01)
                self.assertLessEqual(used_bytes(self.client), arena_bytes)
                for item, before in zip(held, counts):
                    self.assertLess(abs(sys.getrefcount(item) - before), rounds / 2, f"references to {type(item)}")

    def test_infer_leaves_no_memory_behind(self):
        requests, _ = self.ways()
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        for arguments, options in requests:
            if getattr(arguments[1], "dtype", None) == np.float64:
                continue  # NumPy's name of the type piles up in the interpreter's cache of methods
            self.repeat(20, self.client.infer, arguments, options)
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            self.repeat(300, self.client.infer, arguments, options)
            gc.collect()
            with self.subTest(arguments=arguments, options=options):
                self.assertLess(tracemalloc.get_traced_memory()[0] - before, 300 * 16)  # the smallest object

    def test_infer_keeps_nothing(self):
        self.check(self.client.infer, 50, None)  # event loops keep None in caches of their own

    def test_submit_keeps_nothing(self):
        self.check(lambda *request, **options: self.client.submit(*request, **options).result(LIMIT), 30)

    def test_infer_async_keeps_nothing(self):
        self.check(lambda *request, **options: asyncio.run(self.client.infer_async(*request, **options)), 20)

    def test_the_arena_holds_one_result_each_and_the_input_as_long_as_it_is_in_flight(self):
        before = used_bytes(self.client)
        results = [self.client.infer("echo", counting(100)) for _ in range(10)]
        with_results = used_bytes(self.client)
        self.assertGreaterEqual(with_results, before + 10 * 1600)
        self.assertLess(with_results, before + 10 * 2 * 1600)
        np.testing.assert_array_equal(results[0], counting(100))
        del results
        self.assertEqual(used_bytes(self.client), before)

    def test_arrays_in_flight_live_until_the_completion(self):
        self.runtime.stop()
        x = self.client.array(counting(5))
        alive = weakref.ref(x)
        future = self.client.submit("echo", x)
        del x
        gc.collect()
        self.assertIsNotNone(alive())
        self.runtime.go_on()
        np.testing.assert_array_equal(future.result(LIMIT), counting(5))
        del future
        while alive() is not None:  # the thread that told the future may still be about to let go
            gc.collect()
            time.sleep(0.001)

    def test_an_interrupted_request_leaves_its_memory_when_it_is_done(self):
        before = used_bytes(self.client)
        self.runtime.stop()
        for _ in range(3):
            self.interrupt_infer(self.client)
        self.assertGreater(used_bytes(self.client), before)  # the runtime may write to it yet
        self.runtime.go_on()
        while used_bytes(self.client) > before:
            self.client.infer("echo", counting(1))

    def test_an_interrupted_request_is_cancelled(self):
        y = self.client.empty((1, 4))
        y[:] = -1
        self.runtime.stop()
        self.interrupt_infer(self.client, outputs=y)
        self.runtime.go_on()
        self.client.infer("echo", counting(1))
        self.assertEqual(y.tolist(), [[-1] * 4])

    def test_interrupted_requests_that_fill_the_queue_pair_are_waited_for(self):
        client = self.connect(queue_pairs=1, queue_depth=2)
        self.addCleanup(client.close)
        self.runtime.stop()
        for _ in range(3):
            self.interrupt_infer(client)
        threading.Timer(0.1, self.runtime.go_on).start()
        np.testing.assert_array_equal(client.infer("echo", counting(2)), counting(2))

    @unittest.skipIf(form.NAME == "ctypes", "in the ctypes form handlers run wherever Python is, also where it is inside the gate")
    def test_a_handler_may_close_the_client(self):
        def close(*_):
            self.close_before_answers(self.client)

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, close))
        self.runtime.stop()
        sending = self.signal_when_waiting(signal.SIGALRM)
        with self.assertRaises(starling.Cancelled):
            self.client.infer("echo", counting(1))
        sending.join()

    @unittest.skipIf(form.NAME == "ctypes", "in the ctypes form handlers run wherever Python is, also where it holds the pool")
    def test_a_handler_may_infer_while_its_thread_waits_for_a_queue_pair(self):
        client = self.connect(queue_pairs=1)
        self.addCleanup(client.close)
        results = []

        def infer(*_):
            threading.Timer(0.3, self.runtime.go_on).start()
            results.append(client.infer("echo", counting(3)))

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, infer))
        before = client.info().arena_used_bytes
        self.runtime.stop()
        first = threading.Thread(target=client.infer, args=("echo", counting(1)))
        first.start()
        while client.info().arena_used_bytes == before:
            time.sleep(0.001)
        time.sleep(0.1)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        np.testing.assert_array_equal(client.infer("echo", counting(2)), counting(2))
        first.join()
        self.assertEqual(len(results), 1)
        np.testing.assert_array_equal(results[0], counting(3))

    def test_a_handlers_exception_ends_the_wait_and_cancels(self):
        class Alarm(Exception):
            pass

        def raise_alarm(*_):
            raise Alarm

        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, raise_alarm))
        self.runtime.stop()
        with self.assertRaises(Alarm):
            sending = self.signal_when_waiting(signal.SIGALRM)
            self.client.infer("echo", counting(1))
        sending.join()
        self.runtime.go_on()
        np.testing.assert_array_equal(self.client.infer("echo", counting(2)), counting(2))


class Threads(WorldCase):
    def test_results_are_each_threads_own(self):
        def work(seed):
            x = np.full((seed % 5 + 1, 4), seed, np.float32)
            y = self.client.empty(x.shape)
            for i in range(100):
                if not np.array_equal(self.client.infer("echo", x + i), x + i):
                    return f"infer of thread {seed}, round {i}"
                if self.client.infer("echo", x, outputs=y) is not y or not np.array_equal(x, y):
                    return f"outputs of thread {seed}, round {i}"
                if i % 20 == 0:
                    gc.collect()
                if i % 10 == 0 and not np.array_equal(self.client.submit("echo", x).result(LIMIT), x):
                    return f"future of thread {seed}, round {i}"
            return None

        before = used_bytes(self.client)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual([word for word in pool.map(work, range(8)) if word], [])
        while used_bytes(self.client) > before:  # the thread that told the last futures may still be about to let go
            time.sleep(0.001)

    def test_close_ends_requests_of_other_threads_as_cancelled(self):
        self.runtime.stop()
        outcomes = []

        def wait():
            try:
                self.client.infer("echo", counting(1))
            except starling.StarlingError as error:
                outcomes.append(type(error))

        threads = [threading.Thread(target=wait) for _ in range(6)]  # two more than there are queue pairs
        for thread in threads:
            thread.start()
        threading.Timer(0.3, self.runtime.go_on).start()
        self.client.close()
        for thread in threads:
            thread.join(LIMIT)
            self.assertFalse(thread.is_alive())
        self.assertLessEqual(set(outcomes), {starling.Cancelled, starling.RuntimeGone})

    def test_who_is_alone_keeps_lines_from_being_opened_and_closed(self):
        lease = Lease()
        for act in (lambda: self.client._pool.borrow(lease), self.client._pool.close):
            thread = threading.Thread(target=act, daemon=True)

            def meanwhile():
                thread.start()
                thread.join(0.3)
                return thread.is_alive()

            self.assertTrue(self.client._gate.alone(meanwhile))
            thread.join(LIMIT)
            self.assertFalse(thread.is_alive())

    def test_a_submit_that_waits_for_a_queue_pair_keeps_nobody_out(self):
        client = self.connect(queue_pairs=1)
        client.model("echo")

        async def main():
            loop = asyncio.get_running_loop()
            self.runtime.stop()
            first = asyncio.ensure_future(client.infer_async("echo", counting(1)))
            await asyncio.sleep(0)
            future = loop.run_in_executor(None, lambda: client.submit("echo", counting(2)).result(LIMIT))
            await asyncio.sleep(0.2)
            second = asyncio.ensure_future(client.infer_async("echo", counting(3)))
            await asyncio.sleep(0)
            self.runtime.go_on()
            return await asyncio.gather(first, future, second)

        for rows, result in enumerate(asyncio.run(main()), 1):
            np.testing.assert_array_equal(result, counting(rows))
        client.close()

    def test_a_loop_does_not_wait_for_a_line_that_another_thread_closes(self):
        async def main():
            self.runtime.stop()
            awaited = asyncio.ensure_future(self.client.infer_async("echo", counting(1)))
            await asyncio.sleep(0)
            of_loop = self.client._loops[asyncio.get_running_loop()]
            closing = threading.Thread(target=self.client.close)
            closing.start()
            time.sleep(0.2)
            of_loop.reap()
            self.assertTrue(closing.is_alive())  # close() waits for the runtime, and nobody else
            self.runtime.go_on()
            with self.assertRaises(starling.Cancelled):
                await awaited
            closing.join()

        self.client.model("echo")
        asyncio.run(main())

    def test_a_loops_descriptor_is_its_own_until_it_lets_go(self):
        async def main():
            self.runtime.stop()
            awaited = asyncio.ensure_future(self.client.infer_async("echo", counting(1)))
            await asyncio.sleep(0)
            of_loop = self.client._loops[asyncio.get_running_loop()]
            watched = of_loop._fd
            self.close_before_answers(self.client)
            others = [os.dup(0) for _ in range(20)]
            self.assertNotIn(watched, others)
            for fd in others:
                os.close(fd)
            with self.assertRaises(starling.Cancelled):
                await awaited
            self.assertRaises(OSError, os.fstat, watched)

        self.client.model("echo")
        asyncio.run(main())

    def test_what_was_never_made_ends_without_a_word(self):
        said = []
        self.addCleanup(setattr, sys, "unraisablehook", sys.unraisablehook)
        sys.unraisablehook = said.append
        for kind in (starling.Client, LoopLine, Core):  # a handler of a signal has raised before the first line of __init__()
            kind.__new__(kind)
        gc.collect()
        self.assertEqual(said, [])

    def test_a_lack_of_descriptors_costs_no_queue_pair(self):
        client, loop = self.connect(queue_pairs=1), asyncio.new_event_loop()
        self.addCleanup(client.close)
        self.addCleanup(loop.close)
        client.model("echo")
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        for ask in (client.submit, lambda *request: loop.run_until_complete(client.infer_async(*request))):
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
            try:
                with self.assertRaises((OSError, starling.Busy)):
                    ask("echo", counting(1))
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        np.testing.assert_array_equal(client.infer("echo", counting(1)), counting(1))

    def test_a_reaper_that_has_ended_is_not_woken(self):
        self.client.submit("echo", counting(1)).result(LIMIT)
        reaper = self.client._reaper
        self.client.close()
        reaper.wake()  # as a reconnect() that came before close() does at its end

    def test_first_submits_of_several_threads_share_a_queue_pair(self):
        client = self.connect(queue_pairs=1)
        self.addCleanup(client.close)
        start = threading.Barrier(4)

        def submit(rows):
            start.wait()
            return np.array_equal(client.submit("echo", counting(rows)).result(LIMIT), counting(rows))

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            self.assertTrue(all(pool.map(submit, range(1, 5))))

    def test_who_finds_the_client_closed_starts_nothing(self):
        class Closing(starling.Client):
            def _call(self, *request):
                call = super()._call(*request)
                self._closed = True  # as close() begins
                return call

        def by_loop(client):
            asyncio.run(client.infer_async("echo", counting(1)))

        for ask in (lambda client: client.submit("echo", counting(1)), by_loop):
            client = Closing(self.runtime.socket, timeout=60)
            with self.assertRaises(starling.RuntimeGone):
                ask(client)
            client._closed = False
            client.close()

    def test_reconnect_passes_between_requests(self):
        stop = threading.Event()
        wrong = []

        def work():
            while not stop.is_set():
                try:
                    if not np.array_equal(self.client.infer("echo", counting(3)), counting(3)):
                        wrong.append("a result")
                except (starling.RuntimeGone, starling.Stale, starling.NotFound):
                    pass

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            self.client.reconnect(timeout=60)
        stop.set()
        for thread in threads:
            thread.join(LIMIT)
            self.assertFalse(thread.is_alive())
        self.assertEqual(wrong, [])
        np.testing.assert_array_equal(self.client.infer("echo", counting(3)), counting(3))


if __name__ == "__main__":
    unittest.main()
