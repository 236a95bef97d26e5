# Write the page into one C file: cmake -DFOLDER=... -DOUT=... -P embed.cmake
#
# Styles and scripts are joined in the order of their names.

function(embed name)
  set(all "")
  foreach(file ${ARGN})
    file(READ ${file} bytes HEX)
    string(APPEND all "${bytes}")
  endforeach()
  string(REGEX REPLACE "(................................)" "\\1\n" all "${all}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," all "${all}")
  file(APPEND ${OUT}.new "const unsigned char weft__admin_page_${name}[] = {\n${all}\n0x00 };\n")
endfunction()

file(GLOB styles ${FOLDER}/*.css)
file(GLOB scripts ${FOLDER}/*.js)
list(SORT styles)
list(SORT scripts)
file(WRITE ${OUT}.new "/* Made from the page of the window. */\n#include \"admin/page.h\"\n\n")
embed(html ${FOLDER}/page.html)
embed(style ${styles})
embed(script ${scripts})
execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different ${OUT}.new ${OUT})
