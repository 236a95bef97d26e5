# QuickJS, which the JavaScript adapter stands on: the system's, else Debian's source.
#
# Sets WEFT_HAS_JS; QUICKJS_INCLUDE; and either QUICKJS_LIBRARY, or QUICKJS_OBJECTS, which
# become part of the adapter's own library.  What is compiled here is compiled once for all
# build folders.

set(WEFT_HAS_JS OFF)
set(QUICKJS_INCLUDE "")
set(QUICKJS_LIBRARY "")
set(QUICKJS_OBJECTS "")

function(weft_find_quickjs)
  find_path(QUICKJS_SYSTEM_INCLUDE quickjs.h PATH_SUFFIXES quickjs)
  find_library(QUICKJS_SYSTEM_LIBRARY quickjs
    PATH_SUFFIXES quickjs ${CMAKE_LIBRARY_ARCHITECTURE}/quickjs)
  if(NOT QUICKJS_SYSTEM_INCLUDE OR NOT QUICKJS_SYSTEM_LIBRARY)
    return()
  endif()
  # Older ones lack functions that are needed here.
  file(STRINGS ${QUICKJS_SYSTEM_INCLUDE}/quickjs.h new REGEX "JS_SetUncatchableError")
  if(new)
    set(QUICKJS_INCLUDE ${QUICKJS_SYSTEM_INCLUDE} PARENT_SCOPE)
    set(QUICKJS_LIBRARY ${QUICKJS_SYSTEM_LIBRARY} PARENT_SCOPE)
    set(WEFT_HAS_JS ON PARENT_SCOPE)
  endif()
endfunction()

function(weft_fetch_quickjs)
  get_filename_component(name ${CMAKE_C_COMPILER} NAME)
  set(flags -O2 -g1 -DNDEBUG)
  if(WEFT_SANITIZE) # nobody measures it, and half a minute is saved
    set(flags -O1 -g1 -DNDEBUG)
  endif()
  # It is not ours to clear of undefined behaviour.
  foreach(kind address thread)
    if(WEFT_SANITIZE MATCHES ${kind})
      string(APPEND name "-${kind}")
      list(APPEND flags -fsanitize=${kind} -fno-omit-frame-pointer)
    endif()
  endforeach()
  set(folder ${PROJECT_SOURCE_DIR}/build/quickjs)
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
    message(STATUS "weft is built without JavaScript: QuickJS was neither found "
      "(libquickjs) nor fetched")
  elseif(NOT WEFT_HAS_JS)
    message(FATAL_ERROR "WEFT_JS is ON, and QuickJS was neither found (libquickjs) "
      "nor fetched")
  endif()
else()
  message(STATUS "weft is built without JavaScript: WEFT_JS is OFF")
endif()
