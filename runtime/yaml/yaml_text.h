/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts for YAML files that we write. Any thread.
 */
#pragma once

#include <stdio.h>

/* A scalar that YAML reads back as it was: in single quotes, those in it doubled. */
void sl_yaml_put_text(FILE *stream, const char *text);
