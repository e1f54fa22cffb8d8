/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake-runtime SOCKET: the fake runtime as a process, until it is killed, or the thread that started it ends: a test that its time
 * limit kills leaves none. Prints "ready" when it listens.
 */
#include "fake_runtime.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
        struct fake_runtime *runtime;

        if (argc != 2) {
                fprintf(stderr, "usage: fake-runtime SOCKET\n");
                return 2;
        }

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int r = fake_runtime_start(&(struct fake_options){.socket = argv[1]}, &runtime);

        if (r < 0) {
                fprintf(stderr, "fake-runtime: %s: %s\n", argv[1], strerror(-r));
                return 1;
        }
        printf("ready\n");
        fflush(stdout);
        for (;;)
                pause();
}
