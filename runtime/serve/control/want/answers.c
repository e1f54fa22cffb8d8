/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"

#include "registry_state.h"

#include <stdlib.h>
#include <string.h>

struct sl_answer {
        struct sl_answer *next;
        uint64_t session;
        int status;
        char text[];
};

void sl_answers_add(struct sl_registry *r, uint64_t session, int status, const char *text)
{
        size_t bytes = strlen(text) + 1;
        struct sl_answer *answer = malloc(sizeof(*answer) + bytes), **end = &r->answers;

        if (!answer) {
                r->options.answer(r->options.context, session, status, text);
                return;
        }
        *answer = (struct sl_answer){.session = session, .status = status};
        memcpy(answer->text, text, bytes);
        while (*end)
                end = &(*end)->next;
        *end = answer;
}

static struct sl_answer *take_first(struct sl_registry *r)
{
        struct sl_answer *first = r->answers;

        if (first)
                r->answers = first->next;
        return first;
}

void sl_answers_send(struct sl_registry *r)
{
        for (struct sl_answer *answer; (answer = take_first(r)); free(answer))
                r->options.answer(r->options.context, answer->session, answer->status, answer->text);
}

void sl_answers_drop(struct sl_registry *r)
{
        for (struct sl_answer *answer; (answer = take_first(r)); free(answer))
                ;
}
