# Python: the package in the build folder, tested by our own tests, by those of CPython, and
# by real programs.

set(python ${CMAKE_CURRENT_LIST_DIR})
set(python_environment PYTHONPATH=${PROJECT_BINARY_DIR}/python PYTHONDONTWRITEBYTECODE=1)
if(WEFT_DEBUG)
  list(APPEND python_environment WEFT_TEST_DEBUG=1)
endif()
if(WEFT_SANITIZE MATCHES "address")
  # Python itself is not built with ASan: its runtime is loaded first, and sees all memory.
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libasan.so
    OUTPUT_VARIABLE libasan OUTPUT_STRIP_TRAILING_WHITESPACE)
  list(APPEND python_environment LD_PRELOAD=${libasan} PYTHONMALLOC=malloc
    ASAN_OPTIONS=detect_leaks=0)
endif()

# weft_python_test(NAME WORDS...): runs with the Python that the package was built for.
function(weft_python_test name)
  add_test(NAME python_${name} COMMAND ${WEFT_PYTHON_EXECUTABLE} ${ARGN})
  set_tests_properties(python_${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900
    ENVIRONMENT "${python_environment}")
endfunction()

weft_python_test(test ${python}/run.py --again 3)
weft_python_test(examples ${python}/examples.py)
if(NOT WEFT_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
  weft_python_test(test_self_test ${python}/run.py --self-test)
  weft_python_test(connections ${python}/connections.py)
  weft_python_test(malloc_debug ${python}/run.py --again 3)
  set_property(TEST python_malloc_debug APPEND PROPERTY ENVIRONMENT PYTHONMALLOC=debug)
  weft_python_test(conformance ${python}/conformance/run.py weft --quick --again 3
    --allow ${python}/conformance/skips.txt)
  weft_python_test(conformance_self_test ${python}/conformance/run.py --self-test)
  weft_python_test(programs ${python}/programs/run.py weft programs)
  set_tests_properties(python_malloc_debug python_programs PROPERTIES LABELS slow)

  # The full runs.
  weft_python_test(leaks ${python}/run.py -R 3:3)
  weft_python_test(conformance_all ${python}/conformance/run.py weft --no-whitebox --again 3
    --allow ${python}/conformance/skips.txt)
  weft_python_test(connections_all ${python}/connections.py 1000000)
  weft_python_test(suites ${python}/programs/run.py weft suites)
  weft_python_test(programs_self_test ${python}/programs/run.py --self-test)
  weft_python_test(package ${python}/package.py ${PROJECT_SOURCE_DIR})
  foreach(name leaks conformance_all connections_all suites programs_self_test package)
    set_tests_properties(python_${name} PROPERTIES LABELS deep)
  endforeach()
endif()
