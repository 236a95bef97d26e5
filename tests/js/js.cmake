# Scripts under `weft run`.  Included if JavaScript is built.

set(js ${CMAKE_CURRENT_LIST_DIR})

# The examples that are scripts.
add_test(NAME js_examples COMMAND ${js}/run_examples.py $<TARGET_FILE:weft_cli>)
set_tests_properties(js_examples PROPERTIES TIMEOUT 300)

# The output and the exit status of the program.
add_test(NAME js_command COMMAND ${js}/command.py $<TARGET_FILE:weft_cli>)
set_tests_properties(js_command PROPERTIES TIMEOUT 300)

# Scripts that check themselves.
foreach(name timer_values timer_clear timer_clamp events limits engine)
  add_test(NAME js_${name} COMMAND ${js}/run_checks.py $<TARGET_FILE:weft_cli> check_${name})
  set_tests_properties(js_${name} PROPERTIES TIMEOUT 150)
endforeach()

# The engine version that a clean tree downloads.
add_test(NAME js_versions COMMAND ${js}/versions.py ${PROJECT_SOURCE_DIR}/cmake/quickjs.sh)

# Order of callbacks and output, compared with Node's.
add_test(NAME js_order COMMAND ${js}/order.py $<TARGET_FILE:weft_cli>)
set_tests_properties(js_order PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)

# The Promises/A+ conformance suite.  It mostly waits.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT WEFT_PORTABLE)
  add_test(NAME js_aplus COMMAND ${js}/aplus/run.py $<TARGET_FILE:weft_cli>
    ${CMAKE_CURRENT_BINARY_DIR}/aplus)
  set_tests_properties(js_aplus PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 900 LABELS slow
    COST 50)
endif()
