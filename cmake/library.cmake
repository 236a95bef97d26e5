# The libraries beside the core.

# weft_library(NAME SOURCES...): make and install NAME, shared and static.  Both need weft.
function(weft_library name)
  add_library(${name}_objects OBJECT ${ARGN})
  weft_compile(${name}_objects)
  target_include_directories(${name}_objects PUBLIC ${PROJECT_SOURCE_DIR}/include
    ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(${name}_objects PRIVATE ${WEFT_DEFINITIONS})
  set_target_properties(${name}_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_C_COMPILER_ID STREQUAL "GNU"
     AND NOT WEFT_PORTABLE)
    target_compile_options(${name}_objects PRIVATE -flto=auto -ffat-lto-objects)
  endif()
  add_library(${name} SHARED $<TARGET_OBJECTS:${name}_objects>)
  add_library(${name}_static STATIC $<TARGET_OBJECTS:${name}_objects>)
  set(map ${PROJECT_BINARY_DIR}/weft.map)
  target_link_options(${name} PRIVATE -Wl,--version-script=${map} ${WEFT_LINK_FLAGS})
  if(WEFT_COVERAGE)
    target_link_options(${name} PRIVATE --coverage)
  endif()
  # The rpath finds the other libraries, which are installed in the same directory.
  set_target_properties(${name} PROPERTIES LINK_DEPENDS ${map} INSTALL_RPATH $ORIGIN
    VERSION ${PROJECT_VERSION} SOVERSION 0)
  set_target_properties(${name}_static PROPERTIES OUTPUT_NAME ${name})
  target_link_libraries(${name} PUBLIC weft)
  target_link_libraries(${name}_static PUBLIC $<BUILD_INTERFACE:weft_whole>
    $<INSTALL_INTERFACE:weft::weft_static>)
  add_library(weft::${name} ALIAS ${name})
  add_library(weft::${name}_static ALIAS ${name}_static)
  install(TARGETS ${name} ${name}_static EXPORT weft)
endfunction()

# weft_pkgconfig(NAME DESCRIPTION REQUIRES [LIBS_PRIVATE REQUIRES_PRIVATE]): install NAME.pc.
function(weft_pkgconfig pc_name pc_description pc_requires)
  set(pc_libs_private "${ARGV3}")
  set(pc_requires_private "${ARGV4}")
  configure_file(${PROJECT_SOURCE_DIR}/cmake/library.pc.in
    ${PROJECT_BINARY_DIR}/${pc_name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${pc_name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
