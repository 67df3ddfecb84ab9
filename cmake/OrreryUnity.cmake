# A unity build (the debug preset, which CI builds from nothing) compiles several files of a target
# as one, in a third of the time. The files below stand alone, since a name in their unnamed
# namespace is that of a neighbour too. A redefinition that only the debug preset reports is mended
# by a better name, or by a line here: a file, or a folder whose files are of one family and have
# the same names by design. To be included after all folders.
set(ORRERY_STAND_ALONE
  cluster/cluster_test.cc
  cluster/collective_profile_test.cc
  cluster/quantity_test.cc
  cluster/topologies
  cluster/topology_route_test.cc
  cluster/topology_test.cc
  cost_models/collectives
  cost_models/roofline.cc
  lowering/cluster_dialect.cc
  lowering/transfers_test.cc
  search/timeline.cc
  simulator/bubble.cc
  simulator/fluid_network.cc
  simulator/play_test.cc
  simulator/rank_programs_parser.cc
  simulator/rank_programs_printer.cc
  simulator/rank_programs_property_test.cc
  importer/inline_functions.cc
  importer/known_values.cc
  importer/neural_test.cc
  importer/onnx_file.cc
  importer/onnx_ops/microsoft_gradients.cc
  importer/onnx_ops/reshape.cc
  importer/onnx_random_test.cc
  importer/rebatch_test.cc
  importer/rebind_test.cc
  importer/roles.cc
  importer/symbols.cc
  ir/layout_normal.cc
  ir/layout_test.cc
  ir/layout_text.cc
  ir/models/gpt.cc
  ir/models/lstm.cc
  ir/models/mlp.cc
  ir/models/resnet.cc
  ir/neural_test.cc
  ir/op_info_test.cc
  ir/ops/activation.cc
  ir/ops/batch_norm.cc
  ir/ops/convolution.cc
  ir/ops/determinant.cc
  ir/ops/einsum.cc
  ir/ops/gather.cc
  ir/ops/gather_elements.cc
  ir/ops/grid_sample.cc
  ir/ops/gru.cc
  ir/ops/interpolation.cc
  ir/ops/linear.cc
  ir/ops/matmul.cc
  ir/ops/normalization.cc
  ir/ops/one_hot.cc
  ir/ops/pool.cc
  ir/ops/reduction.cc
  ir/ops/roi.cc
  ir/ops/scan.cc
  ir/ops/slice.cc
  ir/ops/window.cc
  ir/placement_text.cc
  ir/placement_text_test.cc
  ir/pointwise_test.cc
  ir/printer.cc
  ir/redistribution_ops_test.cc
  ir/refine_mesh_test.cc
  ir/sharding_oracle_test.cc
  ir/sharding_set_test.cc
  ir/tensor_parts_test.cc
  ir/tensorcraft_text.cc
  ir/tensorcraft_text_test.cc
  ir/verifier_test.cc
  support/id_test.cc
  tests/cli
  tests/lowering/zero_test.cc
  tests/models/spread_models_test.cc
  tests/semantics/recompute_test.cc
  tests/semantics/zero_test.cc
  tools/redistribution_cases.cc
  transforms/auto_shard_test.cc
  transforms/axis_layout.cc
  transforms/fuse_attention.cc
  transforms/fuse_linear.cc
  transforms/fuse_rms_norm.cc
  transforms/fuse_softmax.cc
  transforms/match.cc
  transforms/match_logits.cc
  transforms/merge_common.cc
  transforms/offload_plan.cc
  transforms/op_strategies.cc
  transforms/pack_attention.cc
  transforms/pin_layouts.cc
  transforms/recompute.cc
  transforms/redistribution/dtensor_price.cc
  transforms/redistribution/execute_count_test.cc
  transforms/redistribution/execute_test.cc
  transforms/redistribution/naive_test.cc
  transforms/redistribution/packed_layout_test.cc
  transforms/redistribution/search_test.cc
  transforms/redistribution/tensorcraft_price_test.cc
  transforms/redistribution/tensorcraft_test.cc
  transforms/remove_identities.cc
  transforms/ring_strategy.cc
  transforms/run_again.cc
  transforms/schedules/search_orders_test.cc
  transforms/schedules/text_test.cc
  transforms/schedules/v_half.cc
  transforms/schedules/v_min.cc
  transforms/schedules/zb_1p.cc
  transforms/schedules/zb_h1.cc
  transforms/schedules/zb_h2.cc
  transforms/schedules/zbv_auto.cc
  transforms/second_pipeline.cc
  transforms/shard.cc
  transforms/simplify.cc
  transforms/sink_moves.cc
  transforms/split_backward.cc
  transforms/split_loss.cc
  transforms/stage_costs_test.cc
  transforms/stage_cuts.cc
  transforms/stage_plan.cc
  transforms/stage_timing.cc
  transforms/strategies/colored_graph.cc
  transforms/strategies/elimination_order.cc
  transforms/strategies/fix_shared.cc
  transforms/strategies/improve.cc
  transforms/strategies/inter_op.cc
  transforms/strategies/label_layers.cc
  transforms/strategies/label_layers_test.cc
  transforms/strategies/label_search.cc
  transforms/strategies/model.cc
  transforms/strategies/pipedream_plan.cc
  transforms/strategies/pipedream_plan_test.cc
  transforms/strategies/reparametrize.cc
  transforms/strategies/repeats.cc
  transforms/strategies/repeats_shapes_test.cc
  transforms/strategies/solve.cc
  transforms/strategies/solve_model.cc
  transforms/strategies/solve_test.cc
  transforms/strategies/stage_program.cc
  transforms/strategies/stage_program_test.cc
  transforms/strategies/vertex_cut.cc
  transforms/training_step.cc
  transforms/unpack_weights.cc
  transforms/zero.cc
  transforms/zero_gradients.cc
  transforms/zero_plan.cc
  transforms/zero_test.cc
)

set(files)
foreach(entry IN LISTS ORRERY_STAND_ALONE)
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${entry})
    file(GLOB entry RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${entry}/*.cc)
  endif()
  list(APPEND files ${entry})
endforeach()

foreach(file IN LISTS files)
  # The folder whose target compiles the file.
  cmake_path(GET file PARENT_PATH folder)
  while(NOT EXISTS ${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    cmake_path(GET folder PARENT_PATH folder)
  endwhile()
  set_source_files_properties(${PROJECT_SOURCE_DIR}/${file}
    DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endforeach()
