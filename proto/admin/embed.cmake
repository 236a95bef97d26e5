# Write the page into one C file: cmake -DFOLDER=... -DOUT=... -P embed.cmake
#
# Styles and scripts are joined in the order of their names.

include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/bytes.cmake)

file(GLOB styles ${FOLDER}/*.css)
file(GLOB scripts ${FOLDER}/*.js)
list(SORT styles)
list(SORT scripts)
file(WRITE ${OUT}.new
  "/* Made from the page of the dashboard. */\n#include \"admin/admin_dashboard.h\"\n\n")
append_bytes("const unsigned char weft__admin_page_html" ${FOLDER}/page.html)
append_bytes("const unsigned char weft__admin_page_style" ${styles})
append_bytes("const unsigned char weft__admin_page_script" ${scripts})
finish()
