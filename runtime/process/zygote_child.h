/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zygote's side (zygote.h): main() of its program calls this when it has set up what its children need.
 */
#pragma once

/*
 * Says that it is ready, and forks a child for each order, until its owner is gone. In a child @run gets the arguments, as main()
 * would, with the descriptors as the order numbers them and no other but the standard streams; what it returns is the exit status.
 * The process has one thread. It dies with the thread that started it, process @parent's. Return: the zygote's exit status.
 */
int sl_zygote_serve(int parent, int (*run)(int argc, char **argv));
