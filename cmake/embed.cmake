# Write the scripts of a folder into one C file: cmake -DFOLDER=... -DOUT=... -P embed.cmake

file(GLOB scripts ${FOLDER}/*.js)
list(SORT scripts)
set(arrays "")
set(table "")
foreach(script ${scripts})
  get_filename_component(name ${script} NAME_WE)
  file(READ ${script} bytes HEX)
  file(SIZE ${script} size)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "static const unsigned char ${name}_js[] = {\n${bytes}\n0x00 };\n")
  string(APPEND table "\t{ \"${name}\", ${name}_js, ${size} },\n")
endforeach()
file(WRITE ${OUT}.new "/* Made from the scripts of the adapter. */\n#include \"engine.h\"\n\n"
  "${arrays}\nconst struct weft__js_family weft__js_library[] = {\n${table}"
  "\t{ NULL, NULL, 0 },\n};\n")
execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different ${OUT}.new ${OUT})
