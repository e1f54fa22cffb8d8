/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole screen: the runtime and its sums above, the table of the view in the middle, the chosen row and the keys below. Pure,
 * but for memory; fits any size.
 */
#pragma once

#include "browse.h"
#include "follow.h"

struct display {
        const char *name; /* of the runtime */
        enum follow_state state;
        const char *cause;               /* NOBODY: why */
        const struct interval *interval; /* NULL: nothing was seen yet */
};

/* Draws, and notes in @browse how much there is. Return: 0, -ENOMEM. */
int display_draw(const struct display *display, struct browse *browse, struct canvas *canvas);
