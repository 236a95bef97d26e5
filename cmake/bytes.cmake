# Functions that embed files in C source; included by each embed.cmake.

# Append `declaration` with the bytes of all pieces, each a file or a text, and a final NUL.
function(append_bytes declaration)
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
  file(APPEND ${OUT}.new "${declaration}[] = {\n${all}\n0x00 };\n")
endfunction()

# Put the new file in place; its modification time changes only if its text does.
function(finish)
  execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different ${OUT}.new ${OUT})
endfunction()
