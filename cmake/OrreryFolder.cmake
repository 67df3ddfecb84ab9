# One CMake target a folder. What a target links is what its folder may include.

add_library(orrery_options INTERFACE)
target_compile_features(orrery_options INTERFACE cxx_std_20)
target_compile_options(orrery_options INTERFACE
  -Wall -Wextra -Wconversion -Werror
  # g++ 12 sees the unused inline storage of a moved absl::InlinedVector as a read of it.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  # Fused multiply-add would round differently from one machine to the next.
  -ffp-contract=off)
if(ORRERY_SANITIZE)
  target_compile_options(orrery_options INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(orrery_options INTERFACE -fsanitize=address,undefined)
endif()

# orrery_def_sources(OUT LIST.def DIR [FAMILY n]): the sources that the lines of LIST.def name.
# A line reads MACRO(Name, file): the file, without ".cc", stands in DIR.
function(orrery_def_sources out def dir)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${def})
  file(STRINGS ${def} lines REGEX "^ORRERY_[A-Z_]+\\(")
  set(sources)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^ORRERY_[A-Z_]+\\([^,]*, *([a-z0-9_]+) *\\).*" "\\1" file "${line}")
    list(APPEND sources ${dir}/${file}.cc)
  endforeach()
  list(REMOVE_DUPLICATES sources)
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# orrery_add_folder(NAME [SOURCES extra.cc …] [DEPS target …] [PRIVATE_DEPS target …]
#                   [TEST_DEPS target …])
# A static library of the folder's *.cc, and one test program of its *_test.cc.
function(orrery_add_folder name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS;TEST_DEPS;TEST_SOURCES" ${ARGN})
  file(GLOB sources RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS *.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  add_library(orrery_${name} STATIC ${sources} ${ARG_SOURCES})
  add_library(orrery::${name} ALIAS orrery_${name})
  set_target_properties(orrery_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(orrery_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/orrery>)
  target_link_libraries(orrery_${name} PUBLIC ${ARG_DEPS}
    PRIVATE $<BUILD_INTERFACE:orrery_options> ${ARG_PRIVATE_DEPS})
  set_property(GLOBAL APPEND PROPERTY ORRERY_FOLDERS ${name})
  if(ORRERY_TESTS AND (tests OR ARG_TEST_SOURCES))
    add_executable(${name}_test ${tests} ${ARG_TEST_SOURCES})
    target_link_libraries(${name}_test PRIVATE orrery_${name} orrery_options ${ARG_TEST_DEPS}
      GTest::gmock GTest::gtest_main)
    target_compile_definitions(${name}_test PRIVATE ORRERY_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60)
  endif()
endfunction()
