/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: there and back, in every form, and every mistake with its text.
 */
#include "world.h"

static void expect_refused(struct world *w, const struct starling_request *request, int code, const char *words)
{
        int r = starling_submit(w->queue, request, NULL);
        const char *text = starling_queue_error(w->queue);

        cr_assert_eq(r, -code, "%d instead of %d: %s", r, -code, text);
        cr_assert_not_null(strstr(text, words), "\"%s\" says nothing of \"%s\"", text, words);
        cr_assert_eq(starling_queue_in_flight(w->queue), 0);
}

Test(request, noop_comes_back_with_its_user_data_and_times)
{
        struct world w;
        struct starling_completion c;
        struct starling_request request = noop(0xfeedfacecafebeef);
        uint64_t id = 0;

        world_enter(&w);
        cr_assert_eq(starling_submit(w.queue, &request, &id), 0);
        cr_assert_neq(id, 0);
        cr_assert_eq(starling_wait(w.queue, &c, 1, STARLING_FOREVER), 1);
        cr_assert_eq(c.id, id);
        cr_assert_eq(c.user_data, 0xfeedfacecafebeef);
        cr_assert_eq(c.status, 0);
        cr_assert_eq(c.queued_ns, 1);
        cr_assert_eq(c.batched_ns, 2);
        cr_assert_eq(c.computing_ns, 3);
        cr_assert_eq(c.combining_ns, 4);
        cr_assert_eq(c.n_outputs, 0);
        cr_assert_eq(starling_queue_in_flight(w.queue), 0);
        world_leave(&w);
}

Test(request, rings_go_round_many_times_in_order)
{
        struct world w;
        struct starling_completion c[8];
        uint64_t sent = 0, seen = 0;

        world_place(&w);
        w.options.queue_depth = 8;
        world_start(&w);
        world_join(&w);
        while (seen < 20000) {
                struct starling_request request = noop(sent);

                while (sent < 20000 && starling_submit(w.queue, &request, NULL) == 0)
                        request.user_data = ++sent;

                int n = starling_wait(w.queue, c, 8, STARLING_FOREVER);

                cr_assert_gt(n, 0);
                for (int i = 0; i < n; i++)
                        cr_assert_eq(c[i].user_data, seen++);
        }
        world_leave(&w);
}

Test(request, many_are_published_in_order_as_far_as_there_is_room)
{
        struct world w;
        struct starling_request requests[100];
        struct starling_completion c[100];
        uint64_t ids[100];
        int seen = 0;

        world_enter(&w);
        for (uint32_t i = 0; i < 100; i++)
                requests[i] = noop(i);
        requests[70].flags = 1u << 9;
        cr_assert_eq(starling_submit_many(w.queue, requests, 0, NULL), 0);
        cr_assert_eq(starling_submit_many(w.queue, requests, 100, ids), 64);
        while (seen < 64) {
                int n = starling_wait(w.queue, c, 100, STARLING_FOREVER);

                cr_assert_gt(n, 0);
                for (int i = 0; i < n; i++, seen++) {
                        cr_assert_eq(c[i].user_data, (uint64_t)seen);
                        cr_assert_eq(c[i].id, ids[seen]);
                }
        }
        cr_assert_eq(starling_submit_many(w.queue, requests + 64, 36, ids), 6);
        cr_assert_eq(starling_submit_many(w.queue, requests + 70, 30, ids), -EINVAL);
        world_leave(&w);
}

Test(request, the_depth_bounds_what_is_accepted_and_not_reaped)
{
        struct world w;
        struct starling_completion c[64];
        struct starling_request request = noop(0);

        world_enter(&w);
        submit_noops(&w, 64, 0);
        cr_assert_eq(starling_submit(w.queue, &request, NULL), -EAGAIN);
        cr_assert_not_null(strstr(starling_queue_error(w.queue), "all 64 requests"));
        cr_assert_eq(starling_submit_many(w.queue, &request, 1, NULL), -EAGAIN);
        eventually(starling_poll(w.queue, c, 1) == 1);
        cr_assert_eq(starling_submit(w.queue, &request, NULL), 0);
        world_leave(&w);
}

/* The runtime announces what it likes: the client looks at no more outputs than it gave. */
Test(request, a_completion_has_no_more_outputs_than_its_request)
{
        struct world w;
        struct echo e;
        struct starling_completion c;

        world_place(&w);
        w.fake.outputs_too_many = 1000;
        world_start(&w);
        world_join(&w);
        echo_prepare(&w, 3, &e);
        for (int i = 0; i < 70; i++) { /* each tag has its turn, the last one beside what is not its own */
                cr_assert_eq(starling_infer(w.queue, &e.request, &c), 0, "%s", starling_queue_error(w.queue));
                cr_assert_eq(c.n_outputs, 1);
                cr_assert_eq(c.outputs[0].dims[0], 3);
        }
        world_leave(&w);
}

Test(request, infer_copies_samples_through_the_arena)
{
        struct world w;
        struct echo e;
        struct starling_completion c;

        world_enter(&w);
        echo_prepare(&w, 300, &e);
        cr_assert_eq(starling_infer(w.queue, &e.request, &c), 0, "%s", starling_queue_error(w.queue));
        cr_assert_arr_eq(e.output.data, e.input.data, 300 * 4 * sizeof(float));
        cr_assert_eq(c.n_outputs, 1);
        cr_assert_eq(c.outputs[0].rank, 2);
        cr_assert_eq(c.outputs[0].dims[0], 300);
        cr_assert_eq(c.outputs[0].dtype, STARLING_F32);
        cr_assert_eq(c.outputs[0].bytes, 300 * 4 * sizeof(float));
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), 0);
        world_leave(&w);
}

Test(request, a_buffer_with_more_room_than_the_shape_takes_will_do)
{
        struct world w;
        struct echo e;

        world_enter(&w);
        echo_prepare(&w, 300, &e);
        e.input.dims[0] = 7;
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), 0);
        cr_assert_eq(((float *)e.output.data)[27], 27);
        cr_assert_eq(((float *)e.output.data)[28], -1);
        e.input.data = (char *)e.input.data + 64 * 2;
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), 0);
        cr_assert_eq(((float *)e.output.data)[0], 32);
        world_leave(&w);
}

Test(request, several_inputs_and_outputs_keep_their_places)
{
        struct world w;
        struct starling_model *model;
        struct starling_tensor in[2], out[2];
        struct starling_completion c;

        world_enter(&w);
        cr_assert_eq(starling_model_open(w.client, "pair", &model, NULL), 0);
        for (int i = 0; i < 2; i++) {
                uint32_t dims[] = {5, i ? 3 : 2};

                cr_assert_eq(starling_tensor_alloc(w.client, i ? STARLING_I64 : STARLING_F32, 2, dims, &in[i]), 0);
                cr_assert_eq(starling_tensor_alloc(w.client, i ? STARLING_I64 : STARLING_F32, 2, dims, &out[i]), 0);
                memset(in[i].data, 3 + i, in[i].bytes);
        }

        struct starling_request request = {.model = model, .inputs = in, .n_inputs = 2, .outputs = out, .n_outputs = 2};

        cr_assert_eq(starling_infer(w.queue, &request, &c), 0, "%s", starling_queue_error(w.queue));
        cr_assert_arr_eq(in[0].data, out[0].data, in[0].bytes);
        cr_assert_arr_eq(in[1].data, out[1].data, in[1].bytes);
        cr_assert_eq(c.n_outputs, 2);
        cr_assert_eq(c.outputs[1].dtype, STARLING_I64);
        in[1].dims[0] = 4;
        expect_refused(&w, &request, EINVAL, "input \"ids\": has 4 samples, the inputs before it 5");
        world_leave(&w);
}

Test(request, an_output_that_is_too_small_says_what_it_needs)
{
        struct world w;
        struct echo e;
        struct starling_completion c;

        world_enter(&w);
        echo_prepare(&w, 10, &e);
        e.output.bytes = 64;
        cr_assert_eq(starling_infer(w.queue, &e.request, &c), -EMSGSIZE);
        cr_assert_eq(c.bytes_needed, 160);
        cr_assert_eq(c.n_outputs, 0);
        world_leave(&w);
}

Test(request, an_output_may_be_smaller_than_its_buffer)
{
        struct world w;
        struct starling_model *model;
        struct starling_tensor in, out;
        struct starling_completion c;

        world_enter(&w);
        cr_assert_eq(starling_model_open(w.client, "first3", &model, NULL), 0);
        cr_assert_eq(starling_tensor_alloc(w.client, STARLING_F32, 2, (uint32_t[]){9, 2}, &in), 0);
        cr_assert_eq(starling_tensor_alloc(w.client, STARLING_F32, 2, (uint32_t[]){9, 2}, &out), 0);

        struct starling_request request = {.model = model, .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 1};

        cr_assert_eq(starling_infer(w.queue, &request, &c), 0, "%s", starling_queue_error(w.queue));
        cr_assert_eq(c.outputs[0].dims[0], 3);
        cr_assert_eq(c.outputs[0].dims[1], 2);
        cr_assert_eq(c.outputs[0].bytes, 24);
        world_leave(&w);
}

Test(request, a_model_that_fails_completes_with_its_status)
{
        struct world w;
        struct starling_model *model;
        struct starling_tensor t;

        world_enter(&w);
        cr_assert_eq(starling_model_open(w.client, "broken", &model, NULL), 0);
        cr_assert_eq(starling_tensor_alloc(w.client, STARLING_F32, 2, (uint32_t[]){1, 1}, &t), 0);

        struct starling_request request = {.model = model, .inputs = &t, .n_inputs = 1, .outputs = &t, .n_outputs = 1};

        cr_assert_eq(starling_infer(w.queue, &request, NULL), -EIO);
        world_leave(&w);
}

Test(request, mistakes_are_refused_with_model_tensor_value_and_limit)
{
        struct world w;
        struct echo e;
        struct starling_request bad;
        struct starling_tensor tensor;

        world_enter(&w);
        echo_prepare(&w, 10, &e);
        bad = e.request;
        bad.flags = 6;
        expect_refused(&w, &bad, EINVAL, "flags 0x6");
        bad = e.request;
        bad.priority = 5;
        expect_refused(&w, &bad, EINVAL, "priority 5 is above 4");
        bad = e.request;
        bad.model = NULL;
        expect_refused(&w, &bad, EINVAL, "names no model");
        bad = e.request;
        bad.n_inputs = 2;
        expect_refused(&w, &bad, EINVAL, "model \"echo\": wants 1 inputs, got 2");
        bad = e.request;
        bad.inputs = NULL;
        expect_refused(&w, &bad, EINVAL, "wants 1 inputs, got 0");
        bad = e.request;
        bad.n_outputs = 0;
        expect_refused(&w, &bad, EINVAL, "wants 1 outputs, got 0");

        bad = e.request;
        bad.inputs = &tensor;
        tensor = e.input;
        tensor.dims[1] = 5;
        expect_refused(&w, &bad, EINVAL, "model \"echo\": input \"x\": wants float32 [N,4], got float32 [10,5]");
        tensor = e.input;
        tensor.rank = 1;
        expect_refused(&w, &bad, EINVAL, "got float32 [10]");
        tensor.rank = 9;
        expect_refused(&w, &bad, EINVAL, "a rank of 9 exceeds 8");
        tensor = e.input;
        tensor.dtype = STARLING_F64;
        expect_refused(&w, &bad, EINVAL, "got float64 [10,4]");
        tensor = e.input;
        tensor.dims[1] = 0;
        expect_refused(&w, &bad, EINVAL, "got float32 [10,0]");
        tensor.dims[1] = 4;
        tensor.dims[0] = UINT32_MAX;
        expect_refused(&w, &bad, EINVAL, "wants float32 [N,4]");
        tensor.dims[0] = 1u + INT32_MAX;
        expect_refused(&w, &bad, EINVAL, "wants float32 [N,4]");
        tensor.dims[0] = INT32_MAX;
        expect_refused(&w, &bad, EINVAL, "its shape takes 34359738352 bytes, its buffer has 160");
        tensor.dims[0] = 1025;
        tensor.bytes = 1 << 20;
        expect_refused(&w, &bad, EINVAL, "1025 samples exceed the 1024 of one request");
        tensor = e.input;
        tensor.bytes = 159;
        expect_refused(&w, &bad, EINVAL, "its shape takes 160 bytes, its buffer has 159");
        tensor = e.input;
        tensor.data = (char *)tensor.data + 4;
        expect_refused(&w, &bad, EINVAL, "not aligned to 64 bytes");

        bad = e.request;
        bad.outputs = &tensor;
        tensor = e.output;
        tensor.dtype = STARLING_I32;
        expect_refused(&w, &bad, EINVAL, "model \"echo\": output \"y\": is float32, got int32");
        tensor = e.output;
        tensor.bytes = 0;
        expect_refused(&w, &bad, EINVAL, "has no bytes");
        tensor.bytes = UINT64_MAX;
        expect_refused(&w, &bad, EINVAL, "do not lie in the arena");
        cr_assert_eq(starling_infer(w.queue, &bad, NULL), -EINVAL);
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), 0);
        world_leave(&w);
}

Test(request, memory_outside_the_arena_is_refused)
{
        struct world w;
        struct echo e;
        _Alignas(64) static float elsewhere[64];

        world_enter(&w);
        echo_prepare(&w, 10, &e);
        for (size_t shift = 0; shift < 2; shift++)
                for (e.input.bytes = 0; e.input.bytes <= 160; e.input.bytes += 160) {
                        char text[160];

                        e.input.data = elsewhere + shift;
                        snprintf(text, sizeof(text),
                                "model \"echo\": input \"x\": its data at %p is not in the arena of this client: starling_alloc() "
                                "gives memory there",
                                e.input.data);
                        expect_refused(&w, &e.request, EINVAL, text);
                }
        e.input.data = NULL;
        expect_refused(&w, &e.request, EINVAL, "is not in the arena of this client");
        world_leave(&w);
}

Test(request, an_output_outside_the_arena_is_refused_by_its_name)
{
        struct world w;
        struct echo e;
        static float elsewhere[64];

        world_enter(&w);
        echo_prepare(&w, 10, &e);
        e.output.data = elsewhere;
        expect_refused(&w, &e.request, EINVAL, "model \"echo\": output \"y\": its data at ");
        e.output.bytes = 0;
        expect_refused(&w, &e.request, EINVAL, "is not in the arena of this client: starling_alloc()");
        world_leave(&w);
}

Test(request, a_model_of_another_client_is_refused)
{
        struct world w;
        struct echo e;
        struct starling_client *other;

        world_enter(&w);
        echo_prepare(&w, 1, &e);
        cr_assert_eq(starling_connect(&w.options, &other, NULL), 0);
        cr_assert_eq(starling_model_open(other, "echo", &e.request.model, NULL), 0);
        expect_refused(&w, &e.request, EINVAL, "opened by another client");
        starling_close(other);
        world_leave(&w);
}

/* A queue pair has two of them in flight at a time, beside all others. */
Test(request, more_tensors_than_the_connection_has_room_for_are_carried_two_at_a_time)
{
        struct world w;
        struct starling_model *model;
        struct starling_tensor in[3][2], out[3][2];
        struct starling_completion c;
        uint64_t ids[3];

        world_place(&w);
        w.options.tensors_per_request = 3;
        world_start(&w);
        world_join(&w);
        cr_assert_eq(starling_model_open(w.client, "pair", &model, NULL), 0);
        for (int r = 0; r < 3; r++) {
                for (int i = 0; i < 2; i++) {
                        uint32_t dims[] = {5, i ? 3 : 2};

                        cr_assert_eq(starling_tensor_alloc(w.client, i ? STARLING_I64 : STARLING_F32, 2, dims, &in[r][i]), 0);
                        cr_assert_eq(starling_tensor_alloc(w.client, i ? STARLING_I64 : STARLING_F32, 2, dims, &out[r][i]), 0);
                        memset(in[r][i].data, 1 + 2 * r + i, in[r][i].bytes);
                }
        }

        fake_runtime_hold(w.runtime, true);
        for (int r = 0; r < 3; r++) {
                struct starling_request request = {
                        .model = model, .inputs = in[r], .n_inputs = 2, .outputs = out[r], .n_outputs = 2};
                struct starling_request small = noop(9);

                if (r == 2) {
                        cr_assert_eq(starling_submit(w.queue, &request, NULL), -EAGAIN);
                        cr_assert_not_null(
                                strstr(starling_queue_error(w.queue), "at most 2 requests of more than 3 tensors in flight"));
                        cr_assert_eq(starling_submit(w.queue, &small, NULL), 0, "others have room");
                        fake_runtime_hold(w.runtime, false);
                        for (int n = 0; n < 3; n++)
                                cr_assert_eq(starling_wait(w.queue, &c, 1, STARLING_FOREVER), 1);
                }
                cr_assert_eq(starling_submit(w.queue, &request, &ids[r]), 0, "%s", starling_queue_error(w.queue));
        }
        cr_assert_eq(starling_wait(w.queue, &c, 1, STARLING_FOREVER), 1);
        cr_assert_eq(c.id, ids[2]);
        cr_assert_eq(c.status, 0);
        cr_assert_eq(c.n_outputs, 2);
        cr_assert_eq(c.outputs[1].dtype, STARLING_I64);
        for (int r = 0; r < 3; r++)
                for (int i = 0; i < 2; i++)
                        cr_assert_arr_eq(in[r][i].data, out[r][i].data, in[r][i].bytes);
        world_leave(&w);
}

Test(request, a_cancelled_one_still_gets_its_one_completion)
{
        struct world w;
        struct starling_completion c[4];
        struct starling_request request = noop(0);
        uint64_t ids[3];

        world_enter(&w);
        fake_runtime_hold(w.runtime, true);
        for (int i = 0; i < 3; i++)
                cr_assert_eq(starling_submit(w.queue, &request, &ids[i]), 0);
        eventually(fake_runtime_held(w.runtime) == 3);
        cr_assert_eq(starling_cancel(w.queue, ids[1]), 0);
        cr_assert_eq(starling_wait(w.queue, c, 4, STARLING_FOREVER), 1);
        cr_assert_eq(c[0].id, ids[1]);
        cr_assert_eq(c[0].status, -ECANCELED);
        cr_assert_eq(starling_cancel(w.queue, ids[1]), -ENOENT);
        cr_assert_eq(starling_cancel(w.queue, 0), -ENOENT);
        cr_assert_eq(starling_cancel(w.queue, UINT64_MAX), -ENOENT);
        fake_runtime_hold(w.runtime, false);
        for (int seen = 0; seen < 2;) {
                int n = starling_wait(w.queue, c, 4, STARLING_FOREVER);

                cr_assert_gt(n, 0);
                for (int i = 0; i < n; i++)
                        cr_assert_eq(c[i].status, 0);
                seen += n;
        }
        cr_assert_eq(starling_wait(w.queue, c, 4, STARLING_FOREVER), -ENODATA);
        world_leave(&w);
}

Test(request, a_cancel_does_not_hit_the_next_request_of_the_same_tag)
{
        struct world w;
        struct starling_completion c;
        struct starling_request request = noop(0);
        uint64_t id, next;

        world_enter(&w);
        fake_runtime_hold(w.runtime, true);
        cr_assert_eq(starling_submit(w.queue, &request, &id), 0);
        cr_assert_eq(starling_cancel(w.queue, id), 0);
        cr_assert_eq(starling_wait(w.queue, &c, 1, STARLING_FOREVER), 1);
        cr_assert_eq(starling_submit(w.queue, &request, &next), 0);
        cr_assert_neq(id, next);
        cr_assert_eq(starling_cancel(w.queue, id), -ENOENT);
        eventually(fake_runtime_held(w.runtime) == 1);
        cr_assert_eq(starling_wait(w.queue, &c, 1, SECOND_NS / 100), -ETIMEDOUT);
        world_leave(&w);
}

/* Submission indices run freely: a word that stays would hit the request that has this index after 2^32 others. */
Test(request, a_cancel_is_forgotten_when_its_tag_is_used_again)
{
        struct world w;
        struct starling_completion c;
        struct echo e;
        uint64_t id;

        world_enter(&w);
        echo_prepare(&w, 1, &e);
        fake_runtime_hold(w.runtime, true);
        cr_assert_eq(starling_submit(w.queue, &e.request, &id), 0);
        cr_assert_eq(starling_cancel(w.queue, id), 0);
        cr_assert_eq(starling_wait(w.queue, &c, 1, STARLING_FOREVER), 1);
        cr_assert_eq(starling_submit(w.queue, &e.request, NULL), 0);
        eventually(fake_runtime_held(w.runtime) == 1);
        cr_expect_eq(fake_runtime_named(w.runtime), 0);
        world_leave(&w);
}

Test(request, deadlines_travel)
{
        struct world w;
        struct echo e;

        world_enter(&w);
        echo_prepare(&w, 1, &e);
        fake_runtime_hold(w.runtime, true);
        e.request.deadline_ns = starling_clock_ns() + SECOND_NS / 100;
        cr_assert_eq(starling_infer(w.queue, &e.request, NULL), -ETIME);
        world_leave(&w);
}

/* Listed and empty, or not listed; what is listed is looked at. */
Test(request, an_optional_input_may_be_left_out)
{
        struct world w;
        struct echo e;
        struct starling_tensor inputs[2] = {0};

        world_place(&w);
        w.fake.echo_optional = true;
        world_start(&w);
        world_join(&w);
        echo_prepare(&w, 10, &e);
        const struct starling_model_info *info = starling_model_describe(e.request.model);

        cr_assert_eq(info->n_inputs, 2);
        cr_expect(!info->inputs[0].optional && info->inputs[1].optional && !info->outputs[0].optional);
        cr_expect_eq(starling_infer(w.queue, &e.request, NULL), 0);
        inputs[0] = e.input;
        e.request.inputs = inputs;
        e.request.n_inputs = 2;
        cr_expect_eq(starling_infer(w.queue, &e.request, NULL), 0);
        inputs[1] = e.input;
        expect_refused(&w, &e.request, EINVAL, "input \"ids\": wants int64 [3], got float32 [10,4]");
        e.request.n_inputs = 0;
        expect_refused(&w, &e.request, EINVAL, "model \"echo\": wants 1 to 2 inputs, got 0");
        e.request.n_inputs = 3;
        expect_refused(&w, &e.request, EINVAL, "model \"echo\": wants 1 to 2 inputs, got 3");
        memset(&inputs[0], 0, sizeof(inputs[0]));
        e.request.n_inputs = 1;
        expect_refused(&w, &e.request, EINVAL, "input \"x\": wants float32 [N,4]");
        world_leave(&w);
}
