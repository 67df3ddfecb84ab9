# What reads files with a large library stands in a module, which a program loads when a file asks
# for it; and a program finds its libraries inside itself (docs/adr/0014-readers-are-modules.md).

# What a module shares with the program that loads it, rather than having a copy: a program has
# these folders whole, and lets modules see them.
set(orrery_shared_with_modules support ir cluster importer_batch importer)
set(orrery_module_dir lib/orrery)  # beside bin/, where programs stand
set(orrery_loads_modules $<BOOL:$<TARGET_PROPERTY:ORRERY_LOADS_MODULES>>)

# orrery_stamp(target): `orrery_build_stamp` is defined in it, by which a program knows the modules of
# its own build (support/module.h).
set(orrery_stamp_file ${PROJECT_BINARY_DIR}/orrery_build_stamp.cc)
file(GLOB_RECURSE orrery_stamped CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  support/*.h ir/*.h importer/*.h cluster/*.h)
add_custom_command(OUTPUT ${orrery_stamp_file}.made
  BYPRODUCTS ${orrery_stamp_file}
  COMMAND ${CMAKE_COMMAND} -DOUT=${orrery_stamp_file} -DROOT=${PROJECT_SOURCE_DIR}
    "-DHEADERS=${orrery_stamped}"
    "-DBUILD=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS} ${ORRERY_SANITIZE}"
    -P ${PROJECT_SOURCE_DIR}/cmake/build_stamp.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${orrery_stamp_file}.made
  DEPENDS ${orrery_stamped} ${PROJECT_SOURCE_DIR}/cmake/build_stamp.cmake
  COMMENT "Stamping the build" VERBATIM)
add_custom_target(orrery_build_stamp DEPENDS ${orrery_stamp_file}.made)
function(orrery_stamp target)
  target_sources(${target} PRIVATE ${orrery_stamp_file})
  set_source_files_properties(${orrery_stamp_file} PROPERTIES
    GENERATED ON SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  add_dependencies(${target} orrery_build_stamp)
endfunction()

# orrery_add_module(NAME FOLDER folder DECLARED_BY folder LOADER file.cc LINKS target …)
# Functions that a header of DECLARED_BY declares and FOLDER defines. Who links DECLARED_BY links
# FOLDER with it; a program (orrery_loads_modules_of) links LOADER instead, which defines the same
# functions and finds them at their first call in the module liborrery_NAME.so: FOLDER and LINKS.
function(orrery_add_module name)
  cmake_parse_arguments(ARG "" "FOLDER;DECLARED_BY;LOADER" "LINKS" ${ARGN})
  set(folder orrery_${ARG_FOLDER})
  set(module orrery_${name}_module)
  set(loader orrery_${name}_loader)

  file(CONFIGURE OUTPUT ${module}.cc CONTENT "// Nothing but ${folder}.\n")
  add_library(${module} MODULE ${CMAKE_CURRENT_BINARY_DIR}/${module}.cc)
  set_target_properties(${module} PROPERTIES PREFIX lib OUTPUT_NAME orrery_${name}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${orrery_module_dir}
    LINK_DEPENDS $<TARGET_FILE:${folder}>)
  add_dependencies(${module} ${folder})
  orrery_stamp(${module})
  # A function of the module is its own, though the loader's has the same name; data is shared.
  target_link_options(${module} PRIVATE
    LINKER:--undefined=orrery_${name}_entry LINKER:-Bsymbolic-functions)
  target_link_libraries(${module} PRIVATE orrery_options $<TARGET_FILE:${folder}> ${ARG_LINKS})
  install(TARGETS ${module} LIBRARY DESTINATION ${orrery_module_dir})
  set_property(GLOBAL APPEND PROPERTY ORRERY_MODULES ${module})

  add_library(${loader} STATIC EXCLUDE_FROM_ALL ${ARG_LOADER})
  # Only what it needs itself: a whole folder on a circle would be linked twice.
  target_link_libraries(${loader} PRIVATE orrery_options orrery_support)
  target_link_libraries(orrery_${ARG_DECLARED_BY} INTERFACE
    $<BUILD_INTERFACE:$<IF:${orrery_loads_modules},${loader},${folder}>>
    $<INSTALL_INTERFACE:orrery::${ARG_FOLDER}>)
endfunction()

# orrery_loads_modules_of(PROGRAM): it loads modules, and needs no library of C++ beside itself. It
# stands at a fixed address: there are 14,000 pointers less to relocate before it starts (1 ms).
function(orrery_loads_modules_of program)
  get_property(modules GLOBAL PROPERTY ORRERY_MODULES)
  add_dependencies(${program} ${modules})
  list(TRANSFORM orrery_shared_with_modules PREPEND orrery_ OUTPUT_VARIABLE shared)
  list(JOIN shared "," shared)
  set_target_properties(${program} PROPERTIES ORRERY_LOADS_MODULES ON
    LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${shared}")
  set(exported ${PROJECT_SOURCE_DIR}/cmake/exported_symbols.txt)
  set_property(TARGET ${program} APPEND PROPERTY LINK_DEPENDS ${exported})
  target_link_options(${program} PRIVATE LINKER:--dynamic-list=${exported}
    $<$<NOT:$<BOOL:${ORRERY_SANITIZE}>>:-static-libstdc++;-static-libgcc;-no-pie>)
endfunction()

# orrery_prefer_static(PATTERN): of the imported targets whose names match, the static library
# that stands beside the shared one is linked; where there is none, the shared one.
function(orrery_prefer_static pattern)
  get_directory_property(targets IMPORTED_TARGETS)
  list(FILTER targets INCLUDE REGEX "${pattern}")
  foreach(target IN LISTS targets)
    foreach(configuration "" _NONE _RELEASE _RELWITHDEBINFO)
      get_target_property(path ${target} IMPORTED_LOCATION${configuration})
      string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${path}")
      if(path AND EXISTS "${archive}")
        set_target_properties(${target} PROPERTIES IMPORTED_LOCATION${configuration} ${archive})
      endif()
    endforeach()
  endforeach()
endfunction()
