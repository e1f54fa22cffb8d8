/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Man pages in mdoc(7), and completions of shells, made while Starling is built from the tables that the programs work by. Each
 * function writes one file's text to @out. One thread; constants only.
 */
#pragma once

#include <stdio.h>

struct command_description;
struct sl_error;

/* Head of a page up to its SYNOPSIS. @title "STARLING-SERVE", @section 1, @name "starling-serve". */
void page_begin(FILE *out, const char *title, int section, const char *name, const char *summary);

/* Text as mdoc takes it: nothing in it is a request or an escape. `words` in backquotes become literal. */
void page_text(FILE *out, const char *text);

/* Paragraphs: an empty line parts them, lines that begin with a blank stand as they are. */
void page_paragraphs(FILE *out, const char *text);

/* One reference of SEE ALSO; @more: another follows. */
void page_reference(FILE *out, const char *name, int section, int more);

/* "starling-bench-load" of the command "bench load". */
void page_file_name(const struct command_description *command, char *ret_name, size_t bytes);

/* The pages. Return: 0; -errno with text. */
int page_of_starling(FILE *out);
int page_of_command(FILE *out, const struct command_description *command);
int page_of_config(FILE *out, struct sl_error *error);
int page_of_stats(FILE *out);
int page_of_probes(FILE *out);

/* Sections of starling-exporter(1). */
void page_metrics(FILE *out);

/* The completions. */
void completion_for_bash(FILE *out);
void completion_for_zsh(FILE *out);
