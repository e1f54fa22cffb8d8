/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define LETTERS_MAX 32u /* of a word; longer ones have no neighbour */
#define PREFIX_MIN  3u

static uint32_t least(uint32_t a, uint32_t b)
{
        return a < b ? a : b;
}

static bool same(char a, char b)
{
        return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Row i of the table holds how far the first i letters of @a are from each beginning of @b. */
static uint32_t distance(const char *a, size_t n, const char *b, size_t m)
{
        uint32_t rows[LETTERS_MAX + 1][LETTERS_MAX + 1];

        for (uint32_t j = 0; j <= m; j++)
                rows[0][j] = j;
        for (uint32_t i = 1; i <= n; i++) {
                rows[i][0] = i;
                for (uint32_t j = 1; j <= m; j++) {
                        uint32_t changed = rows[i - 1][j - 1] + !same(a[i - 1], b[j - 1]);

                        rows[i][j] = least(changed, least(rows[i - 1][j], rows[i][j - 1]) + 1);
                        if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                                rows[i][j] = least(rows[i][j], rows[i - 2][j - 2] + 1);
                }
        }
        return rows[n][m];
}

/* UINT32_MAX: it is not near. */
static uint32_t how_far(const char *word, size_t n, const char *name)
{
        size_t m = strlen(name), common = n < m ? n : m;
        uint32_t far, most = m < 6 ? 1 : (uint32_t)m / 3;

        if (m > LETTERS_MAX)
                return UINT32_MAX;
        far = distance(word, n, name, m);
        if (far <= most && far < n)
                return far;
        return common >= PREFIX_MIN && strncasecmp(word, name, common) == 0 ? LETTERS_MAX + far : UINT32_MAX;
}

const char *sl_nearest(const char *word, sl_nearest_name *name_at)
{
        size_t n = strnlen(word, LETTERS_MAX + 1);
        uint32_t nearest = UINT32_MAX;
        const char *found = NULL, *name;

        for (size_t i = 0; n <= LETTERS_MAX && (name = name_at(i)); i++) {
                uint32_t far = how_far(word, n, name);

                if (far < nearest) {
                        nearest = far;
                        found = name;
                }
        }
        return found;
}
