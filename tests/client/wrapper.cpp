/* SPDX-License-Identifier: Apache-2.0 */
// starling.hpp against the fake runtime, which is a process of its own: $STARLING_FAKE_RUNTIME SOCKET.
#include "starling.hpp"

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                                                           \
        do {                                                                                                                       \
                if (!(condition)) {                                                                                                \
                        std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                             \
                        std::exit(1);                                                                                              \
                }                                                                                                                  \
        } while (0)

static_assert(!std::is_copy_constructible_v<starling::tensor<float>> && !std::is_copy_constructible_v<starling::queue> &&
              !std::is_copy_constructible_v<starling::model>);
static_assert(std::is_nothrow_move_constructible_v<starling::tensor<float>> && std::is_nothrow_move_assignable_v<starling::queue>);
static_assert(starling::dtype_of<std::int64_t>() == STARLING_I64 && starling::dtype_of<bool>() == STARLING_BOOL &&
              starling::dtype_of<std::uint8_t>() == STARLING_U8 && starling::dtype_of<starling::bfloat16>() == STARLING_BF16);

namespace
{

struct fake {
        std::string folder = "/tmp/starling-cpp-XXXXXX", socket;
        pid_t pid = -1;

        fake()
        {
                CHECK(mkdtemp(folder.data()));
                socket = folder + "/s.sock";
                start();
        }
        void start()
        {
                int fds[2];
                char line[6];

                CHECK(pipe(fds) == 0);
                pid = fork();
                if (pid == 0) {
                        const char *program = std::getenv("STARLING_FAKE_RUNTIME");

                        dup2(fds[1], STDOUT_FILENO);
                        execl(program, program, socket.c_str(), nullptr);
                        _exit(127);
                }
                close(fds[1]);
                CHECK(read(fds[0], line, 6) == 6); /* "ready" */
                close(fds[0]);
        }
        void stop()
        {
                kill(pid, SIGKILL);
                waitpid(pid, nullptr, 0);
        }
        ~fake()
        {
                stop();
                unlink(socket.c_str());
                rmdir(folder.c_str());
        }
        starling::client connect() const
        {
                starling_options options = {};

                options.runtime = socket.c_str();
                options.queue_pairs = 2;
                options.queue_depth = 2;
                options.timeout_ns = 120000000000;
                return starling::client(options);
        }
};

template <typename Call> int status_of(Call call)
{
        try {
                call();
        } catch (const starling::error &error) {
                CHECK(std::strlen(error.what()) > 0);
                return error.status();
        }
        return 0;
}

void a_request_is_answered_in_the_span_of_its_output(const starling::client &client)
{
        const starling::model echo = client.open("echo");
        starling::queue queue = client.open_queue();
        const auto input = client.tensor<float>({3, 4}), output = client.tensor<float>({3, 4});

        CHECK(echo.inputs().size() == 1 && echo.outputs()[0].dtype == STARLING_F32);
        CHECK(input.size() == 12 && input.dims().size() == 2 && input.dims()[0] == 3);
        std::iota(input.begin(), input.end(), 1.0f);
        const starling_completion done = queue.infer(echo, {input}, {output}, {.user_data = 7});
        CHECK(done.user_data == 7 && done.n_outputs == 1 && done.outputs[0].dims[0] == 3);
        CHECK(std::ranges::equal(input, output) && output.values()[11] == 12);
}

void a_part_of_a_tensor_is_a_smaller_request(const starling::client &client)
{
        const starling::model echo = client.open("echo");
        starling::queue queue = client.open_queue();
        const auto input = client.tensor<float>({3, 4}), output = client.tensor<float>({3, 4});

        std::ranges::fill(input, 2.0f);
        std::ranges::fill(output, 0.0f);
        CHECK(queue.infer(echo, {input.rows(2)}, {output.rows(2)}).outputs[0].dims[0] == 2);
        CHECK(output[7] == 2 && output[8] == 0);
        CHECK(status_of([&] { input.rows(4); }) == -EINVAL);
}

void several_tensors_of_several_types_go_in_order(const starling::client &client)
{
        const starling::model pair = client.open("pair");
        starling::queue queue = client.open_queue();
        const auto a = client.tensor<float>({1, 2}), c = client.tensor<float>({1, 2});
        const auto b = client.tensor<std::int64_t>({1, 3}), d = client.tensor<std::int64_t>({1, 3});

        std::ranges::fill(a, 1.5f);
        std::iota(b.begin(), b.end(), 1ll << 40);
        queue.infer(pair, {a, b}, {c, d});
        CHECK(c[1] == 1.5f && d[2] == (1ll << 40) + 2);
}

void requests_that_are_submitted_come_out_of_wait(const starling::client &client)
{
        const starling::model echo = client.open("echo");
        starling::queue queue = client.open_queue();
        const auto input = client.tensor<float>({1, 4}), output = client.tensor<float>({1, 4}),
                   other = client.tensor<float>({1, 4});
        starling_completion room[4];
        std::size_t n = 0;

        CHECK(queue.wait(room).empty()); /* nothing is in flight */
        CHECK(queue.submit(echo, {input}, {output}, {.deadline_ns = starling::within(std::chrono::minutes(1))}));
        CHECK(queue.submit(echo, {input}, {other}));
        CHECK(!queue.submit(echo, {input}, {other})); /* two places */
        while (n < 2)
                for (const starling_completion &completion : queue.wait(room, std::chrono::seconds(10))) {
                        CHECK(completion.status == 0);
                        n++;
                }
        CHECK(queue.in_flight() == 0 && queue.poll(room).empty() && !queue.cancel(1));
}

void a_task_is_used_as_a_model_and_tells_its_variant(const starling::client &client)
{
        starling_query needs = {};

        needs.accuracy = 0.5;
        const starling::model either = client.query("either", needs), echo = client.open("echo");
        starling::queue queue = client.open_queue();
        const auto input = client.tensor<float>({3, 4}), output = client.tensor<float>({3, 4});
        std::array<starling_completion, 2> room;

        CHECK(std::strcmp(either.info().name, "either") == 0);
        CHECK(queue.submit(either, {input}, {output}).has_value());
        auto done = queue.wait(room);
        CHECK(done.size() == 1 && done[0].status == 0);
        const auto answer = queue.variant(done[0]);
        CHECK(answer && std::strcmp(answer->variant, "first") == 0 && answer->accuracy == 0.9);
        CHECK(queue.submit(echo, {input}, {output}).has_value());
        done = queue.wait(room);
        CHECK(done.size() == 1 && !queue.variant(done[0]));
        needs.accuracy = 0.95;
        CHECK(status_of([&] { client.query("either", needs); }) == -EDOM);
        CHECK(status_of([&] { client.query("neither"); }) == -ENOENT);
}

void a_failure_is_an_exception_with_status_and_text(const fake &fake, const starling::client &client)
{
        const starling::model broken = client.open("broken"), echo = client.open("echo");
        starling::queue queue = client.open_queue();
        const auto input = client.tensor<float>({1, 1}), output = client.tensor<float>({1, 1});

        CHECK(status_of([&] { client.open("nothing of this name"); }) == -ENOENT);
        CHECK(status_of([&] { queue.infer(broken, {input}, {output}); }) == -EIO);
        CHECK(status_of([&] { queue.infer(echo, {input}, {output}); }) == -EINVAL);
        CHECK(status_of([&] { queue.submit(echo, {input}, {}); }) == -EINVAL);
        CHECK(status_of([&] { client.tensor<float>({1u << 31, 1u << 31, 1u << 31}); }) == -EOVERFLOW);
        CHECK(status_of([&] { client.load("echo"); }) == -EPERM);
        try {
                starling_options options = {};
                const std::string nowhere = fake.folder + "/nobody.sock";

                options.runtime = nowhere.c_str();
                starling::client lost(options);
                CHECK(false);
        } catch (const starling::error &error) {
                CHECK(error.status() == -ENOENT && std::string_view(error.what()).find("nobody.sock") != std::string_view::npos);
        }
}

void memory_goes_back_with_its_tensor_which_can_be_moved(const starling::client &client)
{
        const std::uint64_t before = client.info().arena_used_bytes;
        {
                auto a = client.tensor<float>({100, 100});
                starling::tensor<float> b = std::move(a);

                CHECK(client.info().arena_used_bytes > before && b.size() == 10000);
                b = client.tensor<float>({1, 1});
                CHECK(client.info().arena_used_bytes < before + 40000);
        }
        CHECK(client.info().arena_used_bytes == before);
}

void parts_outlive_the_client_that_they_came_from(const fake &fake)
{
        std::optional<starling::client> client(fake.connect());
        const starling::model echo = client->open("echo");
        auto input = client->tensor<float>({1, 4}), output = client->tensor<float>({1, 4});
        starling::queue queue = client->open_queue();

        client.reset();
        std::ranges::fill(input, 3.0f);
        queue.infer(echo, {input}, {output});
        CHECK(output[3] == 3);

        starling::client second = fake.connect();
        queue = second.open_queue(); /* ends the first one's queue; the first connection goes with its last tensor */
        input = second.tensor<float>({1, 4});
        output = second.tensor<float>({1, 4});
        queue.infer(second.open("echo"), {input}, {output});
}

void a_new_runtime_is_attached_to_again(fake &fake)
{
        starling::client client = fake.connect();
        const starling::model echo = client.open("echo");
        starling::queue queue = client.open_queue();
        const auto input = client.tensor<float>({1, 4}), output = client.tensor<float>({1, 4});

        CHECK(client.models().size() >= 5);
        fake.stop();
        CHECK(status_of([&] {
                for (int i = 0; i < 1000; i++)
                        queue.infer(echo, {input}, {output});
        }) == -EPIPE);
        unlink(fake.socket.c_str());
        fake.start();
        client.reconnect(std::chrono::seconds(10));
        input[2] = 5;
        queue.infer(echo, {input}, {output});
        CHECK(output[2] == 5);
}

} // namespace

int main()
{
        fake fake;
        {
                const starling::client client = fake.connect();

                a_request_is_answered_in_the_span_of_its_output(client);
                a_part_of_a_tensor_is_a_smaller_request(client);
                several_tensors_of_several_types_go_in_order(client);
                requests_that_are_submitted_come_out_of_wait(client);
                a_task_is_used_as_a_model_and_tells_its_variant(client);
                a_failure_is_an_exception_with_status_and_text(fake, client);
                memory_goes_back_with_its_tensor_which_can_be_moved(client);
        }
        parts_outlive_the_client_that_they_came_from(fake);
        a_new_runtime_is_attached_to_again(fake);
        return 0;
}
