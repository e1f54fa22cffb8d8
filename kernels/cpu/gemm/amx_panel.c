/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/gemm/amx_panel.h"

#include "cpu/gemm/dot_store.h"

#include <assert.h>
#include <stdalign.h>

/*
 * The tile registers, which the compiler wants as plain numbers: 0 to 3 are the sums of two tiles of rows by two halves of a panel,
 * 4 and 5 the rows, 6 and 7 the halves.
 */
enum { ROWS = 4, HALVES = 6, REGISTERS = 8 };

#define ROW_BYTES   (SL_DOT_PANEL * 4) /* of a panel, or of sums */
#define TILE_SUMS   (SL_AMX_ROWS * SL_DOT_PANEL)
#define LINE_BYTES  64
#define PANEL_BEGIN (SL_DOT_PANEL * (int64_t)sizeof(int32_t)) /* behind the sums of its columns */

/* As LDTILECFG reads it. */
struct tile_config {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
};
static_assert(sizeof(struct tile_config) == 64, "the instruction reads 64 bytes");

void sl_amx_begin(const struct sl_dot_depth *depth, int64_t height)
{
        struct tile_config config = {.palette = 1};

        for (int i = 0; i < REGISTERS; i++) {
                config.rows[i] = (uint8_t)(i < HALVES ? height : depth->chunk);
                config.row_bytes[i] = (uint16_t)(i >= ROWS && i < HALVES ? 4 * depth->chunk : 4 * SL_DOT_LANES);
        }
        __asm__ volatile("ldtilecfg %0" : : "m"(config));
}

void sl_amx_end(void)
{
        _tile_release();
}

static inline int64_t chunks_of(const struct sl_dot_depth *d)
{
        return d->scanlines * d->taps * (d->room / d->chunk);
}

/* What is the same for all of a panel, and known where it is compiled: how sums are stored, the vectors of columns, whether full.
 */
struct shape {
        enum sl_dot_kind kind;
        enum sl_dot_last last;
        bool whole;
        int vectors;
};

/* What two tiles came to, on its way to where it is stored, two rows at a time. */
struct finish {
        int32_t *sums, *next; /* [tile][row][column], of these and of those to come */
        char *y;
        const char *addend;
        int64_t left;                     /* rows of the tile */
        const struct sl_amx_rows *behind; /* the tile after it, or NULL */
};

SL_DOT_INLINE void finish_tile(const struct sl_amx_panel *p, const struct shape s, const struct sl_amx_rows *tile, struct finish *f)
{
        const int64_t at = tile->row * p->y_stride * (s.kind == SL_DOT_BYTES ? 1 : (int64_t)sizeof(float));

        f->y = (char *)p->y + at;
        f->addend = s.last == SL_DOT_ADDEND ? (const char *)p->addend + at : NULL;
        f->left = p->height;
}

/* Where the next panel stores, and what it adds: they come from beyond the L1 cache, which nothing here hides. */
SL_DOT_INLINE void fetch_results(const struct sl_amx_panel *p, const struct shape s, const struct finish *f, int64_t row_bytes)
{
        const int64_t next = SL_DOT_PANEL * (s.kind == SL_DOT_BYTES ? 1 : (int64_t)sizeof(float));

        if (!s.whole || s.kind == SL_DOT_SUMS || p->y_stride == SL_DOT_PANEL)
                return;
        for (int64_t i = 0; i < 2; i++) {
                __builtin_prefetch(f->y + next + i * row_bytes, 1);
                if (s.last == SL_DOT_ADDEND)
                        _mm_prefetch(f->addend + next + i * row_bytes, _MM_HINT_T0);
        }
}

/* Two rows, the second of which may be none. */
SL_DOT_INLINE void finish_rows(const struct sl_dot_result *r, const struct sl_amx_panel *p, const struct shape s, struct finish *f)
{
        const int64_t row_bytes = p->y_stride * (s.kind == SL_DOT_BYTES ? 1 : (int64_t)sizeof(float));
        const struct sl_dot_tile t = {.n_rows = f->left,
                .columns = p->columns,
                .n_columns = s.whole ? SL_DOT_PANEL : p->n_columns,
                .y = f->y,
                .addend = f->addend,
                .y_stride = p->y_stride};
        __m512i sums[4];

#pragma GCC unroll 4
        for (int i = 0; i < 2 * s.vectors; i++)
                sums[i] = _mm512_load_si512(f->sums + i / s.vectors * SL_DOT_PANEL + i % s.vectors * SL_DOT_LANES);
        sl_dot_store(r, &t, 2, s.vectors, sums, s.last);
        fetch_results(p, s, f, row_bytes);
        f->sums += 2 * SL_DOT_PANEL;
        f->y += 2 * row_bytes;
        f->addend += s.last == SL_DOT_ADDEND ? 2 * row_bytes : 0;
        f->left -= 2;
        if (f->left <= 0 && f->behind) {
                f->sums += TILE_SUMS - (p->height + 1) / 2 * 2 * SL_DOT_PANEL;
                finish_tile(p, s, f->behind, f);
                f->behind = NULL;
        }
}

/* The next panel, on its way to the L2 cache: a share with each pair of tiles. */
struct fetch {
        const int8_t *next;
        int64_t left, share; /* lines; of a chunk */
};

SL_DOT_INLINE void fetch_chunk(struct fetch *fetch)
{
        for (int64_t i = 0; i < fetch->share && fetch->left > 0; i++, fetch->left--, fetch->next += LINE_BYTES)
                _mm_prefetch(fetch->next, _MM_HINT_T1);
}

SL_DOT_INLINE void load_halves(const int8_t *w, const int v)
{
        _tile_loadd(6, w, ROW_BYTES);
        if (v > 1)
                _tile_loadd(7, w + ROW_BYTES / 2, ROW_BYTES);
}

SL_DOT_INLINE void multiply_first(const uint8_t *rows, int64_t row_stride, const int v)
{
        _tile_loadd(4, rows, row_stride);
        _tile_dpbusd(0, 4, 6);
        if (v > 1)
                _tile_dpbusd(1, 4, 7);
}

/* The same with what it meets, which comes in the order in which it is wanted. */
SL_DOT_INLINE void load_and_multiply_first(const int8_t *w, const uint8_t *rows, int64_t row_stride, const int v)
{
        _tile_loadd(6, w, ROW_BYTES);
        _tile_loadd(4, rows, row_stride);
        _tile_dpbusd(0, 4, 6);
        if (v > 1) {
                _tile_loadd(7, w + ROW_BYTES / 2, ROW_BYTES);
                _tile_dpbusd(1, 4, 7);
        }
}

SL_DOT_INLINE void multiply_second(const uint8_t *rows, int64_t row_stride, const int v)
{
        _tile_loadd(5, rows, row_stride);
        _tile_dpbusd(2, 5, 6);
        if (v > 1)
                _tile_dpbusd(3, 5, 7);
}

/* A stride of 0: all rows of a tile begin with the same. */
SL_DOT_INLINE void start_first(const struct sl_dot_columns *columns, const int v)
{
        _tile_loadd(0, columns->starts, 0);
        if (v > 1)
                _tile_loadd(1, columns->starts + SL_DOT_LANES, 0);
}

SL_DOT_INLINE void start_second(const struct sl_dot_columns *columns, const int v)
{
        _tile_loadd(2, columns->starts, 0);
        if (v > 1)
                _tile_loadd(3, columns->starts + SL_DOT_LANES, 0);
}

SL_DOT_INLINE void store_first(int32_t *sums, const int v)
{
        _tile_stored(0, sums, ROW_BYTES);
        if (v > 1)
                _tile_stored(1, sums + SL_DOT_LANES, ROW_BYTES);
}

SL_DOT_INLINE void store_second(int32_t *sums, const int v)
{
        _tile_stored(2, sums, ROW_BYTES);
        if (v > 1)
                _tile_stored(3, sums + SL_DOT_LANES, ROW_BYTES);
}

/* Where the next chunk of a row lies. */
struct place {
        int64_t tap, scanline, step; /* of the piece */
        int64_t at;                  /* bytes behind the begin of the row */
};

SL_DOT_INLINE void next_chunk(const struct sl_dot_depth *d, struct place *place)
{
        place->step += d->chunk;
        place->at += 4 * d->chunk;
        if (place->step < d->room)
                return;
        place->step = 0;
        if (++place->tap == d->taps) {
                place->tap = 0;
                place->scanline++;
        }
        place->at = place->scanline * d->scanline_stride + place->tap * d->tap_stride;
}

/*
 * @n tiles, one or two. Whoever stores a tile waits until it is added up, and keeps what comes behind waiting: the second one of
 * the tiles before is stored when the first products of these are under way.
 */
SL_DOT_INLINE void multiply(const struct sl_dot_depth *d, const struct sl_dot_result *r, const struct sl_amx_panel *p,
        const struct shape s, const struct sl_amx_rows *tiles, struct finish *f, struct fetch *fetch, const int n)
{
        const uint8_t *const first = tiles[0].first + p->offset, *const second = tiles[n - 1].first + p->offset;
        const int64_t chunks = chunks_of(d), steps = chunks > 1 ? (p->height + chunks - 1) / (chunks - 1) : 0;
        const int8_t *w = p->panel + PANEL_BEGIN;
        struct place place = {0};

        if (chunks > 1)
                load_halves(w, s.vectors);
        start_first(p->columns, s.vectors);
        multiply_first(first, p->row_stride, s.vectors);
        if (f->left > 0)
                store_second(f->sums + TILE_SUMS, s.vectors);
        if (n > 1) {
                start_second(p->columns, s.vectors);
                multiply_second(second, p->row_stride, s.vectors);
        }
        fetch_chunk(fetch);
        for (int64_t chunk = 1; chunk < chunks; chunk++) {
                w += d->chunk * ROW_BYTES;
                next_chunk(d, &place);
                load_and_multiply_first(w, first + place.at, p->row_stride, s.vectors);
                if (n > 1)
                        multiply_second(second + place.at, p->row_stride, s.vectors);
                fetch_chunk(fetch);
                for (int64_t i = 0; i < steps && f->left > 0; i++)
                        finish_rows(r, p, s, f);
        }
        while (f->left > 0)
                finish_rows(r, p, s, f);
        store_first(f->next, s.vectors);
}

SL_DOT_INLINE void run_panel(
        const struct sl_dot_depth *d, const struct sl_dot_result *r, const struct sl_amx_panel *p, const struct shape s)
{
        const int64_t pairs = (p->n_tiles + 1) / 2, lines = sl_dot_panel_bytes(d) / LINE_BYTES;
        struct fetch fetch = {.next = p->panel + sl_dot_panel_bytes(d),
                .left = p->fetches ? lines : 0,
                .share = lines / (pairs * chunks_of(d)) + 1};
        alignas(LINE_BYTES) int32_t sums[2][2 * TILE_SUMS];
        struct finish f = {.left = 0};

        load_halves(p->panel + PANEL_BEGIN, s.vectors); /* where they are one chunk, they stay */
        for (int64_t i = 0; i < p->n_tiles; i += 2) {
                const struct sl_amx_rows *tiles = p->tiles + i;
                bool both = i + 1 < p->n_tiles;

                f.next = sums[i / 2 % 2];
                if (both)
                        multiply(d, r, p, s, tiles, &f, &fetch, 2);
                else
                        multiply(d, r, p, s, tiles, &f, &fetch, 1);
                f.sums = f.next;
                f.behind = both ? tiles + 1 : NULL;
                finish_tile(p, s, tiles, &f);
        }
        if (f.behind)
                store_second(f.sums + TILE_SUMS, s.vectors);
        while (f.left > 0)
                finish_rows(r, p, s, &f);
}

/* A function each, so that the way of a row to where it is stored has few branches. */
#define DEFINE_PANEL(name, what, last)                                                                                             \
        static void name##_panel(const struct sl_dot_depth *d, const struct sl_dot_result *r, const struct sl_amx_panel *p)        \
        {                                                                                                                          \
                struct sl_dot_result known = *r;                                                                                   \
                                                                                                                                   \
                known.kind = what;                                                                                                 \
                if (p->n_columns == SL_DOT_PANEL)                                                                                  \
                        run_panel(d, &known, p, (struct shape){what, last, true, 2});                                              \
                else if (p->n_columns > SL_DOT_LANES)                                                                              \
                        run_panel(d, &known, p, (struct shape){what, last, false, 2});                                             \
                else                                                                                                               \
                        run_panel(d, &known, p, (struct shape){what, last, false, 1});                                             \
        }

DEFINE_PANEL(sums, SL_DOT_SUMS, SL_DOT_NOTHING)
DEFINE_PANEL(bytes, SL_DOT_BYTES, SL_DOT_NOTHING)
DEFINE_PANEL(added_bytes, SL_DOT_BYTES, SL_DOT_ADDEND)
DEFINE_PANEL(swished_bytes, SL_DOT_BYTES, SL_DOT_HARD_SWISH)
DEFINE_PANEL(reals, SL_DOT_REALS, SL_DOT_NOTHING)
DEFINE_PANEL(added_reals, SL_DOT_REALS, SL_DOT_ADDEND)
DEFINE_PANEL(swished_reals, SL_DOT_REALS, SL_DOT_HARD_SWISH)

void sl_amx_panel(const struct sl_dot_depth *depth, const struct sl_dot_result *result, const struct sl_amx_panel *panel)
{
        static void (*const panels[][3])(const struct sl_dot_depth *, const struct sl_dot_result *, const struct sl_amx_panel *) = {
                [SL_DOT_SUMS] = {sums_panel, sums_panel, sums_panel},
                [SL_DOT_BYTES] = {bytes_panel, added_bytes_panel, swished_bytes_panel},
                [SL_DOT_REALS] = {reals_panel, added_reals_panel, swished_reals_panel},
        };

        panels[result->kind][sl_dot_last_of(result)](depth, result, panel);
}
