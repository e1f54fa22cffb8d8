/* SPDX-License-Identifier: Apache-2.0 */
/* A client learns from the completion why the runtime refused its request, or why the model failed: the thing, the value and the
 * limit. */
#include "builder.h"
#include "world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define ROWS  5
#define WIDE  3
#define FLOAT 1
#define INT64 7
#define BOOL  9

static struct world world;
static struct starling_client *client;
static struct starling_queue *queue;

static void add(const char *name, struct builder *b)
{
        size_t bytes;
        const uint8_t *file = builder_pack(b, &bytes);

        world_add_model(&world, name, file, bytes);
        builder_free(b);
}

static void add_gather(void)
{
        struct builder *b = builder_new(16);

        builder_random(b, "table", DIMS(ROWS, WIDE));
        builder_input(b, "index", INT64, DIMS(2));
        builder_node(b, "Gather", "table,index", "row");
        builder_output(b, "row");
        add("gather", b);
}

static void add_nonzero_as(const char *name)
{
        struct builder *b = builder_new(16);

        builder_input(b, "x", FLOAT, DIMS(8));
        builder_node(b, "NonZero", "x", "places");
        builder_output(b, "places");
        add(name, b);
}

/* Zeros of which size? */
static void add_fake_nonzero(void)
{
        add_nonzero_as("guess");
        world_add_model_config(&world, "guess", "predictions: fake\n");
}

/* Only multiples of 4 suit the product. */
static void add_product(void)
{
        struct builder *b = builder_new(16);

        builder_input(b, "x", FLOAT, DIMS(1, -2));
        builder_ints(b, "shape", DIMS(2), (int64_t[]){-1, 4});
        builder_random(b, "w", DIMS(4, 2));
        builder_node(b, "Reshape", "x,shape", "rows");
        builder_node(b, "MatMul", "rows,w", "y");
        builder_declare_output(b, "y", FLOAT, DIMS(-3, 2));
        add("product", b);
}

/* Rows of 77 times 3, which no load tries; behind them stands what is not supported. */
static void add_training(void)
{
        struct builder *b = builder_new(16);

        builder_input(b, "x", FLOAT, DIMS(2, -2, 3));
        builder_ints(b, "shape", DIMS(2), (int64_t[]){-1, 231});
        builder_raw(b, "ratio", FLOAT, DIMS(), &(float){0.5f});
        builder_raw(b, "training", BOOL, DIMS(), &(bool){true});
        builder_node(b, "Reshape", "x,shape", "rows");
        builder_node(b, "Dropout", "rows,ratio,training", "y");
        builder_declare_output(b, "y", FLOAT, DIMS(2, 231));
        add("training", b);
}

#define ENDLESS "dynamic_steps_max: 4000000000\nwork_max: 1e18\n"

/* A Loop without an end. */
static void add_loop(void)
{
        struct builder *b = builder_new(16), *body = builder_new(16);
        Onnx__NodeProto *node;

        builder_input(body, "i", INT64, DIMS());
        builder_input(body, "go", BOOL, DIMS());
        builder_input(body, "v", FLOAT, DIMS(WIDE));
        builder_node(body, "Add", "v,x", "w");
        builder_node(body, "Identity", "go", "goes_on");
        builder_output(body, "goes_on");
        builder_output(body, "w");
        builder_input(b, "x", FLOAT, DIMS(WIDE));
        node = builder_node(b, "Loop", ",,x", "y");
        builder_attr_graph(b, node, "body", body);
        builder_output(b, "y");
        add("loop", b);
        builder_free(body);
        world_add_model_config(&world, "loop", ENDLESS);
}

static void set_up(void)
{
        world_init(&world);
        world_keep(&world, "");
        add_gather();
        add_nonzero_as("nonzero");
        add_fake_nonzero();
        add_product();
        add_training();
        add_loop();
}

static void start(void)
{
        world_start(&world);
        client = world_connect(&world, STARLING_ROLE_CLIENT);
        cr_assert_eq(starling_queue_open(client, &queue, NULL), 0);
}

static void tear_down(void)
{
        starling_close(client);
        world_stop(&world);
        world_free(&world);
}

TestSuite(reasons, .init = set_up, .fini = tear_down, .timeout = 60);

static struct starling_tensor tensor(uint32_t dtype, uint32_t rank, const uint32_t *dims)
{
        struct starling_tensor result;

        cr_assert_eq(starling_tensor_alloc(client, dtype, rank, dims, &result), 0);
        return result;
}

static struct starling_request request_of(const char *name, struct starling_tensor *input, struct starling_tensor *output)
{
        struct starling_request request = {.inputs = input, .n_inputs = 1, .outputs = output, .n_outputs = 1};
        struct starling_error error;

        cr_assert_eq(starling_model_open(client, name, (struct starling_model **)&request.model, &error), 0, "%s", error.text);
        return request;
}

static void expect_text(const char *text, const char *part)
{
        cr_expect(text && strstr(text, part), "\"%s\" is not in \"%s\"", part, text ? text : "(none)");
}

static void expect_reason(const struct starling_completion *done, const char *part)
{
        char text[STARLING_TEXT_BYTES];

        expect_text(starling_reason_text(done, text, sizeof(text)), part);
}

Test(reasons, an_index_out_of_range_names_the_node)
{
        start();
        struct starling_tensor index = tensor(STARLING_I64, 1, (uint32_t[]){2}),
                               row = tensor(STARLING_F32, 2, (uint32_t[]){2, WIDE});
        struct starling_request request = request_of("gather", &index, &row);
        struct starling_completion done;

        memcpy(index.data, (int64_t[]){1, ROWS}, 2 * sizeof(int64_t));
        cr_assert_eq(starling_infer(queue, &request, &done), -ERANGE);
        expect_reason(&done, "node \"row\" (Gather): an index in an input is out of range");
        expect_text(starling_queue_error(queue), "model \"gather\": node \"row\"");
        memcpy(index.data, (int64_t[]){1, ROWS - 1}, 2 * sizeof(int64_t));
        cr_assert_eq(starling_infer(queue, &request, &done), 0);
        cr_expect_eq(done.reason.code, 0);
}

Test(reasons, room_that_is_too_small_says_which_output_and_how_much)
{
        start();
        struct starling_tensor x = tensor(STARLING_F32, 1, (uint32_t[]){8}), places = tensor(STARLING_I64, 2, (uint32_t[]){1, 2});
        struct starling_request request = request_of("nonzero", &x, &places);
        struct starling_completion done;

        for (int i = 0; i < 8; i++)
                ((float *)x.data)[i] = (float)i;
        cr_assert_eq(starling_infer(queue, &request, &done), -EMSGSIZE);
        cr_expect_eq(done.bytes_needed, 7 * sizeof(int64_t));
        expect_reason(&done, "output");
        expect_reason(&done, "56");
}

Test(reasons, sizes_that_the_model_cannot_have_say_at_which_node)
{
        start();
        struct starling_tensor x = tensor(STARLING_F32, 2, (uint32_t[]){1, 5}), y = tensor(STARLING_F32, 2, (uint32_t[]){1, 2});
        struct starling_request request = request_of("product", &x, &y);
        struct starling_completion done;

        memset(x.data, 0, x.rank * sizeof(float));
        for (int i = 0; i < 2; i++) { /* once while it is compiled, and once when it is known */
                cr_assert_eq(starling_infer(queue, &request, &done), -EINVAL);
                expect_reason(&done, "rows");
        }
}

/* Whose fault it is that these sizes are not served. */
Test(reasons, sizes_that_suit_a_model_which_cannot_be_compiled_are_no_fault_of_the_request)
{
        start();
        struct starling_tensor wrong = tensor(STARLING_F32, 3, (uint32_t[]){2, 5, 3}),
                               right = tensor(STARLING_F32, 3, (uint32_t[]){2, 77, 3}),
                               y = tensor(STARLING_F32, 2, (uint32_t[]){2, 231});
        struct starling_request request = request_of("training", &wrong, &y);
        struct starling_completion done;

        for (int i = 0; i < 2; i++) { /* once while it is compiled, and once when it is known */
                request.inputs = &wrong;
                cr_assert_eq(starling_infer(queue, &request, &done), -EINVAL);
                expect_reason(&done, "rows");
                request.inputs = &right;
                cr_assert_eq(starling_infer(queue, &request, &done), -EIO);
                expect_reason(&done, "node \"y\": operator Dropout of domain ai.onnx, opset 16: training mode is not supported");
        }
}

Test(reasons, a_model_that_cannot_be_served_says_why_when_it_is_opened)
{
        struct starling_error error = {""};
        struct starling_model *model;

        world_add_model(&world, "broken", "no ONNX", 7);
        world_add_model_config(&world, "gather", "instances: many\n");
        start();
        cr_expect_eq(starling_model_open(client, "broken", &model, &error), -EIO);
        expect_text(error.text, "model \"broken\" cannot be served: ");
        expect_text(error.text, "not an ONNX file");
        cr_expect_eq(starling_model_open(client, "gather", &model, &error), -EIO);
        expect_text(error.text, "gather/config.yaml:1: instances: ");
        cr_expect_eq(starling_model_open(client, "guess", &model, &error), -EIO);
        expect_text(error.text, "predictions: fake: output \"places\" says only afterwards how large it is");
        world_add_model_config(&world, "gather", "instances: 1\n");
        struct starling_client *admin = world_connect(&world, STARLING_ROLE_ADMIN);
        cr_expect_eq(starling_admin_load(admin, "gather", &error), 0, "%s", error.text);
        starling_close(admin);
        cr_expect_eq(starling_model_open(client, "gather", &model, &error), 0, "%s", error.text);
}

Test(reasons, a_full_queue_says_how_long_it_is)
{
        struct starling_completion done[8];
        uint32_t refused = 0;

        world_add_model_config(&world, "loop", ENDLESS "queue_requests: 2\n");
        start();
        struct starling_tensor x = tensor(STARLING_F32, 1, (uint32_t[]){WIDE}), y = tensor(STARLING_F32, 1, (uint32_t[]){WIDE});
        struct starling_request request = request_of("loop", &x, &y);

        memset(x.data, 0, WIDE * sizeof(float));
        for (int i = 0; i < 4; i++)
                cr_assert_eq(starling_submit(queue, &request, NULL), 0);
        while (refused < 2) {
                int n = starling_wait(queue, done, 8, STARLING_FOREVER);

                cr_assert_gt(n, 0);
                for (int i = 0; i < n; i++) {
                        cr_assert_eq(done[i].status, -EBUSY, "%s", starling_strerror(done[i].status));
                        expect_reason(&done[i], "2 requests of the model are not completed yet, its queue_requests is 2");
                        refused++;
                }
        }
        queue = starling_queue_close(queue);
}

Test(reasons, a_quota_says_what_it_is)
{
        struct starling_completion done;

        world_configure(&world, "limits: {client: {in_flight: 1}}\n");
        start();
        struct starling_tensor x = tensor(STARLING_F32, 1, (uint32_t[]){WIDE}), y = tensor(STARLING_F32, 1, (uint32_t[]){WIDE});
        struct starling_request request = request_of("loop", &x, &y);

        memset(x.data, 0, WIDE * sizeof(float));
        cr_assert_eq(starling_submit(queue, &request, NULL), 0);
        cr_assert_eq(starling_infer(queue, &request, &done), -EDQUOT);
        expect_reason(&done, "1 requests of this client are in flight, limits.client.in_flight is 1");
        queue = starling_queue_close(queue);
}

Test(reasons, a_deadline_that_passed_says_how_long_it_was)
{
        struct starling_completion done = {0};
        char text[STARLING_TEXT_BYTES];

        start();
        struct starling_tensor x = tensor(STARLING_F32, 1, (uint32_t[]){WIDE}), y = tensor(STARLING_F32, 1, (uint32_t[]){WIDE});
        struct starling_request request = request_of("loop", &x, &y);

        memset(x.data, 0, WIDE * sizeof(float));
        /* A runtime that gets no core until then has another reason. */
        for (uint64_t after_ns = 1000000000; after_ns < WORLD_PATIENCE_NS; after_ns *= 2) {
                request.deadline_ns = starling_clock_ns() + after_ns;
                cr_assert_eq(starling_infer(queue, &request, &done), -ETIME);
                if (strstr(starling_reason_text(&done, text, sizeof(text)), "the deadline, "))
                        break;
        }
        expect_reason(&done, "the deadline, ");
}

Test(reasons, a_cancellation_is_the_clients_own)
{
        struct starling_completion done;
        uint64_t id;

        start();
        struct starling_tensor x = tensor(STARLING_F32, 1, (uint32_t[]){WIDE}), y = tensor(STARLING_F32, 1, (uint32_t[]){WIDE});
        struct starling_request request = request_of("loop", &x, &y);

        memset(x.data, 0, WIDE * sizeof(float));
        cr_assert_eq(starling_submit(queue, &request, &id), 0);
        cr_assert_eq(starling_cancel(queue, id), 0);
        cr_assert_eq(starling_wait(queue, &done, 1, STARLING_FOREVER), 1);
        cr_expect_eq(done.status, -ECANCELED);
        expect_reason(&done, "cancelled by its client");
}

/* More of them than a table that grows with failures could hold by chance: each has its own words. */
Test(reasons, each_of_many_completions_has_its_own)
{
        struct starling_completion done[16];
        struct starling_tensor index[16], row[16];
        uint32_t n = 0;

        start();
        for (int i = 0; i < 16; i++) {
                index[i] = tensor(STARLING_I64, 1, (uint32_t[]){2});
                row[i] = tensor(STARLING_F32, 2, (uint32_t[]){2, WIDE});
                struct starling_request request = request_of("gather", &index[i], &row[i]);

                request.user_data = (uint64_t)i;
                memcpy(index[i].data, (int64_t[]){0, i % 2 ? ROWS : 0}, 2 * sizeof(int64_t));
                cr_assert_eq(starling_submit(queue, &request, NULL), 0);
        }
        while (n < 16) {
                int got = starling_wait(queue, done, 16, STARLING_FOREVER);

                cr_assert_gt(got, 0);
                n += (uint32_t)got;
                for (int i = 0; i < got; i++) {
                        cr_expect_eq(done[i].status, done[i].user_data % 2 ? -ERANGE : 0);
                        cr_expect_eq(done[i].reason.code != 0, done[i].status < 0);
                        if (done[i].status < 0)
                                expect_reason(&done[i], "(Gather)");
                }
        }
}
