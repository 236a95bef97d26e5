# Python: ask the interpreter where its headers are.

set(WEFT_PYTHON AUTO CACHE STRING "an asyncio loop for Python: ON, OFF, AUTO (if available)")
set_property(CACHE WEFT_PYTHON PROPERTY STRINGS AUTO ON OFF)
set(WEFT_PYTHON_EXECUTABLE /usr/bin/python3 CACHE FILEPATH "the Python to build for")

set(WEFT_HAS_PYTHON OFF)
if(WEFT_PYTHON AND NOT CMAKE_CROSSCOMPILING)
  set(ask "import sys, sysconfig
assert sys.version_info >= (3, 11), 'it is older than 3.11'
print(sysconfig.get_path('include'), sysconfig.get_config_var('EXT_SUFFIX'), sep=';')")
  execute_process(COMMAND ${WEFT_PYTHON_EXECUTABLE} -c "${ask}" OUTPUT_VARIABLE answer
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE rc)
  if(rc EQUAL 0)
    list(GET answer 0 PYTHON_INCLUDE)
    list(GET answer 1 PYTHON_SUFFIX)
  endif()
  if(rc EQUAL 0 AND EXISTS ${PYTHON_INCLUDE}/Python.h)
    set(WEFT_HAS_PYTHON ON)
  elseif(WEFT_PYTHON STREQUAL "AUTO")
    message(STATUS "weft is built without Python: 3.11 or later with its headers (python3-dev) "
      "was not found")
  else()
    message(FATAL_ERROR "WEFT_PYTHON is ON, and ${WEFT_PYTHON_EXECUTABLE} is not Python 3.11 or "
      "later with its headers (python3-dev)")
  endif()
endif()
