# SPDX-License-Identifier: Apache-2.0
# cmake -DSOURCE=DIR -DHEADER=FILE -P commit.cmake: writes the commit of a working tree as a C string, with a star where the tree was changed
# since, and leaves a header alone that says it already. "unknown" outside of a repository.
cmake_minimum_required(VERSION 3.22)
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty=* OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
    set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define SL_COMMIT \"@commit@\"\n" @ONLY)
