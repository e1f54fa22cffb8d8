/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of attention share: x [N,TOKENS,WIDTH], whose HEADS heads stand side by side.
 */
#pragma once

enum { TOKENS = 5, HEADS = 2, HEAD = 4, WIDTH = HEADS * HEAD };
