# What `cmake --install` puts down: headers under include/orrery/<folder>/, one static library a
# folder, and a package for find_package(orrery) with the targets orrery::<folder>, and
# orrery::orrery for all of them. The programs are installed by tools/CMakeLists.txt.

include(CMakePackageConfigHelpers)

# What others may include, one path a line. tests/embed fails when one of these needs another.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/cmake/public_headers.txt)
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/public_headers.txt orrery_installed_headers)
foreach(header IN LISTS orrery_installed_headers)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${header}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/orrery/${folder})
endforeach()

add_library(orrery_orrery INTERFACE)
add_library(orrery::orrery ALIAS orrery_orrery)
set_target_properties(orrery_orrery PROPERTIES EXPORT_NAME orrery)
get_property(orrery_libraries GLOBAL PROPERTY ORRERY_FOLDERS)
list(FILTER orrery_libraries EXCLUDE REGEX "^tools")
foreach(folder IN LISTS orrery_libraries)
  # The headers are C++20; the other options of the build stay with the build.
  target_compile_features(orrery_${folder} INTERFACE cxx_std_20)
  target_link_libraries(orrery_orrery INTERFACE orrery_${folder})
  install(TARGETS orrery_${folder} EXPORT orreryTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
install(TARGETS orrery_orrery EXPORT orreryTargets)

set(orrery_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/orrery)
install(EXPORT orreryTargets NAMESPACE orrery:: DESTINATION ${orrery_package_dir})
configure_package_config_file(cmake/orreryConfig.cmake.in ${PROJECT_BINARY_DIR}/orreryConfig.cmake
  INSTALL_DESTINATION ${orrery_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/orreryConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/orreryConfig.cmake ${PROJECT_BINARY_DIR}/orreryConfigVersion.cmake
  DESTINATION ${orrery_package_dir})
