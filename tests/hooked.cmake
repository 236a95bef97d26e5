# hooked.cmake - the simulator and the schedule explorer.

# The library is built a second time.  In it every atomic operation calls a hook, through
# which the simulator and the schedule explorer choose what happens next.
add_library(weft_hooked STATIC ${WEFT_HOOKED_SOURCES})
weft_compile(weft_hooked)
target_include_directories(weft_hooked PUBLIC ${PROJECT_SOURCE_DIR}/include
  ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(weft_hooked PUBLIC WEFT__HOOK_ATOMICS
  $<$<BOOL:${WEFT_PORTABLE}>:WEFT_PORTABLE>)
target_link_libraries(weft_hooked PUBLIC Threads::Threads ${WEFT_TLS_LIBRARIES})
if(WEFT_USE_CARES)
  target_link_libraries(weft_hooked PUBLIC ${CARES_LIBRARY})
endif()

# The simulated kernel, and the simulations that run on it.
file(GLOB sim_sources CONFIGURE_DEPENDS sim/kernel/*.c sim/run/*.c)
list(REMOVE_ITEM sim_sources ${CMAKE_CURRENT_SOURCE_DIR}/sim/run/main.c)
file(GLOB sim_plays CONFIGURE_DEPENDS sim/scenarios/*.c)
list(FILTER sim_plays EXCLUDE REGEX scenarios\\.c$)

# HTTP is built a second time, too.  It uses the compiler's atomics, so they are hooked by
# name.  Its system calls are simulated.
get_target_property(http_hooked weft_http_objects SOURCES)
list(FILTER http_hooked EXCLUDE REGEX os_http\\.c$)
list(TRANSFORM http_hooked PREPEND ${PROJECT_SOURCE_DIR}/proto/)
add_library(weft_http_hooked OBJECT ${http_hooked})
weft_compile(weft_http_hooked)
target_link_libraries(weft_http_hooked PUBLIC weft_hooked)
target_include_directories(weft_http_hooked PUBLIC ${PROJECT_SOURCE_DIR}/proto)
target_compile_options(weft_http_hooked PRIVATE
  -include ${CMAKE_CURRENT_SOURCE_DIR}/sim/kernel/builtins.h)

# The same for Redis.
get_target_property(redis_hooked weft_redis_objects SOURCES)
list(TRANSFORM redis_hooked PREPEND ${PROJECT_SOURCE_DIR}/proto/)
add_library(weft_redis_hooked OBJECT ${redis_hooked})
weft_compile(weft_redis_hooked)
target_link_libraries(weft_redis_hooked PUBLIC weft_hooked)
target_include_directories(weft_redis_hooked PUBLIC ${PROJECT_SOURCE_DIR}/proto)
target_compile_options(weft_redis_hooked PRIVATE
  -include ${CMAKE_CURRENT_SOURCE_DIR}/sim/kernel/builtins.h)

add_library(weft_sim STATIC ${sim_sources} ${sim_plays}
  $<TARGET_OBJECTS:weft_http_hooked> $<TARGET_OBJECTS:weft_redis_hooked>)
weft_compile(weft_sim)
target_link_libraries(weft_sim PUBLIC weft_hooked)
target_include_directories(weft_sim PUBLIC ${PROJECT_SOURCE_DIR}/proto)

file(GLOB sim_scenarios CONFIGURE_DEPENDS sim/scenarios/*scenarios.c)
add_executable(sim sim/run/main.c ${sim_scenarios})
weft_compile(sim)
target_link_libraries(sim PRIVATE weft_sim)
add_test(NAME sim COMMAND sim --seeds 3000)
set_tests_properties(sim PROPERTIES TIMEOUT 900 COST 100)

# The planted bugs of the self-test are source bugs, independent of the build: coverage and
# portable builds omit them, and the label slow keeps them out of the sanitizer runs.
# sim_crowd, a server with 10,000 idle and 1,000 slow peers, also runs under the sanitizers.
if(WEFT_COVERAGE OR WEFT_PORTABLE)
  return()
endif()
file(GLOB selftest_sources CONFIGURE_DEPENDS sim/selftest/*.c)
add_executable(sim_selftest ${selftest_sources} ${sim_scenarios})
weft_compile(sim_selftest)
target_link_libraries(sim_selftest PRIVATE weft_sim)
add_test(NAME sim_selftest COMMAND sim_selftest)
set_tests_properties(sim_selftest PROPERTIES TIMEOUT 900 LABELS slow)
add_test(NAME sim_crowd COMMAND sim_selftest crowd)
set_tests_properties(sim_crowd PROPERTIES TIMEOUT 300)

# Schedules are explored in the same builds, except those with sanitizers.
if(WEFT_SANITIZE)
  return()
endif()

add_library(weft_hooked_main OBJECT test.c ${runner})
weft_compile(weft_hooked_main)
target_link_libraries(weft_hooked_main PUBLIC weft_hooked)
target_include_directories(weft_hooked_main PUBLIC ${CMOCKA_INCLUDE})

add_library(weft_explore STATIC explore/explore.c explore/heap.c explore/memory.c
  explore/plain.c explore/report.c explore/search.c explore/weaken.c explore/world.c)
weft_compile(weft_explore)
target_link_libraries(weft_explore PUBLIC weft_hooked)
target_include_directories(weft_explore PUBLIC explore)

function(weft_explore_test name)
  add_executable(${name} ${ARGN})
  weft_compile(${name})
  target_link_libraries(${name} PRIVATE weft_explore)
  add_test(NAME ${name} COMMAND ${name} ${weaken})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900 LABELS slow)
endfunction()

# The memory-order weakening runs in one build; where it takes minutes, only with --deep.
set(weaken)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
  set(weaken no)
endif()
weft_explore_test(inbox_models explore/inbox_models.c explore/inbox_world.c
  explore/producer_models.c explore/mailbox_models.c explore/models.c)
weft_explore_test(biased_models explore/biased_models.c explore/models.c)
set(weaken no)
weft_explore_test(pool_models explore/pool_models.c explore/models.c)
weft_explore_test(waitable_models explore/waitable_models.c explore/waitable_world.c
  explore/waitable_locks.c explore/models.c)
foreach(name pool_models waitable_models)
  add_test(NAME ${name}.weakened COMMAND ${name})
  set_tests_properties(${name}.weakened PROPERTIES TIMEOUT 900 LABELS deep)
endforeach()
set(weaken)
weft_explore_test(promise_models explore/promise_models.c explore/first_models.c
  explore/quota_models.c explore/models.c)
weft_explore_test(life_models explore/life_models.c explore/models.c)
set_tests_properties(life_models PROPERTIES LABELS deep) # minutes
foreach(name litmus tracked explore axioms)
  weft_explore_test(${name}_test explore/${name}_test.c)
  target_link_libraries(${name}_test PRIVATE weft_hooked_main ${CMOCKA_LIBRARY})
endforeach()
