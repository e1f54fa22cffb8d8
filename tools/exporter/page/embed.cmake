# SPDX-License-Identifier: Apache-2.0
# cmake -DPAGE=FOLDER -DOUT=FILE.c -P embed.cmake: page.html with page.css and page.js in it, as one C string, and the policy that allows
# these two and nothing else.
#
# Sources: Content Security Policy Level 3, W3C, section 8.3, hashes.

# base64 of a SHA-256, which CMake gives in hexadecimal.
function(hash_of text ret_hash)
    set(alphabet ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
    string(SHA256 hex "${text}")
    set(hex "${hex}00") # 33 bytes: the last character is the padding
    set(hash "")
    foreach(at RANGE 0 60 6)
        string(SUBSTRING ${hex} ${at} 6 three)
        foreach(shift 18 12 6 0)
            math(EXPR index "(0x${three} >> ${shift}) & 63")
            string(SUBSTRING ${alphabet} ${index} 1 character)
            string(APPEND hash ${character})
        endforeach()
    endforeach()
    string(SUBSTRING ${hash} 0 43 hash)
    set(${ret_hash} "${hash}=" PARENT_SCOPE)
endfunction()

file(READ ${PAGE}/page.html html)
file(READ ${PAGE}/page.css style)
file(READ ${PAGE}/page.js script)
hash_of("${style}" style_hash)
hash_of("${script}" script_hash)
string(REPLACE "@STYLE@" "${style}" html "${html}")
string(REPLACE "@SCRIPT@" "${script}" html "${html}")

file(WRITE ${OUT}.html "${html}")
file(READ ${OUT}.html bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "/* Made by page/embed.cmake. */
#include \"page_text.h\"

const unsigned char page_html[] = {
${bytes}0};
const size_t page_html_bytes = sizeof(page_html) - 1;
const char page_policy[] = \"default-src 'none'; script-src 'sha256-${script_hash}'; style-src 'sha256-${style_hash}'; \"
                           \"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\";
")
