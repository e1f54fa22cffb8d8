# SPDX-License-Identifier: Apache-2.0
"""The Python client against a fake runtime whose model "echo" returns what it gets."""

import asyncio
import concurrent.futures
import errno
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import unittest
import unittest.mock

import numpy as np
import starling
from starling import arena, loops
from world import LIMIT, WorldCase, counting


def used_bytes(client):
    gc.collect()
    return client.info().arena_used_bytes


class Models(WorldCase):
    def test_listing_says_names_states_and_kinds(self):
        entries = {entry.name: entry for entry in self.client.models()}
        self.assertEqual(entries["echo"].state, "ready")
        self.assertEqual(entries["loading"].state, "loading")
        self.assertTrue(entries["pair"].ensemble)

    def test_model_says_inputs_outputs_and_limits(self):
        model = self.client.model("pair")
        self.assertEqual([port.name for port in model.inputs], ["x", "ids"])
        self.assertEqual(model.inputs[1].shape, (None, 3))
        self.assertEqual(model.inputs[1].dtype, np.int64)
        self.assertEqual(model.inputs[1].batch_axis, 0)
        self.assertEqual(model.samples_max, 1024)
        self.assertIs(self.client.model("pair"), model)

    def test_unknown_model_is_a_lookup_error_that_names_the_others(self):
        with self.assertRaises(starling.NotFound) as caught:
            self.client.model("resnet")
        self.assertIsInstance(caught.exception, LookupError)
        self.assertEqual(caught.exception.status, -errno.ENOENT)
        self.assertIn('"echo"', str(caught.exception))

    def test_a_name_that_is_cut_is_named_as_far_as_it_can_be(self):
        with self.assertRaisesRegex(starling.NotFound, "aää"):
            self.client.model("a" + "ä" * 50)
        with self.assertRaisesRegex(starling.NotFound, "a日日"):
            self.client.infer("a" + "日" * 30, counting(1))

    def test_errors_go_to_other_processes(self):
        for error in (starling.Busy(-errno.EBUSY, "full"), starling.TooSmall(-errno.EMSGSIZE, "no room", 7)):
            copy = pickle.loads(pickle.dumps(error))
            self.assertIs(type(copy), type(error))
            self.assertEqual((copy.status, str(copy), copy.bytes_needed), (error.status, str(error), error.bytes_needed))

    def test_no_runtime_is_named(self):
        with self.assertRaisesRegex(starling.NotFound, "/nonexistent/s.sock"):
            starling.Client("/nonexistent/s.sock")

    def test_options_are_checked(self):
        with self.assertRaisesRegex(starling.InvalidRequest, "queue_depth is 7"):
            self.connect(queue_depth=7)
        with self.assertRaisesRegex(ValueError, "role is 'king'"):
            self.connect(role="king")

    def test_admin_role_loads_and_reader_does_not(self):
        with self.connect(role="admin") as admin:
            admin.load("lenet")
            with self.assertRaisesRegex(starling.NotFound, 'no model "missing" in the repository'):
                admin.unload("missing")
        with self.connect(role="reader") as reader:
            self.assertEqual(len(reader.models()), 9)
            with self.assertRaises(starling.StarlingError):
                reader.load("lenet")


class Arrays(WorldCase):
    def test_empty_is_arena_memory_and_is_freed_when_collected(self):
        before = used_bytes(self.client)
        array = self.client.empty((100, 4), np.float32)
        self.assertTrue(array.flags.writeable and array.flags.c_contiguous)
        self.assertEqual(arena.address_of(array) % 64, 0)
        self.assertGreaterEqual(used_bytes(self.client), before + 1600)
        view = array[10:20, 1]
        view[:] = 5
        del array
        self.assertGreaterEqual(used_bytes(self.client), before + 1600)
        self.assertEqual(view.sum(), 50)
        del view
        self.assertEqual(used_bytes(self.client), before)

    def test_every_type_makes_the_way(self):
        for number, dtype in arena.DTYPES.items():
            array = self.client.array(np.arange(2), dtype)
            self.assertEqual(array.dtype, dtype)
            self.assertEqual(int(array[1]), 1)
            self.assertTrue(arena.suits(array.dtype, number))

    def test_shapes_of_any_kind(self):
        self.assertEqual(self.client.empty(3).shape, (3,))
        self.assertEqual(self.client.empty(()).shape, ())
        self.assertEqual(self.client.empty((0, 3)).shape, (0, 3))
        with self.assertRaises(ValueError):
            self.client.empty((-1,))
        with self.assertRaises(ValueError):
            self.client.empty(2, object)

    def test_a_client_that_goes_idle_gives_back_what_it_does_not_need(self):
        kept, more = self.client.array(counting(1)), [self.client.empty(n << 20, np.uint8) for n in (20, 40)]
        before = self.client.info()
        self.client.trim()
        self.assertEqual(self.client.info().regions, before.regions)
        del more
        gc.collect()
        self.client.trim()
        self.assertLess(self.client.info().arena_bytes, before.arena_bytes - (60 << 20) + 1)
        np.testing.assert_array_equal(self.client.infer("echo", kept), counting(1))
        with self.connect() as closed:
            pass
        with self.assertRaises(starling.RuntimeGone):
            closed.trim()

    def test_dlpack_shares_the_memory(self):
        array = self.client.array([1, 2, 3], np.int32)
        other = np.from_dlpack(array)
        array[1] = 7
        self.assertEqual(other[1], 7)
        del array
        gc.collect()
        self.assertEqual(other.tolist(), [1, 7, 3])

    def test_arrays_outlive_the_client(self):
        client = self.connect()
        array = client.array(counting(10))
        client.close()
        del client
        gc.collect()
        array += 1
        self.assertEqual(array[0, 0], 1)
        del array
        gc.collect()

    def test_quota_is_a_memory_error(self):
        with self.assertRaises(starling.QuotaExceeded) as caught:
            self.client.empty(2 << 30, np.uint8)
        self.assertIsInstance(caught.exception, MemoryError)
        self.assertRegex(
            str(caught.exception),
            r"^\d+ bytes of arena: .*: \d+ of 16777216 bytes in 1 regions are in use, the largest free run has \d+; "
            r"limits\.client\.arena_bytes is \d+, regions are at most 64; the runtime refused \d+ more: ",
        )


class Infer(WorldCase):
    def test_arena_array_is_used_where_it_is(self):
        x = self.client.array(counting(300))
        self.assertTrue(arena.lies_in(self.client._core, x))
        used = used_bytes(self.client)
        y = self.client.empty((300, 4))
        self.assertIs(self.client.infer("echo", x, outputs=y), y)
        np.testing.assert_array_equal(y, x)
        del y
        self.assertEqual(used_bytes(self.client), used)

    def test_array_of_another_client_is_copied_and_takes_no_result(self):
        with self.connect() as other:
            foreign = other.array(counting(5))
            self.assertFalse(arena.lies_in(self.client._core, foreign))
            np.testing.assert_array_equal(self.client.infer("echo", foreign), counting(5))
            with self.assertRaisesRegex(starling.InvalidRequest, "no dense, aligned array of this client's arena"):
                self.client.infer("echo", counting(5), outputs=foreign)

    def test_a_request_is_few_objects_for_the_collector_of_garbage(self):
        """A call, its frame, two blocks of memory, what holds the first: of thousands at once the collector walks over all, again and again."""
        calls = [self.client._call("echo", counting(1), None, None, 0, 0) for _ in range(20)]  # what is made once
        gc.collect()
        before = len(gc.get_objects())
        calls += [self.client._call("echo", counting(1), None, None, 0, 0) for _ in range(200)]
        gc.collect()
        self.assertLessEqual((len(gc.get_objects()) - before) / 200, 5.05)

    def test_what_has_changed_is_looked_up_again_by_name_and_by_model(self):
        ways = (
            self.client.infer,
            lambda *request: self.client.submit(*request).result(LIMIT),
            lambda *request: asyncio.run(self.client.infer_async(*request)),
        )
        with self.connect(role="admin") as admin:
            for way in ways:
                way("echo", counting(2))
                model = self.client.model("echo")
                admin.load("echo")
                np.testing.assert_array_equal(way("echo", counting(3)), counting(3))
                self.assertIsNot(self.client.model("echo"), model)
                np.testing.assert_array_equal(way(model, counting(2)), counting(2))
                admin.load("echo")
                np.testing.assert_array_equal(way(model, counting(2)), counting(2))

    def test_aligned_slice_is_used_where_it_is(self):
        x = self.client.array(counting(300))
        self.assertTrue(arena.lies_in(self.client._core, x[4:12]))
        self.assertFalse(arena.lies_in(self.client._core, x[1:12]))
        for part in (x[4:12], x[1:12], x[::2]):
            np.testing.assert_array_equal(self.client.infer("echo", part), part)

    def test_any_array_and_list_will_do(self):
        np.testing.assert_array_equal(self.client.infer("echo", counting(5)), counting(5))
        np.testing.assert_array_equal(self.client.infer("echo", np.asfortranarray(counting(5))), counting(5))
        self.assertEqual(self.client.infer("echo", [[1, 2, 3, 4]]).tolist(), [[1, 2, 3, 4]])
        self.assertEqual(self.client.infer("vector", [1, 2, 3]).tolist(), [1, 2, 3])

    def test_several_inputs_and_outputs_go_by_name_or_order(self):
        x, ids = counting(5, 2), np.arange(15).reshape(5, 3)
        for inputs in ({"ids": ids, "x": x}, [x, ids]):
            result = self.client.infer("pair", inputs)
            np.testing.assert_array_equal(result["y"], x)
            np.testing.assert_array_equal(result["ids_out"], ids)
        with self.assertRaisesRegex(starling.InvalidRequest, "inputs are"):
            self.client.infer("pair", {"x": x})
        with self.assertRaisesRegex(starling.InvalidRequest, "wants 2 inputs"):
            self.client.infer("pair", [x])
        with self.assertRaisesRegex(starling.InvalidRequest, "by name"):
            self.client.infer("pair", x)

    def test_output_of_unknown_size_has_its_true_shape(self):
        self.assertEqual(self.client.infer("first3", counting(9, 2)).shape, (3, 2))
        self.assertEqual(self.client.infer("first3", counting(2, 2)).shape, (2, 2))

    def test_a_shape_that_no_tensor_has_is_refused(self):
        rows = 2**32 + 1
        for x in (self.client.empty((1, 4)), np.zeros((1, 4), np.float32)):
            many = np.lib.stride_tricks.as_strided(x, (rows, 4), (16, 4))
            with self.assertRaisesRegex(starling.InvalidRequest, str(rows)):
                self.client.infer("echo", many)
            with self.assertRaises(starling.InvalidRequest):
                self.client.infer("echo", counting(1), outputs=many)

    def test_a_dict_that_is_fickle_is_refused(self):
        class Key:
            asked = 0

            def __hash__(self):
                return hash("x")

            def __eq__(self, other):
                self.asked += 1
                return self.asked == 1

        with self.assertRaises((RuntimeError, starling.InvalidRequest)):
            self.client.infer(self.client.model("echo"), {Key(): counting(1)})

    def test_mistakes_say_what_is_wanted(self):
        with self.assertRaisesRegex(starling.InvalidRequest, r"wants float32 \[N,4\], got float32 \[5,3\]"):
            self.client.infer("echo", counting(5, 3))
        with self.assertRaisesRegex(starling.InvalidRequest, "no dense, aligned array"):
            self.client.infer("echo", counting(5), outputs=counting(5))
        for nothing in (None, {"x": None}):
            with self.assertRaisesRegex(starling.InvalidRequest, r'model "echo": input "x" wants float32 \[N,4\], got None'):
                self.client.infer("echo", nothing)
        with self.assertRaisesRegex(starling.InvalidRequest, 'model "echo", version 1: inputs are "x", got "a", "b"'):
            self.client.infer("echo", {"b": counting(1), "a": counting(1)})
        with self.assertRaisesRegex(starling.InvalidRequest, 'model "echo", version 1: inputs are "x", got none'):
            self.client.infer("echo", {})
        with self.assertRaisesRegex(starling.InvalidRequest, "wants an array of this client's arena, see empty\\(\\), got str"):
            self.client.infer("echo", counting(5), outputs="y")
        with self.assertRaisesRegex(starling.InvalidRequest, "wants 1 outputs, got 2"):
            self.client.infer("echo", counting(5), outputs=[self.client.empty((5, 4))] * 2)
        y = self.client.empty((5, 4))
        self.assertIs(self.client.infer("echo", counting(5), outputs=[y]), y)
        with self.assertRaisesRegex(TypeError, "a model is a name or a Model, got NoneType"):
            self.client.infer(None, counting(5))
        with self.assertRaisesRegex(starling.InvalidRequest, "priority 9"):
            self.client.infer("echo", counting(5), priority=9)
        for wrong, text in (
            ({"priority": 2**32}, "priority is 4294967296, wants 0 to 4294967295"),
            ({"priority": -1}, "priority is -1, wants 0 to 4294967295"),
            ({"session": 2**64}, "session is 18446744073709551616, wants 0 to 18446744073709551615"),
            ({"timeout": float("inf")}, "timeout is inf, wants a number of seconds, or None"),
            ({"timeout": float("nan")}, "timeout is nan, wants a number of seconds, or None"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                self.client.infer("echo", counting(5), **wrong)

    def test_failures_are_exceptions_with_their_status(self):
        with self.assertRaises(starling.ModelFailed) as caught:
            self.client.infer("broken", [[1.0]])
        self.assertEqual(caught.exception.status, -errno.EIO)
        with self.assertRaises(starling.TooSmall) as caught:
            self.client.infer("echo", counting(9), outputs=self.client.empty((2, 4)))
        self.assertEqual(caught.exception.bytes_needed, 144)

    def test_threads_beyond_the_queue_pairs_take_turns(self):
        def work(seed):
            for i in range(1, 30):
                x = np.full((i, 4), seed, np.float32)
                if not np.array_equal(self.client.infer("echo", x), x):
                    return False
            return True

        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            self.assertTrue(all(pool.map(work, range(10))))

    def test_threads_take_turns_though_nobody_ends(self):
        client = self.connect(queue_pairs=2)
        self.addCleanup(client.close)
        x = client.array(counting(1))
        counts = [0] * 4
        until = time.monotonic() + LIMIT

        def work(thread):
            while min(counts) < 20 and time.monotonic() < until:
                client.infer("echo", x)
                counts[thread] += 1

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(counts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertGreaterEqual(min(counts), 20, counts)

    def test_who_waits_for_a_queue_pair_does_so_until_the_deadline(self):
        client = self.connect(queue_pairs=1)
        self.addCleanup(client.close)
        x = client.array(counting(1))
        before = used_bytes(client)
        self.runtime.stop()
        first = threading.Thread(target=client.infer, args=("echo", x))
        first.start()
        self.addCleanup(first.join)
        self.addCleanup(self.runtime.go_on)
        while used_bytes(client) == before:  # its result has a place about when it has the queue pair
            time.sleep(0.001)
        time.sleep(0.1)
        with self.assertRaises(starling.Expired):
            client.infer("echo", counting(1), timeout=0.05)

    def test_who_has_no_queue_pairs_is_told(self):
        for role in ("reader", "admin"):
            with self.connect(role=role) as client, self.assertRaises(starling.StarlingError) as caught:
                client.infer("echo", counting(1), timeout=LIMIT)
            self.assertEqual(caught.exception.status, -errno.EPERM)

    def test_the_interpreter_is_free_while_one_waits(self):
        self.runtime.stop()
        waiting = threading.Thread(target=self.client.infer, args=("echo", counting(1)))
        waiting.start()
        ticks = sum(1 for _ in range(100000))
        self.assertTrue(waiting.is_alive())
        self.assertEqual(ticks, 100000)
        self.runtime.go_on()
        waiting.join()

    def test_interrupt_is_heard(self):
        self.runtime.stop()
        self.interrupt_infer(self.client)
        self.runtime.go_on()
        np.testing.assert_array_equal(self.client.infer("echo", counting(2)), counting(2))


class Futures(WorldCase):
    def test_many_in_flight_each_with_its_result(self):
        inputs = [counting(i % 7 + 1) + i for i in range(300)]
        futures = [self.client.submit("echo", x) for x in inputs]
        for x, future in zip(inputs, futures):
            np.testing.assert_array_equal(future.result(LIMIT), x)
        self.assertEqual(futures[0].times.computing_ns, 3)

    def test_names_with_a_nul_are_no_others(self):
        with self.connect(role="admin") as admin:
            for call in (
                lambda: self.client.infer("echo\0x", counting(1)),
                lambda: admin.load("echo\0x"),
                lambda: admin.apply([("echo\0x", "cpu", 1)]),
                lambda: self.connect(label="a\0b"),
            ):
                with self.assertRaisesRegex(ValueError, "has a NUL"):
                    call()

    def test_numbers_that_c_would_cut_are_refused(self):
        with self.connect(role="admin") as admin:
            for call, words in (
                (lambda: self.connect(queue_pairs=(1 << 32) + 1), "queue_pairs is 4294967297, wants 0 to 4294967295"),
                (lambda: self.connect(queue_depth=-1), "queue_depth is -1"),
                (lambda: self.connect(arena_bytes=1 << 64), "arena_bytes is 18446744073709551616"),
                (lambda: admin.apply([("echo", "cpu", (1 << 32) + 2)]), "batch is 4294967298"),
            ):
                with self.assertRaisesRegex(ValueError, words):
                    call()

    def test_callbacks_may_submit(self):
        done = threading.Event()
        results = []

        def second(future):
            results.append(future.result())
            done.set()

        def first(future):
            self.client.submit("echo", future.result() + 1).add_done_callback(second)

        self.client.submit("echo", counting(1)).add_done_callback(first)
        self.assertTrue(done.wait(LIMIT))
        self.assertEqual(results[0].tolist(), [[1, 2, 3, 4]])

    def test_callbacks_submit_into_a_full_queue_pair(self):
        """Nobody but the thread that runs them makes room."""
        client = self.connect(queue_depth=8)
        second, inputs = [], [counting(i % 3 + 1) + i for i in range(100)]
        firsts = [client.submit("echo", x) for x in inputs[:8]]
        for future in firsts:
            future.add_done_callback(lambda done: second.extend(client.submit("echo", done.result() + 1) for _ in range(5)))
        firsts += [client.submit("echo", x) for x in inputs[8:]]
        for x, future in zip(inputs, firsts):
            np.testing.assert_array_equal(future.result(LIMIT), x)
        deadline = time.monotonic() + 120
        while len(second) < 40 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(len(second), 40)
        for i, future in enumerate(second):
            self.assertEqual(future.result(LIMIT).dtype, np.float32, i)

    def test_what_a_callback_submitted_can_be_cancelled_before_it_goes(self):
        client = self.connect(queue_depth=4)
        later, cancelled = [], []

        def submit_many(_):
            later.extend(client.submit("echo", counting(1)) for _ in range(12))
            cancelled.extend(future.cancel() for future in later[6:])

        client.submit("echo", counting(1)).add_done_callback(submit_many)
        deadline = time.monotonic() + 120
        while len(cancelled) < 6 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(cancelled, [True] * 6)
        concurrent.futures.wait(later, LIMIT)
        for future in later[:6]:
            np.testing.assert_array_equal(future.result(0), counting(1))
        for future in later[6:]:
            self.assertTrue(future.cancelled())

    def test_waiting_shares_the_only_queue_pair_with_futures(self):
        client = self.connect(queue_pairs=1)
        futures = [client.submit("echo", counting(1)) for _ in range(20)]
        np.testing.assert_array_equal(client.infer("echo", counting(2)), counting(2))
        with self.assertRaises(starling.ModelFailed):
            client.infer("broken", [[1.0]])
        refused = []

        def wait_in_callback(_):
            try:
                client.infer("echo", counting(1))
            except starling.Busy as error:
                refused.append(str(error))

        client.submit("echo", counting(1)).add_done_callback(wait_in_callback)
        np.testing.assert_array_equal(client.infer("echo", counting(3)), counting(3))
        concurrent.futures.wait(futures, LIMIT)
        self.assertIn("a callback of a future cannot wait", refused[0])

    def test_a_callback_may_close_the_client(self):
        self.runtime.stop()
        futures = [self.client.submit("echo", counting(1)) for _ in range(40)]
        futures[0].add_done_callback(lambda _: self.client.close())
        self.runtime.go_on()
        done, pending = concurrent.futures.wait(futures, LIMIT)
        self.assertFalse(pending)
        self.client.close()  # waits for the callback's
        with self.assertRaisesRegex(starling.RuntimeGone, "closed"):
            self.client.infer("echo", counting(1))

    def test_failure_is_the_futures_exception(self):
        self.assertIsInstance(self.client.submit("broken", [[1.0]]).exception(LIMIT), starling.ModelFailed)
        with self.assertRaises(starling.InvalidRequest):
            self.client.submit("echo", counting(1, 5))

    def test_time_out_leaves_the_future_pending(self):
        self.runtime.stop()
        future = self.client.submit("echo", counting(1))
        with self.assertRaises(concurrent.futures.TimeoutError):
            future.result(0.05)
        self.assertFalse(future.done())
        self.runtime.go_on()
        future.result(LIMIT)
        self.assertFalse(future.cancel())

    def test_cancel_ends_it(self):
        self.runtime.stop()
        future = self.client.submit("echo", counting(1))
        self.assertTrue(future.cancel())
        self.runtime.go_on()
        with self.assertRaises(concurrent.futures.CancelledError):
            future.result(LIMIT)

    def test_death_is_every_futures_exception(self):
        self.runtime.stop()
        futures = [self.client.submit("echo", counting(1)) for _ in range(10)]
        self.runtime.kill()
        for future in futures:
            self.assertIsInstance(future.exception(LIMIT), starling.RuntimeGone)

    def test_close_settles_what_is_in_flight(self):
        client = self.connect()
        futures = [client.submit("echo", counting(1)) for _ in range(20)]
        client.close()
        self.assertTrue(all(future.done() for future in futures))
        with self.assertRaises(starling.RuntimeGone):
            client.submit("echo", counting(1))

    def test_close_settles_what_nobody_answers(self):
        client = self.connect()
        self.runtime.stop()
        futures = [client.submit("echo", counting(1)) for _ in range(3)]
        client.close()
        self.runtime.go_on()
        for future in futures:
            with self.assertRaises(concurrent.futures.CancelledError):
                future.result(0)

    def test_futures_follow_an_interrupted_request(self):
        client = self.connect(queue_pairs=1)
        self.addCleanup(client.close)
        self.runtime.stop()
        self.interrupt_infer(client)
        future = client.submit("echo", counting(1))
        self.runtime.go_on()
        np.testing.assert_array_equal(future.result(LIMIT), counting(1))
        np.testing.assert_array_equal(client.submit("echo", counting(2)).result(LIMIT), counting(2))


class Asyncio(WorldCase):
    def test_requests_follow_an_interrupted_one(self):
        client = self.connect(queue_pairs=1)
        self.addCleanup(client.close)
        self.runtime.stop()
        self.interrupt_infer(client)
        threading.Timer(0.1, self.runtime.go_on).start()

        async def main():
            return await asyncio.wait_for(client.infer_async("echo", counting(1)), LIMIT)

        np.testing.assert_array_equal(asyncio.run(main()), counting(1))

    def test_many_at_once(self):
        async def main():
            inputs = [counting(i % 5 + 1) + i for i in range(200)]
            results = await asyncio.gather(*(self.client.infer_async("echo", x) for x in inputs))
            for x, result in zip(inputs, results):
                np.testing.assert_array_equal(result, x)

        for _ in range(3):
            asyncio.run(main())
        self.assertEqual(len(self.client._loops), 0)

    def test_what_waits_for_room_costs_nothing_until_there_is_some(self):
        tries, put = [], loops.LoopLine._put
        n = 2000

        async def main():
            await asyncio.gather(*(self.client.infer_async("echo", x) for _ in range(n)))

        x = self.client.array(counting(1))
        with unittest.mock.patch.object(loops.LoopLine, "_put", lambda *a: tries.append(1) or put(*a)):
            asyncio.run(main())
        self.assertLess(len(tries), 4 * n)

    def test_what_is_awaited_is_few_objects_that_the_collector_walks(self):
        """It walks all that pile up, again and again: that costs more than the requests."""
        n, x = 400, counting(1)

        async def main():
            await self.client.infer_async("echo", x)
            gc.collect()
            gc.disable()
            self.addCleanup(gc.enable)
            before = len(gc.get_objects())
            tasks = [asyncio.ensure_future(self.client.infer_async("echo", x)) for _ in range(n)]
            await asyncio.sleep(0)
            each = (len(gc.get_objects()) - before) / n
            await asyncio.gather(*tasks)
            return each

        self.assertLess(asyncio.run(main()), 22)  # the loop's own are 9 of them

    def test_failures_are_raised_where_they_are_awaited(self):
        async def main():
            with self.assertRaises(starling.ModelFailed):
                await self.client.infer_async("broken", [[1.0]])
            with self.assertRaises(starling.InvalidRequest):
                await self.client.infer_async("echo", counting(1, 5))
            return await self.client.infer_async("first3", counting(9, 2))

        self.assertEqual(asyncio.run(main()).shape, (3, 2))

    def test_cancelled_task_cancels_its_request(self):
        async def main():
            self.runtime.stop()
            task = asyncio.ensure_future(self.client.infer_async("echo", counting(1)))
            await asyncio.sleep(0.05)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.runtime.go_on()
            return await self.client.infer_async("echo", counting(2))

        np.testing.assert_array_equal(asyncio.run(main()), counting(2))

    async def give_up(self, client, seconds):
        """A request that its caller stops to wait for, while the runtime does not answer."""
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(client.infer_async("echo", counting(1)), seconds)

    def test_awaiting_shares_the_only_queue_pair_with_futures(self):
        client = self.connect(queue_pairs=1, queue_depth=4)
        np.testing.assert_array_equal(client.submit("echo", counting(1)).result(LIMIT), counting(1))

        async def main():
            inputs = [counting(i % 5 + 1) + i for i in range(50)]
            results = await asyncio.gather(*(client.infer_async("echo", x) for x in inputs))
            for x, result in zip(inputs, results):
                np.testing.assert_array_equal(result, x)
            with self.assertRaises(starling.ModelFailed):
                await client.infer_async("broken", [[1.0]])
            self.runtime.stop()
            tasks = [asyncio.ensure_future(client.infer_async("echo", counting(1))) for _ in range(8)]
            await asyncio.sleep(0.05)
            tasks[0].cancel()
            with self.assertRaises(asyncio.CancelledError):
                await tasks[0]
            await asyncio.get_running_loop().run_in_executor(None, self.close_before_answers, client)
            for task in tasks[1:]:
                with self.assertRaises((starling.Cancelled, starling.RuntimeGone)):
                    await task

        asyncio.run(main())

    def test_a_loop_that_ends_with_requests_in_flight_leaves_its_queue_pair(self):
        client = self.connect(queue_pairs=1)
        self.addCleanup(client.close)

        async def ask():
            return await asyncio.wait_for(client.infer_async("echo", counting(2)), LIMIT)

        for infer in (
            lambda: client.infer("echo", counting(2)),
            lambda: asyncio.run(ask()),
            lambda: client.submit("echo", counting(2)).result(LIMIT),
        ):
            self.runtime.stop()
            asyncio.run(self.give_up(client, 0.1))
            descriptors = os.listdir("/proc/self/fd")
            threading.Timer(0.1, self.runtime.go_on).start()
            np.testing.assert_array_equal(infer(), counting(2))
            self.assertLessEqual(len(os.listdir("/proc/self/fd")), len(descriptors) + 4)  # the reaper has some

    def test_who_waits_already_gets_the_queue_pair_of_a_loop_that_ends(self):
        client = self.connect(queue_pairs=1)
        self.addCleanup(client.close)

        self.runtime.stop()
        loop = threading.Thread(target=asyncio.run, args=(self.give_up(client, 0.5),))
        loop.start()
        while not client._loops:
            time.sleep(0.001)
        threading.Timer(1, self.runtime.go_on).start()
        np.testing.assert_array_equal(client.infer("echo", counting(2)), counting(2))
        loop.join()

    def test_a_loop_that_ended_leaves_no_descriptor_behind_a_close(self):
        before = len(os.listdir("/proc/self/fd"))
        client = self.connect(queue_pairs=1)

        self.runtime.stop()
        asyncio.run(self.give_up(client, 0.1))
        self.runtime.go_on()
        client.close()
        del client
        gc.collect()
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def test_close_ends_what_is_awaited(self):
        async def main(client):
            self.runtime.stop()
            tasks = [asyncio.ensure_future(client.infer_async("echo", counting(1))) for _ in range(5)]
            await asyncio.sleep(0.05)
            await asyncio.get_running_loop().run_in_executor(None, self.close_before_answers, client)
            for task in tasks:
                with self.assertRaises((starling.Cancelled, starling.RuntimeGone)):  # the latter if it waited for room
                    await task

        for depth in (2, 64):  # with tasks that wait for room, and without
            asyncio.run(main(self.connect(queue_depth=depth)))

    def test_death_is_raised(self):
        async def main():
            self.runtime.stop()
            tasks = [asyncio.ensure_future(self.client.infer_async("echo", counting(1))) for _ in range(5)]
            await asyncio.sleep(0.05)
            self.runtime.kill()
            for task in tasks:
                with self.assertRaises(starling.RuntimeGone):
                    await task

        asyncio.run(main())


def infer_in_child(client, results):
    answers = []
    for call in (lambda: client.infer("echo", counting(1)), client.models, lambda: client.empty(3), client.info, client.reconnect):
        try:
            call()
            answers.append("went through")
        except starling.Forked as error:
            answers.append(error.status)
    client.close()
    results.put(answers)


class DeathAndFork(WorldCase):
    def test_reconnect_keeps_arrays_in_place(self):
        x = self.client.array(counting(10))
        address = arena.address_of(x)
        self.client.infer("echo", x)
        future = self.client.submit("echo", x)
        future.result(LIMIT)
        self.runtime.kill()
        with self.assertRaises(starling.RuntimeGone):
            while True:
                self.client.infer("echo", x)
        self.runtime.start()
        self.client.reconnect(timeout=60)
        self.assertEqual(arena.address_of(x), address)
        np.testing.assert_array_equal(self.client.infer("echo", x), counting(10))
        np.testing.assert_array_equal(self.client.submit("echo", x).result(LIMIT), counting(10))

    def test_child_of_fork_is_told_and_the_parent_goes_on(self):
        self.client.submit("echo", counting(1)).result(LIMIT)
        context = multiprocessing.get_context("fork")
        results = context.Queue()
        child = context.Process(target=infer_in_child, args=(self.client, results))
        child.start()
        self.assertEqual(results.get(timeout=LIMIT), [-errno.ECHILD] * 5)
        child.join()
        self.assertEqual(child.exitcode, 0)
        np.testing.assert_array_equal(self.client.infer("echo", counting(3)), counting(3))

    def test_interpreter_ends_with_requests_in_flight(self):
        child = os.spawnle(
            os.P_WAIT,
            sys.executable,
            sys.executable,
            "-c",
            "import starling, numpy, sys\n"
            f"client = starling.Client({self.runtime.socket!r})\n"
            "futures = [client.submit('echo', numpy.zeros((1, 4), numpy.float32)) for _ in range(50)]\n"
            "x = client.empty(3)\n",
            dict(os.environ),
        )
        self.assertEqual(child, 0)


if __name__ == "__main__":
    unittest.main()
