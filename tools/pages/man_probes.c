/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starling-probes(7): the probes of the runtime, from the table that they are compiled from.
 */
#include "page.h"
#include "probe.h"

static const struct {
        const char *name, *arguments, *when;
} probes[] = {
#define X(name, arguments, when) {#name, arguments, when},
        SL_PROBES(X)
#undef X
};

static void print_probes(FILE *out)
{
        fputs(".Sh PROBES\n.Bl -tag -width Ds\n", out);
        for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
                fprintf(out, ".It Cm %s No ( %s )\n", probes[i].name, probes[i].arguments);
                page_text(out, probes[i].when);
        }
        fputs(".El\n", out);
}

static void print_arguments(FILE *out)
{
        static const char *const rows[][2] = {
                {"client", "its number, as in the log and in the stats page"},
                {"queue", "which of its queue pairs, from 0"},
                {"index", "which request of that queue pair, from 0; 32 bits, which wrap. The three name a request"},
                {"segment", "number of a part of a request while it is in flight; used again afterwards"},
                {"samples, pieces, members", "how many"},
                {"model, executor", "addresses of texts that end: the name of what is asked for, or computed; `thread`, `process` "
                                    "or `inline`"},
                {"status", "0, or a negative errno"},
                {"ns", "nanoseconds"},
        };

        fputs(".Sh ARGUMENTS\n.Bl -tag -width Ds\n", out);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                fprintf(out, ".It %s\n", rows[i][0]);
                page_text(out, rows[i][1]);
        }
        fputs(".El\n", out);
}

int page_of_probes(FILE *out)
{
        page_begin(out, "STARLING-PROBES", 7, "starling-probes", "probes at the stages of a request");
        fputs(".Sh DESCRIPTION\n", out);
        page_paragraphs(out, "The program `starling` has static probes (USDT) of the provider " SL_PROBE_PROVIDER
                             " where a request goes from one stage to the next. A debugger or a tracer, such as perf, bpftrace, "
                             "SystemTap or gdb, can count them, look at their arguments, or stop there. Each is one instruction "
                             "that does nothing. What a tracer does there costs as much as it takes. Requests that no model sees "
                             "(STARLING_NOOP) pass none.");
        print_probes(out);
        print_arguments(out);
        fputs(".Sh EXAMPLES\nWhat is in a program:\n", out);
        page_paragraphs(out, "    readelf -n /usr/bin/starling\n\nHow long requests take, by client, until it is interrupted:\n\n"
                             "    bpftrace -e 'usdt:/usr/bin/starling:starling:request_completed { @[arg0] = hist(arg4); }'\n\n"
                             "The same probe counted by perf:\n\n"
                             "    perf buildid-cache --add /usr/bin/starling\n"
                             "    perf probe sdt_starling:request_completed\n"
                             "    perf stat -e sdt_starling:request_completed -a sleep 10");
        fputs(".Sh SEE ALSO\n", out);
        page_reference(out, "starling", 1, 1);
        page_reference(out, "starling-stats", 5, 0);
        return 0;
}
