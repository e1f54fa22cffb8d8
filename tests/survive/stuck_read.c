/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded before all else into a runtime: of the model "a-stuck" no read returns, as of a file system that does not answer. */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) ssize_t read(int fd, void *bytes, size_t n)
{
        char link[32], path[512] = "";

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        (void)!readlink(link, path, sizeof(path) - 1);
        while (strstr(path, "/a-stuck/1/model.onnx"))
                pause();
        return syscall(SYS_read, fd, bytes, n);
}
