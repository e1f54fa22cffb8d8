/* SPDX-License-Identifier: Apache-2.0 */
#include "terminal.h"

#include "base/error.h"
#include "browse.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 1
#include <curses.h>

#define ESCAPE_MS 25 /* that the rest of a key's sequence may take */

enum { PAIR_GOOD = 1, PAIR_WARNING, PAIR_BAD };

/* What a handler of signals needs: there is one terminal, and a handler has no argument. */
static struct {
        volatile sig_atomic_t ends; /* a signal that asks for the end */
        sigset_t elsewhere;         /* what was blocked before */
        struct termios before;
        char leave[128]; /* what makes the terminal leave our screen */
        size_t leave_bytes;
} rescue;

/* ---- signals ---- */

static void on_end(int signal)
{
        (void)signal;
        rescue.ends = 1;
}

/* Something is broken: the terminal is put right with what is safe here, and the signal does what it does. */
static void on_crash(int signal)
{
        ssize_t n = write(STDOUT_FILENO, rescue.leave, rescue.leave_bytes);

        (void)n;
        tcsetattr(STDIN_FILENO, TCSANOW, &rescue.before);
        raise(signal); /* SA_RESETHAND */
}

/* Those that end the program, and a new size, are heard in terminal_wait() only, so that none is missed. */
static void catch_signals(void)
{
        static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT}, crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
        struct sigaction end = {.sa_handler = on_end}, crash = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND | SA_NODEFER};

        sigset_t awaited;

        sigemptyset(&awaited);
        sigaddset(&awaited, SIGWINCH); /* which ncurses handles */
        for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
                sigaction(ends[i], &end, NULL);
                sigaddset(&awaited, ends[i]);
        }
        sigprocmask(SIG_BLOCK, &awaited, &rescue.elsewhere);
        for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
                sigaction(crashes[i], &crash, NULL);
}

static void note(const char *capability)
{
        const char *text = tigetstr(capability);
        size_t bytes = text && text != (char *)-1 ? strlen(text) : 0;

        if (bytes > sizeof(rescue.leave) - rescue.leave_bytes)
                return;
        memcpy(rescue.leave + rescue.leave_bytes, text, bytes);
        rescue.leave_bytes += bytes;
}

/* ---- start and end ---- */

static void choose_colours(void)
{
        if (getenv("NO_COLOR") || !has_colors())
                return;
        start_color();
        use_default_colors();
        init_pair(PAIR_GOOD, COLOR_GREEN, -1);
        init_pair(PAIR_WARNING, COLOR_YELLOW, -1);
        init_pair(PAIR_BAD, COLOR_RED, -1);
}

static void set_modes(void)
{
        cbreak();
        noecho();
        nonl();
        keypad(stdscr, TRUE);
        nodelay(stdscr, TRUE);
        set_escdelay(ESCAPE_MS);
        curs_set(0);
        choose_colours();
}

int terminal_start(struct sl_error *error)
{
        const char *type = getenv("TERM");

        if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
                return sl_error_set(error, ENOTTY, "standard input or output is no terminal; `starling stats --watch` needs none");
        tcgetattr(STDIN_FILENO, &rescue.before);
        if (!newterm(NULL, stdout, stdin))
                return sl_error_set(error, EINVAL, "terminal type \"%s\" is not known here: set TERM to another", type ? type : "");
        note("sgr0");
        note("rmkx");
        note("cnorm");
        note("rmcup");
        catch_signals();
        set_modes();
        return 0;
}

void terminal_end(void)
{
        endwin();
}

/* ---- out ---- */

static chtype attribute_of(enum canvas_style style)
{
        switch (style) {
        case STYLE_BOLD:
                return A_BOLD;
        case STYLE_DIM:
                return A_DIM;
        case STYLE_REVERSE:
                return A_REVERSE;
        case STYLE_GOOD:
                return (chtype)COLOR_PAIR(PAIR_GOOD);
        case STYLE_WARNING:
                return A_BOLD | (chtype)COLOR_PAIR(PAIR_WARNING);
        case STYLE_BAD:
                return A_BOLD | (chtype)COLOR_PAIR(PAIR_BAD);
        default:
                return A_NORMAL;
        }
}

void terminal_size(int *ret_rows, int *ret_columns)
{
        getmaxyx(stdscr, *ret_rows, *ret_columns);
}

/* A wide one whose second column has something else by now is none. */
static bool has_character(const struct canvas *canvas, size_t at, int column)
{
        uint32_t character = canvas->characters[at];

        if (!character || character == CANVAS_BEHIND)
                return false;
        return wcwidth((wchar_t)character) == 1 || (column + 1 < canvas->columns && canvas->characters[at + 1] == CANVAS_BEHIND);
}

static void paint_character(int row, int column, uint32_t character, chtype attributes)
{
        const wchar_t text[] = {(wchar_t)character, 0};
        cchar_t cell;

        setcchar(&cell, text, attributes & ~A_COLOR, (short)PAIR_NUMBER(attributes), NULL);
        mvwadd_wch(stdscr, row, column, &cell);
}

void terminal_paint(const struct canvas *canvas)
{
        werase(stdscr);
        for (int row = 0; row < canvas->rows; row++)
                for (int column = 0; column < canvas->columns; column++) {
                        size_t at = (size_t)row * (size_t)canvas->columns + (size_t)column;

                        chtype attributes = attribute_of((enum canvas_style)canvas->styles[at]);

                        if (has_character(canvas, at, column))
                                paint_character(row, column, canvas->characters[at], attributes);
                        else if (canvas->characters[at] != CANVAS_BEHIND || !column || !has_character(canvas, at - 1, column - 1))
                                mvwaddch(stdscr, row, column, (chtype)(unsigned char)canvas->text[at] | attributes);
                }
        wrefresh(stdscr);
}

/* ---- in ---- */

int terminal_key(void)
{
        static const struct {
                int curses, key;
        } keys[] = {{KEY_UP, KEY_IS_UP}, {KEY_DOWN, KEY_IS_DOWN}, {KEY_LEFT, KEY_IS_LEFT}, {KEY_RIGHT, KEY_IS_RIGHT},
                {KEY_PPAGE, KEY_IS_PAGE_UP}, {KEY_NPAGE, KEY_IS_PAGE_DOWN}, {KEY_HOME, KEY_IS_HOME}, {KEY_END, KEY_IS_END},
                {KEY_BTAB, KEY_IS_TAB_BACK}, {KEY_BACKSPACE, KEY_IS_BACKSPACE}, {0x7f, KEY_IS_BACKSPACE}, {'\b', KEY_IS_BACKSPACE},
                {KEY_ENTER, KEY_IS_ENTER}, {'\r', KEY_IS_ENTER}, {'\n', KEY_IS_ENTER}, {0x1b, KEY_IS_ESCAPE},
                {KEY_RESIZE, KEY_IS_RESIZE}};
        int pressed = wgetch(stdscr);

        if (pressed == ERR)
                return KEY_NONE;
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
                if (keys[i].curses == pressed)
                        return keys[i].key;
        return pressed < 0x80 ? pressed : KEY_IS_RESIZE; /* any other key only draws again */
}

int terminal_wait(unsigned long long timeout_ns)
{
        const struct timespec limit = {.tv_sec = (time_t)(timeout_ns / 1000000000u), .tv_nsec = (long)(timeout_ns % 1000000000u)};
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

        if (ppoll(&input, 1, &limit, &rescue.elsewhere) < 0 && errno != EINTR)
                return -EINTR;
        return rescue.ends || (input.revents & (POLLHUP | POLLERR | POLLNVAL)) ? -EINTR : 0;
}
