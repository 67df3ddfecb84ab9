# What `cmake --install` puts down: headers under include/orrery/<folder>/, one static library a
# folder, and a package for find_package(orrery) with the targets orrery::<folder>, and
# orrery::orrery for all of them. The programs are installed by tools/CMakeLists.txt.

include(CMakePackageConfigHelpers)

set(orrery_header_folders support ir importer cluster transforms cost_models simulator lowering
  search)
# What only a folder itself or its tests include. tests/embed fails when an installed header needs
# one of these.
set(orrery_private_headers
  "_test_util\\.h$"
  "^cluster/(file_.*|quantity|spelling|topologies)\\.h$"
  "^cluster/topologies/"
  "^cost_models/op_fixture\\.h$"
  "^cost_models/collectives/(execution|group_layout|ring)\\.h$"
  "^importer/(batch_places|external_data|graph_.*|inline_.*|known_values|onnx_.*|printable|rare_batch)\\.h$"
  "^importer/(rebatch|rebind|roles|symbols|tensor_values)\\.h$"
  "^ir/ops/"
  "^ir/text_scanner\\.h$"
  "^ir/models/(layers|model)\\.h$"
  "^lowering/(astra_plan|block|block_buffers|buckets|earlier_rows|exchange|fuse_runs|host_work|link_classes|makers|origin_set|placer|pricing|residents|scratch|stage|stage_maker|stage_copy|task_name|units)\\.h$"
  "^simulator/(activity|line_reader|random_program|rank_meetings|slow_down|task_order)\\.h$"
  "^transforms/(axis_layout|choose_stages|emit_sharded|heads|match|match_logits|offload_plan|op_strategies|rewriter|ring_strategy|second_pipeline|shard_plan|sharding_graph|shared_parameters|slice_rules|split_loss|stage_costs|stage_cuts|stage_part|stage_plan|stage_timing|stage_units|step_phases|units|zero_part|zero_plan)\\.h$"
  "^transforms/redistribution/(dtensor_bound|dtensor_price|dtensor_view|summands)\\.h$"
  "^transforms/schedules/(building_block|dual_pipe_steps|list_scheduler|order_judge|registry|rounds)\\.h$"
  "^transforms/schedules/(search_orders|step_player)\\.h$"
  "^transforms/strategies/(bucket_tree|colored_graph|elimination_order|fix_shared|improve|label_layers|label_search|minimize)\\.h$"
  "^transforms/strategies/(model|reparametrize|repeats|solve_model|vertex_cut)\\.h$")
# Lists that public headers include.
set(orrery_installed_headers ir/ops.def)

foreach(folder IN LISTS orrery_header_folders)
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${folder}/*.h)
  foreach(pattern IN LISTS orrery_private_headers)
    list(FILTER headers EXCLUDE REGEX "${pattern}")
  endforeach()
  list(APPEND orrery_installed_headers ${headers})
endforeach()
foreach(header IN LISTS orrery_installed_headers)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${header}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/orrery/${folder})
endforeach()

add_library(orrery_orrery INTERFACE)
add_library(orrery::orrery ALIAS orrery_orrery)
set_target_properties(orrery_orrery PROPERTIES EXPORT_NAME orrery)
get_property(orrery_libraries GLOBAL PROPERTY ORRERY_FOLDERS)
list(REMOVE_ITEM orrery_libraries tool_flags)
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
