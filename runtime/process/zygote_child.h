/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zygote's side (zygote.h): main() of its program calls this when it has set up what its children need.
 */
#pragma once

#include <stdbool.h>

/* What a child of the zygote does. */
struct sl_zygote_child {
        /*
         * @get_ready, unless it is NULL, is called again and again while no order comes, for a piece of what takes time: false:
         * there is no more. @be_ready then once, before @run.
         */
        bool (*get_ready)(void *context);
        void (*be_ready)(void *context);
        void *context;

        /* Gets the arguments of its order, as main() would; what it returns is the exit status. */
        int (*run)(int argc, char **argv);
};

/*
 * Has a child wait for each order, before it comes, until the owner is gone. A child runs with the descriptors as the order numbers
 * them and no other but the standard streams. The process has one thread. It and a child that waits die with the thread that
 * started it, process @parent's. Return: the zygote's exit status.
 */
int sl_zygote_serve(int parent, const struct sl_zygote_child *child);
