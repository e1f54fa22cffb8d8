/* SPDX-License-Identifier: Apache-2.0 */
// The public header in C++: it compiles, links, and structs can be filled the C++ way.
#include "starling.h"

#include <cerrno>
#include <cstring>

int main()
{
        starling_options options = {};
        starling_client *client = nullptr;
        starling_error error;

        options.runtime = "/nonexistent/starling.sock";
        if (starling_connect(&options, &client, &error) != -ENOENT || client)
                return 1;
        return std::strstr(error.text, options.runtime) ? 0 : 2;
}
