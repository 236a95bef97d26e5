# Embed the panel in one C file: cmake -DFOLDER=... -DOUT=... -P embed.cmake
#
# The style comes before the HTML, as the page requires.

include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/bytes.cmake)

file(WRITE ${OUT}.new "/* Made from the panel of the demo. */\n\n")
append_bytes("const unsigned char panel_html"
  "<style>" ${FOLDER}/panel.css "</style>" ${FOLDER}/panel.html)
append_bytes("const unsigned char panel_script" ${FOLDER}/panel.js)
finish()
