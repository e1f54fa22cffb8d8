/* SPDX-License-Identifier: Apache-2.0 */
#include "yaml_text.h"

void sl_yaml_put_text(FILE *stream, const char *text)
{
        putc('\'', stream);
        for (; *text; text++) {
                if (*text == '\'')
                        putc('\'', stream);
                putc(*text, stream);
        }
        putc('\'', stream);
}
