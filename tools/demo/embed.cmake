# Write the panel into one C file: cmake -DFOLDER=... -DOUT=... -P embed.cmake
#
# Its style stands before its text, as the page takes it.

function(embed name)
  set(all "")
  foreach(piece ${ARGN})
    if(EXISTS ${piece})
      file(READ ${piece} bytes HEX)
    else()
      string(HEX ${piece} bytes)
    endif()
    string(APPEND all "${bytes}")
  endforeach()
  string(REGEX REPLACE "(................................)" "\\1\n" all "${all}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," all "${all}")
  file(APPEND ${OUT}.new "const unsigned char ${name}[] = {\n${all}\n0x00 };\n")
endfunction()

file(WRITE ${OUT}.new "/* Made from the panel of the demo. */\n#include \"panel.h\"\n\n")
embed(panel_html "<style>" ${FOLDER}/panel.css "</style>" ${FOLDER}/panel.html)
embed(panel_script ${FOLDER}/panel.js)
execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different ${OUT}.new ${OUT})
