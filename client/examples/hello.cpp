/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request to the digits ensemble from C++20: a black image of 8 x 8 pixels.
 *
 *     c++ -std=c++20 hello.cpp $(pkg-config --cflags --libs starling) -o hello && ./hello
 *
 * Arguments: the model's name, the runtime's name. Any model with inputs [N, 1, 8, 8] and outputs [N, 10] of float32 will do.
 */
#include <starling.hpp>

#include <algorithm>
#include <cstdio>

int main(int argc, char **argv)
{
        starling_options options = {};

        options.runtime = argc > 2 ? argv[2] : nullptr;
        options.timeout_ns = 5000000000;
        try {
                starling::client client(options);
                const starling::model model = client.open(argc > 1 ? argv[1] : "digits");
                starling::queue queue = client.open_queue();
                const auto image = client.tensor<float>({1, 1, 8, 8});
                const auto probabilities = client.tensor<float>({1, 10});

                std::ranges::fill(image, 0.0f);
                const starling_completion done = queue.infer(model, {image}, {probabilities});
                for (const float probability : probabilities)
                        std::printf("%.4f ", static_cast<double>(probability));
                std::printf("\ncomputed in %.1f us\n", static_cast<double>(done.computing_ns) / 1000);
        } catch (const starling::error &error) {
                std::fprintf(stderr, "%s\n", error.what());
                return 1;
        }
        return 0;
}
