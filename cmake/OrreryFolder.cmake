# One CMake target a folder. What a target links is what its folder may include.

# Files of a target are compiled several at once, and what most of them include is compiled once:
# a build from nothing takes a fourth of the time. Names cannot meet, since what is local to a file
# stands in a namespace of that file (tests/tidy). Off, each file has to name what it uses.
option(ORRERY_TOGETHER "Compile files of a target together, with precompiled headers" ON)
set(ORRERY_FILES_TOGETHER 8 CACHE STRING "How many files are compiled at once")
option(ORRERY_WARNINGS_ARE_ERRORS "For those who work on Orrery, and its CI" OFF)

add_library(orrery_options INTERFACE)
target_compile_features(orrery_options INTERFACE cxx_std_20)
target_compile_options(orrery_options INTERFACE
  -Wall -Wextra -Wconversion
  $<$<BOOL:${ORRERY_WARNINGS_ARE_ERRORS}>:-Werror>
  # g++ 12 sees the unused inline storage of a moved absl::InlinedVector as a read of it.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-array-bounds>
  # Fused multiply-add would round differently from one machine to the next.
  -ffp-contract=off
  # Names of files in messages begin at the root, and what is compiled is the same in every clone.
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(ORRERY_TOGETHER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Collecting garbage below a GiB costs it a tenth of its time. clang-tidy does not know the option.
  target_compile_options(orrery_options INTERFACE --param=ggc-min-heapsize=1048576)
endif()
if(ORRERY_TOGETHER AND CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache" AND
   CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(orrery_options INTERFACE -fpch-preprocess)  # or ccache passes
endif()
if(ORRERY_SANITIZE)
  target_compile_options(orrery_options INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
    # Types of functions are not the same to clang++ on both sides of a module.
    $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
  target_link_options(orrery_options INTERFACE -fsanitize=address,undefined)
endif()

# For code that runs for a moment: it is compiled in two thirds of the time.
add_library(orrery_cold_options INTERFACE)
target_link_libraries(orrery_cold_options INTERFACE orrery_options)
target_compile_options(orrery_cold_options INTERFACE
  $<$<CONFIG:Release>:-O1>
  # At -O1 g++ 12 warns of std::string's own copying.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-stringop-overread -Wno-stringop-overflow>)

# What every test program is compiled with.
add_library(orrery_test_options INTERFACE)
target_link_libraries(orrery_test_options INTERFACE orrery_cold_options)
# What tests do themselves is little.
target_compile_options(orrery_test_options INTERFACE $<$<CONFIG:Debug>:-O0>)
if(ORRERY_TESTS)
  # Where sources and programs stand: support/paths_test_util.h.
  file(CONFIGURE OUTPUT orrery_test_paths.cc CONTENT [[#include "support/paths_test_util.h"

std::string orrery::SourceDir() { return "@PROJECT_SOURCE_DIR@"; }
std::string orrery::BinDir() { return "@CMAKE_RUNTIME_OUTPUT_DIRECTORY@"; }
]] @ONLY)
  add_library(orrery_test_paths STATIC ${CMAKE_CURRENT_BINARY_DIR}/orrery_test_paths.cc)
  target_include_directories(orrery_test_paths PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(orrery_test_paths PRIVATE orrery_options)
  target_link_libraries(orrery_test_options INTERFACE orrery_test_paths)
endif()

# Carries the headers that are compiled once; one for libraries and programs, one for modules and
# one for tests, which are compiled with other options.
function(orrery_add_precompiled name)
  if(NOT ORRERY_TOGETHER)
    return()
  endif()
  cmake_parse_arguments(ARG "PIC" "" "HEADERS;LINKS" ${ARGN})
  file(CONFIGURE OUTPUT ${name}.cc CONTENT "// Nothing but headers.\n")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  target_link_libraries(${name} PRIVATE ${ARG_LINKS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ${ARG_PIC})
endfunction()
set(orrery_precompiled_links absl::flat_hash_map absl::flat_hash_set absl::inlined_vector
  absl::status absl::statusor absl::strings absl::str_format)
orrery_add_precompiled(orrery_precompiled
  HEADERS ${PROJECT_SOURCE_DIR}/cmake/precompiled.h
  LINKS orrery_options ${orrery_precompiled_links})
orrery_add_precompiled(orrery_module_precompiled PIC
  HEADERS ${PROJECT_SOURCE_DIR}/cmake/precompiled.h
  LINKS orrery_options ${orrery_precompiled_links})
if(ORRERY_TESTS)
  orrery_add_precompiled(orrery_test_precompiled
    HEADERS ${PROJECT_SOURCE_DIR}/cmake/precompiled.h <gmock/gmock.h> <gtest/gtest.h>
    LINKS orrery_test_options ${orrery_precompiled_links} GTest::gmock)
endif()

# orrery_compile_together(TARGET PRECOMPILED): its files, several at once, with the headers of
# PRECOMPILED.
function(orrery_compile_together target precompiled)
  if(NOT ORRERY_TOGETHER)
    return()
  endif()
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${ORRERY_FILES_TOGETHER})
  target_precompile_headers(${target} REUSE_FROM ${precompiled})
endfunction()

# orrery_def_sources(OUT LIST.def DIR): the sources that the lines of LIST.def name.
# A line reads MACRO(Name, file): the file, without ".cc", stands in DIR; it can name a folder of
# it. A file that is missing is an error.
function(orrery_def_sources out def dir)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${def})
  file(STRINGS ${def} lines REGEX "^ORRERY_[A-Z_]+\\(")
  set(sources)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^ORRERY_[A-Z_]+\\(.*, *([a-z0-9_/]+) *\\).*" "\\1" file "${line}")
    get_filename_component(path ${dir}/${file}.cc ABSOLUTE)
    if(NOT EXISTS ${path})
      message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}/${def} names ${file}; no ${path}")
    endif()
    list(APPEND sources ${dir}/${file}.cc)
  endforeach()
  list(REMOVE_DUPLICATES sources)
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# orrery_add_test(NAME SOURCES a.cc … [LINKS target …] [PROGRAMS target …])
# A test program with gtest_main, whose tests ctest knows one by one, or under sanitizers by parts of
# the program. PROGRAMS are those it runs.
function(orrery_add_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;PROGRAMS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} orrery_test_options
    GTest::gmock GTest::gtest_main)
  orrery_compile_together(${name} orrery_test_precompiled)
  if(ARG_PROGRAMS)
    add_dependencies(${name} ${ARG_PROGRAMS})
  endif()
  if(ORRERY_SANITIZE)
    orrery_add_test_parts(${name})
  else()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60)
  endif()
endfunction()

# orrery_add_test_parts(NAME): ctest runs the program in eight processes, each with an eighth of its
# tests. To start and to end one takes more than most tests where sanitizers look at its memory.
# Stacks of three calls for each piece of memory, little of what was freed kept, and variables of
# calls that have returned where the stack has them: a fifth of the time less.
function(orrery_add_test_parts name)
  foreach(part RANGE 7)
    add_test(NAME ${name}.part${part} COMMAND ${name})
    set_tests_properties(${name}.part${part} PROPERTIES
      ENVIRONMENT "GTEST_TOTAL_SHARDS=8;GTEST_SHARD_INDEX=${part};ASAN_OPTIONS=malloc_context_size=3:quarantine_size_mb=16:detect_stack_use_after_return=0")
  endforeach()
endfunction()

# orrery_add_folder(NAME [FOR_TESTS] [MODULE] [COLD] [REGISTRY list.cc] [SOURCES extra.cc …]
#                   [DEPS target …] [PRIVATE_DEPS target …] [TEST_DEPS target …]
#                   [TEST_SOURCES extra_test.cc …])
# A static library of the folder's *.cc, and one test program of its *_test.cc. NAME is the path of
# the folder with "_" for "/". FOR_TESTS: no program links it, and it is not installed. MODULE: it is
# also a part of a module (OrreryModule.cmake). COLD: it works once for a model, a cluster or a
# program, not for each plan, and is compiled sooner rather than to be fast. REGISTRY has the table of a .def: it is compiled by
# itself, as each new line compiles it anew.
function(orrery_add_folder name)
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE "/" "_" path ${path})
  if(NOT name STREQUAL path)
    message(FATAL_ERROR "got the target name ${name}; wanted ${path}, after the folder")
  endif()
  cmake_parse_arguments(ARG "FOR_TESTS;MODULE;COLD" "REGISTRY"
    "SOURCES;DEPS;PRIVATE_DEPS;TEST_DEPS;TEST_SOURCES" ${ARGN})
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
    PRIVATE $<BUILD_INTERFACE:$<IF:$<BOOL:${ARG_COLD}>,orrery_cold_options,orrery_options>>
    ${ARG_PRIVATE_DEPS})
  if(ARG_MODULE)
    set_target_properties(orrery_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    orrery_compile_together(orrery_${name} orrery_module_precompiled)
  else()
    orrery_compile_together(orrery_${name} orrery_precompiled)
  endif()
  if(ARG_REGISTRY)
    set_source_files_properties(${ARG_REGISTRY} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  if(ARG_FOR_TESTS)
    set_target_properties(orrery_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  else()
    set_property(GLOBAL APPEND PROPERTY ORRERY_FOLDERS ${name})
  endif()
  if(ORRERY_TESTS AND (tests OR ARG_TEST_SOURCES))
    orrery_add_test(${name}_test SOURCES ${tests} ${ARG_TEST_SOURCES}
      LINKS orrery_${name} ${ARG_TEST_DEPS})
  endif()
endfunction()
