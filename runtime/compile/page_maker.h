/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that makes the huge pages of a plan file ahead of the child that will write it: the kernel clears them, which is a fifth
 * to a half of a load, while the child reads the model. What the file turns out not to need the child cuts off. It trusts the child
 * in nothing: it touches no byte of the file and never changes its length. One owner thread.
 */
#pragma once

#include <stdint.h>

struct sl_page_maker;

/*
 * @plan_fd: of a file in memory that nobody writes yet; stays the caller's, and open until the end. @bytes: what the plan may come
 * to; where the child lengthens the file further its pages are made as well, up to @most bytes. NULL: there is nothing to make, or
 * no thread for it; then the child makes them as it goes.
 */
struct sl_page_maker *sl_page_maker_start(int plan_fd, uint64_t bytes, uint64_t most);

/* Waits for the pages at hand; no page of the file is mapped any more. NULL is fine. Returns NULL. */
struct sl_page_maker *sl_page_maker_end(struct sl_page_maker *maker);
