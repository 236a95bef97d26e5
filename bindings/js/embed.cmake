# Embed the scripts of a folder in one C file: cmake -DFOLDER=... -DOUT=... -P embed.cmake

include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/bytes.cmake)

file(GLOB scripts ${FOLDER}/*.js)
list(SORT scripts)
set(table "")
file(WRITE ${OUT}.new "/* Made from the scripts of the adapter. */\n#include \"engine.h\"\n\n")
foreach(script ${scripts})
  get_filename_component(name ${script} NAME_WE)
  file(SIZE ${script} size)
  append_bytes("static const unsigned char ${name}_js" ${script})
  string(APPEND table "\t{ \"${name}\", ${name}_js, ${size} },\n")
endforeach()
file(APPEND ${OUT}.new
  "\nconst struct weft__js_family weft__js_library[] = {\n${table}\t{ NULL, NULL, 0 },\n};\n")
finish()
