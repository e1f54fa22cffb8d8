/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal, through ncurses: a canvas goes out, keys come in. However the program ends, the terminal is as it was before: also
 * when a signal kills it that can be caught. One thread; one terminal of a process, as ncurses has it.
 */
#pragma once

#include "canvas.h"

struct sl_error;

/* Takes over standard input and output. Return: 0; -ENOTTY, -EINVAL with text: no terminal, or of a type that is not known. */
int terminal_start(struct sl_error *error);

/* Gives it back. */
void terminal_end(void);

/* As it is now. */
void terminal_size(int *ret_rows, int *ret_columns);

void terminal_paint(const struct canvas *canvas);

/* The next key, see browse.h; KEY_NONE: there is none. */
int terminal_key(void);

/*
 * Waits for a key, or until @timeout_ns have passed. Return: 0; -EINTR a signal that ends the program came, or the terminal is
 * gone.
 */
int terminal_wait(unsigned long long timeout_ns);
