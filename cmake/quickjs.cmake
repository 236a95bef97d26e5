# quickjs-ng, which the JavaScript binding uses: the system's, or else compiled from Debian's
# source.
#
# Sets WEFT_HAS_JS, QUICKJS_INCLUDE, and either QUICKJS_LIBRARY, or QUICKJS_OBJECTS, which become
# part of weft_js.  All build directories share one compiled copy.

set(WEFT_HAS_JS OFF)
set(QUICKJS_INCLUDE "")
set(QUICKJS_LIBRARY "")
set(QUICKJS_OBJECTS "")

# Set `out` to the version in a header; "" if it is not quickjs-ng's.
function(weft_quickjs_version header out)
  set(version "")
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${header} line REGEX "define QJS_VERSION_${part} ")
    if(line MATCHES "([0-9]+)$")
      list(APPEND version ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(JOIN version "." version)
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

# Use the system's library if its version is in the range of cmake/quickjs.sh.
function(weft_find_quickjs)
  find_path(QUICKJS_SYSTEM_INCLUDE quickjs.h)
  find_library(QUICKJS_SYSTEM_LIBRARY qjs)
  if(NOT QUICKJS_SYSTEM_INCLUDE OR NOT QUICKJS_SYSTEM_LIBRARY)
    return()
  endif()
  weft_quickjs_version(${QUICKJS_SYSTEM_INCLUDE}/quickjs.h version)
  foreach(end oldest below)
    file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/quickjs.sh line REGEX "^${end}=")
    string(REGEX MATCH "[0-9][0-9.]*" ${end} "${line}")
  endforeach()
  if(version VERSION_GREATER_EQUAL oldest AND version VERSION_LESS below)
    set(QUICKJS_INCLUDE ${QUICKJS_SYSTEM_INCLUDE} PARENT_SCOPE)
    set(QUICKJS_LIBRARY ${QUICKJS_SYSTEM_LIBRARY} PARENT_SCOPE)
    set(WEFT_HAS_JS ON PARENT_SCOPE)
  endif()
endfunction()

# Compile it with the hardening flags of weft itself.
function(weft_fetch_quickjs)
  get_filename_component(name ${CMAKE_C_COMPILER} NAME)
  set(flags -O2 -g1 -DNDEBUG ${WEFT_HARDENING} -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  if(WEFT_SANITIZE) # speed does not matter here, and this saves half a minute
    set(flags -O1 -g1 -DNDEBUG ${WEFT_HARDENING})
  endif()
  # Without the undefined-behavior sanitizer: we cannot fix its findings.
  foreach(kind address thread)
    if(WEFT_SANITIZE MATCHES ${kind})
      string(APPEND name "-${kind}")
      list(APPEND flags -fsanitize=${kind})
    endif()
  endforeach()
  set(folder ${PROJECT_SOURCE_DIR}/build/quickjs-ng)
  execute_process(COMMAND ${PROJECT_SOURCE_DIR}/cmake/quickjs.sh ${folder} ${name}
    ${CMAKE_C_COMPILER} ${flags} RESULT_VARIABLE rc)
  if(NOT rc EQUAL 0)
    return()
  endif()
  file(GLOB objects ${folder}/${name}/*.o)
  set(QUICKJS_INCLUDE ${folder}/${name} PARENT_SCOPE)
  set(QUICKJS_OBJECTS ${objects} PARENT_SCOPE)
  set(WEFT_HAS_JS ON PARENT_SCOPE)
endfunction()

if(WEFT_JS)
  weft_find_quickjs()
  if(NOT WEFT_HAS_JS AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CROSSCOMPILING)
    weft_fetch_quickjs()
  endif()
  if(NOT WEFT_HAS_JS AND WEFT_JS STREQUAL "AUTO")
    message(STATUS "weft is built without JavaScript: quickjs-ng was neither found "
      "(libqjs-dev) nor fetched")
  elseif(NOT WEFT_HAS_JS)
    message(FATAL_ERROR "WEFT_JS is ON, and quickjs-ng was neither found (libqjs-dev) "
      "nor fetched")
  endif()
else()
  message(STATUS "weft is built without JavaScript: WEFT_JS is OFF")
endif()
