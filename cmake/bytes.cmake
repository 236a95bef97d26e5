# What scripts use that write files into C: included by the embed.cmake of each part.

# `declaration` with the bytes of all pieces, each a file or text, and a NUL behind them.
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

# The file is there; its time is new only if its text is.
function(finish)
  execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different ${OUT}.new ${OUT})
endfunction()
