/* SPDX-License-Identifier: Apache-2.0 */
#include "page.h"

#include <string.h>

#define DATE "November 22, 2026"

void page_begin(FILE *out, const char *title, int section, const char *name, const char *summary)
{
        fprintf(out, ".\\\" SPDX-License-Identifier: Apache-2.0\n.Dd " DATE "\n.Dt %s %d\n.Os Starling\n", title, section);
        fprintf(out, ".Sh NAME\n.Nm %s\n.Nd %s\n", name, summary);
}

void page_text(FILE *out, const char *text)
{
        /* A dot or a quote at the start of a line would be a request. */
        if (*text == '.' || *text == '\'')
                fputs("\\&", out);
        for (int inside = 0; *text; text++) {
                if (*text == '`')
                        fputs((inside = !inside) ? "\\fB" : "\\fR", out);
                else if (*text == '\\')
                        fputs("\\e", out);
                else if (*text == '-')
                        fputs("\\-", out);
                else
                        fputc(*text, out);
        }
        fputc('\n', out);
}

void page_paragraphs(FILE *out, const char *text)
{
        int literal = 0;

        while (*text) {
                size_t bytes = strcspn(text, "\n");
                char line[2048];

                snprintf(line, sizeof(line), "%.*s", (int)bytes, text);
                if ((line[0] == ' ') != literal && (line[0] || literal)) {
                        fputs(literal ? ".Ed\n" : ".Bd -literal\n", out);
                        literal = !literal;
                }
                if (line[0])
                        page_text(out, line);
                else if (text[bytes] && text[bytes + 1] != ' ' && !literal)
                        fputs(".Pp\n", out);
                text += bytes + (text[bytes] == '\n');
        }
        if (literal)
                fputs(".Ed\n", out);
}

void page_reference(FILE *out, const char *name, int section, int more)
{
        fprintf(out, ".Xr %s %d%s\n", name, section, more ? " ," : "");
}
