/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person looks at, and how keys change it. Pure.
 *
 *     TABLE <--/, Enter, Esc--> FILTER      TABLE <--h, any key--> HELP
 */
#pragma once

#include "views.h"

#include <stdbool.h>

enum browse_mode { BROWSE_TABLE, BROWSE_FILTER, BROWSE_HELP };

#define FILTER_BYTES 48u

/* What the rows of a view are sorted by, which is chosen, and which is the first that is seen. */
struct browse_place {
        uint32_t sort_column, first_column, first_row;
        uint32_t chosen;    /* row, as last drawn */
        bool sticks;        /* somebody chose it: it is that one wherever it stands; else the first */
        uint64_t chosen_id; /* UINT64_MAX: of the row that stands there now */
        bool reverse;
};

struct browse {
        enum browse_mode mode;
        enum view view;
        struct browse_place places[VIEWS];
        char filter[FILTER_BYTES];
        bool paused;
        double seconds; /* of an interval */
        bool quits;

        /* As last drawn. */
        uint32_t n_rows, page_rows, n_columns;
};

/* Keys that are no characters. */
enum browse_key {
        KEY_NONE = 0x100,
        KEY_IS_UP,
        KEY_IS_DOWN,
        KEY_IS_LEFT,
        KEY_IS_RIGHT,
        KEY_IS_PAGE_UP,
        KEY_IS_PAGE_DOWN,
        KEY_IS_HOME,
        KEY_IS_END,
        KEY_IS_TAB_BACK,
        KEY_IS_BACKSPACE,
        KEY_IS_ENTER,
        KEY_IS_ESCAPE,
        KEY_IS_RESIZE,
};

#define SECONDS_MIN 0.1
#define SECONDS_MAX 60.0

void browse_init(struct browse *browse, double seconds);

/* A character, or an enum browse_key. */
void browse_press(struct browse *browse, int key);

static inline struct browse_place *browse_place_of(struct browse *browse)
{
        return &browse->places[browse->view];
}
